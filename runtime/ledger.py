"""Counts attempts and tells of those that met a failure: one place where requests and loads end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from crashpath.runtime import routes
from crashpath.runtime.errors import DeadlineExceeded, Failure, Hang, Saturated
from crashpath.runtime.events import AttemptsEvent, DomainEvent, FailureEvent, LaneEvent, shapes_text, shortened
from crashpath.runtime.lane import LaneFacts
from crashpath.runtime.tally import Count, Shapes, Tally
from crashpath.runtime.teller import Teller
from crashpath.runtime.values import BreakerState, Path, Phase

IDLE = "unknown"
"""The phase of a worker that died while nobody was asking it: nothing was being done."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One path (or the prepare step) failed in a request."""

    phase: Phase
    path: Path
    error: Exception


@dataclass(slots=True)
class Request:
    """One request under way. Times are the clock's seconds; ``troubles`` are the failures it met so far.

    ``rerouted``: it was sent to the fallback without a try of the main path. ``prepared``: a prepare step made its
    feed. ``short``: its deadline is shorter than the session's. ``shapes`` are those of its feed, once it was checked.
    """

    id: str
    started: float
    deadline: float
    troubles: list[Trouble] = field(default_factory=list)
    rerouted: bool = False
    prepared: bool = False
    short: bool = False
    shapes: Shapes = ()


class Ledger:
    """Writes to the tally at once, to the listeners for each failure and, in batches, for the counts."""

    def __init__(
        self, tally: Tally, tell: Teller, breaker: Callable[[], BreakerState], inputs: tuple[str, ...] = ()
    ) -> None:
        self.tally = tally
        self._tell = tell
        self._breaker = breaker
        self._inputs = inputs
        self._lock = threading.Lock()
        self._since = tell.now()
        self._told = {"request": Count(), "load": Count()}
        self._told_shapes: dict[Shapes, int] = {}
        self._batches = 0
        self._loads = self._idle = 0

    def request(self, request: Request, route: str, by: Path | None, seconds: float) -> None:
        """Count a request that ended otherwise than with a plain answer of the main path; tell its failures."""
        met = bool(request.troubles)
        counts = Count(1, met, met and by is None, request.rerouted)
        self.tally.request(route, by, seconds, counts, request.shapes)
        for one in request.troubles:
            self._failed(request.id, "request", phase_of(one), one.path, one.error, route, by is not None, by, seconds)

    def _failed(
        self,
        attempt: str,
        unit: str | None,
        phase: str,
        path: Path,
        error: Exception,
        route: str,
        answered: bool | None,
        by: Path | None = None,
        seconds: float = 0.0,
    ) -> None:
        self._tell(
            FailureEvent(
                at=self._tell.now(),
                attempt_id=attempt,
                unit=unit,
                phase=phase,
                path=path,
                failure_class=class_of(error),
                type=type_of(error),
                message=shortened(str(error)),
                route=route,
                answered=answered,
                by=by,
                milliseconds=seconds * 1000,
                breaker=self._breaker(),
                worker_pid=error.worker_pid if isinstance(error, Failure) else None,
            )
        )

    def refused(self, route: str, seconds: float) -> None:
        """Count a request that came when the session was closed: no attempt of what is served, so in no rate."""
        self.tally.request(route, None, seconds, Count())

    def load(self, path: Path, route: str, error: Exception | None, seconds: float, *, served: bool) -> None:
        """Count a load of a path, and tell of one that failed; ``served``: requests are answered all the same."""
        failed = error is not None
        self.tally.load(route, Count(1, failed, failed and not served))
        if error is None:
            return
        with self._lock:
            self._loads += 1
            attempt = f"{self._tell.session}-load-{self._loads}"
        phase = phase_of(Trouble(Phase.LOAD, path, error))
        self._failed(attempt, "load", phase, path, error, route, served, seconds=seconds)

    def idle_death(self, path: Path, failure: Failure) -> None:
        """Tell that a worker died while nobody was asking it: a failure, and no attempt."""
        with self._lock:
            self._idle += 1
            attempt = f"{self._tell.session}-idle-{self._idle}"
        self._failed(attempt, None, IDLE, path, failure, routes.DOWN, None)

    def lane(self, path: Path, change: str, route: str, facts: LaneFacts) -> None:
        """Tell that a path was loaded, went down or came back."""
        self.tally.route(route)
        reason = None if facts.failure is None else facts.failure.failure_class
        self._tell(LaneEvent(self._tell.now(), path, change, route, reason, facts.pid, facts.restarts))

    def flush(self) -> None:
        """Tell the counts since the last flush, where there are any."""
        with self._lock:
            figures = self.tally.figures()
            until, since = self._tell.now(), self._since
            events: list[AttemptsEvent | DomainEvent] = []
            for unit, count in (("request", figures.requests), ("load", figures.loads)):
                new = count.minus(self._told[unit])
                if new.attempts:
                    self._told[unit] = count
                    self._batches += 1
                    batch = f"{self._tell.session}-{self._batches}"
                    events.append(
                        AttemptsEvent(
                            until, unit, since, until, new.attempts, new.failures, new.unanswered, new.rerouted, batch
                        )
                    )
            shapes = dict(figures.shapes)
            fresh = {one: n - self._told_shapes.get(one, 0) for one, n in shapes.items()}
            if known := {shapes_text(self._inputs, one): n for one, n in fresh.items() if n and one}:
                events.append(DomainEvent(until, since, until, known))
            self._told_shapes = shapes
            self._since = until
        for event in events:
            self._tell(event)


def class_of(error: Exception) -> str:
    """Return the failure class of an error; a deadline or a slot that was waited for in vain is a ``hang``."""
    if isinstance(error, Failure):
        return error.failure_class
    return Hang.failure_class if isinstance(error, (DeadlineExceeded, Saturated)) else Failure.failure_class


def type_of(error: Exception) -> str:
    """Return the type's name: the library's, where the failure was made of a library's error."""
    cause = error.__cause__ if isinstance(error, Failure) else None
    ours = cause is None or type(cause).__module__.startswith(__package__)
    return type(error if ours else cause).__name__


def phase_of(trouble: Trouble) -> str:
    """Return the phase that the failure itself knows, else where it was met."""
    return (trouble.error.phase if isinstance(trouble.error, Failure) else None) or trouble.phase
