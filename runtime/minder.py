"""Looks after the lanes while requests run: tells when one goes down or comes back, loads a lane that is down, flushes.

One thread, asleep most of the time. A load runs on a thread of its own, so that a slow one delays nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from crashpath.runtime import routes
from crashpath.runtime.errors import DeviceFault, Failure, Hang
from crashpath.runtime.lane import Lane, LaneFacts, LaneState
from crashpath.runtime.ledger import Ledger
from crashpath.runtime.values import Phase

_LOG = logging.getLogger(__name__)
_ANXIOUS, _CALM = 0.05, 1.0
"""Seconds between two looks: while a lane is not ready, and otherwise."""
_FIRST_DELAY, _LAST_DELAY = 0.1, 5.0
"""Seconds before the first load of a lane that is down, doubled each time that it fails."""
_WAIT_AT_CLOSE = 1.0


class Watch:
    """What is known of one lane from the last look. ``served``: whether requests are answered while it is away."""

    def __init__(
        self, lane: Lane, load_s: float, ledger: Ledger, served: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        facts = lane.facts()
        self.lane = lane
        self.ready = facts.state is LaneState.READY
        self._load_s = load_s
        self._ledger = ledger
        self._served = served
        self._clock = clock
        self._restarts = facts.restarts
        self._loads = facts.loads
        self._idle_deaths = facts.idle_deaths
        self._failed_loads = facts.failed_loads
        self._delay = _FIRST_DELAY
        self._due: float | None = None
        self._thread: threading.Thread | None = None
        self._raised: Exception | None = None

    def look(self) -> None:
        """Compare with the last look; tell what changed, and start a load where one is due."""
        facts = self.lane.facts()
        if facts.state is LaneState.CLOSED:
            return
        self._count_loads(facts)
        if facts.idle_deaths > self._idle_deaths and facts.idle_death is not None:
            self._idle_deaths = facts.idle_deaths
            self._ledger.idle_death(self.lane.path, facts.idle_death)
        ready = facts.state is LaneState.READY
        if ready != self.ready or facts.restarts != self._restarts:
            self._changed(ready, facts)
        if facts.state is not LaneState.DOWN:
            self._due = None
        elif (self._thread is None or not self._thread.is_alive()) and not _beyond_loading(facts):
            self._load_when_due()

    def join(self, timeout: float) -> None:
        """Wait for a load that is under way."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _changed(self, ready: bool, facts: LaneFacts) -> None:
        if self.ready:  # it may have gone and come back between two looks
            self._ledger.lane(self.lane.path, "down", routes.DOWN, facts)
        if ready:
            self._delay = _FIRST_DELAY
            self._ledger.lane(self.lane.path, "restored", routes.RESTORED, facts)
        self.ready, self._restarts = ready, facts.restarts

    def _count_loads(self, facts: LaneFacts) -> None:
        """Count loads that ended since the last look, those that the lane made by itself included."""
        failed = facts.failed_loads - self._failed_loads
        ended = facts.loads - (facts.state is LaneState.LOADING and facts.loads > self._loads)
        loaded = max(ended - self._loads - failed, 0)
        self._loads += loaded + failed
        self._failed_loads = facts.failed_loads
        error = facts.failed_load or self._raised or Failure("a load failed", "counted by the lane")
        for _ in range(failed):
            self._ledger.load(self.lane.path, routes.LOAD_FAILED, error, 0.0, served=self._served())
        for _ in range(loaded):
            self._ledger.load(self.lane.path, routes.LOADED, None, 0.0, served=True)

    def _load_when_due(self) -> None:
        now = self._clock()
        if self._due is None:
            self._due = now + self._delay
        if now < self._due:
            return
        self._due = None
        self._delay = min(2 * self._delay, _LAST_DELAY)
        thread = threading.Thread(target=self._load, name=f"crashpath-load-{self.lane.path}", daemon=True)
        thread.start()  # raises where the host has no thread left; the next look tries again
        self._thread = thread

    def _load(self) -> None:
        try:
            self.lane.load(self._load_s)
            self._raised = None
        except Exception as error:  # noqa: BLE001  # no caller waits: the next look counts and tells it
            self._raised = error


def _beyond_loading(facts: LaneFacts) -> bool:
    """Whether another load would help nothing: runs that never came back, a device context that is poisoned."""
    failure = facts.failure
    return isinstance(failure, (Hang, DeviceFault)) and failure.phase == Phase.INFER


class Minder:
    """The thread. `poke` makes it look at once."""

    def __init__(self, watches: Iterable[Watch], ledger: Ledger, clock: Callable[[], float], flush_s: float) -> None:
        self._watches = tuple(watches)
        self._ledger = ledger
        self._clock = clock
        self._flush_s = flush_s
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="crashpath-minder", daemon=True)
        self.missed = 0
        """Looks that raised."""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def poke(self) -> None:
        """Look at once."""
        self._wake.set()

    def close(self) -> None:
        """Stop looking."""
        self._closed = True
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_WAIT_AT_CLOSE)
        for watch in self._watches:
            watch.join(_WAIT_AT_CLOSE)

    def _work(self) -> None:
        flushed = self._clock()
        while not self._closed:
            self._wake.clear()  # before the look: a poke during it is not lost
            for watch in self._watches:
                self._look(watch)
            now = self._clock()
            if now - flushed >= self._flush_s:
                self._ledger.flush()
                flushed = now
            calm = all(watch.ready for watch in self._watches)
            self._wake.wait(min(_CALM, self._flush_s) if calm else _ANXIOUS)

    def _look(self, watch: Watch) -> None:
        try:
            watch.look()
        except Exception:  # noqa: BLE001  # a host without threads or memory for a moment must not end what brings the paths back
            self.missed += 1
            _LOG.warning("a look at the %s path failed; the next one tries again", watch.lane.path, exc_info=True)
