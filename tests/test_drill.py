"""Drills: real faults inside real sessions, eight cells, and nothing left behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import psutil
import pytest

from crashpath.coverage.drill import drive
from crashpath.coverage.drillcase import Case, cases_of, not_here
from crashpath.coverage.drillcells import CELLS, Cell, DrillResult, Verdict, none_apply
from crashpath.coverage.drillclaim import DRILL, REQUEST, Claim, claimed
from crashpath.coverage.drillfolder import built_in_folder
from crashpath.coverage.drillmix import Mix, MixResult, mixable, patient
from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.drillrun import Runner
from crashpath.coverage.drillstage import Pace, Stage, opened
from crashpath.coverage.faults import FAULTS, fault_by_id
from crashpath.ingest.classes import CLASSES
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.policy import POLICIES
from crashpath.runtime.values import Phase

PACE = Pace(load=20.0, recover=90.0)


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


def _case(fault: str, phase: Phase) -> Case:
    return Case(fault_by_id(fault), phase)


def _drilled(folder: ModelFolder, policy: str, case: Case) -> DrillResult:
    with Runner(folder, "process", POLICIES[policy], pace=PACE) as runner:
        (result,) = runner.run([case])
    return result


@pytest.mark.parametrize(
    ("fault", "phase", "seen"),
    [
        ("model-killed", Phase.INFER, "SIGKILL"),
        ("model-segmentation-fault", Phase.LOAD, "SIGSEGV"),
        ("model-expand-refused", Phase.INFER, "Failed to allocate memory"),
        ("model-cut", Phase.LOAD, "INVALID_PROTOBUF"),
        ("model-request-memory", Phase.INFER, "Failed to allocate memory"),
        ("model-tokenizer-cut", Phase.PREPARE, "EOF"),
        ("model-fetch-refused", Phase.PREPARE, "refused"),
    ],
)
def test_a_fault_is_survived(stage: Stage, fault: str, phase: Phase, seen: str) -> None:
    """A real fault in a worker is seen, named, routed, answered rightly in time, and the main path comes back."""
    result = drive(stage, _case(fault, phase))
    assert result.verdict is Verdict.GREEN, [cell for cell in result.cells if cell.value is not True]
    assert [cell.name for cell in result.cells] == [name.id for name in CELLS]
    assert seen in f"{result.observed}\n{result.printed}"
    assert result.requests >= 2


def test_what_a_dying_worker_prints_is_kept(stage: Stage) -> None:
    """The words of the process that died are those that it wrote itself."""
    assert "Segmentation fault" in drive(stage, _case("model-segmentation-fault", Phase.INFER)).printed


def test_account_does_not_answer_the_second_failure(folder: ModelFolder) -> None:
    """Under `account` the first failure is answered and the second goes to the caller: its drill is red."""
    result = _drilled(folder, "account", _case("model-bytes-refused", Phase.INFER))
    cells = {cell.name: cell for cell in result.cells}
    assert (result.requests, result.unanswered, result.wrong) == (2, 1, 0)
    assert cells["answered"].value is False
    assert "HostMemory" in cells["answered"].why
    assert cells["raised"].value is True
    assert result.verdict is Verdict.RED


def test_sticky_answers_and_stays(folder: ModelFolder) -> None:
    """Under `sticky` every request is answered, and going back does not apply, for a reason that is said."""
    result = _drilled(folder, "sticky", _case("model-bytes-refused", Phase.INFER))
    assert result.verdict is Verdict.GREEN
    recovered = result.cells[-1]
    assert recovered.value is None
    assert "never goes back" in recovered.why


def test_a_fault_that_does_not_happen_is_red(stage: Stage) -> None:
    """A drill whose strike does nothing shows it: nothing was raised, nothing detected, and it is not green."""
    plan = DrillPlan(("infer",), "MemoryError", "waiting.sleeps", "0")
    harmless = replace(fault_by_id("model-bytes-refused"), drill=plan)
    result = drive(stage, Case(harmless, Phase.INFER))
    cells = {cell.name: cell.value for cell in result.cells}
    assert (cells["raised"], cells["detected"], cells["answered"]) == (False, False, True)
    assert result.verdict is Verdict.RED


def test_a_wrong_class_is_red(stage: Stage) -> None:
    """A real failure that the runtime puts under another class than the catalogue is red in that cell alone."""
    mislabelled = replace(fault_by_id("model-no-space"), failure_class="dependency")
    result = drive(stage, Case(mislabelled, Phase.INFER))
    cells = {cell.name: cell for cell in result.cells}
    assert cells["classified"].value is False
    assert "permission_disk" in cells["classified"].why
    assert all(cells[name].value for name in ("raised", "detected", "answered", "equal"))


def test_a_mix_loses_nothing(stage: Stage) -> None:
    """Struck requests of a mix are all answered, all rightly; those that met no fault are not counted as struck."""
    cases = mixable(cases_of((fault_by_id("model-no-space"), fault_by_id("model-bytes-refused"))), "process")
    result = Mix(stage, cases, seed=1).run(12)
    assert (result.requests, result.unanswered, result.wrong, result.misnamed) == (12, 0, 0, 0), result.errors
    assert sum(count for _, count in result.faults) == 12
    assert 0.7 < result.bound < 0.8


def test_a_mix_does_not_trip_its_breaker() -> None:
    """The mix's breaker opens for a path that is dead, not for one failure in three; as it is another policy than the
    one that ships, it has another name.
    """
    assert patient(POLICIES["breaker"]).breaker != POLICIES["breaker"].breaker
    assert patient(POLICIES["breaker"]).name not in POLICIES
    assert patient(POLICIES["sticky"]) is POLICIES["sticky"]


_MIX = MixResult(10, "process", "breaker, patient", (), 10, 20, 0, 0, 0, 0, (), 0, (), ())


@pytest.mark.parametrize(
    ("mix", "told"),
    [
        (_MIX, ""),
        (replace(_MIX, requests=9), "9 of 10 requests"),
        (replace(_MIX, unanswered=1), "unanswered"),
        (replace(_MIX, wrong=1), "wrong"),
        (replace(_MIX, late=1), "late"),
        (replace(_MIX, misnamed=1), "another class"),
    ],
    ids=["green", "too few", "unanswered", "wrong", "late", "misnamed"],
)
def test_when_a_mix_is_red(mix: MixResult, told: str) -> None:
    """Too few faults met, and any request that was lost, wrong, late or misnamed, make a mix red."""
    assert told in "".join(mix.faulty)
    assert bool(mix.faulty) == bool(told)


def test_a_claim_has_one_unit() -> None:
    """The claim is of the struck requests of the weakest mix, whatever was drilled beside it; without a mix it is of
    drills, one trial each, however many requests they sent.
    """
    cells = tuple(Cell(one.id, True) for one in CELLS)
    good = DrillResult("f", "hang", "infer", "process", "breaker", "ort", cells, requests=50)
    missed = replace(good, unanswered=3)
    null = replace(good, cells=none_apply("not here"))
    assert claimed([good, missed, null], ()) == Claim(DRILL, 2, 1)
    weaker = replace(_MIX, requests=8, wrong=1)
    assert claimed([good, missed], [_MIX, weaker]) == Claim(REQUEST, 8, 1)
    assert claimed([], ()).bound == 0.0


def test_nothing_is_left(folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the drills that end a process, mount a disk, make a group or hold a server: no process, no mount, no
    temporary folder, no open file more than before.
    """
    tmp_path.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cases = [
        _case("model-killed", Phase.INFER),
        _case("model-small-disk", Phase.INFER),
        _case("cgroup-killed", Phase.INFER),
        _case("model-fetch-401", Phase.LOAD),
        _case("model-never-delivered", Phase.LOAD),
    ]
    with Runner(folder, "process", POLICIES["breaker"], pace=replace(PACE, load=6.0)) as warm:
        list(warm.run(cases[:1]))  # imports and pools of the libraries are not what is counted
    before = _state()
    with Runner(folder, "process", POLICIES["breaker"], pace=replace(PACE, load=6.0)) as runner:
        results = list(runner.run(cases))
    assert [(one.fault, one.verdict) for one in results if one.verdict is Verdict.RED] == []
    assert _state() == before


