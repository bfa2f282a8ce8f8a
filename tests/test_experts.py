"""Experts as units: found in the graph, counted on both paths, and what would break without them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from crashpath.coverage.experts import TOO_MANY, Chosen, Router, expert_id, expert_units, find_routers, pair_id
from crashpath.coverage.onnx_trace import MainTracer
from crashpath.coverage.onnx_units import write_named
from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.script_units import HEARD
from crashpath.coverage.strip import StripError, _take_out, would_break
from crashpath.coverage.tracer import Tracer
from crashpath.coverage.units import Kind, ratio
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.testing import KINDS, tiny_folder
from crashpath.runtime.testing import Kind as TinyKind
from crashpath.runtime.testing_experts import (
    EXPERTS,
    TOKEN_EXPERTS,
    TOKEN_SCRIPT,
    TOKEN_WEIGHTS,
    chosen_tokens,
    reached_by,
    token_answer,
    token_nodes,
)

ROUTER = "/1:TopK"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    """The top 2 of 64 experts, in both formats."""
    return tiny_folder(tmp_path_factory.mktemp("model") / "experts", kind="experts")


@pytest.fixture(scope="module")
def rows() -> np.ndarray:  # type: ignore[type-arg]
    """Twelve rows of traffic."""
    return np.random.default_rng(3).normal(size=(12, 16)).astype(np.float32)


def test_reached_experts_and_pairs(folder: ModelFolder, rows: np.ndarray, tmp_path: Path) -> None:  # type: ignore[type-arg]
    """Experts and pairs that the rows were given to are covered, on both paths alike, and no others."""
    with Tracer(folder, data=tmp_path, timed=False) as tracer:
        tracer.run({"x": rows})
        seen = tracer.result().seen
    for one in seen:
        units = [unit for unit in one.declared.units if unit.kind is Kind.EXPERT]
        assert len(units) == EXPERTS
        hit = {unit.id for unit in units if one.trace.hits.get(unit.id)}
        assert hit == {expert_id(ROUTER, expert) for expert in reached_by(rows)}
        assert sum(one.trace.hits[unit] for unit in hit) == 2 * len(rows)
        pairs = [unit for unit in one.declared.units if unit.kind is Kind.PAIR]
        assert len(pairs) == EXPERTS * (EXPERTS - 1) // 2
        assert 0 < ratio(pairs, one.trace.hits).covered <= len(rows)
        assert sum(one.trace.hits.get(unit.id, 0) for unit in pairs) == len(rows)
    main, fallback = ({k: v for k, v in one.trace.hits.items() if "#" in k} for one in seen)
    assert main == fallback


def test_stripping_names_the_rows_that_break(folder: ModelFolder, rows: np.ndarray) -> None:  # type: ignore[type-arg]
    """An expert that the tests never reached is needed by exactly these rows of other traffic, whose answer changes."""
    tested, traffic = rows[:6], rows[6:]
    unreached = sorted(reached_by(traffic) - reached_by(tested))
    assert unreached
    broken = would_break(folder, unreached[:1], [{"x": tested}, {"x": traffic}])
    needed = [row for row in range(len(traffic)) if unreached[0] in reached_by(traffic[row : row + 1])]
    assert [(one.feed, one.row) for one in broken] == [(1, row) for row in needed]
    assert all(one.differs and one.experts == (unreached[0],) for one in broken)
    spare = next(one for one in range(EXPERTS) if one not in reached_by(rows))
    assert would_break(folder, [spare], [{"x": rows}]) == ()


def test_there_is_no_such_expert(folder: ModelFolder, tmp_path: Path) -> None:
    """A number that the model does not have, and a model without experts, are one sentence."""
    with pytest.raises(StripError, match="experts 0 to 63"):
        would_break(folder, [64], [])
    with pytest.raises(StripError, match="0 routers"):
        would_break(tiny_folder(tmp_path / "m"), [0], [])


def _graph(nodes: list[Any], **weights: Any) -> Any:
    from onnx import helper, numpy_helper

    return helper.make_graph(nodes, "g", [], [], [numpy_helper.from_array(one, name) for name, one in weights.items()])


def _node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(operator, inputs.split(), outputs.split(), name=outputs, **attributes)


TOP = _node("TopK", "x k", "values picked")
TABLE, MATRICES = np.zeros((8, 2), np.float32), np.zeros((8, 2, 2), np.float32)


def test_what_stands_between_choice_and_product_does_not_hide_a_router() -> None:
    """Reshapes, one choice after the other, casts of weights, Constants, and work on a matrix of each expert."""
    product = _node("MatMul", "x rows", "y")
    flat = [TOP, _node("Reshape", "picked flat", "one"), _node("Gather", "table one", "rows"), product]
    assert find_routers(_graph(flat, table=TABLE)) == (Router("values picked", "picked", ("table",), 8),)
    each = [TOP, _node("Gather", "picked first", "one", axis=1), _node("Gather", "table one", "rows"), product]
    assert len(find_routers(_graph(each, table=TABLE))) == 1
    cast = [TOP, _node("Cast", "table", "wide", to=1), _node("Gather", "wide picked", "rows"), product]
    (router,) = find_routers(_graph(cast, table=TABLE))
    assert router.weights == ("table",)
    scaled = [TOP, _node("Gather", "table picked", "raw"), _node("Mul", "raw scale", "rows"), product]
    assert len(find_routers(_graph(scaled, table=MATRICES))) == 1
    assert find_routers(_graph(scaled, table=TABLE)) == ()


def test_a_choice_that_picks_no_expert_is_no_router() -> None:
    """Not of a weight; boxes of a detector, whatever their rank; tokens of a beam; columns; along the batch."""
    from onnx import TensorProto, helper

    product = _node("MatMul", "x rows", "y")
    assert find_routers(_graph([TOP], table=TABLE)) == ()
    for boxes in (TABLE, MATRICES):
        detector = [TOP, _node("Gather", "table picked", "rows"), _node("Add", "rows shift", "y")]
        assert find_routers(_graph(detector, table=boxes)) == ()
    beam = [TOP, _node("Gather", "table picked", "rows"), _node("MatMul", "rows layer", "y")]
    assert find_routers(_graph(beam, table=TABLE, layer=np.zeros((2, 2), np.float32))) == ()
    columns = [TOP, _node("Gather", "table picked", "rows", axis=1), product]
    assert find_routers(_graph(columns, table=TABLE)) == ()
    along = _node("TopK", "x k", "values picked", axis=0)
    graph = _graph([along, _node("Gather", "table picked", "rows"), product], table=TABLE)
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8]))
    assert find_routers(graph) == ()


BOXES = np.random.default_rng(5).normal(size=(8400, 4)).astype(np.float32)


def _detector_nodes() -> tuple[list[Any], list[Any]]:
    from onnx import numpy_helper

    nodes = [_node("TopK", "x top", "scores best"), _node("Gather", "boxes best", "rows"), _node("Abs", "rows", "y")]
    return nodes, [numpy_helper.from_array(np.array([300]), "top"), numpy_helper.from_array(BOXES, "boxes")]


DETECTOR = TinyKind(
    (("x", "float32", ("batch", 8400)),),
    ("y", "float32", ("batch", 300, 4)),
    _detector_nodes,
    "return self.boxes[torch.topk(x, 300)[1]].abs()",
    {"boxes": BOXES},
    {"x": np.random.default_rng(6).normal(size=(1, 8400)).astype(np.float32)},
    lambda feed: np.abs(BOXES[np.argsort(-feed["x"], axis=1)[:, :300]]),
)


def test_a_detector_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best 300 of 8,400 boxes are no experts: none is declared, no choice is heard or given out, on either path."""
    monkeypatch.setitem(KINDS, "detector", DETECTOR)
    folder = tiny_folder(tmp_path / "m", kind="detector")
    with Tracer(folder, data=tmp_path, timed=False) as tracer:
        answers = tracer.run(DETECTOR.feed)
        seen = tracer.result().seen
    for answer, one in zip(answers, seen, strict=True):
        assert list(answer) == ["y"]
        np.testing.assert_array_equal(answer["y"], DETECTOR.answer(DETECTOR.feed))
        assert not [unit for unit in one.declared.units if unit.kind in (Kind.EXPERT, Kind.PAIR)]
    assert HEARD == []


