"""Experts as units: found in the graph, counted on both paths, and what would break without them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crashpath.coverage.experts import Chosen, Router, expert_id, find_routers, pair_id
from crashpath.coverage.strip import StripError, would_break
from crashpath.coverage.tracer import Tracer
from crashpath.coverage.units import Kind, ratio
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.testing_experts import EXPERTS, reached_by

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


def test_a_choice_that_picks_no_weight_is_no_router() -> None:
    """A TopK whose indices pick no weight is no router; a reshape in between does not hide one."""
    from onnx import helper, numpy_helper

    table = numpy_helper.from_array(np.zeros((8, 2), np.float32), "table")
    top = helper.make_node("TopK", ["x", "k"], ["values", "picked"], name="top")
    plain = helper.make_graph([top], "g", [], [], [table])
    assert find_routers(plain) == ()
    flat = helper.make_node("Reshape", ["picked", "flat"], ["one"])
    nodes = [top, flat, helper.make_node("Gather", ["table", "one"], ["y"])]
    (router,) = find_routers(helper.make_graph(nodes, "g", [], [], [table]))
    assert (router.id, router.indices, router.count) == ("top", "picked", 8)


def test_pairs_have_one_name() -> None:
    """Who is chosen first does not matter."""
    chosen = Chosen([Router("r", "i", "w", 8)])
    chosen.add("r", [[5, 2], [2, 5], [7, 1]])
    assert chosen.hits[pair_id("r", (2, 5))] == 2
    assert (chosen.hits[expert_id("r", 5)], chosen.hits[pair_id("r", (1, 7))]) == (2, 1)
