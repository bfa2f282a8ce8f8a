"""The breaker of the main path: a failure rate over a window opens it, probes in shadow close it.

Three state objects, each of which says what comes next. The clock is injected. The lock is held while an outcome is
noted, never while a model runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from crashpath.runtime.policy import BreakerSettings
from crashpath.runtime.values import BreakerState


@dataclass(frozen=True, slots=True)
class Change:
    """The breaker moved. ``why`` is ``rate``, ``abandoned``, ``time``, ``probe``."""

    before: BreakerState
    after: BreakerState
    why: str


class Breaker:
    """Every method may be called from any thread, and returns what changed, or ``None``."""

    def __init__(self, settings: BreakerSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._now: _Closed | _Open | _HalfOpen = _Closed(settings)

    @property
    def state(self) -> BreakerState:
        """What it is now, without moving it."""
        return self._now.name

    def admit(self) -> Change | None:
        """Move from open to half open once that is due: to be called before a request is placed."""
        if not isinstance(self._now, _Open):
            return None
        with self._lock:
            if isinstance(self._now, _Open) and self._clock() >= self._now.until:
                return self._move(_HalfOpen(), "time")
        return None

    def note(self, *, failed: bool) -> Change | None:
        """Note how a request ended on the main path. It counts while closed: a straggler moves nothing."""
        with self._lock:
            if isinstance(self._now, _Closed) and self._now.note(self._clock(), failed):
                return self._open("rate")
        return None

    def trip(self, why: str) -> Change | None:
        """Open at once, whatever the rate is."""
        with self._lock:
            return None if isinstance(self._now, _Open) else self._open(why)

    def take_probe(self) -> bool:
        """Whether the caller is to probe the main path now; it has to end with `probed` or `drop_probe`."""
        if not isinstance(self._now, _HalfOpen):
            return False
        with self._lock:
            if not isinstance(self._now, _HalfOpen) or self._now.probing:
                return False
            self._now.probing = True
            return True

    def drop_probe(self) -> None:
        """Give a probe back that could not be made: it says nothing of the main path."""
        with self._lock:
            if isinstance(self._now, _HalfOpen):
                self._now.probing = False

    def probed(self, *, passed: bool) -> Change | None:
        """End a probe: a failed one opens again, enough passed ones in a row close."""
        with self._lock:
            if not isinstance(self._now, _HalfOpen):
                return None
            self._now.probing = False
            if not passed:
                return self._open("probe")
            self._now.passed += 1
            if self._now.passed >= self._settings.probes:
                return self._move(_Closed(self._settings), "probe")
        return None

    def _open(self, why: str) -> Change:
        return self._move(_Open(self._clock() + self._settings.open_s), why)

    def _move(self, after: _Closed | _Open | _HalfOpen, why: str) -> Change:
        before, self._now = self._now, after
        return Change(before.name, after.name, why)


class _Closed:
    name = BreakerState.CLOSED

    def __init__(self, settings: BreakerSettings) -> None:
        self._settings = settings
        self._outcomes: deque[tuple[float, bool]] = deque()
        self._failed = 0

    def note(self, at: float, failed: bool) -> bool:
        """Note an outcome; whether that was one failure too many."""
        self._outcomes.append((at, failed))
        self._failed += failed
        oldest = at - self._settings.window_s
        while len(self._outcomes) > self._settings.calls or self._outcomes[0][0] < oldest:
            self._failed -= self._outcomes.popleft()[1]
        count = len(self._outcomes)
        return failed and count >= self._settings.minimum and self._failed >= self._settings.rate * count


class _Open:
    name = BreakerState.OPEN

    def __init__(self, until: float) -> None:
        self.until = until


class _HalfOpen:
    name = BreakerState.HALF_OPEN

    def __init__(self) -> None:
        self.passed = 0
        self.probing = False
