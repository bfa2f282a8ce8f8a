"""A record that is still growing: the lines of one writer from the first sign of a failure on."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from crashpath.ingest.assemble import RECORD_BYTES, Kept, make_record, trim_bounds
from crashpath.ingest.lines import Line
from crashpath.ingest.model import Facts, Record
from crashpath.ingest.opening import AFTERMATH, HEADS, KERNEL_END, KERNEL_LINES, Kind, same_words, trace_goes_on

MOST_IDLE = 30
"""Lines of the same writer after the last sign of a failure until its record is closed."""

MOST_SECONDS = 60.0
_REPEAT_SECONDS = 1.0
_OTHER_SECONDS = 5.0
_ECHO_SECONDS = 0.05
_TRIM_AT = 2 * RECORD_BYTES


class Fate(Enum):
    """What a line does to the record that its writer has open."""

    JOINED = "joined"
    CLOSE_BEFORE = "close before it, and look at it afresh"
    SPLIT = "its last lines are another failure"


class Gathering:
    """The lines of one failure so far, and where in a trace they are."""

    __slots__ = (
        "_calm", "_chained", "_head", "_idle", "_last_mode", "_mode", "_pending", "_pending_last", "_seen", "_size",
        "_tail", "_trace_at", "_trace_bare", "_trace_level", "_trace_lines", "_traces",
        "at", "first", "kept", "last", "touched", "truncated",
    )  # fmt: skip

    def __init__(self, context: list[Kept]) -> None:
        """Start with the lines that stood just before."""
        self.kept = context
        self.first = len(context)  # of the failure itself
        self.last = 0  # kept[:last] is the record, the rest only waits for aftermath
        self.at: datetime | None = None
        self.touched = 0
        self.truncated = False
        self._size = sum(len(kept.line.text) for kept in context)
        self._mode: Kind | None = None
        self._last_mode: Kind | None = None
        self._head = ""
        self._trace_bare = True
        self._trace_level: str | None = None
        self._trace_at: datetime | None = None
        self._trace_lines = 0
        self._traces: list[tuple[str, bool, datetime | None]] = []
        self._chained = False
        self._idle = 0
        self._calm = False
        self._pending: int | None = None
        self._pending_last = 0
        self._tail: int | None = None
        self._seen: dict[str, tuple[datetime | None, int]] = {}

    @property
    def in_bare_trace(self) -> bool:
        """Whether lines without any prefix belong here for now."""
        return self._mode is not None and self._trace_bare

    @property
    def settled(self) -> bool:
        """Whether its trace is complete, so that a new trace would start a new record."""
        return self._mode is None and bool(self._traces) and not self._chained

    def too_far(self, at: datetime | None) -> bool:
        """Tell whether a line at this time comes too late for the record."""
        if self._idle >= MOST_IDLE:
            return True
        return at is not None and self.at is not None and (at - self.at).total_seconds() > MOST_SECONDS

    def goes_on(self, kept: Kept) -> Fate | None:
        """Add the next line of an open trace; ``None`` where no trace is open or the line is not of it."""
        mode = self._mode
        if mode is None:
            return None
        line = kept.line
        if self._interposed(line):
            self._add(kept)
            self._idle += 1
            return Fate.JOINED
        self._trace_lines += 1
        if mode is Kind.KERNEL:
            return self._kernel(kept)
        if trace_goes_on(line.text, mode):
            self._significant(kept)
            if mode is Kind.PYTHON and line.text.endswith("-----") and line.text.lstrip().startswith("+--"):
                return self._end_trace(self._head)  # the bottom line of an exception group
            return Fate.JOINED
        if (mode is Kind.PYTHON or mode is Kind.NOTEBOOK) and not line.text.startswith("Traceback (most recent call"):
            self._significant(kept)
            return self._end_trace(line.text)
        fate = self._end_trace(self._head)
        return fate if fate is Fate.SPLIT else None

    def take(self, kept: Kept, kind: Kind) -> Fate:
        """Add a line that stands outside a trace, unless it is another failure."""
        if kind in HEADS:
            return self._open_trace(kept, kind)
        if kind is Kind.FRAME:
            return self._frame(kept)
        if kind is Kind.CONNECTOR:
            self._chained = True
            self._significant(kept)
            return Fate.JOINED
        if kind is Kind.ERROR and self._is_another(kept):
            return Fate.CLOSE_BEFORE
        if kind is Kind.ERROR or kind is Kind.AFTERMATH:
            if self._traces and self._tail is None and (self._idle or kept.at != self.at):
                self._tail = len(self.kept)
            self._seen.setdefault(same_words(kept.line.text), (kept.at, len(self.kept)))
            self._significant(kept)
            return Fate.JOINED
        self._quiet(kept, kind)
        return Fate.JOINED

    def split_off(self) -> Gathering:
        """Part with the lines of the second failure; what stays is ready to be closed."""
        at = self._pending if self._pending is not None else len(self.kept)
        other = Gathering([])
        other.kept = self.kept[at:]
        other.last = len(other.kept)
        other._size = sum(len(kept.line.text) for kept in other.kept)
        other._traces = [self._traces.pop()]
        other.at = self.at
        other.touched = self.touched
        words, _, seen_at = other._traces[0]
        other._seen[words] = (seen_at, len(other.kept))
        del self.kept[at:]
        self.last = min(self._pending_last, at)
        self._pending = None
        return other

    def end(self, source: str, facts: Facts) -> tuple[Record, int]:
        """Return the finished record and how many of its last lines it leaves out as quiet."""
        return make_record(self.kept[: self.last], source, facts, self.first, self.truncated), len(
            self.kept
        ) - self.last

    def _interposed(self, line: Line) -> bool:
        """Whether it is a logger's line in the midst of a raw trace, or one of another level in a logged one."""
        return not line.bare and (self._trace_bare or line.level != self._trace_level)

    def _open_trace(self, kept: Kept, kind: Kind) -> Fate:
        self._start_trace(kept, kind, len(self.kept) if self._tail is None else self._tail)
        self._significant(kept)
        text = kept.line.text
        if "\n" in text:  # a logger's line that holds the whole trace
            final = text.rstrip().rpartition("\n")[2] if kind is Kind.PYTHON else text.partition("\n")[0]
            return self._end_trace(final)
        if kind is Kind.KERNEL and KERNEL_END.search(text):
            return self._end_trace(text)
        return Fate.JOINED

    def _frame(self, kept: Kept) -> Fate:
        """Open a trace at its first frame: Java, Node and .NET print what was thrown on the line before, unmarked."""
        before = self.kept[-1] if self.kept else kept
        headed = kept.line.text.lstrip().startswith("at ") and before.line.text.strip() != ""
        start = max(len(self.kept) - 1, 0)
        self._start_trace(before, Kind.FRAME, start if self._tail is None else min(self._tail, start))
        if not headed:
            self._pending = None
        self._significant(kept)
        return Fate.JOINED

    def _start_trace(self, head: Kept, kind: Kind, start: int) -> None:
        if self._traces and not self._chained:
            self._pending = max(start, 1)
            self._pending_last = min(self.last, self._pending)
        self._mode = kind
        self._head = head.line.text
        self._trace_bare = head.line.bare
        self._trace_level = head.line.level
        self._trace_at = head.at
        self._trace_lines = 0

    def _end_trace(self, final: str) -> Fate:
        self._last_mode, self._mode = self._mode, None
        self._tail = None
        self._chained = False
        words, bare, at = same_words(final), self._trace_bare, self._trace_at
        self._seen.setdefault(words, (at, len(self.kept)))
        joined = self._pending is None or self._echoes(words, bare, at) or self._follows(words, final)
        if joined:
            self._pending = None
        self._traces.append((words, bare, at))
        return Fate.JOINED if joined else Fate.SPLIT

    def _follows(self, words: str, final: str) -> bool:
        """Whether a second trace only tells what the first one led to; a process dies but once."""
        if AFTERMATH.search(final, 0, 2000):
            return True
        return self._last_mode is Kind.NATIVE and all(other != words for other, _, _ in self._traces)

    def _echoes(self, words: str, bare: bool, at: datetime | None) -> bool:
        """Whether a second trace is the first one again: from a logger and the interpreter, or twice at once."""
        for other, other_bare, other_at in self._traces:
            if other != words:
                continue
            if other_bare != bare:
                return True
            if at is not None and other_at is not None:
                return abs((at - other_at).total_seconds()) <= _ECHO_SECONDS
        return False

    def _is_another(self, kept: Kept) -> bool:
        """Whether an error line is a failure of its own: the same words at another time, or others much later."""
        words = same_words(kept.line.text)
        before = self._seen.get(words)
        if before is not None:
            then, index = before
            if kept.at is not None and then is not None:
                return abs((kept.at - then).total_seconds()) > _REPEAT_SECONDS
            return len(self.kept) - index > MOST_IDLE
        if kept.at is None or self.at is None:
            return False
        return (kept.at - self.at).total_seconds() > _OTHER_SECONDS

    def _kernel(self, kept: Kept) -> Fate:
        """The kernel prints tables between who asked for memory and who was killed; the kill ends the report."""
        self._significant(kept)
        if KERNEL_END.search(kept.line.text) or self._trace_lines > KERNEL_LINES:
            return self._end_trace(self._head)
        return Fate.JOINED

    def _quiet(self, kept: Kept, kind: Kind) -> None:
        """Keep a line that tells of no failure; unlevelled text right after one may be the rest of its message."""
        text = kept.line.text
        if AFTERMATH.search(text, 0, 2000):
            self._significant(kept)
            return
        self._add(kept)
        self._idle += 1
        if kind is Kind.BENIGN:
            self._calm = True
        elif not self._calm and text.strip():
            self.last = len(self.kept)

    def _significant(self, kept: Kept) -> None:
        self._add(kept)
        self.last = len(self.kept)
        self._idle = 0
        self._calm = False
        if kept.at is not None:
            self.at = kept.at

    def _add(self, kept: Kept) -> None:
        self.kept.append(kept)
        self._size += len(kept.line.text) + 1
        if self._size > _TRIM_AT:
            self._trim()

    def _trim(self) -> None:
        """Drop lines from the middle, so that a failure that never ends stays in bounded memory."""
        start, stop = trim_bounds(self.kept)
        gone = stop - start
        del self.kept[start:stop]
        self.truncated = True
        self._size = sum(len(kept.line.text) + 1 for kept in self.kept)

        def moved(index: int) -> int:
            return index if index <= start else max(start, index - gone)

        self.last = moved(self.last)
        self._pending_last = moved(self._pending_last)
        self._pending = None if self._pending is None else moved(self._pending)
        self._tail = None if self._tail is None else moved(self._tail)
