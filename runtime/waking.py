"""Wakes a thread that waits in ``poll``, which no condition can do: a pipe that it polls beside what it watches."""

from __future__ import annotations

import contextlib
import os


class Waker:
    """A pipe that one thread polls. Its ends are closed apart: `hang_up` by whoever wakes, `close` by the thread.

    After `hang_up` the thread finds the pipe readable for good, so that it never sleeps through an end.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """Return the number to poll for input."""
        return self._read

    def drain(self) -> None:
        """Take in what woke the thread."""
        os.read(self._read, 64)

    def wake(self) -> None:
        """Wake the thread. Not after `hang_up`: the number may be another file's by then."""
        with contextlib.suppress(BlockingIOError):  # full: it is awake anyway
            os.write(self._write, b".")

    def hang_up(self) -> None:
        """Wake the thread for the last time."""
        os.close(self._write)

    def close(self) -> None:
        """Give the thread's own end back."""
        os.close(self._read)
