"""The cases of the catalogue: a fault in one of the phases of its plan, and why one cannot be driven here."""

from __future__ import annotations

from dataclasses import dataclass

from crashpath.coverage.drillcells import DrillResult, none_apply
from crashpath.coverage.drillfolder import tokenizer_file
from crashpath.coverage.drillplan import DrillPlan, missing_for
from crashpath.coverage.drillstage import Stage
from crashpath.coverage.fault import Fault
from crashpath.coverage.spoilers import can_hold, file_of, spoiler
from crashpath.runtime.values import Phase


@dataclass(frozen=True, slots=True)
class Case:
    """One drill to drive: a fault in one of the phases of its plan."""

    fault: Fault
    phase: Phase

    @property
    def plan(self) -> DrillPlan:
        """How it is driven."""
        assert self.fault.drill is not None  # cases are made of faults that have one
        return self.fault.drill


def cases_of(faults: tuple[Fault, ...]) -> tuple[Case, ...]:
    """Return a case for each fault that has a plan and each phase of it."""
    drilled = [(fault, fault.drill) for fault in faults if fault.drill is not None]
    return tuple(Case(fault, Phase(phase)) for fault, plan in drilled for phase in plan.phases)


def not_here(case: Case, isolation: str, stage: Stage | None = None) -> str | None:
    """Say why a case cannot be driven in this isolation, or on this stage's model; ``None`` where it can."""
    if reason := missing_for(case.plan, isolation):
        return reason
    if stage is None:
        return None
    return _folder_lacks(case.plan, case.phase, stage)


def _folder_lacks(plan: DrillPlan, phase: Phase, stage: Stage) -> str | None:
    name = tokenizer_file(stage.folder)
    if phase is Phase.PREPARE and name is None:
        return "this model folder declares no tokenizer, so it has no prepare step"
    if not plan.spoiler:
        return None
    how = spoiler(plan.spoiler)
    if how.poisons and stage.exam.poison_feed is None:
        return "the rows of this model's inputs cannot be told apart, so no request can be made poisonous"
    if how.held and not can_hold(stage.folder.path):
        return "this file system knows no leases, so no file can be held"
    if file_of(how, stage.folder.path, name) is None:
        return f"this model folder has no {how.file.strip('{}')} file"
    return None


def null_result(case: Case, isolation: str, policy: str, why: str) -> DrillResult:
    """The result of a case that cannot be driven."""
    return DrillResult(
        case.fault.id, case.fault.failure_class, case.phase, isolation, policy, case.plan.path, none_apply(why)
    )
