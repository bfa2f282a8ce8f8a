"""A scripted lane and a backend of a function: for tests of what stands above them. Nothing real runs in them."""

from __future__ import annotations

import platform
import threading
from collections import deque
from collections.abc import Callable

from crashpath.runtime.errors import Failure, SessionClosed
from crashpath.runtime.lane import LaneFacts, LaneSignature, LaneState, LoadCheck
from crashpath.runtime.values import Arrays, Path, Strike

Line = Exception | Callable[[Arrays], Arrays] | None
"""What one call does: raise this, answer with this function, or (``None``) answer as usual."""


class FakeLane:
    """Answers with ``answer``; `script` and `loads` are consumed one a call.

    ``dies``: after a failure it is ``loading`` until `come_back`, as a worker that was killed is.
    """

    def __init__(
        self,
        path: Path,
        answer: Callable[[Arrays], Arrays],
        *,
        inputs: tuple[str, ...] = ("x",),
        warm: Arrays | None = None,
        loads: tuple[Exception | None, ...] = (),
        dies: bool = False,
        abandoned: int = 0,
    ) -> None:
        self.path = path
        self.script: deque[Line] = deque()
        self.loads: deque[Exception | None] = deque(loads)
        self.armed: list[Strike | None] = []
        self.calls = 0
        self.load_calls = 0
        self.failed_loads = 0
        self.killed = 0
        self.state = LaneState.LOADING
        self.restarts = 0
        self.abandoned = abandoned
        self.deadlines: list[float] = []
        self._answer = answer
        self._inputs = inputs
        self._warm = warm
        self._dies = dies
        self._failure: Failure | None = None
        self._check: LoadCheck | None = None
        self._lock = threading.Lock()

    def load(self, timeout: float) -> None:
        """Do what the next of ``loads`` says."""
        self.load_calls += 1
        error = (self.loads.popleft() if self.loads else None) or self._checked()
        if error is not None:
            self._failed(error)
            raise error
        self.state = LaneState.READY
        self._failure = None

    def check_with(self, check: LoadCheck) -> None:
        """Hold later loads to it, `come_back` included."""
        self._check = check

    def _checked(self) -> Failure | None:
        return None if self._check is None else self._check(self.signature(), self._warm)

    def _failed(self, error: Exception) -> None:
        self.state = LaneState.DOWN
        self.failed_loads += 1
        if isinstance(error, Failure):
            error.phase = "load"
            self._failure = error

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Do what the next line of the script says."""
        with self._lock:
            if self.state is LaneState.CLOSED:
                raise SessionClosed("the lane is closed")
            self.calls += 1
            self.deadlines.append(deadline)
            line = self.script.popleft() if self.script else None
        if line is None:
            return self._answer(feed)
        if not isinstance(line, Exception):
            return line(feed)
        if self._dies:
            self.state = LaneState.LOADING
        raise line

    def come_back(self) -> None:
        """Be ready again, as after a restart; ``down`` where what is loaded then does not pass the check."""
        self.restarts += 1
        wrong = self._checked()
        if wrong is None:
            self.state = LaneState.READY
            return
        self.load_calls += 1
        self._failed(wrong)

    def signature(self) -> LaneSignature:
        """What it was told to take."""
        return LaneSignature(self._inputs, None)

    def warm(self) -> Arrays | None:
        """What it was told to have answered."""
        return self._warm

    def arm(self, strike: Strike | None) -> None:
        """Keep the strike."""
        self.armed.append(strike)

    def facts(self) -> LaneFacts:
        """State and figures."""
        counts = (self.load_calls, self.failed_loads)
        return LaneFacts(self.state, None, 0, self.restarts, self.abandoned, (), *counts, self._failure)

    def kill(self) -> None:
        """Be down."""
        self.killed += 1
        self.state = LaneState.DOWN

    def close(self) -> None:
        """Be closed."""
        self.state = LaneState.CLOSED


class FakeBackend:
    """Answers with a function, for tests of what stands around a backend. It remembers that it was cancelled."""

    def __init__(
        self,
        answer: Callable[[Arrays], Arrays],
        *,
        inputs: tuple[str, ...] = ("x",),
        outputs: tuple[str, ...] | None = ("y",),
    ) -> None:
        self._answer = answer
        self._signature = LaneSignature(inputs, outputs)
        self.cancelled = threading.Event()
        self.closed = False

    def run(self, feed: Arrays) -> Arrays:
        """Answer with the function."""
        return self._answer(feed)

    def cancel(self, thread: int | None = None) -> None:
        """Set ``cancelled``, on which the function may wait."""
        self.cancelled.set()

    def signature(self) -> LaneSignature:
        """What it was told."""
        return self._signature

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Of nothing but Python."""
        return (("python", platform.python_version()),)

    def close(self) -> None:
        """Set ``closed``."""
        self.closed = True
