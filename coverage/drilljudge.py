"""Judge what a drill saw: the eight cells, each of them proof by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crashpath.coverage.drillcase import Case
from crashpath.coverage.drillcells import CELLS, Cell
from crashpath.coverage.drillseen import Seen
from crashpath.coverage.drillstage import Asked, Stage
from crashpath.runtime import routes
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

STICKS = "by design, this policy never goes back to the main path by itself"


def judged(stage: Stage, case: Case, seen: Seen) -> tuple[Cell, ...]:
    """Return the cells. Asks the struck path itself, and waits for it."""
    return tuple(_JUDGES[name.id](stage, case, seen) for name in CELLS)


def _raised(stage: Stage, case: Case, seen: Seen) -> Cell:
    if seen.hits < seen.wanted:
        return Cell("raised", False, f"the strike hit {seen.hits} of {seen.wanted} times{_observed(seen)}")
    if not seen.proves(case.plan.proof):
        return Cell("raised", False, f"nothing that was observed is proof{_observed(seen)}")
    return Cell("raised", True)


def _observed(seen: Seen) -> str:
    return f"; seen: {'; '.join(seen.notes)[:300] or 'nothing'}"


def _detected(stage: Stage, case: Case, seen: Seen) -> Cell:
    told = _told(stage, case, seen)
    return Cell("detected", bool(told), "" if told else f"no failure of {case.plan.path} in {case.phase} was told")


def _classified(stage: Stage, case: Case, seen: Seen) -> Cell:
    found = set(_told(stage, case, seen))
    good = found == {case.fault.failure_class}
    return Cell("classified", good, "" if good else f"told as {', '.join(sorted(found)) or 'nothing'}")


def _told(stage: Stage, case: Case, seen: Seen) -> list[str]:
    """Return the classes of the failures of the struck path, in the phase of the case, that the session told of."""
    events = stage.failures(seen.since, Which(case.plan.path))
    units = ("load", "request") if case.phase in (Phase.LOAD, Phase.WARMUP) else ("request",)
    return [event.failure_class for event in events if event.phase == case.phase and event.unit in units]


def _routed(stage: Stage, case: Case, seen: Seen) -> Cell:
    """Whether every request that met the failure took the edge that is declared for it, and there was one."""
    struck = [asked for asked in seen.asked if asked.struck]
    if not struck:
        return Cell("routed", False, "no request met the failure")
    declared = _declared(stage, case)
    off = [asked for asked in struck if not _took(asked, case, declared)]
    if not off:
        return Cell("routed", True)
    taken = sorted({_route(asked) for asked in off})
    return Cell("routed", False, f"{len(off)} of {len(struck)} struck requests went another way: {', '.join(taken)}")


def _declared(stage: Stage, case: Case) -> frozenset[str]:
    if case.plan.path == Which.FALLBACK or case.phase is Phase.PREPARE:
        return frozenset({routes.MAIN_ANSWERED})
    edge = routes.answered(routes.stem(case.phase, case.fault.failure_class))
    if case.phase is Phase.INFER or not stage.policy.sticky:
        return frozenset({edge})
    return frozenset({edge, routes.answered(routes.SWITCHED)})  # the first that finds the path away leaves for good


def _took(asked: Asked, case: Case, declared: frozenset[str]) -> bool:
    if asked.answer is None or asked.answer.route not in declared:
        return False
    if case.phase is not Phase.PREPARE:
        return True
    cause = asked.answer.cause
    return cause is not None and cause.failure_class == case.fault.failure_class


def _route(asked: Asked) -> str:
    if asked.answer is None:
        return type(asked.error).__name__
    cause = asked.answer.cause
    return asked.answer.route if cause is None else f"{asked.answer.route} ({cause.failure_class})"


def _answered(stage: Stage, case: Case, seen: Seen) -> Cell:
    bad = next((asked for asked in seen.asked if asked.answer is None), None)
    if bad is not None:
        return Cell("answered", False, f"{type(bad.error).__name__}: {bad.error}"[:200])
    return Cell("answered", bool(seen.asked), "" if seen.asked else "nothing was asked")


def _equal(stage: Stage, case: Case, seen: Seen) -> Cell:
    wrong = sum(asked.right is False for asked in seen.asked)
    if not any(asked.right is not None for asked in seen.asked):
        return Cell("equal", None, "there was no answer")
    return Cell("equal", not wrong, f"{wrong} answers differ" if wrong else "")


def _in_deadline(stage: Stage, case: Case, seen: Seen) -> Cell:
    limit = stage.folder.limits.deadline_ms
    slowest = max((asked.milliseconds for asked in seen.asked), default=0.0)
    good = slowest <= limit
    return Cell("in_deadline", good, "" if good else f"the slowest took {slowest:.0f} ms of {limit:.0f} ms")


def _recovered(stage: Stage, case: Case, seen: Seen) -> Cell:
    """Whether the struck path itself answers rightly, and the session goes back to its main path."""
    which = Which(case.plan.path)
    patience = stage.pace.recover
    if not stage.wait(which, patience):
        return Cell("recovered", False, f"the path was not ready within {patience:.0f} s")
    if why := stage.answers_itself(which, patience):
        return Cell("recovered", False, why)
    if stage.policy.sticky and stage.session.facts().switched and which is Which.MAIN:
        return Cell("recovered", None, STICKS)
    good = stage.main_answers(patience, "raw" if case.phase is Phase.PREPARE else "golden")
    return Cell("recovered", good, "" if good else f"the session was not back on main within {patience:.0f} s")


_JUDGES: Mapping[str, Callable[[Stage, Case, Seen], Cell]] = {
    "raised": _raised,
    "detected": _detected,
    "classified": _classified,
    "routed": _routed,
    "answered": _answered,
    "equal": _equal,
    "in_deadline": _in_deadline,
    "recovered": _recovered,
}
