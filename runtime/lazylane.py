"""A lane that is loaded by the first request that needs it: for a fallback that is dear and hardly ever used.

It gives up what a prewarmed fallback is for: the first request that needs it pays for the load, and whether it loads
at all is not known before. That is right for a batch job with a long deadline, and wrong for a service.
"""

from __future__ import annotations

import threading
import time

from crashpath.runtime.errors import Failure, LoadTimeout
from crashpath.runtime.lane import Lane, LaneFacts, LaneSignature, LaneState, LoadCheck
from crashpath.runtime.startup import Expected, wrong_load
from crashpath.runtime.values import Arrays, Strike

_ASLEEP = LaneFacts(LaneState.READY, None, 0, 0, 0, ())


class LazyLane:
    """``lane``, asleep until `run`; until then it is ``ready`` and takes what the model declares.

    What it answers to its warm-up is compared with ``expected.golden`` before it serves; where that differs it is
    closed, and every request gets that failure. ``load_s`` bounds the load, as the request's deadline does; requests
    that come meanwhile wait for its end.
    """

    def __init__(self, lane: Lane, expected: Expected, *, load_s: float) -> None:
        self.path = lane.path
        self._lane = lane
        self._expected = expected
        self._load_s = load_s
        self._lock = threading.Lock()
        self._awake = False  # what the lane says of itself counts
        self._tried = False  # a load has ended
        self._wrong: Failure | None = None
        self._check: LoadCheck = lambda signature, warm: wrong_load(lane.path, signature, warm, expected)
        lane.check_with(self._held)

    def load(self, timeout: float) -> None:
        """Do nothing while it sleeps; load again once it is awake."""
        if self._awake:
            self._wake(timeout, again=True)

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Wake it where it sleeps, then answer. Raises as the lane's ``load`` and ``run``."""
        if not self._tried or self._wrong is not None:
            self._wake(min(self._load_s, deadline - time.monotonic()))
        return self._lane.run(feed, deadline)

    def _wake(self, timeout: float, *, again: bool = False) -> None:
        by = time.monotonic() + timeout
        if not self._lock.acquire(timeout=max(timeout, 0.0)):
            raise LoadTimeout("another request was still loading the path", "load deadline")
        try:
            self._raise_if_wrong()
            if self._tried and not again:  # by the request that this one has waited for
                return
            self._awake = True
            try:
                self._lane.load(max(by - time.monotonic(), 0.0))
            finally:
                self._tried = True
                self._raise_if_wrong()
        finally:
            self._lock.release()

    def _raise_if_wrong(self) -> None:
        if self._wrong is not None:
            self._lane.close()
            raise type(self._wrong)(self._wrong.detail, self._wrong.evidence)

    def _held(self, signature: LaneSignature, warm: Arrays | None) -> Failure | None:
        wrong = self._check(signature, warm)
        self._wrong = self._wrong or wrong
        return wrong

    def signature(self) -> LaneSignature:
        """Of the loaded artefact, or as declared."""
        if self._awake and self._lane.facts().state is LaneState.READY:
            return self._lane.signature()
        return LaneSignature(tuple(spec.name for spec in self._expected.inputs), None)

    def warm(self) -> Arrays | None:
        """Of the load, or ``None``."""
        return self._lane.warm() if self._awake else None

    def check_with(self, check: LoadCheck) -> None:
        """Hold later loads to it, in place of ``expected``."""
        self._check = check

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