def _state() -> tuple[int, int, int, int, int]:
    mounts = Path("/proc/mounts").read_text(encoding="utf-8") if Path("/proc/mounts").exists() else ""
    groups = Path("/sys/fs/cgroup/memory")
    mine = list(groups.glob(f"drill-*-{os.getpid()}")) if groups.is_dir() else []
    return (
        len(psutil.Process().children(recursive=True)),
        len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0,
        mounts.count("/drill-"),
        len(mine),
        len(list(Path(tempfile.gettempdir()).glob("drill-*"))),
    )


def test_what_cannot_be_driven_says_why(folder: ModelFolder) -> None:
    """In the serving process a kill would end the service; without a device its faults cannot be raised."""
    with Runner(folder, "in_process", POLICIES["breaker"], pace=PACE) as runner:
        results = list(runner.run(cases_of((fault_by_id("model-killed"), fault_by_id("model-device-memory")))))
    for result in results:
        assert result.verdict is (Verdict.NULL)
        assert all(cell.value is None and cell.why for cell in result.cells)


def test_every_class_has_a_drill() -> None:
    """Each failure class can be driven in at least one phase; each plan names phases, a proof, and one way to raise."""
    drilled = [fault for fault in FAULTS if fault.drill is not None]
    assert {fault.failure_class for fault in drilled} == {known.id for known in CLASSES}
    for fault in drilled:
        plan = fault.drill
        assert plan is not None
        assert bool(plan.strike) != bool(plan.spoiler), fault.id
        assert plan.proof, fault.id
        assert set(plan.phases) <= {str(phase) for phase in Phase}, fault.id
        if plan.strike.startswith("process."):
            assert plan.process_only, fault.id


def test_a_folder_without_the_file_is_no_case(stage: Stage) -> None:
    """A spoiler of a file that this folder does not have does not apply, and says which file."""
    case = _case("model-weights-gone", Phase.LOAD)
    inside = stage.folder.path / "model.onnx"
    kept = inside.read_bytes()
    model = onnx.load(str(inside))  # its weights come along, and stay inside from here on
    try:
        onnx.save(model, str(inside))
        assert "external" in (not_here(case, "process", stage) or "")
    finally:
        inside.write_bytes(kept)
    assert not_here(case, "process", stage) is None
