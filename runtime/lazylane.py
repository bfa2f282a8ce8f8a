"""A lane that is loaded by the first request that needs it: for a fallback that is dear and hardly ever used.

It gives up what a prewarmed fallback is for: the first request that needs it pays for the load, and whether it loads
at all is not known before. That is right for a batch job with a long deadline, and wrong for a service.
"""

from __future__ import annotations

import threading
import time

from crashpath.runtime.errors import Failure, LoadTimeout
from crashpath.runtime.lane import Lane, LaneFacts, LaneSignature, LaneState, LoadCheck
from crashpath.runtime.startup import Expected, still_right
from crashpath.runtime.values import Arrays, Strike

_ASLEEP = LaneFacts(LaneState.READY, None, 0, 0, 0, ())


class LazyLane:
    """``lane``, asleep until `run`; until then it is ``ready`` and takes what the model declares.

    What it answers to its warm-up is compared with ``expected.golden`` when it wakes; where that differs it is closed,
    and every request gets that failure. ``load_s`` bounds the load, as the request's deadline does.
    """

    def __init__(self, lane: Lane, expected: Expected, *, load_s: float) -> None:
        self.path = lane.path
        self._lane = lane
        self._expected = expected
        self._load_s = load_s
        self._lock = threading.Lock()
        self._awake = False
        self._wrong: Failure | None = None

    def load(self, timeout: float) -> None:
        """Do nothing while it sleeps; load again once it is awake."""
        if self._awake:
            self._wake(timeout)

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Wake it where it sleeps, then answer. Raises as the lane's ``load`` and ``run``."""
        if not self._awake or self._wrong is not None:
            self._wake(min(self._load_s, deadline - time.monotonic()))
        return self._lane.run(feed, deadline)

    def _wake(self, timeout: float) -> None:
        if not self._lock.acquire(timeout=max(timeout, 0.0)):
            raise LoadTimeout("another request was still loading the path", "load deadline")
        try:
            if self._wrong is not None:
                raise type(self._wrong)(self._wrong.detail, self._wrong.evidence)
            self._awake = True
            self._lane.load(timeout)
            self._wrong = still_right(self._lane, self._expected)
            if self._wrong is not None:
                self._lane.close()
                raise self._wrong
        finally:
            self._lock.release()

    def signature(self) -> LaneSignature:
        """Of the loaded artefact, or as declared."""
        if self._awake and self._lane.facts().state is LaneState.READY:
            return self._lane.signature()
        return LaneSignature(tuple(spec.name for spec in self._expected.inputs), None)

    def warm(self) -> Arrays | None:
        """Of the load, or ``None``."""
        return self._lane.warm() if self._awake else None

    def check_with(self, check: LoadCheck) -> None:
        """Hold later loads of the lane to it."""
        self._lane.check_with(check)

    def arm(self, strike: Strike | None) -> None:
        """Arm the lane."""
        self._lane.arm(strike)

    def facts(self) -> LaneFacts:
        """Of the lane once it is awake; ``ready`` before."""
        return self._lane.facts() if self._awake else _ASLEEP

    def kill(self) -> None:
        """Take the lane down where it is awake."""
        if self._awake:
            self._lane.kill()

    def close(self) -> None:
        """Close the lane; it does not wake any more."""
        self._awake = True
        self._lane.close()
