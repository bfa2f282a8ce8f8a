"""A listener that tells what happens on the logger ``crashpath.runtime``: failures and paths that go as warnings."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from crashpath.runtime.events import BreakerEvent, CompareEvent, FailureEvent, LaneEvent, ProbeEvent, Told

LOG = logging.getLogger("crashpath.runtime")
PAUSE_S = 10.0


class EventLog:
    """Logs a session's events. Of failures of one class and route it logs one in ``pause_s`` seconds, and how many.

    A path that fails every request must not fill a disk: the event file, which is rotated, has each of them. Counts of
    attempts and shapes are not logged.
    """

    def __init__(self, *, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], float] = {}
        self._held: dict[tuple[str, str], int] = {}

    def __call__(self, told: Told) -> None:
        """Log one event."""
        event, model = told.event, told.cohort.model or "a model"
        match event:
            case FailureEvent():
                self._failure(event, model)
            case LaneEvent():
                level = logging.INFO if event.change == "restored" else logging.WARNING
                reason = f" ({event.reason})" if event.reason else ""
                LOG.log(level, "%s: %s is %s%s", model, event.path, event.change, reason)
            case BreakerEvent():
                LOG.warning("%s: the breaker goes from %s to %s (%s)", model, event.before, event.after, event.why)
            case CompareEvent() if not event.equal:
                LOG.warning("%s: the paths answer otherwise: %s [attempt %s]", model, event.where, event.attempt_id)
            case ProbeEvent() if event.cause is not None:
                LOG.warning("%s: a probe of the main path failed: %s", model, event.cause)
            case _:
                pass

    def _failure(self, event: FailureEvent, model: str) -> None:
        kind = (event.failure_class, event.route)
        now = self._clock()
        with self._lock:
            if now - self._said.get(kind, -self._pause) < self._pause:
                self._held[kind] = self._held.get(kind, 0) + 1
                return
            self._said[kind] = now
            held = self._held.pop(kind, 0)
        more = f", and {held} more like it since" if held else ""
        LOG.warning(
            "%s: %s failed in %s: %s: %s [%s, attempt %s]%s",
            model, event.path, event.phase, event.failure_class, event.message, event.route, event.attempt_id, more,
        )  # fmt: skip