def _tokens(place: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> ModelFolder:
    """A folder whose router chooses for tokens, with three weights and a bias an expert."""
    told: dict[str, Any] = {"nodes": token_nodes, "script": TOKEN_SCRIPT} | changes
    external = told.pop("external", None)
    kind = TinyKind(
        (("x", "float32", ("batch", "sequence", 16)),), ("y", "float32", ("batch", "sequence", 16)),
        constants=TOKEN_WEIGHTS, feed={"x": np.ones((2, 3, 16), np.float32)}, answer=token_answer, **told,
    )  # fmt: skip
    monkeypatch.setitem(KINDS, "tokens", kind)
    folder = tiny_folder(place, kind="tokens")
    if external is not None:  # weights alone, as exporters do it: no shapes
        onnx.save(
            onnx.load(str(folder.main)), str(folder.main), save_as_external_data=True, location=external,
            size_threshold=256,
        )  # fmt: skip
    return folder


BESIDE = "best = torch.topk(x.reshape([-1, 16]), 1)[0].sum() * 0.0\n"
TEXT = np.random.default_rng(11).normal(size=(4, 3, 16)).astype(np.float32)


def test_a_router_of_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each token counts, on both paths alike; the answers are those of numpy; all four weights are the experts'."""
    folder = _tokens(tmp_path / "m", monkeypatch)
    with Tracer(folder, data=tmp_path, timed=False) as tracer:
        for answer in tracer.run({"x": TEXT}):
            np.testing.assert_allclose(answer["y"], token_answer({"x": TEXT}), rtol=1e-4, atol=1e-4)
        seen = tracer.result().seen
    by_hand = np.bincount(chosen_tokens(TEXT).reshape(-1), minlength=TOKEN_EXPERTS)
    assert by_hand.sum() == 2 * 4 * 3
    for one in seen:
        experts = [unit for unit in one.declared.units if unit.kind is Kind.EXPERT]
        assert [one.trace.hits.get(unit.id, 0) for unit in experts] == by_hand.tolist()
        assert sum(count for unit, count in one.trace.hits.items() if "+" in unit) == 4 * 3
    (router,) = find_routers(_graph(token_nodes()[0], **TOKEN_WEIGHTS))
    assert router.weights == ("up", "gate", "down", "bias")


@pytest.mark.parametrize("external", [None, "model.onnx.data"])
def test_stripping_an_expert_of_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external: str | None) -> None:
    """Rows of the feed break, not tokens; every weight of the expert goes, wherever the file has them."""
    folder = _tokens(tmp_path / "m", monkeypatch, external=external)
    feeds = [{"x": TEXT[:2]}, {"x": TEXT[2:]}]
    for expert in range(TOKEN_EXPERTS):
        needed = [(at // 2, at % 2) for at in range(4) if expert in chosen_tokens(TEXT)[at]]
        broken = would_break(folder, [expert], feeds)
        assert [(one.feed, one.row) for one in broken] == needed
        assert all(one.differs for one in broken)
    with tempfile.TemporaryDirectory() as scratch:
        router = write_named(folder.main, Path(scratch)).routers[0]
        _take_out(Path(scratch), folder.path, router, [3])
        session = ort.InferenceSession(str(Path(scratch, "model.onnx")))
        less = {name: one.copy() for name, one in TOKEN_WEIGHTS.items()}
        for name in router.weights:
            less[name][3] = 0
        monkeypatch.setattr("crashpath.runtime.testing_experts.TOKEN_WEIGHTS", less)
        np.testing.assert_allclose(session.run(["y"], {"x": TEXT})[0], token_answer({"x": TEXT}), atol=1e-4)
    assert sorted(one.name for one in folder.path.iterdir()) == sorted(
        ["golden.npz", "model.onnx", "model.toml", "model.ts.pt", *([external] if external else [])]
    )


def test_tokens_that_cannot_be_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tokens are not laid out row by row it is one sentence; feeds of one row each are told all the same."""
    from onnx import numpy_helper

    def sequence_first() -> tuple[list[Any], list[Any]]:
        nodes, weights = token_nodes()
        nodes[0] = _node("Shape", "turned", "shape")
        nodes.insert(0, _node("Transpose", "x", "turned", perm=[1, 0, 2]))
        nodes[2].input[0] = "turned"
        nodes[-1].output[0] = "laid"
        return [*nodes, _node("Transpose", "laid", "y", perm=[1, 0, 2])], weights

    def last_only() -> tuple[list[Any], list[Any]]:
        nodes, weights = token_nodes()
        nodes[1:2] = [_node("Reshape", "x flat", "all"), _node("Slice", "all from to", "tokens")]
        nodes[-1] = _node("Identity", "summed", "y")
        bounds = {"from": np.array([1]), "to": np.array([1 << 40])}
        return nodes[1:], [*weights, *(numpy_helper.from_array(one, name) for name, one in bounds.items())]

    turned = _tokens(tmp_path / "a", monkeypatch, nodes=sequence_first)
    expert = int(chosen_tokens(TEXT)[0, 1, 0])
    with pytest.raises(StripError, match="give feeds of one row each"):
        [would_break(turned, [one], [{"x": TEXT}]) for one in range(TOKEN_EXPERTS)]
    singly = would_break(turned, [expert], [{"x": TEXT[at : at + 1]} for at in range(4)])
    assert [one.feed for one in singly] == [at for at in range(4) if expert in chosen_tokens(TEXT)[at]]
    with pytest.raises(StripError, match="11 rows where the feed has 4; give feeds of one row each"):
        would_break(_tokens(tmp_path / "b", monkeypatch, nodes=last_only), [0], [{"x": TEXT}])


def test_stripping_fails_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A feed on which the model fails, and a file of weights that is not there, are each a `StripError`."""
    folder = _tokens(tmp_path / "m", monkeypatch, external="model.onnx.data")
    with pytest.raises(StripError, match="fails on feed 0: "):
        would_break(folder, [0], [{"x": TEXT[:, :, :5]}])
    (folder.path / "model.onnx.data").unlink()
    with pytest.raises(StripError, match=r"cannot be run without these experts: .*model\.onnx\.data"):
        would_break(folder, [0], [{"x": TEXT}])


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (BESIDE + TOKEN_SCRIPT.replace("[chosen]", "[chosen + 0]") + " + best", "has 2 operators"),
        (TOKEN_SCRIPT.replace("torch.topk(", "torch.sort(").replace(", 2)\nrows", ", 1)\nrows"), "has 0 operators"),
        (TOKEN_SCRIPT.replace("[chosen]", "[chosen + 0]"), None),
        (TOKEN_SCRIPT.replace("[chosen]", "[:7][chosen]").replace("self.bias[:7]", "self.router"), "other experts"),
    ],
)
def test_experts_that_cannot_be_heard_stand_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str | None
) -> None:
    """Where the script's choices are not the graph's, its experts are declared, in no denominator, with the reason."""
    folder = _tokens(tmp_path / "m", monkeypatch, script=script)
    with MainTracer(folder, ("CPUExecutionProvider",)) as main:
        routers = main.declared.routers
    with FallbackTracer(folder, timed=False, routers=routers) as tracer:
        experts = [unit for unit in tracer.declared.units if unit.kind is Kind.EXPERT]
        pairs = [unit for unit in tracer.declared.units if unit.kind is Kind.PAIR]
    assert len(experts) == TOKEN_EXPERTS
    if why is None:
        assert all(unit.counted for unit in experts)
        return
    assert all(why in str(unit.reason) for unit in [*experts, *pairs])
    assert len(pairs) == 1


