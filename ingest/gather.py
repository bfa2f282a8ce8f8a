"""A record that is still growing: the lines of one writer from the first sign of a failure on."""

from __future__ import annotations

from datetime import datetime

from crashpath.ingest.assemble import RECORD_BYTES, Kept, attempt_named, make_record, trim_bounds
from crashpath.ingest.fate import Fate
from crashpath.ingest.lines import Line
from crashpath.ingest.model import Facts, Record
from crashpath.ingest.open_trace import OpenTrace, final_line
from crashpath.ingest.opening import AFTERMATH, INTERPRETER, Kind, same_words, trace_goes_on
from crashpath.ingest.pause import Tail
from crashpath.ingest.told import MOST_IDLE, Told

MOST_SECONDS = 60.0
_TRIM_AT = 2 * RECORD_BYTES


class Gathering:
    """The lines of one failure so far, and where in a trace they are."""

    __slots__ = (
        "_attempt", "_calm", "_chained", "_idle", "_pending", "_pending_last", "_size", "_stamp", "_tail", "_told",
        "_trace", "at", "first", "kept", "last", "marked", "touched", "truncated",
    )  # fmt: skip

    def __init__(self) -> None:
        """Start with nothing."""
        self.kept: list[Kept] = []
        self.first = 0  # of the failure itself
        self.last = 0  # kept[:last] is the record, the rest only waits for aftermath
        self.at: datetime | None = None
        self.touched = 0  # the splitter's count at its last line
        self.marked = 0  # and at its last sign of the failure
        self.truncated = False
        self._size = 0
        self._attempt: str | None = None
        self._trace = OpenTrace()
        self._chained = False
        self._idle = 0
        self._calm = False
        self._pending: int | None = None
        self._pending_last = 0
        self._stamp: str | None = None
        self._tail = Tail()
        self._told = Told()

    @property
    def in_bare_trace(self) -> bool:
        """Whether lines without any prefix belong here for now."""
        return self._trace.kind is not None and self._trace.bare

    @property
    def settled(self) -> bool:
        """Whether its trace is complete, so that a new trace would start a new record."""
        return self._trace.kind is None and bool(self._told.traces) and not self._chained

    @property
    def traceless(self) -> bool:
        """Whether it has no trace so far, so that one may still come."""
        return self._trace.kind is None and not self._told.traces

    def preface(self, context: list[Kept]) -> None:
        """Put in the lines that the writer of the next line said just before."""
        if not self.kept:
            self.kept = context
            self.first = len(context)
        elif context:
            self.first += sum(1 for kept in context if kept.offset < self.kept[self.first].offset)
            self.kept = sorted(self.kept + context, key=lambda kept: kept.offset)
            self.last = len(self.kept)
        self._size += sum(len(kept.line.text) + 1 for kept in context)

    def too_far(self, kept: Kept) -> bool:
        """Tell whether a line comes too late for the record."""
        return self._idle >= MOST_IDLE or self.later(kept) > MOST_SECONDS

    def later(self, kept: Kept) -> float:
        """Return how many seconds a line comes after the last sign of the failure."""
        return self._told.clocks.later(kept.at, kept.line.stamp)

    def indented(self, kept: Kept) -> bool:
        """Add an indented line if it is of the open trace: `too_far` and `goes_on` in short, for most lines of most."""
        line = kept[2]
        if not self._trace.indents or self._idle >= MOST_IDLE or line[0].endswith("-----"):
            return False
        if (line[3] or line[2] or line[1]) and self._trace.interposed(line):
            return False
        if kept.at is not None and kept.at != self.at:
            if self.later(kept) > MOST_SECONDS:
                return False
            self.at = kept.at
            self._told.clocks.saw(kept.at, kept.line.stamp)
        self._trace.lines += 1
        self._add(kept)
        self.last = len(self.kept)
        self.marked = self.touched
        self._idle = 0
        self._calm = False
        return True

    def goes_on(self, kept: Kept) -> Fate | None:
        """Add the next line of an open trace; ``None`` where no trace is open or the line is not of it."""
        trace = self._trace
        if trace.kind is None:
            return None
        line = kept.line
        if trace.interposed(line):
            if not trace.endless or self.later(kept) <= self._told.fresh(line.stamp):
                return Fate.BETWEEN
            return self._end_before()
        trace.lines += 1
        if trace.kind is Kind.KERNEL or trace_goes_on(line.text, trace.kind):
            self._significant(kept)
            return self._end_trace(trace.head) if trace.ends_at(line.text) else Fate.JOINED
        if trace.ends_under(line.text):
            self._significant(kept)
            return self._end_trace(line.text)
        return self._end_before()

    def _end_before(self) -> Fate | None:
        """End the trace before a line that is not of it."""
        fate = self._end_trace(self._trace.head)
        return fate if fate is Fate.SPLIT else None

    def put_between(self, kept: Kept, kind: Kind) -> None:
        """Add a line that stands in the midst of a trace and is not of it."""
        self._add(kept)
        self._idle += 1
        if kind >= Kind.ERROR:
            self.last = len(self.kept)

    def is_of_another_attempt(self, line: Line) -> bool:
        """Tell whether a line names another attempt than the failure does: two of them never fail in one record."""
        return self._attempt is not None and attempt_named(line) not in (None, self._attempt)

    def is_another(self, kept: Kept, kind: Kind) -> bool:
        """Whether an error line is a failure of its own."""
        return self._told.is_another(kept, kind, len(self.kept))

    def take(self, kept: Kept, kind: Kind) -> Fate:
        """Add a line that stands outside a trace, unless it is another failure."""
        if kind >= Kind.ERROR and self.is_of_another_attempt(kept.line):
            return Fate.CLOSE_BEFORE
        if kind >= Kind.PYTHON:
            return self._open_trace(kept, kind)
        if kind is Kind.FRAME:
            return self._frame(kept)
        if kind is Kind.CONNECTOR:
            self._chained = True
            self._significant(kept)
            return Fate.JOINED
        if self.is_another(kept, kind):
            return Fate.CLOSE_BEFORE
        if Kind.ERROR <= kind <= Kind.AFTERMATH:
            self._told.known |= kind is not Kind.ERROR
            if self._idle or kept.at != self.at:
                self._lengthen(kept)
            words = same_words(kept.line.text)
            self._told.say(words, kept)
            self._told.see(words, kept.at, len(self.kept))
            self._significant(kept)
            return Fate.JOINED
        self._quiet(kept, kind)
        return Fate.JOINED

    def _lengthen(self, kept: Kept) -> None:
        """Let what may announce a trace begin at an error line, where nothing does or it comes after a pause."""
        if self._told.traces or self.later(kept) > self._told.fresh(kept.line.stamp):
            self._tail.reach(len(self.kept), self.later(kept), self._told.fresh(kept.line.stamp))

    def split_off(self) -> Gathering:
        """Part with the lines of the second failure; what stays is ready to be closed."""
        at = self._pending if self._pending is not None else len(self.kept)
        other = Gathering()
        other.kept = self.kept[at:]
        other.last = len(other.kept)
        other._size = sum(len(kept.line.text) for kept in other.kept)
        trace = self._told.traces.pop()
        other._told.traces.append(trace)
        other._told.see(trace.words, trace.at, len(other.kept))
        other.at = self.at
        other._told.known = True
        other.touched, other.marked = self.touched, self.marked
        other._told.clocks = self._told.clocks
        del self.kept[at:]
        self.last = min(self._pending_last, at)
        self._pending = None
        return other

    def parts(self) -> tuple[Gathering, ...]:
        """Return what is finished as this ends: mostly itself alone, or two where a second trace was still open."""
        if self._trace.kind is not None and self._end_trace(self._trace.head) is Fate.SPLIT:
            return (self, self.split_off())
        return (self,)

    def record(self, source: str, facts: Facts) -> Record:
        """Return the finished record, without the lines at its end that only waited for more."""
        return make_record(self.kept[: self.last], source, facts, self.first, self.truncated)

    def _open_trace(self, kept: Kept, kind: Kind) -> Fate:
        self._start_trace(kept, kind, len(self.kept))
        self._significant(kept)
        text = kept.line.text
        if "\n" in text:  # a logger's line that holds the whole trace
            final = final_line(text) if kind is Kind.PYTHON else text.partition("\n")[0]
            return self._end_trace(final)
        return self._end_trace(text) if kind is Kind.KERNEL and self._trace.ends_at(text) else Fate.JOINED

    def _frame(self, kept: Kept) -> Fate:
        """Open a trace at its first frame: Java, Node and .NET print what was thrown on the line before, unmarked."""
        start = len(self.kept) - 1
        while start > len(self.kept) - 4 and start > 0 and self.kept[start].line.level != kept.line.level:
            start -= 1  # over another thread's lines in between
        start = max(start, 0)
        before = self.kept[start] if self.kept else kept
        headed = kept.line.text.lstrip().startswith("at ") and before.line.text.strip() != ""
        self._start_trace(before, Kind.FRAME, start)
        if not headed:
            self._pending = None
        self._significant(kept)
        return Fate.JOINED

    def _start_trace(self, head: Kept, kind: Kind, start: int) -> None:
        if head.line.text.startswith(INTERPRETER) and (not self._idle or "interpreter" in self.kept[-1].line.text):
            self._chained = True  # it is the rest of a message
        start = self._tail.reach(start, self.later(head), self._told.fresh(head.line.stamp))
        if not self._chained and self._told.is_apart(self._tail.pause, head.line.stamp):
            self._pending = max(start, 1)
            self._pending_last = min(self.last, self._pending)
        self._told.known = True
        self._trace.start(head, kind)

    def _end_trace(self, final: str) -> Fate:
        trace, pause = self._trace.end(final), self._tail.pause
        self._tail.forget()
        self._chained = False
        self._told.see(trace.words, trace.at, len(self.kept))
        joined = self._pending is None or self._told.is_same(trace, final, pause, self._stamp)
        if joined:
            self._pending = None
        self._told.traces.append(trace)
        return Fate.JOINED if joined else Fate.SPLIT

    def _quiet(self, kept: Kept, kind: Kind) -> None:
        """Keep a line that tells of no failure; unlevelled text right after one may be the rest of its message."""
        text = kept.line.text
        if AFTERMATH.search(text, 0, 2000):
            self._significant(kept)
            return
        self._add(kept)
        self._idle += 1
        if kept.line.level == "WARNING":
            self._told.say(same_words(text), kept)
        if kind is Kind.BENIGN:
            self._calm = True
            self._told.went_on(kept)
        elif not self._calm and text.strip():
            self.last = len(self.kept)

    def _significant(self, kept: Kept) -> None:
        self._add(kept)
        self.last = len(self.kept)
        self._idle = 0
        self._calm = self._told.worked = False
        self.marked = self.touched
        self._attempt = self._attempt or attempt_named(kept.line)
        if kept.at is not None:
            self.at = kept.at
            self._stamp = kept.line.stamp
            self._told.clocks.saw(kept.at, kept.line.stamp)

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
        self._tail.at = None if self._tail.at is None else moved(self._tail.at)
