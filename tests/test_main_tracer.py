"""What the tracer of the main path sees where ONNX Runtime does not run the graph as it is; counted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

from crashpath.coverage import onnx_session
from crashpath.coverage.covered import Covered, add_up
from crashpath.coverage.onnx_graph import OutsideError
from crashpath.coverage.onnx_shipped import shipped
from crashpath.coverage.onnx_trace import FULL, REMOVED, MainTracer
from crashpath.coverage.placement import Placement, placement
from crashpath.coverage.runfile import Run, Seen
from crashpath.coverage.units import Declared, Kind, Placed, Shipped, Trace, Unit
from crashpath.runtime.backends import CPU, OrtBackend
from crashpath.runtime.errors import DeviceInit
from crashpath.runtime.folder import Limits, ModelFolder, TensorSpec, Tolerance
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)


def folder_of(place: Path, model: onnx.ModelProto | str, **save: Any) -> ModelFolder:
    """Write a graph as the main path of a folder; inputs and outputs are as the graph says."""
    made = parser.parse_model(model) if isinstance(model, str) else model
    place.mkdir(parents=True, exist_ok=True)
    onnx.save(made, str(place / "model.onnx"), **save)
    return ModelFolder(
        place, "tiny", _specs(made.graph.input), _specs(made.graph.output), Tolerance(), Limits(), None, ()
    )


def _specs(values: Any) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(one.name, "float32", ("n", 4)) for one in values)


def traced(folder: ModelFolder, *feeds: Arrays) -> tuple[Trace, dict[str, int], set[str]]:
    """Trace feeds; answers are held, bit by bit, to those of a session at no optimisation.

    Returns the trace, the hits of nodes, and the nodes that are in the denominator.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    plain = ort.InferenceSession(str(folder.main), options, providers=[CPU])
    with MainTracer(folder, (CPU,)) as tracer:
        for feed in feeds:
            answer = tracer.run(feed)
            for name, right in zip(answer, plain.run(list(answer), dict(feed)), strict=True):
                np.testing.assert_array_equal(answer[name], right)
        trace = tracer.trace()
        units = tracer.declared.declared.counted(Kind.NODE)
    counted = {unit.id for unit in units} - set(trace.replaced)
    assert set(trace.hits) <= counted, "what is hit is in the denominator"
    return trace, dict(trace.hits), counted


REPLACED = """<ir_version: 9, opset_import: ["" : 21]>
g (float[n,4] x, bool c) => (float[n,4] y) {
  one = Constant<value = float[4] {1,1,1,1}>()
  m = Mish(x)
  h = HardSwish(m)
  k = CastLike(h, x)
  n = GroupNormalization<num_groups=2>(k, one, one)
  y = If (c) <then_branch = t () => (float[n,4] a) { a = Mish(n) },
              else_branch = e () => (float[n,4] b) { b = HardSwish(n) }>
}"""


def test_nodes_that_are_replaced_count_as_they_run(tmp_path: Path) -> None:
    """An operator that has no kernel is covered when what takes its place ran, and uncovered, not apart, where not."""
    folder = folder_of(tmp_path, REPLACED)
    trace, hits, counted = traced(folder, {"x": X, "c": np.array(True)}, {"x": X, "c": np.array(True)})
    dark = "/5:If/else_branch/0:HardSwish"
    ran = {f"/{at}" for at in ("1:Mish", "2:HardSwish", "3:CastLike", "4:GroupNormalization", "5:If")}
    assert hits == dict.fromkeys((*ran, "/5:If/then_branch/0:Mish"), 2)
    assert counted == {*hits, dark}
    assert trace.replaced == {}
    assert {one.node: one.ran for one in trace.placed} == dict.fromkeys(hits, CPU) | {dark: ""}
    assert all(one.assigned == CPU for one in trace.placed)


