"""One worker as its lane sees it: start it, ask it, learn how it died, leave nothing of it behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath

from crashpath.runtime.channel import Channel, GarbledError, GoneError, LateError
from crashpath.runtime.errors import Failure, NativeCrash
from crashpath.runtime.lane import LaneSignature
from crashpath.runtime.loading import Loaded
from crashpath.runtime.messages import Ask, Reply, WorkerSpec, to_error
from crashpath.runtime.reasons import recognise_death
from crashpath.runtime.segment import Segment, unnamed_file
from crashpath.runtime.strikes import Armed
from crashpath.runtime.values import Arrays, Phase, Strike

STDERR_KEPT = 64 << 10
"""Bytes of a worker's output that are kept; more is cut between two requests."""
TAIL = 8 << 10
EXIT_S = 2.0
REAP_S = 5.0
RSS_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What every worker of a lane is started with. ``memory_mib`` of address space above its needs; 0: no limit."""

    backend: str
    folder: FilePath
    threads: int
    providers: tuple[str, ...]
    memory_mib: int


class WorkerDeath(Exception):  # noqa: N818 - a signal between two modules, not an error for callers
    """The worker is gone. ``failure`` says how it ended."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class WorkerProcess:
    """A running worker. One request at a time; `kill` may come from any thread at any time.

    Raises `OSError` where no process can be started.
    """

    def __init__(self, plan: WorkerPlan) -> None:
        self._oom_kills = oom_kills()
        self._asked = 0
        self._doing = Phase.LOAD
        self._rss = (0.0, 0)  # when, bytes
        self._handled = 0  # bytes of output that came before the last reply
        with contextlib.ExitStack() as undo:
            self._feed, self._answer = Segment(), Segment()
            undo.callback(self._feed.close)
            undo.callback(self._answer.close)
            self._said = unnamed_file("output")
            undo.callback(os.close, self._said)
            import fcntl  # Unix alone has it, as it has workers

            fcntl.fcntl(self._said, fcntl.F_SETFL, os.O_APPEND)  # so that it can be cut while it is written to
            here, there = socket.socketpair()
            undo.callback(here.close)
            with there:
                self._process = self._start(plan, there)
            undo.pop_all()
        self._channel = Channel(here)

    def _start(self, plan: WorkerPlan, there: socket.socket) -> subprocess.Popen[bytes]:
        files = (there.fileno(), self._feed.file, self._answer.file)
        spec = WorkerSpec(
            *files, os.getpid(), plan.backend, str(plan.folder), plan.threads, plan.providers, plan.memory_mib
        )
        return subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", "crashpath.runtime.worker", json.dumps(asdict(spec))],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=files,
            env=os.environ | ({"MALLOC_ARENA_MAX": "2"} if plan.memory_mib else {}),
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def rss(self) -> int:
        """Return its resident bytes, at most a second old."""
        now = time.monotonic()
        if not self._rss[1] or now - self._rss[0] > RSS_EVERY_S:
            self._rss = (now, resident_bytes(self.pid))
        return self._rss[1]

    def fileno(self) -> int:
        """Return the socket's descriptor: it hangs up when the worker dies."""
        return self._channel.fileno()

    def load(self, warm_feed: Arrays | None, armed: Armed, deadline: float) -> Loaded:
        """Load and warm up by ``deadline``. Raises as `ask`."""
        _, told = self.ask(Phase.LOAD, {}, deadline, armed.due(Phase.LOAD))
        warm = None
        if warm_feed is not None:
            warm, _ = self.ask(Phase.WARMUP, warm_feed, deadline, armed.due(Phase.WARMUP))
        return Loaded(LaneSignature(told.inputs, told.outputs), told.versions, warm)

    def serve(self) -> None:
        """Say that it is loaded: what happens to it from now on is no load's failure."""
        self._doing = Phase.INFER

    def ask(self, phase: Phase, feed: Arrays, deadline: float, strike: Strike | None) -> tuple[Arrays, Reply]:
        """Load (``feed`` is empty then) or run by ``deadline``, and return outputs that are the caller's own.

        Raises what the worker's error is here, or `WorkerDeath`: then it is dead or dying, and to be buried.
        """
        placed = self._feed.write(feed)
        self._asked += 1
        self._doing = phase
        called = None if strike is None else (strike.function, strike.argument)
        try:
            self._channel.send(Ask(self._asked, phase, placed, self._feed.size, called).to_json(), deadline)
            reply = Reply.from_json(self._channel.receive(deadline))
            if reply.id != self._asked:
                raise GarbledError(f"reply {reply.id} came to request {self._asked}")
        except LateError as error:
            self.kill()
            raise WorkerDeath(self._mine(recognise_death(-signal.SIGKILL, "", killed_by_us=phase))) from error
        except GoneError as error:
            raise WorkerDeath(self.obituary()) from error
        except (GarbledError, KeyError, TypeError, ValueError) as error:
            self.kill()
            raise WorkerDeath(NativeCrash(f"the worker sent what is no reply ({error})", "channel")) from error
        self._cut_output()
        if reply.trouble is not None:
            raise to_error(reply.trouble, phase)
        if not reply.tensors:
            return {}, reply
        self._answer.fit(reply.size)
        return self._answer.copies(reply.tensors), reply

    def kill(self) -> None:
        """Send SIGKILL; whoever waits for an answer learns of it at once."""
        self._process.kill()

    def obituary(self) -> Failure:
        """Say how the worker died, which closed its end of the channel."""
        try:
            exit = self._process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            failure: Failure = NativeCrash("the worker closed its channel and did not end", "channel")
            failure.phase = self._doing.value
            return self._mine(failure)
        moved = max(oom_kills() - self._oom_kills, 0)  # which it cannot tell where no file can be opened
        return self._mine(recognise_death(exit, self.tail(), oom_kills=moved, phase=self._doing))

    def _mine(self, failure: Failure) -> Failure:
        failure.worker_pid = self.pid
        return failure

    def bury(self) -> None:
        """End the worker if it runs still, reap it, and free what it held. Once only."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel: it is reaped when Popen can
            self._process.wait(REAP_S)
        self._channel.close()
        self._feed.close()
        self._answer.close()
        os.close(self._said)

    def tail(self) -> str:
        """Return the last of what the worker wrote since its last reply: what came before did not end it."""
        size = os.fstat(self._said).st_size
        return os.pread(self._said, TAIL, max(self._handled, size - TAIL)).decode("utf-8", "replace")

    def _cut_output(self) -> None:
        self._handled = os.fstat(self._said).st_size
        if self._handled > STDERR_KEPT:
            os.ftruncate(self._said, 0)
            self._handled = 0


def oom_kills(files: Sequence[str] = ("/sys/fs/cgroup/memory.events", "/proc/vmstat")) -> int:
    """Return how many out-of-memory kills the kernel counts, in this cgroup and on this machine; 0 where unknown."""
    count = 0
    for file in files:
        try:
            lines = FilePath(file).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return count


def resident_bytes(pid: int) -> int:
    """Return the resident bytes of a process; 0 where that is not known."""
    try:
        return int(FilePath(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def until(deadline: float) -> float:
    """Return the seconds that are left, never less than none."""
    return max(0.0, deadline - time.monotonic())
