"""What a worker prints and does while it is struck, read from the system and not from the runtime under test."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from crashpath.coverage.endings import Endings

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_LONGEST = 64 << 10


class Overheard:
    """Listens to the standard error of a lane's workers, those to come included, to their time and their end.

    ``pid_of`` gives the process of the lane now. A thread looks every few milliseconds; use it as a context. Where
    the system has no ``/proc``, nothing is heard.
    """

    def __init__(self, pid_of: Callable[[], int | None]) -> None:
        self._pid_of = pid_of
        self._files: dict[int, tuple[int, int]] = {}
        self._computed: dict[int, float] = {}
        self._began: dict[int, float] = {}
        self._endings = Endings()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="overhear", daemon=True)

    def __enter__(self) -> Overheard:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(5)
        for file, _ in self._files.values():
            os.close(file)
        self._files.clear()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that were seen."""
        return tuple(self._began)

    def computed(self) -> float:
        """Return the most seconds of processor time that one of them took meanwhile."""
        return max((self._computed[pid] - began for pid, began in self._began.items()), default=0.0)

    def printed(self) -> str:
        """Return what they printed since they were first seen."""
        texts = []
        for file, start in self._files.values():
            size = os.fstat(file).st_size
            begin = max(start if start <= size else 0, size - _LONGEST)
            texts.append(os.pread(file, size - begin, begin).decode("utf-8", "replace"))
        return "".join(texts)

    def how(self, pid: int, seconds: float = 2.0) -> str:
        """Say how a worker that was seen ended; ``""`` where it did not, within ``seconds``, or was never seen."""
        return self._endings.how(pid, seconds)

    def _work(self) -> None:
        while not self._stop.wait(0.01):
            self._look()

    def _look(self) -> None:
        pid = self._pid_of()
        if pid is None:
            return
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            spent = processor_seconds(pid)
            self._computed[pid] = spent  # first of all: whoever is in `_began` is here
            if pid not in self._began:
                self._began[pid] = spent
                if pid != os.getpid():
                    self._endings.watch(pid)
                    file = os.open(f"/proc/{pid}/fd/2", os.O_RDONLY | os.O_NONBLOCK)
                    self._files[pid] = (file, os.fstat(file).st_size)


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken. Raises `OSError` where it is not there."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def alive(pid: int) -> bool:
    """Whether a process runs still; one that has ended and was not waited for does not."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"