FUNCTIONS = """<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
g (float[n,4] x, bool c) => (float[n,4] y) {
  y = If (c) <then_branch = t () => (float[n,4] a) { a = my.Mine(x) },
              else_branch = e () => (float[n,4] b) { p = my.Mine<k = 3.0>(x)
                                                     b = my.Mine(p) }>
}
<domain: "my", opset_import: ["" : 18, "my" : 1]>
Mine <k: float = 2.0> (q) => (r) {
  f = Constant<value_float: float = @k>()
  s = Mul(q, f)
  i = my.Inner(s)
  r = Mish(i)
}
<domain: "my", opset_import: ["" : 18]>
Inner (q) => (r) { r = Sigmoid(q) }"""


def _mine(place: str) -> set[str]:
    return {place, *(f"{place}/{one}" for one in ("1:Mul", "2:Inner", "2:Inner/0:Sigmoid", "3:Mish"))}


@pytest.mark.parametrize(("taken", "times"), [((True,), (1, 0)), ((False,), (0, 1)), ((True, False, True), (2, 1))])
def test_a_function_is_counted_at_each_of_its_calls(
    tmp_path: Path, taken: tuple[bool, ...], times: tuple[int, int]
) -> None:
    """Nodes of a local function are declared at each call; a call in the branch that is not taken is not covered."""
    trace, hits, counted = traced(folder_of(tmp_path, FUNCTIONS), *({"x": X, "c": np.array(one)} for one in taken))
    left = _mine("/0:If/then_branch/0:Mine")
    right = _mine("/0:If/else_branch/0:Mine") | _mine("/0:If/else_branch/1:Mine")
    expected = {"/0:If": sum(times)} | dict.fromkeys(left, times[0]) | dict.fromkeys(right, times[1])
    assert hits == {unit: count for unit, count in expected.items() if count}
    assert counted == set(expected)
    assert trace.replaced == {}


def test_what_is_in_a_function_stands_in_its_call(tmp_path: Path) -> None:
    """Of a call that no feed reached only the call is listed: its nodes have it as their parent."""
    folder = folder_of(tmp_path, FUNCTIONS)
    with MainTracer(folder, (CPU,)) as tracer:
        units = {unit.id: unit for unit in tracer.declared.declared.units}
    call = "/0:If/then_branch/0:Mine"
    assert (units[call].label, units[call].parent) == ("Mine", "/0:If")
    assert units[f"{call}/2:Inner/0:Sigmoid"].parent == f"{call}/2:Inner"
    assert units[f"{call}/0:Constant"].reason


def test_a_function_of_another_opset(tmp_path: Path) -> None:
    """A function may be of another opset than the model; its nodes are counted all the same."""
    text = """<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
    g (float[n,4] x) => (float[n,4] y) { a = my.F(x)
                                         y = my.F(a) }
    <domain: "my", opset_import: ["" : 17]>
    F (q) => (r) { s = Relu(q)
                   r = Neg(s) }"""
    _, hits, counted = traced(folder_of(tmp_path, text), {"x": X})
    assert hits == dict.fromkeys([f"/{at}:F{inside}" for at in (0, 1) for inside in ("", "/0:Relu", "/1:Neg")], 1)
    assert counted == set(hits)


def test_bodies_inside_a_function(tmp_path: Path) -> None:
    """Branches and turns in a function are counted at each call; the attribute of a call decides which are taken."""
    text = """<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
    g (float[n,4] x) => (float[n,4] y) { a, spare = my.F<turns = 0, up = 1>(x)
                                         y, other = my.F<turns = 3, up = 0>(a) }
    <domain: "my", opset_import: ["" : 18]>
    F <turns, up> (q) => (r, other) {
      count = Constant<value_int: int = @turns>()
      number = Constant<value_int: int = @up>()
      flag = Cast<to = 9>(number)
      go = Constant<value = bool {1}>()
      s = Loop (count, go, q) <body = b (int64 i, bool on, float[n,4] t) => (bool still, float[n,4] u) {
        still = Identity(on)
        u = If (flag) <then_branch = p () => (float[n,4] v) { v = Mish(t) },
                       else_branch = e () => (float[n,4] w) { w = HardSwish(t) }>
      }>
      r = If (flag) <then_branch = p () => (float[n,4] v) { v = Mish(q) },
                     else_branch = e () => (float[n,4] w) { w = Add(s, q) }>
      other = Neg(r)
    }"""
    _, hits, counted = traced(folder_of(tmp_path, text), {"x": X}, {"x": X})
    for call, turns, branch in (("/0:F", 0, "then_branch/0:Mish"), ("/1:F", 3, "else_branch/0:Add")):
        body = f"{call}/4:Loop/body"
        expected = dict.fromkeys([call, *(f"{call}/{one}" for one in ("2:Cast", "4:Loop", "5:If", "6:Neg"))], 2)
        expected |= {f"{call}/5:If/{branch}": 2}
        taken = (f"{body}/0:Identity", f"{body}/1:If", f"{body}/1:If/else_branch/0:HardSwish")
        expected |= dict.fromkeys(taken, 2 * turns)
        assert {unit: count for unit, count in hits.items() if unit.startswith(call)} == {
            unit: count for unit, count in expected.items() if count
        }
    assert len(counted) == 2 * 11