def test_a_choice_beside_the_router_is_not_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topk that picks nothing does not hide the router of the script, wherever it stands."""
    folder = _tokens(tmp_path / "m", monkeypatch, script=BESIDE + TOKEN_SCRIPT + " + best")
    with Tracer(folder, data=tmp_path, timed=False) as tracer:
        tracer.run({"x": TEXT})
        main, fallback = ({k: v for k, v in one.trace.hits.items() if "#" in k} for one in tracer.result().seen)
    assert main == fallback
    assert sum(count for unit, count in main.items() if "+" not in unit) == 2 * 4 * 3


def test_pairs_have_one_name() -> None:
    """Who is chosen first does not matter, nor along which axis the choices lie; what is no expert is left out."""
    chosen = Chosen([Router("r", "i", ("w",), 8)])
    chosen.add("r", [[5, 2], [2, 5], [7, 1]])
    assert chosen.hits[pair_id("r", (2, 5))] == 2
    assert (chosen.hits[expert_id("r", 5)], chosen.hits[pair_id("r", (1, 7))]) == (2, 1)
    turned = Chosen([Router("r", "i", ("w",), 8, axis=1)])
    turned.add("r", np.array([[[5, 2, 7], [2, 5, 1]]]))
    assert turned.hits == chosen.hits
    chosen.add("r", [[-1, 9]])
    assert turned.hits == chosen.hits


def test_pairs_have_a_limit() -> None:
    """Of many experts one unit stands for the pairs, apart; experts count all the same. The limit is the model's."""
    many = Router("many", "i", ("w",), 2000)
    units = list(expert_units([many]))
    assert len(units) == 2001
    (pairs,) = (unit for unit in units if unit.kind is Kind.PAIR)
    assert (pairs.label, pairs.reason) == ("1,999,000 pairs of 2000 experts", TOO_MANY)
    chosen = Chosen([many])
    chosen.add("many", [[5, 1999], [5, 6]])
    assert chosen.hits == {"many#5": 2, "many#6": 1, "many#1999": 1}
    layers = [Router(f"layer{number}", "i", ("w",), 128) for number in range(48)]
    units = list(expert_units(layers))
    assert len([unit for unit in units if unit.kind is Kind.PAIR and unit.counted]) == 128 * 127 // 2
    assert len([unit for unit in units if unit.kind is Kind.PAIR and not unit.counted]) == 47
