"""A listener that keeps events in a file of JSON lines: rotated by size, a bounded number of files.

``events.jsonl`` is the newest, ``events.jsonl.1`` the one before. Each event is one ``write`` on a file opened for
appending, so several processes may share a file; whoever finds it full rotates it under a lock of the file itself.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Self

from crashpath.runtime.events import Told, as_line

try:
    import fcntl
except ImportError:  # not a POSIX system: one process a file
    fcntl = None  # type: ignore[assignment]


class EventFile:
    """Writes each event at once. A full disk raises `OSError`, which the session counts as a dropped event.

    ``max_bytes`` is the size from which a file is rotated; ``keep`` how many files there are at most.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = 16 << 20, keep: int = 5) -> None:
        if keep < 1 or max_bytes < 1:
            raise ValueError("an event file needs room for one event and one file")
        self._path = Path(path)
        self._max_bytes = max_bytes
        self._keep = keep
        self._lock = threading.Lock()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file: int | None = self._open()
        self._torn = False

    def __call__(self, told: Told) -> None:
        """Append one event."""
        line = as_line(told)
        with self._lock:
            if self._file is None:
                raise ValueError(f"{self._path} is closed")
            self._follow()
            if os.fstat(self._file).st_size + len(line) > self._max_bytes:
                self._rotate()
            if self._torn:  # what a full disk cut short must not spoil the next line, too
                line = b"\n" + line
            written = os.write(self._file, line)
            self._torn = 0 < written < len(line)
            if written < len(line):
                raise OSError(f"only {written} of {len(line)} bytes fitted in {self._path}")

    def close(self) -> None:
        """Close the file; a later event is an error."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _follow(self) -> None:
        """Open the path again where another process has rotated it, or somebody removed it."""
        assert self._file is not None
        ours = os.fstat(self._file)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            self._reopen()

    def _reopen(self) -> None:
        opened = self._open()  # before the old one is closed: a failure leaves a file that can be written
        if self._file is not None:
            os.close(self._file)
        self._file, self._torn = opened, False

    def _rotate(self) -> None:
        assert self._file is not None
        if os.fstat(self._file).st_size == 0:  # one event above the limit has a file of its own
            return
        held = self._file
        if fcntl is not None:
            fcntl.flock(held, fcntl.LOCK_EX)
        if os.stat(self._path).st_ino == os.fstat(held).st_ino:  # nobody was quicker
            for number in range(self._keep - 1, 1, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(self._numbered(number - 1), self._numbered(number))
            if self._keep > 1:
                os.replace(self._path, self._numbered(1))
            else:
                self._path.unlink()
        self._reopen()  # closing the old file lets go of its lock

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
