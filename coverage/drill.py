"""Drive a fault through the runtime and judge the eight cells."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from crashpath.coverage.drillattack import Seen, attack
from crashpath.coverage.drillcells import CELLS, Cell, DrillResult, none_apply
from crashpath.coverage.drillfolder import tokenizer_file
from crashpath.coverage.drillplan import DrillPlan, missing_for
from crashpath.coverage.drillstage import Asked, Stage
from crashpath.coverage.fault import Fault
from crashpath.coverage.spoilers import file_of, spoiler
from crashpath.runtime import routes
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

STICKS = "by design, this policy never goes back to the main path by itself"


class DrillError(Exception):
    """A drill cannot be driven: the session did not answer on its main path before anything was broken."""


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
        return "this model folder has no tokenizer, so no prepare step"
    if not plan.spoiler:
        return None
    how = spoiler(plan.spoiler)
    if how.poisons and stage.exam.poison_feed is None:
        return "the rows of this model's inputs cannot be told apart, so no request can be made poisonous"
    if file_of(how, stage.folder.path, name) is None:
        return f"this model folder has no {how.file.strip('{}')} file"
    return None


def null_result(case: Case, isolation: str, policy: str, why: str) -> DrillResult:
    """The result of a case that cannot be driven."""
    return DrillResult(
        case.fault.id, case.fault.failure_class, case.phase, isolation, policy, case.plan.path, none_apply(why)
    )


def drive(stage: Stage, case: Case) -> DrillResult:
    """Drive one case on a stage. Raises `DrillError` where the main path did not answer before it."""
    if why := not_here(case, stage.isolation, stage):
        return null_result(case, stage.isolation, stage.policy.name, why)
    kind = "raw" if case.phase is Phase.PREPARE else "golden"
    if not stage.main_answers(stage.pace.recover, kind):
        raise DrillError(f"before {case.fault.id} the main path did not answer the golden request; is the model whole?")
    began = time.monotonic()
    seen = attack(stage, case.plan, case.phase)
    back = None if _never_back(stage, case, seen) else _is_back(stage, case, kind)
    cells = tuple(_judge(name.id, stage, case, seen, back) for name in CELLS)
    return DrillResult(
        case.fault.id,
        case.fault.failure_class,
        case.phase,
        stage.isolation,
        stage.policy.name,
        case.plan.path,
        cells,
        requests=len(seen.asked),
        unanswered=sum(asked.answer is None for asked in seen.asked),
        wrong=sum(asked.right is False for asked in seen.asked),
        seconds=time.monotonic() - began,
        observed="; ".join(seen.notes),
        printed=seen.printed,
    )


def _never_back(stage: Stage, case: Case, seen: Seen) -> bool:
    """Whether the policy has left the main path for good."""
    return stage.policy.sticky and stage.session.facts().switched and case.plan.path == Which.MAIN


def _is_back(stage: Stage, case: Case, kind: str) -> bool:
    which = Which(case.plan.path)
    return stage.wait(which, stage.pace.recover) and stage.main_answers(stage.pace.recover, kind)


def _judge(name: str, stage: Stage, case: Case, seen: Seen, back: bool | None) -> Cell:
    match name:
        case "raised":
            return _raised(case, seen)
        case "detected":
            told = _told(stage, case, seen)
            return Cell(name, bool(told), "" if told else f"no failure of {case.plan.path} in {case.phase} was told")
        case "classified":
            found = set(_told(stage, case, seen))
            good = found == {case.fault.failure_class}
            return Cell(name, good, "" if good else f"told as {', '.join(sorted(found)) or 'nothing'}")
        case "routed":
            return _routed(case, seen)
        case "answered":
            bad = next((asked for asked in seen.asked if asked.answer is None), None)
            return Cell(name, bad is None and bool(seen.asked), "" if bad is None else _error(bad))
        case "equal":
            wrong = sum(asked.right is False for asked in seen.asked)
            answered = any(asked.right is not None for asked in seen.asked)
            if not answered:
                return Cell(name, None, "there was no answer")
            return Cell(name, not wrong, f"{wrong} answers differ" if wrong else "")
        case "in_deadline":
            return _in_deadline(stage, seen)
        case _:
            if back is None:
                return Cell(name, None, STICKS)
            return Cell(name, back, "" if back else f"not within {stage.pace.recover:.0f} s")


def _raised(case: Case, seen: Seen) -> Cell:
    observed = "\n".join((*seen.notes, seen.printed))
    proven = re.search(case.plan.proof, observed) is not None
    reached = not case.plan.strike or any(note.startswith("hit") for note in seen.notes)
    if proven and reached:
        return Cell("raised", True)
    return Cell("raised", False, f"seen: {'; '.join(seen.notes)[:300] or 'nothing'}")


def _told(stage: Stage, case: Case, seen: Seen) -> list[str]:
    """Return the classes of the failures of the struck path, in the phase of the case, that the session told of."""
    events = stage.failures(seen.since, Which(case.plan.path))
    units = ("load", "request") if case.phase in (Phase.LOAD, Phase.WARMUP) else ("request",)
    return [event.failure_class for event in events if event.phase == case.phase and event.unit in units]


def _routed(case: Case, seen: Seen) -> Cell:
    """Whether a request took the edge that is declared for this failure."""
    taken = [asked.answer.route for asked in seen.asked if asked.answer is not None]
    if case.plan.path == Which.FALLBACK:
        good = bool(taken) and set(taken) == {routes.MAIN_ANSWERED}
    elif case.phase is Phase.PREPARE:
        causes = {
            asked.answer.cause.failure_class for asked in seen.asked if asked.answer is not None and asked.answer.cause
        }
        good = causes == {case.fault.failure_class} and set(taken) == {routes.MAIN_ANSWERED}
    else:
        declared = {routes.answered(routes.stem(case.phase, case.fault.failure_class))}
        if case.phase is not Phase.INFER:  # who leaves for good does so at the first request that finds the path away
            declared.add(routes.answered(routes.SWITCHED))
        good = bool(declared & set(taken))
    return Cell("routed", good, "" if good else f"routes: {', '.join(sorted(set(taken))) or 'none'}")


def _in_deadline(stage: Stage, seen: Seen) -> Cell:
    limit = stage.folder.limits.deadline_ms
    slowest = max((asked.milliseconds for asked in seen.asked), default=0.0)
    good = slowest <= limit
    return Cell("in_deadline", good, "" if good else f"the slowest took {slowest:.0f} ms of {limit:.0f} ms")


def _error(asked: Asked) -> str:
    return f"{type(asked.error).__name__}: {asked.error}"[:200]