LOOPS = """<ir_version: 9, opset_import: ["" : 18]>
g (float[n,4] x, int64 turns) => (float[n,4] y, float[m,4] z) {
  go = Constant<value = bool {1}>()
  y = Loop (turns, go, x) <body = b (int64 i, bool on, float[n,4] s) => (bool still, float[n,4] t) {
    still = Identity(on)
    m = Mish(s)
    two = Constant<value = int64 {2}>()
    odd = Mod(i, two)
    flag = Cast<to = 9>(odd)
    t = If (flag) <then_branch = p () => (float[n,4] u) { u = HardSwish(m) },
                   else_branch = q () => (float[n,4] v) { v = Neg(m) }>
  }>
  z = Scan <num_scan_inputs = 1, body = c (float[4] row) => (float[4] out) { out = Mish(row) }> (y)
}"""


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_bodies_with_replaced_nodes(tmp_path: Path, turns: int) -> None:
    """Loop and Scan: each node of the body once a turn, and never where there is no turn; a row is a turn of Scan."""
    _, hits, counted = traced(folder_of(tmp_path, LOOPS), {"x": X, "turns": np.array(turns, np.int64)})
    body = "/1:Loop/body"
    expected = {"/1:Loop": 1, "/2:Scan": 1, "/2:Scan/body/0:Mish": len(X)}
    expected |= dict.fromkeys([f"{body}/{one}" for one in ("0:Identity", "1:Mish", "3:Mod", "4:Cast", "5:If")], turns)
    expected |= {f"{body}/5:If/then_branch/0:HardSwish": turns // 2, f"{body}/5:If/else_branch/0:Neg": -(-turns // 2)}
    assert hits == {unit: count for unit, count in expected.items() if count}
    assert counted == set(expected)


def test_names_that_are_empty_or_used_twice(tmp_path: Path) -> None:
    """Each node has its own count, whatever the file calls it, replaced or not, in a body or not.

    ONNX Runtime refuses two nodes of one graph with one name; in two graphs it takes them.
    """
    model = parser.parse_model(REPLACED)
    for number, node in enumerate(model.graph.node):
        node.name = "same" if number == 1 else ""
    for attribute in model.graph.node[-1].attribute:
        attribute.g.node[0].name = "same"
    _, hits, _ = traced(folder_of(tmp_path, model), {"x": X, "c": np.array(False)})
    assert set(hits.values()) == {1}
    assert "/5:If/else_branch/0:HardSwish" in hits
    assert "/5:If/then_branch/0:Mish" not in hits


def test_a_body_inside_a_node_that_is_replaced(tmp_path: Path) -> None:
    """SequenceMap becomes a Loop; the nodes of its body are counted once an element."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[n,4] x) => (float[m,4] y) {
      s = SequenceConstruct(x, x, x)
      t = SequenceMap<body = b (float[n,4] e) => (float[n,4] f) { q = Sin(e)
                                                                 f = Relu(q) }>(s)
      y = ConcatFromSequence<axis = 0>(t)
    }"""
    _, hits, counted = traced(folder_of(tmp_path, text), {"x": X})
    body = "/1:SequenceMap/body"
    expected: Mapping[str, int] = {
        "/0:SequenceConstruct": 1, "/1:SequenceMap": 1, f"{body}/0:Sin": 3, f"{body}/1:Relu": 3,
        "/2:ConcatFromSequence": 1,
    }  # fmt: skip
    assert hits == expected
    assert counted == set(expected)


def test_only_what_is_removed_leaves_the_denominator(tmp_path: Path) -> None:
    """A function that makes constants alone has nothing that runs: it is apart, with the reason."""
    text = """<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
    g (float[n,4] x) => (float[n,4] y) { two = my.Two()
                                         y = Mul(x, two) }
    <domain: "my", opset_import: ["" : 18]>
    Two () => (r) { r = Constant<value_float = 2.0>() }"""
    trace, hits, counted = traced(folder_of(tmp_path, text), {"x": X})
    assert trace.replaced == {"/0:Two": REMOVED}
    assert hits == {"/1:Mul": 1}
    assert counted == {"/1:Mul"}


def _beside(place: Path) -> ModelFolder:
    """A graph with external data, a function and a node that is replaced."""
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
        g (float[n,4] x) => (float[n,4] y) { a = my.F(x, w, v)
                                             y = Mish(a) }
        <domain: "my", opset_import: ["" : 18]>
        F (q, w, v) => (r) { s = MatMul(q, w)
                             r = MatMul(s, v) }"""
    )
    weight = np.arange(4 * 512, dtype=np.float32).reshape(4, 512)
    for name, array in (("w", weight), ("v", weight.T.copy())):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array / 1000, name))
    return folder_of(
        place, model, save_as_external_data=True, location="weights.bin", size_threshold=0, convert_attribute=False
    )


def test_weights_beside_the_graph(tmp_path: Path) -> None:
    """It is traced where its weights are."""
    folder = _beside(tmp_path)
    assert (tmp_path / "weights.bin").exists()
    _, hits, counted = traced(folder, {"x": X})
    assert hits == {"/0:F": 1, "/0:F/0:MatMul": 1, "/0:F/1:MatMul": 1, "/1:Mish": 1}
    assert counted == set(hits)


def _in_cache(folder: Path) -> Path:
    """Put the files of a folder where a hub's cache has them, and links in their place."""
    blobs = folder.parent / "blobs"
    blobs.mkdir()
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(blobs / f"{number:064x}")
        file.symlink_to(Path("..", "blobs", f"{number:064x}"))
    return blobs


def test_weights_behind_a_link(tmp_path: Path) -> None:
    """Graph and weights in a hub's cache, behind symbolic links: production loads them, and so does the tracer."""
    folder = _beside(tmp_path / "snapshot")
    _in_cache(folder.path)
    assert (folder.path / "weights.bin").is_symlink()
    _, hits, counted = traced(folder, {"x": X})
    assert counted == set(hits)
    told = shipped(folder, (CPU,), [{"x": X}])
    assert (told.problems, told.ran == told.nodes > 1) == ((), True)


@pytest.mark.parametrize("name", ["../weights.bin", "sub/../../weights.bin", "absolute"])
def test_weights_outside_of_the_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What ONNX Runtime refuses in production is refused in a sentence, and makes no file anywhere."""
    folder = _beside(tmp_path / "m")
    outside = tmp_path / "weights.bin"
    (folder.path / "weights.bin").rename(outside)
    model = onnx.load(str(folder.main), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = str(outside) if name == "absolute" else name
    onnx.save(model, str(folder.main))
    with pytest.raises(Exception, match=r"escapes model directory|Absolute path not allowed"):
        ort.InferenceSession(str(folder.main), providers=[CPU])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with pytest.raises(OutsideError, match="outside of its folder"):
        MainTracer(folder, (CPU,))
    assert [*scratch.iterdir()] == []
    assert outside.stat().st_nlink == 1


TURNS = """<ir_version: 9, opset_import: ["" : 18]>
g (float[n,4] x, int64 turns) => (float[n,4] y) {
  go = Constant<value = bool {1}>()
  y = Loop (turns, go, x) <body = b (int64 i, bool on, float[n,4] s) => (bool still, float[n,4] t) {
    still = Identity(on)
    t = Neg(s)
  }>
}"""


def _turns(number: int) -> Arrays:
    return {"x": X, "turns": np.array(number, np.int64)}


def test_a_profile_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a profile has as many events as it can hold the trace says that its counts are too low.

    ONNX Runtime's own bound takes gigabytes to reach; here a real profile is held to a smaller one.
    """
    folder = folder_of(tmp_path, TURNS)
    with MainTracer(folder, (CPU,)) as tracer:
        tracer.run(_turns(100))
        assert tracer.trace().problems == ()
        monkeypatch.setattr(onnx_session, "EVENTS", 200)
        tracer.run(_turns(1))
        assert tracer.trace().problems == ()
        tracer.run(_turns(100))
        assert tracer.trace().problems == (FULL,)
        tracer.run(_turns(1))
        assert tracer.trace().problems == (FULL,), "it stays a trace that lacks something"


def test_a_request_that_the_profile_does_not_know_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that lacks the end of an answered request is not whole, however many events it has."""
    folder = folder_of(tmp_path, TURNS)
    whole = onnx_session.read_profile

    def cut(file: Path, called: Any = str) -> onnx_session.Profile:
        """What a profile that was full in the midst of a request has."""
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if '"model_run"' not in line))
        return whole(file, called)

    monkeypatch.setattr(onnx_session, "read_profile", cut)
    with MainTracer(folder, (CPU,)) as tracer:
        tracer.run(_turns(2))
        assert tracer.trace().problems == (FULL,)


def test_a_request_that_fails_is_no_full_profile(tmp_path: Path) -> None:
    """A request that raises has no end in the profile, and nothing is missing of it."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[n,4] x, int64 at) => (float[4] y) { z = Neg(x)
                                                 y = Gather(z, at) }"""
    with MainTracer(folder_of(tmp_path, text), (CPU,)) as tracer:
        with pytest.raises(Exception, match="out of"):
            tracer.run({"x": X, "at": np.array(9, np.int64)})
        trace = tracer.trace()
    assert trace.hits == {"/0:Neg": 1}
    assert trace.problems == ()


FAILS = """<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
g (float[n,4] x, int64 at, bool c) => (float[m] y) {
  n = Neg(x)
  y = If (c) <then_branch = t () => (float[k] a) { p = Abs(n)
                                                   a = my.F(p, at) },
              else_branch = e () => (float[l] b) { b = Gather(n, at) }>
}
<domain: "my", opset_import: ["" : 18]>
F (q, at) => (r) { s = Mish(q)
                   r = Gather(s, at) }"""


def test_what_failed_and_what_it_stands_in_did_not_complete(tmp_path: Path) -> None:
    """The node that raised, the call and the branch around it do not count; what completed before does, in them too."""
    folder = folder_of(tmp_path, FAILS)
    then = "/1:If/then_branch"
    good, bad = np.array(1, np.int64), np.array(9, np.int64)
    with MainTracer(folder, (CPU,)) as tracer:
        for branch in (True, False):
            with pytest.raises(Exception, match="out of"):
                tracer.run({"x": X, "at": bad, "c": np.array(branch)})
        assert tracer.trace().hits == {"/0:Neg": 2, f"{then}/0:Abs": 1, f"{then}/1:F/0:Mish": 1}
        tracer.run({"x": X, "at": good, "c": np.array(True)})
        hits = tracer.trace().hits
    assert hits == {
        "/0:Neg": 3, "/1:If": 1, f"{then}/0:Abs": 2, f"{then}/1:F": 1, f"{then}/1:F/0:Mish": 2,
        f"{then}/1:F/1:Gather": 1,
    }  # fmt: skip


def test_a_turn_that_fails_takes_its_own_count_alone(tmp_path: Path) -> None:
    """Turns of a loop that went well count for the node that failed in a later one; the loop did not complete."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[n,4] x, int64 turns) => (float[4] last, float[m,4] y) {
      go = Constant<value = bool {1}>()
      zero = Constant<value = float[4] {0,0,0,0}>()
      last, y = Loop (turns, go, zero) <body = b (int64 i, bool on, float[4] s) =>
                                                 (bool still, float[4] t, float[4] u) {
        still = Identity(on)
        t = Gather(x, i)
        u = Neg(t)
      }>
    }"""
    with MainTracer(folder_of(tmp_path, text), (CPU,)) as tracer:
        with pytest.raises(Exception, match="out of"):
            tracer.run({"x": X, "turns": np.array(5, np.int64)})  # of two rows: the third turn fails
        hits = dict(tracer.trace().hits)
    body = "/2:Loop/body"
    assert hits.pop(f"{body}/0:Identity") in (2, 3)  # before the node that fails, or after it
    assert hits == {f"{body}/1:Gather": 2, f"{body}/2:Neg": 2}


def test_sessions_are_renewed_by_the_largest_request(tmp_path: Path) -> None:
    """All events count towards the limit, of the largest request, not of a mean one: a large one is a profile alone."""
    opened = 0

    class Counted(MainTracer):
        def _open(self) -> None:
            nonlocal opened
            opened += 1
            super()._open()

    with Counted(folder_of(tmp_path, TURNS), (CPU,), limit=100) as tracer:
        for turns in (1, 1, 1, 40, 1, 1):
            tracer.run(_turns(turns))
        assert tracer.trace().hits["/1:Loop/body/0:Identity"] == 45
    few = opened
    opened = 0
    with Counted(folder_of(tmp_path, TURNS), (CPU,), limit=100) as tracer:
        for turns in (40, 1, 1, 1, 1, 1):
            tracer.run(_turns(turns))
        assert tracer.trace().hits["/1:Loop/body/0:Identity"] == 45
    assert few == 2  # the first alone tells how large a request is; then a profile holds more than five small ones
    assert opened == 6  # one of forty turns is more than a hundred events


def test_a_feed_that_fails_costs_the_shipped_line_nothing(tmp_path: Path) -> None:
    """One bad feed among good ones is told by its number; what the good ones ran stays."""
    folder = folder_of(tmp_path, REPLACED)
    good, bad = {"x": X, "c": np.array(True)}, {"x": X[:, :3], "c": np.array(True)}
    alone, told = shipped(folder, (CPU,), [good]), shipped(folder, (CPU,), [good, bad, good])
    assert (told.ran, told.nodes, told.left) == (alone.ran, alone.nodes, alone.left)
    assert alone.problems == ()
    (problem,) = told.problems
    assert problem.startswith("the session that ships fails on feed 2 of 3 (")


def test_a_session_that_ships_and_does_not_open_is_told(tmp_path: Path) -> None:
    """A provider that is not there is refused, as in production, and not replaced by the processor without a word."""
    folder = folder_of(tmp_path, REPLACED)
    told = shipped(folder, ("CUDAExecutionProvider", CPU), [{"x": X, "c": np.array(True)}])
    with pytest.raises(DeviceInit) as production:
        OrtBackend(folder, providers=("CUDAExecutionProvider", CPU))
    assert (told.ran, told.nodes, told.left) == (0, 0, ())
    assert told.problems == (f"the session that ships does not open here (DeviceInit: {production.value})",)
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    assert "does not open here" in shipped(folder, (CPU,), []).problems[0]


def test_nodes_that_ship_are_told_apart(tmp_path: Path) -> None:
    """Nodes with no name, and those of one function called twice, are nodes each; the branch that is not taken is left.

    The optimised session has for Mish two or three nodes without a name, and for the function's nodes one name.
    """
    for name, text in (("replaced", REPLACED), ("functions", FUNCTIONS)):
        folder = folder_of(tmp_path / name, text)
        one, other = ({"x": X, "c": np.array(taken)} for taken in (True, False))
        both, first, second = (shipped(folder, (CPU,), feeds) for feeds in ([one, other], [one], [other]))
        assert both.problems == ()
        assert (both.ran, both.left) == (both.nodes, ())
        assert first.left
        assert second.left
        assert not {*first.left} & {*second.left}
        branches = both.nodes - first.ran, both.nodes - second.ran
        assert branches == (len(first.left), len(second.left))


def test_weights_beside_the_graph_that_ships(tmp_path: Path) -> None:
    """External data is found, also where the optimised graph is named once more."""
    folder = _beside(tmp_path)
    told = shipped(folder, (CPU,), [{"x": X}])
    assert told.problems == ()
    assert told.ran == told.nodes > 1


CUDA = "CUDAExecutionProvider"
NODES = tuple(f"/{number}:Add" for number in range(3))


def _run(number: int, asked: tuple[str, ...], ran: tuple[str, ...], **more: Any) -> Run:
    """A run of three nodes, each on a provider."""
    units = tuple(Unit(Kind.NODE, node, "Add") for node in NODES)
    placed = tuple(Placed(node, "Add", where, where) for node, where in zip(NODES, ran, strict=False))
    trace = Trace(Which.MAIN, dict.fromkeys(NODES, 1), placed=placed, **more)
    moment = datetime(2024, 1, number, tzinfo=UTC)
    seen = (Seen(Declared(Which.MAIN, units), trace),)
    return Run(f"run{number}", "trace", "tiny", "hash", "", moment, moment, asked=asked, seen=seen)


def _placement(*runs: Run) -> tuple[Covered, Placement]:
    covered = add_up(runs, "hash", now=datetime(2024, 2, 1, tzinfo=UTC))
    path = covered.path(Which.MAIN)
    assert path is not None
    assert path.placement is not None
    return covered, path.placement


def test_each_run_is_held_to_what_it_asked_for() -> None:
    """CUDA that was given, then the processor that was asked for: nothing is wrong, though CUDA was asked for once."""
    good, plain = _run(1, (CUDA, CPU), (CUDA,) * 3), _run(2, (CPU,), (CPU,) * 3)
    covered, told = _placement(good, plain)
    assert told == Placement(((CPU, 3),), (), (), ())
    assert covered.asked == (CPU,)
    assert placement(covered.paths[0].placed, covered.asked) == told


def test_a_run_that_fell_back_stays_told_after_a_good_one() -> None:
    """What an older run did not get is told with its id and its nodes; counts by provider are those of the newest."""
    fell, partly = _run(1, (CUDA, CPU), (CPU,) * 3), _run(2, (CUDA, CPU), (CUDA, CPU, CUDA))
    good = _run(3, (CUDA, CPU), (CUDA,) * 3)
    _, told = _placement(fell, partly, good)
    assert told.nodes == ((CUDA, 3),)
    assert told.absent == (CUDA,)
    assert told.names == NODES
    assert [(one.run, one.absent, len(one.unasked)) for one in told.runs] == [("run1", (CUDA,), 3), ("run2", (), 1)]
    assert [node.node for node in told.runs[1].unasked] == [NODES[1]]


def test_what_no_later_run_looked_at_stays() -> None:
    """A run that places nothing, or does not try the session that ships, takes neither away."""
    first = _run(1, (CUDA, CPU), (CPU,) * 3, shipped=Shipped(2, 2, ()))
    covered, told = _placement(first, _run(2, (CPU,), (), problems=(FULL,)))
    (path,) = covered.paths
    assert path.shipped == Shipped(2, 2, ())
    assert (told.nodes, covered.asked) == (((CPU, 3),), (CUDA, CPU))
    assert path.problems == (f"run run2: {FULL}",)


def test_the_processor_first_is_no_fall_back() -> None:
    """Nodes on the processor are what was asked for where it comes first in the order of wish."""
    told = placement([Placed(NODES[0], "Add", CPU, CPU)], (CPU, CUDA))
    assert told.unasked == ()
    assert told.absent == (CUDA,)


def test_a_fall_back_is_told_with_its_nodes(tmp_path: Path) -> None:
    """Asked for CUDA where there is none: nodes that are replaced, those in their place, and functions' are named."""
    feed = {"x": X, "c": np.array(True)}
    for name, text in (("replaced", REPLACED), ("functions", FUNCTIONS)):
        with MainTracer(folder_of(tmp_path / name, text), (CUDA, CPU)) as tracer:
            tracer.run(feed)
            trace = tracer.trace()
        told = placement(trace.placed, (CUDA, CPU))
        assert told.absent == (CUDA,)
        ran = {unit for unit in trace.hits if not unit.endswith((":Mine", ":Inner"))}
        assert ran <= set(told.names)
        assert any("Tanh" in node.node and node.operator == "Tanh" for node in told.unasked)
        assert {node.ran for node in told.unasked} == {CPU, ""}
