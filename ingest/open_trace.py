"""The trace that is open in a record: how it is printed, under which line, and which lines stand apart from it."""

from __future__ import annotations

from datetime import datetime

from crashpath.ingest.assemble import Kept
from crashpath.ingest.lines import Line
from crashpath.ingest.opening import KERNEL_END, KERNEL_LINES, Kind, same_words
from crashpath.ingest.told import Trace

_INDENTED = frozenset({Kind.PYTHON, Kind.FRAME, Kind.THROWN})
_ENDLESS = frozenset({Kind.NATIVE, Kind.FRAME, Kind.THROWN})
_UNDER_A_FINAL = frozenset({Kind.PYTHON, Kind.NOTEBOOK})


class OpenTrace:
    """From its first line to the one that ends it; ``kind`` is ``None`` while no trace is open."""

    __slots__ = ("_at", "_level", "bare", "head", "indents", "kind", "lines")

    def __init__(self) -> None:
        """Start with none open."""
        self.kind: Kind | None = None
        self.head = ""
        self.bare = True  # its first line had no prefix
        self.indents = False  # its lines are indented, but for the last
        self.lines = 0  # behind the first
        self._level: str | None = None
        self._at: datetime | None = None

    def start(self, head: Kept, kind: Kind) -> None:
        """Open it at its first line."""
        self.kind = kind
        self.head = head.line.text
        self.bare = head.line.bare
        self.indents = kind in _INDENTED
        self.lines = 0
        self._level = head.line.level
        self._at = head.at

    def end(self, final: str) -> Trace:
        """Close it; ``final`` is the line that it ended in."""
        native = self.kind is Kind.NATIVE
        self.kind = None
        self.indents = False
        return Trace(same_words(final), self.bare, self._at, native)

    @property
    def endless(self) -> bool:
        """Whether no line of its own ends it."""
        return self.kind in _ENDLESS

    def interposed(self, line: Line) -> bool:
        """Whether it is a logger's line in the midst of a raw trace, or one of another level in a logged one."""
        return not line.bare and (self.bare or line.level != self._level)

    def ends_at(self, text: str) -> bool:
        """Whether a line that is of it is its last: the bottom of an exception group, the kernel's kill."""
        if self.kind is Kind.KERNEL:
            return KERNEL_END.search(text) is not None or self.lines > KERNEL_LINES
        return self.kind is Kind.PYTHON and text.endswith("-----") and text.lstrip().startswith("+--")

    def ends_under(self, text: str) -> bool:
        """Whether a line that is not indented is the one that it ends in: the exception itself."""
        return self.kind in _UNDER_A_FINAL and not text.startswith("Traceback (most recent call")


def final_line(text: str) -> str:
    """Return the line of a whole Python trace that names its last exception: the first one under the last frame."""
    lines = text.rstrip().split("\n")
    at = len(lines) - 1
    while at > 0 and lines[at - 1].strip() and not lines[at - 1].startswith((" ", "\t", "Traceback (most recent call")):
        at -= 1
    return lines[at]
