"""Work that no caller waits for: answers compared on both paths, and probes of the main path while it is half open.

One thread with a short queue. What does not fit in the queue is skipped and counted, so a slow fallback costs samples,
not memory.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from crashpath.runtime import routes
from crashpath.runtime.compare import same
from crashpath.runtime.errors import Failure
from crashpath.runtime.events import CompareEvent, ProbeEvent
from crashpath.runtime.folder import Tolerance
from crashpath.runtime.ledger import Ledger, class_of
from crashpath.runtime.reserve import Reserve
from crashpath.runtime.standing import Standing
from crashpath.runtime.teller import Teller
from crashpath.runtime.values import Arrays

Run = Callable[[Arrays, float], Arrays]
_WAIT_AT_CLOSE = 1.0


class Shadow(Protocol):
    """What the driver asks of it; both return at once."""

    def sample(self, feed: Arrays, outputs: Arrays, request: str) -> None:
        """Perhaps compare an answer of the main path with the fallback's."""

    def probe(self, feed: Arrays, outputs: Arrays, request: str) -> None:
        """Try the main path on a feed that the fallback answered, where a probe is due."""


@dataclass(frozen=True, slots=True)
class _Job:
    feed: Arrays
    outputs: Arrays
    request: str
    probe: bool


class ShadowThread:
    """The real one. ``share`` of the answers of the main path are compared, drawn from ``seed``."""

    def __init__(
        self,
        main: Run,
        fallback: Run,
        standing: Standing,
        ledger: Ledger,
        reserve: Reserve,
        tell: Teller,
        tolerance: Tolerance,
        clock: Callable[[], float],
        *,
        share: float,
        seed: int,
        seconds: float,
        waiting: int = 8,
    ) -> None:
        self._main = main
        self._fallback = fallback
        self._standing = standing
        self._ledger = ledger
        self._reserve = reserve
        self._tell = tell
        self._tolerance = tolerance
        self._clock = clock
        self._share = share
        self._draw = random.Random(seed).random
        self._seconds = seconds
        self._queue: queue.Queue[_Job | None] = queue.Queue(waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.skipped = 0

    def sample(self, feed: Arrays, outputs: Arrays, request: str) -> None:
        """Draw whether this answer is compared; the arrays are copied, for the caller may change its own."""
        if self._share and self._draw() < self._share and not self._put(feed, outputs, request, probe=False):
            self.skipped += 1

    def probe(self, feed: Arrays, outputs: Arrays, request: str) -> None:
        """Probe, where one is due and none is under way."""
        breaker = self._standing.breaker
        if breaker is None or self._standing.seen().down is not None or not breaker.take_probe():
            return
        if not self._put(feed, outputs, request, probe=True):
            breaker.drop_probe()

    def close(self) -> None:
        """Stop after the job under way; waits for it a second at most."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is None:
            return
        while True:  # what waits is dropped
            try:
                self._queue.get_nowait()
            except queue.Empty:
                break
        self._queue.put(None)
        thread.join(_WAIT_AT_CLOSE)

    def _put(self, feed: Arrays, outputs: Arrays, request: str, *, probe: bool) -> bool:
        if self._closed or self._queue.full():
            return False
        try:
            self._begin()
            self._queue.put_nowait(_Job(_copied(feed), _copied(outputs), request, probe))
        except (queue.Full, MemoryError, RuntimeError):  # no room, memory or thread left: the caller has its answer
            return False
        return True

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                thread = threading.Thread(target=self._work, name="crashpath-shadow", daemon=True)
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            (self._probe if job.probe else self._compare)(job)

    def _compare(self, job: _Job) -> None:
        began = self._clock()
        try:
            answer = self._fallback(job.feed, self._clock() + self._seconds)
            self._reserve.note(self._clock() - began)
        except Exception as error:  # noqa: BLE001  # no caller waits: whatever the fallback raised is told
            self._told(job, routes.COMPARE_FAILED, False, where=f"{class_of(error)}: {error}")
            return
        found = same(job.outputs, answer, self._tolerance)
        route = routes.COMPARE_EQUAL if found.equal else routes.COMPARE_DIFFERS
        self._told(job, route, found.equal, found.worst_abs, found.worst_rel, found.where)

    def _told(
        self, job: _Job, route: str, equal: bool, absolute: float = 0.0, relative: float = 0.0, where: str = ""
    ) -> None:
        self._ledger.tally.route(route)
        self._tell(CompareEvent(self._tell.now(), route, job.request, equal, absolute, relative, where))

    def _probe(self, job: _Job) -> None:
        cause = None
        try:
            answer = self._main(job.feed, self._clock() + self._seconds)
        except Exception as error:  # noqa: BLE001  # no caller waits: whatever the main path raised keeps it open
            route, cause = routes.PROBE_FAILED, class_of(error)
            if isinstance(error, Failure):
                self._standing.remember(error)
        else:
            found = same(answer, job.outputs, self._tolerance)
            route = routes.PROBE_PASSED if found.equal else routes.PROBE_DIFFERS
            cause = None if found.equal else found.where
        self._ledger.tally.route(route)
        self._tell(ProbeEvent(self._tell.now(), route, job.request, cause))
        self._standing.probed(passed=route == routes.PROBE_PASSED)


def _copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}
