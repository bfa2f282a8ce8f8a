"""Who starts the workers of a lane, watches them while they are idle, and starts the next when one died.

It is a thread that lives as long as the lane, which matters: the kernel ends a child with the *thread* that started it.
Requests borrow the worker from here, one at a time, and give it up when it dies in their hands. No lock is held while
a worker works.
"""

from __future__ import annotations

import os
import select
import threading
import time

from crashpath.runtime.errors import DeadlineExceeded, Failure, LoadTimeout, SessionClosed
from crashpath.runtime.lane import LaneFacts, LaneState, LoadCheck
from crashpath.runtime.loading import Loaded, hold
from crashpath.runtime.reasons import recognise
from crashpath.runtime.reload import Backoff, as_failure, kept, while_away
from crashpath.runtime.slots import Line
from crashpath.runtime.strikes import Armed
from crashpath.runtime.values import Arrays, Path, Phase
from crashpath.runtime.waking import Waker
from crashpath.runtime.workerprocess import WorkerDeath, WorkerPlan, WorkerProcess, until

_BUSY_S = 0.05
_GRACE_S = 1.0


class Keeper:
    """See the module. ``start_timeout`` is the deadline of loads that nobody waits for; ``armed`` may strike loads."""

    def __init__(
        self,
        path: Path,
        plan: WorkerPlan,
        warm_feed: Arrays | None,
        armed: Armed,
        *,
        start_timeout: float,
        backoff: tuple[float, float],
    ) -> None:
        self.path = path
        self.loaded: Loaded | None = None
        """What the last load that succeeded gave."""
        self.last: BaseException | None = None
        """What took the lane down last; ``None`` while it is ready."""
        self.check: LoadCheck | None = None
        """What later loads are held to, as `Lane.check_with`."""
        self._failed_load: BaseException | None = None
        self._plan = plan
        self._warm_feed = warm_feed
        self._armed = armed
        self._start_timeout = start_timeout
        self._backoff = Backoff(*backoff)
        lock = threading.Lock()
        self._change = threading.Condition(lock)  # for the thread, and for who waits for a load
        self._line = Line(lock, self._idle)  # of requests
        self._state = LaneState.DOWN
        self._worker: WorkerProcess | None = None  # what is loading, or serves
        self._busy = False
        self._wanted = False  # the thread shall get a worker ready
        self._served = False  # one was ready once: from then on the thread does not give up
        self._load_by: float | None = None  # deadline of the load that somebody waits for
        self._attempts = 0  # those that ended
        self._graves: list[WorkerProcess] = []
        self._loads = self._failed_loads = self._restarts = self._idle_deaths = 0
        self._idle_death: Failure | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._waker = Waker()

    def load(self, timeout: float) -> None:
        """Have a worker ready in ``timeout`` seconds. Joins an attempt that is under way. Raises as `Lane.load`.

        Until the lane was ready once, a load that fails is not tried again unless this is called again.
        """
        deadline = time.monotonic() + timeout
        with self._change:
            self.raise_if_closed()
            if self._state is LaneState.READY:
                return
            ended = self._attempts
            self._wanted, self._load_by = True, deadline
            self._have_thread()
            self._change.notify_all()
            self._change.wait_for(lambda: self._is_over() or self._attempts > ended, until(deadline) + _GRACE_S)
            self.raise_if_closed()
            if self._is_over():
                return
            if self._attempts == ended or self.last is None:
                raise LoadTimeout(f"the worker of {self.path} was not ready in {timeout:g} s", "load deadline")
            raise self.last

    def _is_over(self) -> bool:
        return self._state in (LaneState.READY, LaneState.CLOSED)

    def _have_thread(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._keep, name=f"{self.path}-keeper", daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError as error:  # the host has no thread left: a load that failed
            self._loads += 1
            self._note(recognise(error, Phase.LOAD, self.path) or error)

    def _keep(self) -> None:
        while self._await_wanted():
            worker = self._attempt()
            if worker is not None:
                self._watch(worker)
        self._bury()
        self._waker.close()

    def _await_wanted(self) -> bool:
        """Wait until a worker is wanted and its time has come; ``False``: the lane was closed."""
        self._bury()
        with self._change:
            self._change.wait_for(lambda: self._wanted or self._state is LaneState.CLOSED)
            if self._load_by is None:  # wait, unless somebody calls load() in the meantime
                self._change.wait_for(lambda: self._is_over() or self._load_by is not None, self._backoff.next())
            if self._state is LaneState.CLOSED:
                return False
            self._state = LaneState.LOADING
            self._loads += 1
            return True

    def _attempt(self) -> WorkerProcess | None:
        with self._change:
            deadline = time.monotonic() + self._start_timeout if self._load_by is None else self._load_by
        worker: WorkerProcess | None = None
        error: BaseException
        try:
            worker = WorkerProcess(self._plan)
            with self._change:
                self.raise_if_closed()
                self._worker = worker
            loaded = worker.load(self._warm_feed, self._armed, deadline)
            hold(self.check, loaded)
        except WorkerDeath as death:
            error = death.failure
        except Exception as raised:  # noqa: BLE001 - the keeper must live: the error is raised by load(), or told by facts()
            error = recognise(raised, Phase.LOAD, self.path) or raised
        else:
            if self._begin(worker, loaded):
                return worker
            error = SessionClosed(f"the path {self.path} was closed")
        self._failed(worker, error)
        return None

    def _begin(self, worker: WorkerProcess, loaded: Loaded) -> bool:
        with self._change:
            self._attempts += 1
            self._load_by = None
            if self._state is LaneState.CLOSED:
                return False
            self.loaded = loaded
            self._state, self.last = LaneState.READY, None
            self._wanted, self._served, self._busy = False, True, False
            worker.serve()
            self._change.notify_all()
            return True

    def _failed(self, worker: WorkerProcess | None, error: BaseException) -> None:
        with self._change:
            if worker is not None:
                self._graves.append(worker)
            self._worker, self._load_by = None, None
            self._note(error)
            self._wanted = self._served
            self._change.notify_all()
            self._line.send_home()
        self._bury()

    def _note(self, error: BaseException) -> None:
        self._attempts += 1
        self._failed_loads += 1
        self.last = self._failed_load = kept(error)
        if self._state is LaneState.LOADING:
            self._state = LaneState.DOWN

    def _watch(self, worker: WorkerProcess) -> None:
        """Wait until the worker has died, was given up by a request, or the lane is closed."""
        watched = worker.fileno()  # stays open: this thread alone buries workers for as long as it lives
        poll = select.poll()
        poll.register(watched, 0)
        poll.register(self._waker, select.POLLIN)
        while True:
            events = dict(poll.poll())
            if self._waker.fileno() in events:
                self._waker.drain()
            with self._change:
                if self._worker is not worker:
                    return
                if watched not in events and self._state is not LaneState.CLOSED:
                    continue
                if self._busy:  # the request that is under way learns of it, too, and gives the worker up
                    self._change.wait(_BUSY_S)
                    continue
                self._busy = True
            break
        why = worker.obituary() if self._state is not LaneState.CLOSED else None
        self._idle_deaths, self._idle_death = self._idle_deaths + (why is not None), why or self._idle_death
        self.give_up(worker, why)

    def give_up(self, worker: WorkerProcess, why: Failure | None) -> None:
        """Let go of a worker that died or must; the keeper reaps it and starts the next."""
        with self._change:
            if self._worker is worker:
                self._worker, self._busy = None, False
                self._graves.append(worker)
                if self._state is not LaneState.CLOSED:
                    self._state, self.last, self._wanted = LaneState.LOADING, None if why is None else kept(why), True
                    self._restarts += 1
            self._change.notify_all()
            self._line.send_home()
            orphaned = self._thread is None or not self._thread.is_alive()
            if self._state is not LaneState.CLOSED:  # its end is closed then
                self._waker.wake()
        if orphaned:
            self._bury()

    def _bury(self) -> None:
        with self._change:
            graves, self._graves = self._graves, []
        for worker in graves:
            worker.bury()

    def take(self, deadline: float) -> WorkerProcess:
        """Return the worker, for one request, once nobody else has it. Raises as `Lane.run`."""
        if os.getpid() != self._pid:
            raise SessionClosed("a worker belongs to the process that started it; open the session after the fork")
        with self._change:
            while True:
                self.raise_if_closed()
                if self._state is not LaneState.READY or self._worker is None:
                    raise while_away(self.last, f"the worker of {self.path}")
                if not self._busy:
                    self._busy = True
                    return self._worker
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"no turn on the path {self.path} came by the deadline")
                if self._line.wait(left):
                    self._busy = False  # it is this one's: the lock is held

    def release(self, *, answered: bool) -> None:
        """Hand the worker back."""
        if answered:
            self._backoff.reset()
        with self._change:
            self._line.hand_on()

    def _idle(self) -> None:
        self._busy = False

    def raise_if_closed(self) -> None:
        """Raise `SessionClosed` after `close`."""
        if self._state is LaneState.CLOSED:
            raise SessionClosed(f"the path {self.path} was closed")

    def facts(self) -> LaneFacts:
        """Return state and figures; the resident bytes are at most a second old."""
        with self._change:
            pid, rss = (None, 0) if self._worker is None else (self._worker.pid, self._worker.rss())
            failure = None if self._state is LaneState.READY or self.last is None else as_failure(self.last)
            versions = () if self.loaded is None else self.loaded.versions
            figures = (self._restarts, 0, versions, self._loads, self._failed_loads)
            failed = None if self._failed_load is None else as_failure(self._failed_load)
            return LaneFacts(self._state, pid, rss, *figures, failure, failed, self._idle_deaths, self._idle_death)

    def kill(self) -> None:
        """Kill the worker, as a crash would; the next one is started in the background."""
        with self._change:
            worker = self._worker
            if worker is not None:
                worker.kill()

    def close(self) -> None:
        """Kill the worker and end the thread; waits a second at most."""
        with self._change:
            if self._state is LaneState.CLOSED:
                return
            self._state = LaneState.CLOSED
            if self._worker is not None:
                self._worker.kill()
            self._waker.hang_up()
            self._change.notify_all()
            self._line.send_home()
            thread = self._thread
        if thread is None:
            self._waker.close()
        elif thread is not threading.current_thread():
            thread.join(1.0)
