"""A lane whose backend runs in this process: fast, with a soft deadline.

A request runs on a thread of the lane while its caller waits no longer than its deadline. Native code cannot be cut:
what is late is abandoned, its thread counted until it comes back, and at the cap the lane is down and loads no more,
because each of them holds a core and memory. A crash of native code takes the whole process along: that is what
workers are for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from crashpath.runtime.errors import DeviceFault, Failure, Hang, InputError, LoadTimeout, NativeCrash, SessionClosed
from crashpath.runtime.lane import Backend, LaneFacts, LaneSignature, LaneState, LoadCheck
from crashpath.runtime.loading import Loaded, Loading
from crashpath.runtime.reasons import recognise
from crashpath.runtime.reload import as_failure, kept, while_away
from crashpath.runtime.strikes import Armed
from crashpath.runtime.turn import Turn
from crashpath.runtime.turns import Turns
from crashpath.runtime.values import Arrays, Path, Phase, Strike


class InProcessLane:
    """See the module. ``slots`` requests run at once; ``make`` opens the backend, ``warm_feed`` is its first feed.

    At most ``abandoned_cap`` threads are given up on, those of loads included. ``reload_timeout`` bounds the load that
    follows a `kill`; where that fails the lane is ``down`` until somebody calls `load`.
    """

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
        self._reload_timeout = reload_timeout
        self._armed = Armed()
        self._check: LoadCheck | None = None
        self._turns = Turns(path.value, slots, abandoned_cap)
        self._lock = self._turns.lock
        self._load_lock = threading.Lock()
        self._state = LaneState.DOWN
        self._loaded: Loaded | None = None  # of the last load that succeeded
        self._backend: Backend | None = None  # what serves
        self._last: BaseException | None = None
        self._failed_load: BaseException | None = None
        self._loads = self._failed_loads = self._restarts = 0
        self._facts: LaneFacts | None = None  # as of the last look, until something changes

    # ---- load

    def load(self, timeout: float) -> None:
        """Open and warm up the backend in ``timeout`` seconds. At once where it is ready. Raises as `Lane.load`."""
        deadline = time.monotonic() + timeout
        if not self._load_lock.acquire(timeout=max(timeout, 0.0)):
            raise LoadTimeout("another load of the same path was still under way", "load deadline")
        try:
            self._load(deadline)
        finally:
            self._load_lock.release()

    def _load(self, deadline: float) -> None:
        with self._lock:
            self._raise_if_closed()
            if self._turns.spent:
                if self._state is LaneState.LOADING:
                    self._move(LaneState.DOWN, self._last)
                raise while_away(self._last, f"the path {self.path}, of which too many threads never came back,")
            if self._state is LaneState.READY:
                return
            self._loads += 1
            self._move(LaneState.LOADING, self._last)
        loading = Loading(self._make, self._warm_feed, self._armed, self._check)
        turn = Turn(lambda _: loading.go())
        try:
            self._turns.aside(turn, "load", _let_go)
            self._turns.wait(turn, deadline, lambda: self._given_up(_not_ready(), loading.phase))
            backend, loaded = turn.outcome()
        except BaseException as error:  # noqa: BLE001 - it is counted, named and raised
            raise self._failed(error, loading.phase)  # noqa: B904 - it has its cause, where it is another one
        self._begin(backend, loaded)

    def _begin(self, backend: Backend, loaded: Loaded) -> None:
        with self._lock:
            if self._state is not LaneState.CLOSED:
                self._backend, self._loaded = backend, loaded
                self._move(LaneState.READY, None)
                return
        backend.close()
        self._raise_if_closed()

    def _failed(self, error: BaseException, phase: Phase) -> BaseException:
        named = self._named(error, phase)
        with self._lock:
            self._failed_loads += 1
            self._failed_load = kept(named)
            self._move(LaneState.DOWN, self._failed_load)
        return named

    # ---- run

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Answer by ``deadline``, as `Lane.run`; what is late is abandoned and a `Hang`."""
        turn = Turn(lambda turn: self._infer(turn, feed))
        try:
            self._turns.perform(turn, deadline, self._serving, self._late)
            return turn.outcome()
        except BaseException as error:  # noqa: BLE001 - it is named and raised
            raise self._after(turn, error)  # noqa: B904 - it has its cause, where it is another one

    def _infer(self, turn: Turn[Arrays], feed: Arrays) -> Arrays:
        self._armed.fire(Phase.INFER)
        assert turn.backend is not None
        return turn.backend.run(feed)

    def _serving(self) -> Backend:
        """Return the backend, under the lock; raises where the path serves nobody now."""
        if self._backend is not None and not self._turns.spent:
            return self._backend
        self._raise_if_closed()
        raise while_away(self._last, f"the path {self.path}")

    def _late(self) -> Failure:
        return self._given_up(Hang("the path did not answer in time", "soft deadline"), Phase.INFER)

    def _given_up(self, failure: Failure, phase: Phase) -> Failure:
        failure.phase = phase.value
        if self._turns.spent:
            self._last, self._facts = kept(failure), None
        return failure

    def _after(self, turn: Turn[Arrays], error: BaseException) -> BaseException:
        """Do what an error of a run asks for, and return it by its name."""
        if turn.abandoned and turn.backend is not None and turn.ident is not None:
            turn.backend.cancel(turn.ident)
        named = self._named(error, Phase.INFER)
        if isinstance(named, DeviceFault) and named.tried:
            with self._lock:  # its context is poisoned for as long as this process lives
                self._away(LaneState.DOWN, kept(named))
        return named

    def _named(self, error: BaseException, phase: Phase) -> BaseException:
        found = recognise(error, phase, self.path)
        if isinstance(found, InputError) and not found.input and self._loaded is not None:
            found = InputError("", f"{found} (inputs: {', '.join(self._loaded.signature.inputs)})")
            found.__cause__ = error
        return error if found is None else found

    # ---- state, all of it under the lock

    def _move(self, state: LaneState, why: BaseException | None) -> None:
        """Go to another state. ``why`` is what keeps the path from being ready."""
        if self._state is not LaneState.CLOSED:
            self._state = state
        self._last = why
        self._facts = None

    def _away(self, state: LaneState, why: BaseException) -> bool:
        """Stop serving; ``False`` where it did not serve."""
        if self._state is not LaneState.READY:
            return False
        self._backend = None
        self._move(state, why)
        self._turns.send_home()
        return True

    def _raise_if_closed(self) -> None:
        if self._state is LaneState.CLOSED:
            raise SessionClosed(f"the path {self.path} was closed")

    # ---- the rest

    def signature(self) -> LaneSignature:
        """Return what the artefact of the last load takes and gives; raises where none succeeded."""
        if self._loaded is None:
            raise while_away(self._last, f"the path {self.path}")
        return self._loaded.signature

    def warm(self) -> Arrays | None:
        """Return the answer to the warm-up of the last load."""
        return None if self._loaded is None else self._loaded.warm

    def check_with(self, check: LoadCheck) -> None:
        """Hold later loads to it; the backend of one that fails is closed."""
        self._check = check

    def arm(self, strike: Strike | None) -> None:
        """Arm one strike, or disarm."""
        self._armed.set(strike)

    def facts(self) -> LaneFacts:
        """Return state and figures."""
        facts = self._facts
        if facts is None or facts.abandoned != self._turns.abandoned:
            with self._lock:
                facts = self._facts = self._look()
        return facts

    def _look(self) -> LaneFacts:
        state = LaneState.DOWN if self._state is LaneState.READY and self._turns.spent else self._state
        failure = None if state is LaneState.READY or self._last is None else as_failure(self._last)
        versions = () if self._loaded is None else self._loaded.versions
        figures = (self._restarts, self._turns.abandoned, versions, self._loads, self._failed_loads)
        failed = None if self._failed_load is None else as_failure(self._failed_load)
        return LaneFacts(state, None, 0, *figures, failure, failed)

    def kill(self) -> None:
        """Drop the backend as a crash would; it is loaded again once, in the background."""
        with self._lock:
            if not self._away(LaneState.LOADING, NativeCrash("the path was taken down", "kill")):
                return
            self._restarts += 1
        try:
            threading.Thread(target=self._load_again, name=f"{self.path}-reload", daemon=True).start()
        except RuntimeError:  # no thread left: whoever looks after the lane loads it when there is one
            with self._lock:
                self._move(LaneState.DOWN, self._last)

    def _load_again(self) -> None:
        with contextlib.suppress(Exception):  # the load has counted it and keeps it as the lane's last failure
            self.load(self._reload_timeout)

    def close(self) -> None:
        """Let go of the backend and end the idle threads; abandoned ones end when their work does."""
        with self._lock:
            self._move(LaneState.CLOSED, self._last)
            backend, self._backend = self._backend, None
            quiet = self._turns.quiet
            self._turns.close()
        if backend is not None and quiet:
            backend.close()


def _not_ready() -> Failure:
    return LoadTimeout("the path was not ready in time", "load deadline")


def _let_go(late: tuple[Backend, Loaded]) -> None:
    late[0].close()
