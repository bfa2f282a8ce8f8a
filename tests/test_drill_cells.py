"""Cells are proof by themselves: each of them goes red where only it does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crashpath.coverage.drill import drive
from crashpath.coverage.drillattack import attack
from crashpath.coverage.drillcase import Case, not_here
from crashpath.coverage.drillcells import Cell, DrillResult, Verdict
from crashpath.coverage.drillfolder import TEXT, Prepared, built_in_folder, tokenizer_file
from crashpath.coverage.drilljudge import judged
from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.drillstage import Pace, Stage, opened
from crashpath.coverage.faults import fault_by_id
from crashpath.coverage.spoilers import spoiled, spoiler
from crashpath.runtime import routes
from crashpath.runtime.errors import TokenizerBroken
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.policy import POLICIES
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Arrays, Phase
from crashpath.runtime.values import Path as Which

PACE = Pace(load=20.0, recover=90.0)
HASTY = Pace(load=2.0, recover=3.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    """The built-in model, with a deadline that a loaded machine keeps."""
    made = built_in_folder(tmp_path_factory.mktemp("model") / "tiny")
    return replace(made, limits=replace(made.limits, deadline_ms=8000.0))


@pytest.fixture(scope="module")
def stage(folder: ModelFolder) -> Iterator[Stage]:
    """One session in workers of its own, for the drills that a breaker survives."""
    with opened(folder, "process", POLICIES["breaker"], pace=PACE) as stage:
        yield stage


@pytest.fixture
def hasty(stage: Stage) -> Iterator[Stage]:
    """The same stage, which waits no longer than a drill needs that shall be red."""
    stage.pace = HASTY
    try:
        yield stage
    finally:
        stage.pace = PACE


def _cells(result: DrillResult | tuple[Cell, ...]) -> dict[str, Cell]:
    return {cell.name: cell for cell in (result if isinstance(result, tuple) else result.cells)}


def _killed(plan: DrillPlan, phase: Phase) -> Case:
    return Case(replace(fault_by_id("model-killed"), drill=plan), phase)


def test_the_drills_own_kill_is_no_proof(hasty: Stage) -> None:
    """A strike that does nothing is not raised, though the path was taken down with the signal that it should send."""
    case = _killed(DrillPlan(("load",), "SIGKILL", "waiting.sleeps", "0"), Phase.LOAD)
    cells = _cells(drive(hasty, case))
    assert cells["raised"].value is False
    assert cells["detected"].value is False


def test_a_kill_by_who_serves_is_no_proof(stage: Stage) -> None:
    """A worker that hangs and is killed for it died of SIGKILL, but nothing in it raised that."""
    case = _killed(DrillPlan(("infer",), "SIGKILL", "waiting.sleeps", ""), Phase.INFER)
    cells = _cells(drive(stage, case))
    assert cells["raised"].value is False
    assert "ended by who serves" in cells["raised"].why
    assert cells["detected"].value is True


@pytest.mark.parametrize("proof", ["", "No module named"])
def test_a_fault_without_its_proof_is_not_raised(stage: Stage, proof: str) -> None:
    """A strike that really fails, but not with what the plan says, is not raised; no pattern says nothing."""
    fault = fault_by_id("model-no-space")
    assert fault.drill is not None
    result = drive(stage, Case(replace(fault, drill=replace(fault.drill, proof=proof)), Phase.INFER))
    cells = _cells(result)
    assert cells["raised"].value is False
    assert all(cells[name].value for name in ("detected", "classified", "routed", "answered", "equal", "recovered"))


def test_every_hit_is_counted(stage: Stage) -> None:
    """A strike that hits less often than it was armed for is not raised as it should be."""
    case = Case(fault_by_id("model-no-space"), Phase.INFER)
    seen = attack(stage, case.plan, case.phase)
    assert (seen.hits, seen.wanted) == (2, 2)
    seen.hits = 1
    cells = _cells(judged(stage, case, seen))
    assert cells["raised"].value is False
    assert "1 of 2" in cells["raised"].why


@pytest.mark.parametrize(("fault", "phase"), [("model-no-space", Phase.INFER), ("model-cut", Phase.LOAD)])
def test_every_struck_request_takes_the_route(stage: Stage, fault: str, phase: Phase) -> None:
    """One struck request on another edge makes the cell red, though the others took the declared one."""
    case = Case(fault_by_id(fault), phase)
    seen = attack(stage, case.plan, case.phase)
    assert _cells(judged(stage, case, seen))["routed"].value is True
    place = next(place for place, asked in enumerate(seen.asked) if asked.struck)
    answer = seen.asked[place].answer
    assert answer is not None
    assert sum(asked.struck for asked in seen.asked) >= 1
    strayed = replace(seen.asked[place], answer=replace(answer, route=routes.answered(routes.OPEN)))
    seen.asked.append(strayed)
    routed = _cells(judged(stage, case, seen))["routed"]
    assert routed.value is False
    assert routes.OPEN in routed.why


def test_a_fallback_that_never_answers_again_is_red(hasty: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fallback that was struck is asked itself afterwards: that main answers says nothing of it."""
    fallback = hasty.lanes[Which.FALLBACK]
    asked = []

    def run(feed: Arrays, deadline: float) -> Arrays:
        asked.append(deadline)
        raise AssertionError("the fallback never answers again")

    hasty.pace = replace(HASTY, load=20.0, recover=20.0)
    monkeypatch.setattr(fallback, "run", run)
    result = drive(hasty, Case(fault_by_id("model-script-cut"), Phase.LOAD))
    cells = _cells(result)
    assert cells["recovered"].value is False
    assert "never answers again" in cells["recovered"].why
    assert asked
    assert result.verdict is Verdict.RED


def test_the_prepare_step_is_the_one_that_ships(folder: ModelFolder) -> None:
    """The built-in folder declares its tokenizer. It is built once, as in production, and from a broken file not at
    all; after the file was mended the same step serves again.
    """
    assert folder.tokenizer is not None
    assert {folder.tokenizer.file, folder.tokenizer.fallback} <= dict(folder.files).keys()
    prepared = Prepared(folder)
    assert prepared.step.fallback is not None
    feed = prepared.step.main(TEXT)
    assert set(feed) == {one.name for one in folder.inputs}
    assert all((feed[name] == array).all() for name, array in prepared.step.fallback(TEXT).items())
    with spoiled(spoiler("tokenizer-cut"), folder.path / folder.tokenizer.file):
        assert (prepared.step.main(TEXT)["input_ids"] == feed["input_ids"]).all()
        prepared.renew()
        with pytest.raises(TokenizerBroken):
            prepared.step.main(TEXT)
    assert (prepared.step.main(TEXT)["input_ids"] == feed["input_ids"]).all()


def test_a_tokenizer_that_is_not_declared_is_none(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer.json that merely lies in the folder is not served, so it is not drilled."""
    bare = tiny_folder(tmp_path / "bare", fallback=False)
    (bare.path / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert tokenizer_file(bare) is None
    monkeypatch.setattr(stage, "folder", replace(stage.folder, tokenizer=None))
    assert "declares no tokenizer" in (
        not_here(Case(fault_by_id("model-tokenizer-cut"), Phase.PREPARE), "process", stage) or ""
    )
