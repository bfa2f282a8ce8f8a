"""What to do with a request: pure functions over what was tried and what happened.

Three questions, in this order, each answered with a `Step`: which path is tried first, what follows an ending of the
main path, what follows an ending of the fallback. Nothing here runs, waits or remembers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crashpath.runtime import routes
from crashpath.runtime.errors import DeadlineExceeded, Failure, Hang, InputError, Saturated
from crashpath.runtime.policy import Policy
from crashpath.runtime.values import BreakerState, Phase


class Ending(StrEnum):
    """How a try ended that gave no answer. ``busy``: its turn never came. ``unknown``: no reason matches the error."""

    FAILED = "failed"
    BUSY = "busy"
    LATE = "late"
    REFUSED = "refused"
    SATURATED = "saturated"
    UNKNOWN = "unknown"


class Do(StrEnum):
    """``raise_same``: the error of the last try, as it is."""

    TRY_MAIN = "try_main"
    TRY_FALLBACK = "try_fallback"
    RAISE_SAME = "raise_same"
    RAISE_NO_ANSWER = "raise_no_answer"
    RAISE_LATE = "raise_late"


@dataclass(frozen=True, slots=True)
class Step:
    """What is next. ``route`` is the declared id where the request ends here, the stem where it goes to the fallback.

    It is empty where the main path is tried: nothing has happened yet.
    """

    do: Do
    route: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a session knows when a request comes.

    ``flagged``: a failure happened before (policies `sticky` and `once`). ``down`` is ``None`` while the main path is
    ready, else the stem that says why it is not; ``covered``: the policy lets that reason fall back.
    """

    breaker: BreakerState = BreakerState.CLOSED
    flagged: bool = False
    down: str | None = None
    covered: bool = True


_OF_A_PATH = (Phase.LOAD, Phase.WARMUP, Phase.INFER)
_TRY_MAIN = Step(Do.TRY_MAIN)


def first_step(policy: Policy, seen: Seen) -> Step:
    """Which path is tried first."""
    if not policy.falls_back:
        return _TRY_MAIN
    if policy.sticky and seen.flagged:
        return Step(Do.TRY_FALLBACK, routes.SWITCHED)
    if seen.breaker is BreakerState.OPEN:
        return Step(Do.TRY_FALLBACK, routes.OPEN)
    if seen.breaker is BreakerState.HALF_OPEN:
        return Step(Do.TRY_FALLBACK, routes.HALF_OPEN)
    if seen.down is None:
        return _TRY_MAIN
    if not seen.covered:
        return Step(Do.RAISE_SAME, routes.NOT_COVERED)
    if policy.once and seen.flagged:
        return Step(Do.RAISE_SAME, routes.SECOND)
    return Step(Do.TRY_FALLBACK, seen.down)


def after_main(policy: Policy, flagged: bool, ending: Ending, error: Exception) -> Step:
    """What follows a main path that did not answer; ``flagged``: an earlier request had failed when this one did."""
    if ending is Ending.REFUSED:
        return Step(Do.RAISE_SAME, routes.MAIN_REFUSED)
    if ending is Ending.UNKNOWN:
        return Step(Do.RAISE_SAME, routes.MAIN_UNKNOWN)
    if not policy.falls_back:
        return Step(Do.RAISE_SAME, routes.OFF_FAILED)
    if isinstance(error, Failure) and not policy.covers(error):
        return Step(Do.RAISE_SAME, routes.NOT_COVERED)
    if policy.once and flagged:
        return Step(Do.RAISE_SAME, routes.SECOND)
    if isinstance(error, Failure):
        away = not error.tried and error.phase not in (Phase.LOAD, Phase.WARMUP)
        return Step(Do.TRY_FALLBACK, routes.RESTARTING if away else stem_of(error))
    return Step(Do.TRY_FALLBACK, routes.BUSY)


_AFTER_FALLBACK: dict[Ending, Step] = {
    Ending.SATURATED: Step(Do.RAISE_SAME, routes.SATURATED),
    Ending.BUSY: Step(Do.RAISE_LATE, routes.LATE),
    Ending.LATE: Step(Do.RAISE_LATE, routes.LATE),
    Ending.REFUSED: Step(Do.RAISE_SAME, routes.FALLBACK_REFUSED),
}


def after_fallback(stem: str, ending: Ending) -> Step:
    """What follows a fallback that did not answer, to which ``stem`` had sent the request. There is no third path."""
    return _AFTER_FALLBACK.get(ending) or Step(Do.RAISE_NO_ANSWER, routes.failed(stem))


def ending_of(error: Exception) -> Ending:
    """Name how a try ended that raised."""
    if isinstance(error, Hang):
        return Ending.LATE
    if isinstance(error, Failure):
        return Ending.FAILED
    if isinstance(error, InputError):
        return Ending.REFUSED
    if isinstance(error, Saturated):
        return Ending.SATURATED
    return Ending.BUSY if isinstance(error, DeadlineExceeded) else Ending.UNKNOWN


def stem_of(failure: Failure, default: Phase = Phase.INFER) -> str:
    """Return the stem of a failure of a path: its own phase, where it knows it."""
    told = Phase(failure.phase) if failure.phase else default
    return routes.stem(told if told in _OF_A_PATH else default, failure.failure_class)
