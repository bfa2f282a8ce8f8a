"""What the tracers see, on models whose nodes and blocks are counted by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from crashpath.coverage.covered import add_up
from crashpath.coverage.onnx_trace import MainTracer
from crashpath.coverage.onnx_units import CONSTANT, declare
from crashpath.coverage.placement import placement
from crashpath.coverage.runfile import Run, RunFileError, State, read_run, run_files
from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.tracer import FeedError, TraceError, Tracer
from crashpath.coverage.units import Kind, Placed
from crashpath.runtime.backends import CPU, OrtBackend, TorchScriptBackend
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.testing_branches import BLOCKS, NODES
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

UP, DOWN = np.full((2, 4), 0.25, np.float32), np.full((2, 4), -9.0, np.float32)


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    """A model with an If in an If in a Loop, in both formats."""
    return tiny_folder(tmp_path_factory.mktemp("model") / "branches", kind="branches")


def feed(x: np.ndarray, steps: int) -> Arrays:  # type: ignore[type-arg]
    """A feed of so many turns."""
    return {"x": x, "steps": np.array([steps], np.int64)}


def _traced(folder: ModelFolder, *feeds: Arrays) -> tuple[Run, dict[str, int], dict[str, int]]:
    with Tracer(folder, data=folder.path.parent / "runs", timed=False) as tracer:
        for one in feeds:
            tracer.run(one)
        run = tracer.result()
    return run, dict(run.seen[0].trace.hits), dict(run.seen[1].trace.hits)


def test_counts_are_those_of_the_hand(branches: ModelFolder) -> None:
    """Three turns from above zero and two from below: each node and block is hit as often as a person counts."""
    run, main, fallback = _traced(branches, feed(UP, 3), feed(DOWN, 2))
    nodes = [unit for unit in run.seen[0].declared.units if unit.kind is Kind.NODE]
    blocks = [unit for unit in run.seen[1].declared.units if unit.kind is Kind.BLOCK]
    assert (len(nodes), len(blocks)) == (NODES, BLOCKS)
    body = "/1:Loop/body"
    even = f"{body}/2:If/then_branch"
    # turns: 0 1 2 of UP, 0 1 of DOWN: three even, two odd; of the even ones the two of UP are above 0
    assert main == {
        "/0:Squeeze": 2, "/1:Loop": 2, f"{body}/0:Mod": 5, f"{body}/1:Equal": 5, f"{body}/2:If": 5,
        f"{body}/3:Identity": 5, f"{even}/0:Add": 3, f"{even}/1:ReduceSum": 3, f"{even}/2:Greater": 3,
        f"{even}/3:If": 3, f"{even}/3:If/then_branch/0:Mul": 2, f"{even}/3:If/else_branch/0:Sub": 1,
        f"{body}/2:If/else_branch/0:Sub": 2,
    }  # fmt: skip
    assert sorted(fallback[unit.id] for unit in blocks) == [1, 2, 2, 2, 3, 5]


def test_a_branch_that_no_feed_takes_is_named(branches: ModelFolder) -> None:
    """With one branch left out of the inputs exactly that branch is uncovered, on both paths."""
    run, _, _ = _traced(branches, feed(UP, 3))
    covered = add_up([run], branches.hash, now=datetime.now(UTC))
    main, fallback = covered.path(Which.MAIN), covered.path(Which.FALLBACK)
    assert main is not None
    assert fallback is not None
    assert [unit.id for unit in main.uncovered()] == ["/1:Loop/body/2:If/then_branch/3:If/else_branch/0:Sub"]
    (dark,) = fallback.uncovered()
    assert (dark.kind, dark.label) == (Kind.BLOCK, "If else")
    assert [unit.label for unit in fallback.units if unit.parent == dark.id] == ["aten::sub"]


def test_a_loop_that_makes_no_turn_covers_no_body(branches: ModelFolder) -> None:
    """The loop itself ran; its body did not, on either path."""
    run, main, fallback = _traced(branches, feed(UP, 0))
    assert main == {"/0:Squeeze": 1, "/1:Loop": 1}
    blocks = {unit.id for unit in run.seen[1].declared.units if unit.kind is Kind.BLOCK}
    assert blocks & set(fallback) == {"/"}


def test_answers_are_those_of_the_paths(branches: ModelFolder) -> None:
    """Bit for bit on the fallback; on the main path those of a session at no optimisation, bit for bit, too."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = ort.InferenceSession(str(branches.main), options, providers=[CPU])
    script = TorchScriptBackend(branches)
    with MainTracer(branches, (CPU,)) as main, FallbackTracer(branches) as fallback:
        for one in (feed(UP, 3), feed(DOWN, 5), feed(UP, 0)):
            (right,) = plain.run(None, dict(one))
            np.testing.assert_array_equal(main.run(one)["y"], right)
            np.testing.assert_array_equal(fallback.run(one)["y"], script.run(one)["y"])
            np.testing.assert_allclose(OrtBackend(branches).run(one)["y"], right, rtol=1e-6)


