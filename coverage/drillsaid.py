"""What libraries write on this process's standard error while it is struck: kept off the terminal, and not lost."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 64 << 10
"""Bytes of one taking that are kept, the last ones."""


class Said:
    """What was written since it was last taken. ``terminal`` goes where standard error went before.

    ``outside`` is what was put aside, as it belongs to no drill: the last of it.
    """

    def __init__(self, file: int, terminal: TextIO) -> None:
        self._file = file
        self._at = 0
        self.terminal = terminal
        self.outside = ""

    def put_aside(self) -> None:
        """Take what was written as something that belongs to no drill."""
        self.outside = (self.outside + self.taken())[-_LONGEST:]

    def taken(self) -> str:
        """Return what was written since the last call, without colours."""
        size = os.fstat(self._file).st_size
        begin = max(self._at, size - _LONGEST)
        text = os.pread(self._file, size - begin, begin).decode("utf-8", "replace")
        self._at = size
        return _COLOUR.sub("", text)


@contextmanager
def kept_apart() -> Iterator[Said]:
    """Send what is written to descriptor 2, by whatever library or thread, to a file meanwhile.

    The file has a name, so that the last words of a process that was struck dead can be read there.
    """
    _flush()
    with (
        tempfile.NamedTemporaryFile(prefix="drill-stderr-") as sink,
        os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1) as terminal,
    ):
        with open(sink.name, "ab", buffering=0) as appended:  # appended to: several threads write
            os.dup2(appended.fileno(), 2)
        try:
            yield Said(sink.fileno(), terminal)
        finally:
            _flush()
            os.dup2(terminal.fileno(), 2)


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()
