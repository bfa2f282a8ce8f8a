"""A lane whose backend runs in a worker: a hard deadline, and no crash of native code that takes the service along.

A keeper thread of the lane starts every worker, watches it while it is idle, and starts the next when it died. It
lives as long as the lane, which matters: the kernel ends a child with the *thread* that started it.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Sequence
from pathlib import Path as FilePath

from crashpath.runtime.errors import DeadlineExceeded, DeviceFault, Failure, LoadTimeout, SessionClosed
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.lane import LaneFacts, LaneSignature, LaneState
from crashpath.runtime.reasons import recognise
from crashpath.runtime.reload import Backoff, as_failure, while_away
from crashpath.runtime.strikes import Armed
from crashpath.runtime.values import Arrays, Path, Phase, Strike
from crashpath.runtime.workerprocess import WorkerDeath, WorkerPlan, WorkerProcess, resident_bytes, until

_RSS_EVERY_S = 1.0
_BUSY_S = 0.05
_GRACE_S = 1.0


class WorkerLane:
    """See the module. ``backend`` is ``ort`` or ``torchscript``; ``start_timeout`` is the deadline of later loads."""

    def __init__(
        self,
        path: Path,
        backend: str,
        folder: ModelFolder,
        warm_feed: Arrays | None,
        *,
        start_timeout: float | None = None,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        memory_mib: int | None = None,
        backoff: tuple[float, float] = (0.1, 5.0),
    ) -> None:
        limits = folder.limits
        self.path = path
        self._plan = WorkerPlan(
            backend,
            FilePath(folder.path).resolve(),
            limits.threads,
            tuple(providers),
            limits.memory_mib if memory_mib is None else memory_mib,
        )
        self._warm_feed = warm_feed
        self._start_timeout = limits.load_s if start_timeout is None else start_timeout
        self._armed = Armed()
        self._backoff = Backoff(*backoff)
        lock = threading.Lock()
        self._change = threading.Condition(lock)  # for the keeper, and for who waits for a load
        self._turn = threading.Condition(lock)  # for requests
        self._state = LaneState.DOWN
        self._worker: WorkerProcess | None = None  # what is loading, or serves
        self._busy = False
        self._wanted = False  # the keeper shall get a worker ready
        self._served = False  # it was ready once: from then on the keeper does not give up
        self._load_by: float | None = None  # deadline of the load that somebody waits for
        self._attempts = 0  # those that ended
        self._graves: list[WorkerProcess] = []
        self._pid = os.getpid()
        self._signature: LaneSignature | None = None
        self._versions: tuple[tuple[str, str], ...] = ()
        self._warm: Arrays | None = None
        self._last: BaseException | None = None
        self._loads = self._failed_loads = self._restarts = 0
        self._rss = (0.0, 0)
        self._keeper: threading.Thread | None = None
        self._wake = os.pipe()
        os.set_blocking(self._wake[0], False)
        os.set_blocking(self._wake[1], False)

    # ---- load

    def load(self, timeout: float) -> None:
        """Have a worker ready in ``timeout`` seconds. Joins an attempt that is under way. Raises as `Lane.load`.

        Until the lane was ready once, a load that fails is not tried again unless this is called again.
        """
        deadline = time.monotonic() + timeout
        with self._change:
            self._raise_if_closed()
            if self._state is LaneState.READY:
                return
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name=f"{self.path}-keeper", daemon=True)
                self._keeper.start()
            ended = self._attempts
            self._wanted, self._load_by = True, deadline
            self._change.notify_all()
            self._change.wait_for(lambda: self._is_over() or self._attempts > ended, until(deadline) + _GRACE_S)
            self._raise_if_closed()
            if self._is_over():
                return
            if self._attempts == ended or self._last is None:
                raise LoadTimeout(f"the worker of {self.path} was not ready in {timeout:g} s", "load deadline")
            raise self._last

    def _is_over(self) -> bool:
        return self._state in (LaneState.READY, LaneState.CLOSED)

    def _keep(self) -> None:
        while self._await_wanted():
            worker = self._attempt()
            if worker is not None:
                self._watch(worker)
        self._bury()
        os.close(self._wake[0])

    def _await_wanted(self) -> bool:
        """Wait until a worker is wanted and its time has come; ``False``: the lane was closed."""
        self._bury()
        with self._change:
            self._change.wait_for(lambda: self._wanted or self._state is LaneState.CLOSED)
            if self._load_by is None:
                hurried = self._is_over  # or somebody calls load() in the meantime
                self._change.wait_for(lambda: hurried() or self._load_by is not None, self._backoff.next())
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
                self._raise_if_closed()
                self._worker = worker
            _, loaded = worker.ask(Phase.LOAD, {}, deadline, self._armed.due(Phase.LOAD))
            warm = None
            if self._warm_feed is not None:
                warm, _ = worker.ask(Phase.WARMUP, self._warm_feed, deadline, self._armed.due(Phase.WARMUP))
        except WorkerDeath as death:
            error = death.failure
        except Exception as raised:  # noqa: BLE001 - the keeper must live: the error is raised by load(), or told by facts()
            error = recognise(raised, Phase.LOAD, self.path) or raised
        else:
            if self._begin(worker, LaneSignature(loaded.inputs, loaded.outputs), loaded.versions, warm):
                return worker
            error = SessionClosed(f"the path {self.path} was closed")
        self._failed(worker, error)
        return None

    def _begin(
        self,
        worker: WorkerProcess,
        signature: LaneSignature,
        versions: tuple[tuple[str, str], ...],
        warm: Arrays | None,
    ) -> bool:
        with self._change:
            self._attempts += 1
            self._load_by = None
            if self._state is LaneState.CLOSED:
                return False
            self._signature, self._versions, self._warm = signature, versions, warm
            self._state, self._last = LaneState.READY, None
            self._wanted, self._served, self._busy = False, True, False
            self._rss = (0.0, 0)
            self._change.notify_all()
            self._turn.notify_all()
            return True

    def _failed(self, worker: WorkerProcess | None, error: BaseException) -> None:
        with self._change:
            if worker is not None:
                self._graves.append(worker)
            self._worker, self._load_by = None, None
            self._attempts += 1
            self._failed_loads += 1
            self._last = error
            self._wanted = self._served
            if self._state is LaneState.LOADING:
                self._state = LaneState.DOWN
            self._change.notify_all()
            self._turn.notify_all()
        self._bury()

    def _watch(self, worker: WorkerProcess) -> None:
        """Wait until the worker has died, was given up by a request, or the lane is closed."""
        watched = os.dup(worker.fileno())  # a number of its own: a request may close the other at any time
        try:
            poll = select.poll()
            poll.register(watched, 0)
            poll.register(self._wake[0], select.POLLIN)
            while True:
                events = dict(poll.poll())
                if self._wake[0] in events:
                    os.read(self._wake[0], 64)
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
        finally:
            os.close(watched)
        self._give_up(worker, worker.obituary() if self._state is not LaneState.CLOSED else None)

    def _give_up(self, worker: WorkerProcess, why: Failure | None) -> None:
        """Let go of a worker that died or must; the keeper reaps it and starts the next."""
        with self._change:
            if self._worker is worker:
                self._worker, self._busy = None, False
                self._graves.append(worker)
                if self._state is not LaneState.CLOSED:
                    self._state, self._last, self._wanted = LaneState.LOADING, why, True
                    self._restarts += 1
            self._change.notify_all()
            self._turn.notify_all()
            orphaned = self._keeper is None or not self._keeper.is_alive()
        self._wake_keeper()
        if orphaned:
            self._bury()

    def _bury(self) -> None:
        with self._change:
            graves, self._graves = self._graves, []
        for worker in graves:
            worker.bury()

    def _wake_keeper(self) -> None:
        try:
            os.write(self._wake[1], b".")
        except OSError:  # full: it is awake anyway; closed: it is gone
            return

    # ---- run

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Answer by ``deadline``, as `Lane.run`; a worker that is late is killed."""
        worker = self._take_turn(deadline)
        try:
            outputs, _ = worker.ask(Phase.INFER, feed, deadline, self._armed.due(Phase.INFER))
        except WorkerDeath as death:
            self._give_up(worker, death.failure)
            self._raise_if_closed()
            raise death.failure from death.__cause__
        except DeviceFault as error:
            worker.kill()
            self._give_up(worker, error)
            raise
        except OSError as error:
            self._release()
            found = recognise(error, Phase.INFER, self.path)
            raise (error if found is None else found) from error.__cause__
        except Exception:
            self._release()
            raise
        except BaseException:  # an interrupt: its reply may come yet, so nobody may ask this worker again
            worker.kill()
            self._give_up(worker, None)
            raise
        self._backoff.reset()
        self._release()
        return outputs

    def _take_turn(self, deadline: float) -> WorkerProcess:
        if os.getpid() != self._pid:
            raise SessionClosed("a worker belongs to the process that started it; open the session after the fork")
        with self._turn:
            while True:
                self._raise_if_closed()
                if self._state is not LaneState.READY or self._worker is None:
                    raise while_away(self._last, f"the worker of {self.path}")
                if not self._busy:
                    self._busy = True
                    return self._worker
                left = deadline - time.monotonic()
                if left <= 0 or not self._turn.wait(left):
                    self._turn.notify()  # in case that the turn was offered in the moment in which this gave up
                    raise DeadlineExceeded(f"no turn on the path {self.path} came by the deadline")

    def _release(self) -> None:
        with self._turn:
            self._busy = False
            self._turn.notify()

    # ---- the rest

    def _raise_if_closed(self) -> None:
        if self._state is LaneState.CLOSED:
            raise SessionClosed(f"the path {self.path} was closed")

    def signature(self) -> LaneSignature:
        """Return what the artefact of the last load takes and gives; raises where none succeeded."""
        if self._signature is None:
            raise while_away(self._last, f"the worker of {self.path}")
        return self._signature

    def warm(self) -> Arrays | None:
        """Return the answer to the warm-up of the last load."""
        return self._warm

    def arm(self, strike: Strike | None) -> None:
        """Arm one strike, or disarm."""
        self._armed.set(strike)

    def facts(self) -> LaneFacts:
        """Return state and figures; the resident bytes are at most a second old."""
        with self._change:
            pid = None if self._worker is None else self._worker.pid
            now = time.monotonic()
            if pid is not None and now - self._rss[0] > _RSS_EVERY_S:
                self._rss = (now, resident_bytes(pid))
            failure = None if self._state is LaneState.READY or self._last is None else as_failure(self._last)
            rss = 0 if pid is None else self._rss[1]
            figures = (self._restarts, 0, self._versions, self._loads, self._failed_loads)
            return LaneFacts(self._state, pid, rss, *figures, failure)

    def kill(self) -> None:
        """Kill the worker, as a crash would; the next one is started in the background."""
        with self._change:
            worker = self._worker
            if worker is not None:
                worker.kill()

    def close(self) -> None:
        """Kill the worker and end the keeper; waits a second at most."""
        with self._change:
            if self._state is LaneState.CLOSED:
                return
            self._state = LaneState.CLOSED
            if self._worker is not None:
                self._worker.kill()
            self._change.notify_all()
            self._turn.notify_all()
            keeper = self._keeper
        self._wake_keeper()
        if keeper is None:
            os.close(self._wake[0])
        elif keeper is not threading.current_thread():
            keeper.join(1.0)
        os.close(self._wake[1])