def test_constants_stand_apart(tmp_path: Path) -> None:
    """A Constant is declared, in no denominator, and says why; nodes with no name, or with the same, are told apart."""
    import onnx
    from onnx import TensorProto, helper

    value = helper.make_tensor("value", TensorProto.FLOAT, [], [2.0])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=value),
        helper.make_node("Mul", ["x", "c"], ["a"], name="same"),
        helper.make_node("Mul", ["a", "c"], ["y"], name="same"),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "z")]
    model = helper.make_model(helper.make_graph(nodes, "g", told[:1], told[1:]))
    units = declare(model).declared.units
    assert [(unit.id, unit.reason) for unit in units] == [
        ("/0:Constant", CONSTANT), ("/1:Mul", None), ("/2:Mul", None), ("/3:Relu", None),
    ]  # fmt: skip
    assert len({node.name for node in model.graph.node}) == 4
    onnx.checker.check_model(model)


def test_a_run_that_fails_is_seen_up_to_where_it_failed(tmp_path: Path) -> None:
    """A node that raised has not completed, nor an operator; a block that was entered counts. No shape was answered."""
    folder = tiny_folder(tmp_path / "m", kind="gather")
    with Tracer(folder, data=tmp_path / "runs", timed=False) as tracer:
        with pytest.raises(Exception, match="out of"):
            tracer.run({"ids": np.array([99], np.int64)})
        run = tracer.result()
    assert run.seen[0].trace.hits == {}
    assert run.seen[1].trace.hits == {"/": 1}
    assert (run.requests, run.domain) == (1, {})
    assert any(unit.kind is Kind.OP for unit in run.seen[1].declared.units)


def test_a_provider_that_is_not_there_is_told(branches: ModelFolder) -> None:
    """Asked for CUDA where there is none, ONNX Runtime computes on the processor: every node of it is reported."""
    with MainTracer(branches, ("CUDAExecutionProvider", CPU)) as tracer:
        tracer.run(feed(UP, 1))
        placed = placement(tracer.trace().placed, ("CUDAExecutionProvider", CPU))
    assert placed.absent == ("CUDAExecutionProvider",)
    assert len(placed.unasked) == NODES
    cuda = "CUDAExecutionProvider"
    mixed = (Placed("/0:Add", "Add", cuda, cuda), Placed("/1:Mod", "Mod", CPU, CPU))
    one = placement(mixed, ("CUDAExecutionProvider", CPU))
    assert ([node.node for node in one.unasked], one.absent) == (["/1:Mod"], ())
    assert placement(mixed[1:], (CPU,)).unasked == ()


def test_evidence_of_others_and_of_old_does_not_count(branches: ModelFolder) -> None:
    """A run of other artefacts, one that is too old and one that was lost say why they are left out."""
    run, _, _ = _traced(branches, feed(UP, 3))
    now = datetime.now(UTC)
    other = add_up([run], "0" * 12, now=now)
    assert (other.runs, "other artefacts" in other.left[0].why) == ((), True)
    old = add_up([run], branches.hash, now=now + timedelta(days=31), max_age=timedelta(days=30))
    assert (old.runs, "older than 30 days" in old.left[0].why) == ((), True)
    assert add_up([run], branches.hash, now=now, max_age=timedelta(days=30)).left == ()


def test_runs_add_up(branches: ModelFolder) -> None:
    """What one run left out another covers; hits are summed."""
    first, main, _ = _traced(branches, feed(UP, 3))
    second, again, _ = _traced(branches, feed(DOWN, 3))
    both = add_up([first, second], branches.hash, now=datetime.now(UTC)).path(Which.MAIN)
    assert both is not None
    assert both.uncovered() == ()
    assert both.hits == {unit: main.get(unit, 0) + again.get(unit, 0) for unit in {*main, *again}}


_KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from crashpath.coverage.tracer import Tracer
with Tracer(Path(sys.argv[1]), data=Path(sys.argv[2]), timed=False) as tracer:
    tracer.run({"x": np.ones((2, 4), np.float32), "steps": np.array([3])})
    print("traced", flush=True)
    if sys.argv[3] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def test_a_crash_loses_its_own_run_and_says_so(branches: ModelFolder, tmp_path: Path) -> None:
    """A process that dies in the midst leaves a run that says it was lost; the runs of others stay as they are."""
    kept, _, _ = _traced(branches, feed(UP, 3))
    whole = next(path for path in run_files([branches.path.parent / "runs"]) if read_run(path).id == kept.id)
    call = [sys.executable, "-c", _KILLED, str(branches.path), str(tmp_path)]
    assert subprocess.run([*call, "die"], check=False, capture_output=True).returncode == -signal.SIGKILL
    with subprocess.Popen([*call, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "traced\n"
        states = sorted(read_run(path).state for path in run_files([tmp_path]))
        assert states == [State.LOST, State.RUNNING]
        other.communicate("")
    runs = [read_run(path) for path in run_files([tmp_path, whole])]
    assert sorted(run.state for run in runs) == [State.FINISHED, State.FINISHED, State.LOST]
    covered = add_up(runs, branches.hash, now=datetime.now(UTC))
    assert (len(covered.runs), len(covered.left)) == (2, 1)
    assert "before it could tell" in covered.left[0].why


def test_a_file_that_is_no_run_file(tmp_path: Path) -> None:
    """It is named in one sentence, whatever is wrong with it."""
    for name, text in (("cut", '{"schema": "crashpath.cov'), ("other", "[]"), ("later", json.dumps({"schema": "x/2"}))):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(RunFileError, match=str(path)):
            read_run(path)
    with pytest.raises(RunFileError, match="cannot be read"):
        read_run(tmp_path / "none")


def test_the_profile_is_renewed_before_it_is_full(branches: ModelFolder) -> None:
    """ONNX Runtime keeps a million events; with a limit of a few the counts are the same."""
    with MainTracer(branches, (CPU,), limit=30) as small, MainTracer(branches, (CPU,)) as large:
        for turns in (1, 2, 3, 4, 5):
            small.run(feed(UP, turns))
            large.run(feed(UP, turns))
        assert small.trace().hits == large.trace().hits


def test_nothing_is_left_behind(branches: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The named copy and its profiles are gone when the tracer is closed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with MainTracer(branches, (CPU,)) as tracer:
        tracer.run(feed(UP, 1))
        assert os.listdir(tmp_path)
    assert os.listdir(tmp_path) == []


def test_the_session_that_ships(branches: ModelFolder, tmp_path: Path) -> None:
    """Of the optimised session's own nodes those in the branch that no feed takes did not run."""
    with Tracer(branches, data=tmp_path) as tracer:
        tracer.run(feed(UP, 3))
        told = tracer.result().seen[0].trace.shipped
    assert told is not None
    assert told.ran == told.nodes - len(told.left) > 0
    assert any("(Sub)" in one for one in told.left)
    (path,) = run_files([tmp_path])
    assert read_run(path).seen[0].trace.shipped == told


def _in_threads(works: Sequence[Callable[[], None]]) -> None:
    """Run these at once; what one raises is raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result(300)


def test_a_tracer_that_several_threads_share_loses_no_count(branches: ModelFolder, tmp_path: Path) -> None:
    """Requests of four threads, of which one's fail, count as often as they were made, on both paths."""
    times = 60

    def good() -> None:
        for _ in range(times):
            tracer.run(feed(UP, 1))

    def bad() -> None:
        for _ in range(times):
            with pytest.raises(FeedError):
                tracer.run(feed(np.ones((2, 4), np.int64), 1))

    with Tracer(branches, data=tmp_path, timed=False) as tracer:
        _in_threads([good, good, good, bad])
        run = tracer.result()
    assert run.requests == 4 * times
    assert sum(run.domain.values()) in (3 * times, 4 * times)
    main, fallback = (one.trace.hits for one in run.seen)
    answered = sum(run.domain.values())  # the script may take whole numbers
    assert main["/1:Loop"] == main["/1:Loop/body/2:If/then_branch/0:Add"] == 3 * times
    added = [unit.id for unit in run.seen[1].declared.units if unit.label == "aten::add"]
    assert [fallback[unit] for unit in added] == [answered] * len(added)


def test_two_tracers_in_two_threads_do_not_hear_each_other(tmp_path: Path) -> None:
    """Each counts the experts that its own rows reached, on both paths alike."""
    folder = tiny_folder(tmp_path / "m", kind="experts")
    rows = np.random.default_rng(3).normal(size=(2, 8, 16)).astype(np.float32)

    def run(tracer: Tracer, one: np.ndarray) -> None:  # type: ignore[type-arg]
        for _ in range(40):
            tracer.run({"x": one})

    with Tracer(folder, data=tmp_path, timed=False) as first, Tracer(folder, data=tmp_path, timed=False) as second:
        _in_threads([partial(run, first, rows[0]), partial(run, second, rows[1])])
        seen = [one.result().seen for one in (first, second)]
    for paths in seen:
        main, fallback = ({k: v for k, v in one.trace.hits.items() if "#" in k} for one in paths)
        assert main == fallback
        assert sum(count for unit, count in main.items() if "+" not in unit) == 40 * 8 * 2


def test_the_end_does_not_wait_for_ever(branches: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a feed of another thread still runs at the end, the run is lost, and that is said."""
    monkeypatch.setattr("crashpath.coverage.tracer._PATIENCE_S", 0.01)
    with ThreadPoolExecutor(1) as pool:
        tracer = Tracer(branches, data=tmp_path, timed=False).__enter__()
        late = pool.submit(tracer.run, feed(UP, 5_000))
        while not tracer.requests:
            time.sleep(0.001)
        with pytest.raises(TraceError, match="a feed still runs"):
            tracer.__exit__(None, None, None)
        (run,) = map(read_run, run_files([tmp_path]))
        assert run.state is State.LOST
        late.result(300)
