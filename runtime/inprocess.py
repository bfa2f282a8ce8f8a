"""A lane whose backend runs in this process: fast, with a soft deadline.

A request runs on a thread of the lane while its caller waits no longer than its deadline. Native code cannot be cut:
what is late is abandoned, its thread counted until it comes back, and at the cap the lane is down, because each of
them holds a core and memory. A crash of native code takes the whole process along: that is what workers are for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from crashpath.runtime.errors import (
    DeadlineExceeded,
    DeviceFault,
    Failure,
    Hang,
    InputError,
    LoadTimeout,
    NativeCrash,
    SessionClosed,
)
from crashpath.runtime.lane import Backend, LaneFacts, LaneSignature, LaneState, LoadCheck
from crashpath.runtime.reasons import recognise
from crashpath.runtime.reload import Backoff, as_failure, kept, while_away
from crashpath.runtime.strikes import Armed
from crashpath.runtime.turn import Turn
from crashpath.runtime.values import Arrays, Path, Phase, Strike


class InProcessLane:
    """See the module. ``slots`` requests run at once; ``make`` opens the backend, ``warm_feed`` is its first feed."""

    def __init__(
        self,
        path: Path,
        make: Callable[[], Backend],
        warm_feed: Arrays | None,
        *,
        abandoned_cap: int = 4,
        slots: int = 1,
        reload_timeout: float = 60.0,
    ) -> None:
        self.path = path
        self._make = make
        self._warm_feed = warm_feed
        self._cap = abandoned_cap
        self._slots = slots
        self._reload_timeout = reload_timeout
        self._armed = Armed()
        self._check: LoadCheck | None = None
        self._change = threading.Condition(threading.Lock())
        self._load_lock = threading.Lock()
        self._state = LaneState.DOWN
        self._backend: Backend | None = None
        self._signature: LaneSignature | None = None
        self._versions: tuple[tuple[str, str], ...] = ()
        self._warm: Arrays | None = None
        self._last: BaseException | None = None
        self._failed_load: BaseException | None = None
        self._idle: list[SimpleQueue[Turn | None]] = []
        self._out = 0  # turns that are under way and waited for
        self._abandoned = 0
        self._loads = self._failed_loads = self._restarts = 0
        self._reloading = False

    # ---- load

    def load(self, timeout: float) -> None:
        """Open and warm up the backend in ``timeout`` seconds. At once where it is ready. Raises as `Lane.load`."""
        deadline = time.monotonic() + timeout
        if not self._load_lock.acquire(timeout=timeout):
            raise LoadTimeout("another load of the same path was still under way", "load deadline")
        try:
            if self._read_state() is LaneState.READY:
                return
            self._load(deadline)
        finally:
            self._load_lock.release()

    def _load(self, deadline: float) -> None:
        with self._change:
            self._raise_if_closed()
            self._state = LaneState.LOADING
            self._loads += 1
        phase = [Phase.LOAD]
        opened: list[tuple[Backend, Arrays | None]] = []
        turn = Turn(lambda: opened.append(self._open(phase)))
        threading.Thread(target=self._carry_load, args=(turn, opened), name=f"{self.path}-load", daemon=True).start()
        try:
            self._wait(
                turn, deadline, lambda: LoadTimeout("the path was not ready in time", "load deadline"), lambda: phase[0]
            )
        except BaseException as error:
            with self._change:
                self._failed_loads += 1
                self._last = self._failed_load = kept(error)
                if self._state is LaneState.LOADING:
                    self._state = LaneState.DOWN
            raise
        backend, warm = opened[0]
        with self._change:
            if self._state is LaneState.CLOSED:
                backend.close()
                self._raise_if_closed()
            self._backend, self._warm = backend, warm
            self._signature, self._versions = backend.signature(), backend.versions()
            self._state, self._last = LaneState.READY, None
            self._change.notify_all()

    def _open(self, phase: list[Phase]) -> tuple[Backend, Arrays | None]:
        self._armed.fire(Phase.LOAD)
        backend = self._make()
        phase[0] = Phase.WARMUP
        self._armed.fire(Phase.WARMUP)
        warm = None if self._warm_feed is None else backend.run(self._warm_feed)
        wrong = None if self._check is None else self._check(backend.signature(), warm)
        if wrong is not None:
            backend.close()
            raise wrong
        return backend, warm

    def _carry_load(self, turn: Turn, opened: list[tuple[Backend, Arrays | None]]) -> None:
        turn.perform()
        if not self._finish(turn) and opened:
            opened[0][0].close()  # it came when nobody waited for it any more

    # ---- run

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Answer by ``deadline``, as `Lane.run`; what is late is abandoned and a `Hang`."""
        backend, thread = self._take_turn(deadline)
        ident: list[int] = []
        answer: list[Arrays] = []
        turn = Turn(lambda: answer.append(self._infer(backend, feed, ident)))
        thread.put(turn)
        try:
            self._wait(
                turn, deadline, lambda: Hang("the path did not answer in time", "soft deadline"), lambda: Phase.INFER
            )
        except Hang:
            if turn.abandoned and ident:
                backend.cancel(ident[0])
            raise
        except DeviceFault as error:
            self._take_down(error)  # its context is poisoned for as long as this process lives
            raise
        return answer[0]

    def _infer(self, backend: Backend, feed: Arrays, ident: list[int]) -> Arrays:
        ident.append(threading.get_ident())
        self._armed.fire(Phase.INFER)
        return backend.run(feed)

    def _take_turn(self, deadline: float) -> tuple[Backend, SimpleQueue[Turn | None]]:
        with self._change:
            while True:
                self._raise_if_closed()
                if self._read_state() is not LaneState.READY or self._backend is None:
                    raise while_away(self._last, f"the path {self.path}")
                if self._out < self._slots:
                    break
                left = deadline - time.monotonic()
                if left <= 0 or not self._change.wait(left):
                    self._change.notify()  # in case that the turn was offered in the moment in which this gave up
                    raise DeadlineExceeded(f"no turn on the path {self.path} came by the deadline")
            self._out += 1
            if self._idle:
                return self._backend, self._idle.pop()
            backend = self._backend
        thread: SimpleQueue[Turn | None] = SimpleQueue()
        threading.Thread(target=self._serve, args=(thread,), name=f"{self.path}-run", daemon=True).start()
        return backend, thread

    def _serve(self, turns: SimpleQueue[Turn | None]) -> None:
        while (turn := turns.get()) is not None:
            turn.perform()
            if not self._finish(turn, turns):
                return
            turn = None

    # ---- turns

    def _wait(self, turn: Turn, deadline: float, late: Callable[[], Failure], phase: Callable[[], Phase]) -> None:
        """Wait for the end of a turn; raise what it raised, recognised, or what ``late`` makes."""
        left = deadline - time.monotonic()
        if not turn.done.acquire(timeout=left if left > 0 else 0):
            with self._change:
                if not turn.done.acquire(blocking=False):  # else it ended in this very moment
                    turn.abandoned = True
                    self._abandoned += 1
                    if phase() is Phase.INFER:
                        self._out -= 1
                    failure = late()
                    failure.phase = phase().value
                    if self._abandoned >= self._cap:
                        self._last = kept(failure)
                    self._change.notify_all()
                    raise failure
        if turn.error is not None:
            error, turn.error = turn.error, None
            try:
                raise self._named(error, phase())
            finally:
                del error  # else its traceback and this frame keep each other, and the feed, alive

    def _named(self, error: BaseException, phase: Phase) -> BaseException:
        found = recognise(error, phase, self.path)
        if isinstance(found, InputError) and not found.input and self._signature is not None:
            found = InputError("", f"{found} (inputs: {', '.join(self._signature.inputs)})")
            found.__cause__ = error
        return error if found is None else found

    def _finish(self, turn: Turn, thread: SimpleQueue[Turn | None] | None = None) -> bool:
        """Hand a turn's end to who waits for it; ``False`` where nobody does and its thread should go."""
        with self._change:
            if turn.abandoned:
                self._abandoned -= 1
                self._change.notify_all()
                return False
            going = self._state is not LaneState.CLOSED
            if thread is not None:
                self._out -= 1
                if going:
                    self._idle.append(thread)
                self._change.notify()
            turn.done.release()
            return going or thread is None

    # ---- the rest

    def _read_state(self) -> LaneState:
        return LaneState.DOWN if self._state is LaneState.READY and self._abandoned >= self._cap else self._state

    def _raise_if_closed(self) -> None:
        if self._state is LaneState.CLOSED:
            raise SessionClosed(f"the path {self.path} was closed")

    def _take_down(self, why: BaseException) -> None:
        with self._change:
            if self._state is LaneState.READY:
                self._state, self._last, self._backend = LaneState.DOWN, kept(why), None
                self._change.notify_all()

    def signature(self) -> LaneSignature:
        """Return what the artefact of the last load takes and gives; raises where none succeeded."""
        if self._signature is None:
            raise while_away(self._last, f"the path {self.path}")
        return self._signature

    def warm(self) -> Arrays | None:
        """Return the answer to the warm-up of the last load."""
        return self._warm

    def check_with(self, check: LoadCheck) -> None:
        """Hold later loads to it; the backend of one that fails is closed."""
        self._check = check

    def arm(self, strike: Strike | None) -> None:
        """Arm one strike, or disarm."""
        self._armed.set(strike)

    def facts(self) -> LaneFacts:
        """Return state and figures."""
        with self._change:
            state = self._read_state()
            failure = None if state is LaneState.READY or self._last is None else as_failure(self._last)
            figures = (self._restarts, self._abandoned, self._versions, self._loads, self._failed_loads)
            failed = None if self._failed_load is None else as_failure(self._failed_load)
            return LaneFacts(state, None, 0, *figures, failure, failed)

    def kill(self) -> None:
        """Drop the backend as a crash would; it is loaded again in the background."""
        with self._change:
            if self._state is not LaneState.READY:
                return
            self._state, self._backend = LaneState.LOADING, None
            self._last = NativeCrash("the path was taken down", "kill")
            self._restarts += 1
            self._change.notify_all()
            if self._reloading:
                return
            self._reloading = True
        threading.Thread(target=self._reload, name=f"{self.path}-reload", daemon=True).start()

    def _reload(self) -> None:
        backoff = Backoff()
        while True:
            with self._change:
                if self._state is not LaneState.CLOSED:
                    self._change.wait_for(lambda: self._state is LaneState.CLOSED, timeout=backoff.next())
                if self._state in (LaneState.CLOSED, LaneState.READY):
                    self._reloading = False
                    return
            try:
                self.load(self._reload_timeout)
            except Exception:  # noqa: BLE001 - it is kept as the lane's last failure; the next attempt is due
                continue

    def close(self) -> None:
        """Let go of the backend and end the idle threads; abandoned ones end when their work does."""
        with self._change:
            self._state = LaneState.CLOSED
            backend, self._backend = self._backend, None
            idle, self._idle = self._idle, []
            busy = self._out
            self._change.notify_all()
        for thread in idle:
            thread.put(None)
        if backend is not None and not busy and not self._abandoned:
            backend.close()
