"""Every edge of the runtime's decision graph, in one table.

An id is a stem (what happened) and an outcome (who answered or what the caller got), joined by an arrow::

    main:answered                              infer:oom_host -> fallback:answered
    load:load_timeout -> fallback:answered     infer:* -> fallback:failed
    input:wrong -> caller                      breaker:open -> fallback:answered

Ids are ASCII and stable: events, metrics and drills are counted by them. A session emits none that is not here. The
class after ``load:``, ``warmup:``, ``infer:`` and ``prepare:`` is a failure class; ``other`` is any that is not
expected in that phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crashpath.runtime.values import Phase

OTHER = "other"
CLASSES: dict[Phase, tuple[str, ...]] = {
    Phase.PREPARE: ("tokenizer", "network_auth", "load_corrupt", "permission_disk", "dependency", "oom_host", OTHER),
    Phase.LOAD: (
        "oom_host", "oom_device", "load_timeout", "load_corrupt", "shape_inference", "unsupported_op", "device_init",
        "native_crash", "permission_disk", "dependency", OTHER,
    ),
    Phase.WARMUP: (
        "oom_host", "oom_device", "load_timeout", "shape_inference", "unsupported_op", "device_fault", "native_crash",
        OTHER,
    ),
    Phase.INFER: (
        "oom_host", "oom_device", "shape_inference", "unsupported_op", "device_fault", "native_crash", "hang",
        "permission_disk", "dependency", OTHER,
    ),
}  # fmt: skip
"""What is expected to fail in which phase; anything else that does is `OTHER` there."""


class Outcome(StrEnum):
    """``answered``: the caller has outputs. ``raised``: an error. ``told``: no caller; something in the background."""

    ANSWERED = "answered"
    RAISED = "raised"
    TOLD = "told"


@dataclass(frozen=True, slots=True)
class Route:
    """One declared edge. ``phase`` is where the thing happened that chose it, ``None`` for none in particular."""

    id: str
    text: str
    phase: Phase | None
    outcome: Outcome


MAIN_ANSWERED = "main:answered"
MAIN_AGAIN = "both:restarting -> main:answered"
SWITCHED = "sticky:switched"
OPEN = "breaker:open"
HALF_OPEN = "breaker:half_open"
RESTARTING = "main:restarting"
BUSY = "main:busy"

STEMS: tuple[str, ...] = (
    *(f"{phase}:{one}" for phase in (Phase.LOAD, Phase.WARMUP, Phase.INFER) for one in CLASSES[phase]),
    SWITCHED,
    OPEN,
    HALF_OPEN,
    RESTARTING,
    BUSY,
)
"""What sends a request to the fallback."""

INPUT_WRONG = "input:wrong -> caller"
MAIN_REFUSED = "main:refused -> caller"
MAIN_UNKNOWN = "main:unknown -> caller"
NOT_COVERED = "policy:excluded -> caller"
OFF_FAILED = "off:failed -> caller"
SECOND = "account:second -> caller"
SATURATED = "fallback:saturated -> caller"
LATE = "fallback:late -> caller"
FALLBACK_REFUSED = "fallback:refused -> caller"
SPENT = "deadline:spent -> caller"
CLOSED = "session:closed -> caller"
PREPARE_FAILED = "prepare:* -> caller"
PREPARE_UNKNOWN = "prepare:unknown -> caller"
PREPARE_REFUSED = "prepare:refused -> caller"
LOADED = "load:loaded"
LOAD_FAILED = "load:failed"
START_DEGRADED = "start:degraded"
DOWN = "lane:down"
RESTORED = "lane:restored"
TRIPPED = "breaker:closed -> breaker:open"
ABANDONED = "breaker:abandoned -> breaker:open"
PROBING = "breaker:open -> breaker:half_open"
PROBE_PASSED = "probe:passed"
PROBE_FAILED = "probe:failed -> breaker:open"
PROBE_DIFFERS = "probe:differs -> breaker:open"
CLOSED_AGAIN = "breaker:half_open -> breaker:closed"
COMPARE_EQUAL = "compare:equal"
COMPARE_DIFFERS = "compare:differs"
COMPARE_FAILED = "compare:failed"


def _families() -> tuple[str, ...]:
    return tuple(dict.fromkeys(stem.partition(":")[0] for stem in STEMS))


def _phase(stem: str) -> Phase | None:
    word = stem.partition(":")[0]
    return Phase(word) if word in set(Phase) else None


_A, _R, _T = Outcome.ANSWERED, Outcome.RAISED, Outcome.TOLD
ROUTES: tuple[Route, ...] = (
    Route(MAIN_ANSWERED, "the main path answered", Phase.INFER, _A),
    Route(MAIN_AGAIN, "main was away, the fallback away or failed; main was back first", Phase.INFER, _A),
    *(Route(f"{stem} -> fallback:answered", f"{stem}: the fallback answered", _phase(stem), _A) for stem in STEMS),
    *(
        Route(f"{word}:* -> fallback:failed", f"{word}: the fallback failed, too: NoAnswer", _phase(word), _R)
        for word in _families()
    ),
    Route(SATURATED, "no slot of the fallback came free in time: Saturated", Phase.INFER, _R),
    Route(LATE, "the fallback did not answer by the deadline: DeadlineExceeded", Phase.INFER, _R),
    Route(FALLBACK_REFUSED, "the fallback's library refused the feed: InputError", Phase.INFER, _R),
    Route(INPUT_WRONG, "the feed is not what the model declares: InputError", Phase.INFER, _R),
    Route(MAIN_REFUSED, "the main path's library refused the feed: InputError", Phase.INFER, _R),
    Route(MAIN_UNKNOWN, "the main path raised what no reason knows: it propagates", Phase.INFER, _R),
    Route(NOT_COVERED, "the policy does not let this reason fall back: it propagates", Phase.INFER, _R),
    Route(OFF_FAILED, "policy off: the main path's failure propagates", Phase.INFER, _R),
    Route(SECOND, "policy account: the second failure propagates", Phase.INFER, _R),
    Route(SPENT, "the deadline had passed before a path was tried: DeadlineExceeded", None, _R),
    Route(CLOSED, "the session was closed: SessionClosed", Phase.SHUTDOWN, _R),
    *(
        Route(f"prepare:{one} -> prepare:fallback", f"prepare {one}: its fallback prepared", Phase.PREPARE, _T)
        for one in CLASSES[Phase.PREPARE]
    ),
    Route(PREPARE_FAILED, "nothing could prepare: NoAnswer, or the failure where there is one way", Phase.PREPARE, _R),
    Route(PREPARE_UNKNOWN, "the prepare step raised what no reason knows: it propagates", Phase.PREPARE, _R),
    Route(PREPARE_REFUSED, "the prepare step refused the raw input: InputError", Phase.PREPARE, _R),
    Route(LOADED, "a path was loaded", Phase.LOAD, _T),
    Route(LOAD_FAILED, "a path could not be loaded", Phase.LOAD, _T),
    Route(START_DEGRADED, "the session started without its main path", Phase.LOAD, _T),
    Route(DOWN, "a path that was ready is no longer", None, _T),
    Route(RESTORED, "a path that was down is ready again", Phase.LOAD, _T),
    Route(TRIPPED, "the failure rate opened the breaker", Phase.INFER, _T),
    Route(ABANDONED, "too many abandoned runs opened the breaker", Phase.INFER, _T),
    Route(PROBING, "the breaker lets probes through", Phase.INFER, _T),
    Route(PROBE_PASSED, "the main path gave the fallback's answer in shadow", Phase.INFER, _T),
    Route(PROBE_FAILED, "the main path failed in shadow", Phase.INFER, _T),
    Route(PROBE_DIFFERS, "the main path gave another answer in shadow", Phase.INFER, _T),
    Route(CLOSED_AGAIN, "enough probes passed: the main path answers again", Phase.INFER, _T),
    Route(COMPARE_EQUAL, "a sampled answer was the fallback's, too", Phase.INFER, _T),
    Route(COMPARE_DIFFERS, "a sampled answer was not the fallback's", Phase.INFER, _T),
    Route(COMPARE_FAILED, "the fallback failed at a sampled request", Phase.INFER, _T),
)
IDS: frozenset[str] = frozenset(route.id for route in ROUTES)


def stem(phase: Phase, failure_class: str) -> str:
    """Return the stem of a failure in a phase."""
    return f"{phase}:{failure_class if failure_class in CLASSES.get(phase, ()) else OTHER}"


def answered(of: str) -> str:
    """Return the id of "the fallback answered" after a stem. Raises `KeyError` for a stem that is not declared."""
    return declared(f"{of} -> fallback:answered")


def failed(of: str) -> str:
    """Return the id of "the fallback failed, too" after a stem."""
    return declared(f"{of.partition(':')[0]}:* -> fallback:failed")


def prepared(failure_class: str) -> str:
    """Return the id of "the prepare step's fallback prepared" after a failure."""
    return declared(f"{stem(Phase.PREPARE, failure_class)} -> prepare:fallback")


def declared(route: str) -> str:
    """Return the id itself. Raises `KeyError` where the table does not have it."""
    if route not in IDS:
        raise KeyError(f"{route!r} is no declared route")
    return route
