"""Cut a stream of lines into records, one a failure; every writer's lines are gathered apart.

A splitter can be started again at any Checkpoint and then gives exactly the records that the first one had still to
give: a checkpoint is where it forgets everything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from crashpath.ingest.assemble import Kept, make_record
from crashpath.ingest.checkpoint import Checkpoint
from crashpath.ingest.clock import parse_stamp
from crashpath.ingest.fate import Fate
from crashpath.ingest.gather import Gathering
from crashpath.ingest.lines import NO_FACTS, Line, decode, peel
from crashpath.ingest.model import Record
from crashpath.ingest.named import Named
from crashpath.ingest.nearby import SILENT_LINES, announced, neighbour
from crashpath.ingest.nottext import NotText, Undecodable
from crashpath.ingest.opening import Kind, kind_of
from crashpath.ingest.plain import PlainText
from crashpath.ingest.whole import SplitOptions, one_record

if TYPE_CHECKING:
    from crashpath.ingest.read import RawLine

CONTEXT_LINES = 20
_BLANK = frozenset(" \t")
SOFT_BYTES = 128 * 1024
"""Bytes after which a checkpoint is given at the first moment that no record is open."""
HARD_BYTES = 4 * 1024 * 1024
"""Bytes after which whatever is open is closed, so that a checkpoint is never far."""

_MOST_WRITERS = 256

Item = Record | Checkpoint | Undecodable


class Splitter:
    """Turns the lines of one source into records. Feed it in order, then close it.

    Counters: ``lines`` fed, ``recorded`` of them in records, ``undecodable``; the rest, ``quiet``, told of no failure.
    ``named`` knows the cohorts that lines name, those without a failure too.
    """

    def __init__(self, source: str, options: SplitOptions, start_offset: int = 0) -> None:
        """Start at byte ``start_offset``: 0, or a Checkpoint's."""
        self.lines = self.recorded = self.undecodable = 0
        self._source = source
        self._options = options
        self._latest = options.latest
        self._end = start_offset
        self.named = Named(options.facts)
        # Only from its very start can a source be told to hold nothing but one plain text.
        self._plain = PlainText() if start_offset == 0 else None
        self._bad: NotText | None = None
        self._stamp: str | None = None  # of the line before
        self._at: datetime | None = None
        self._forget(start_offset)

    @property
    def quiet(self) -> int:
        """Lines that went into no record."""
        return self.lines - self.recorded - self.undecodable

    def feed(self, raw: RawLine) -> Sequence[Item]:
        """Take the next line and return what it completed, mostly nothing."""
        self.lines += 1
        self._end = raw.end
        text = decode(raw.data)
        since = raw.offset - self._since
        if text is None:
            return self._take_bad(raw, since)
        if self._bad is None and since < SOFT_BYTES:
            return self._take(raw, text)
        return (*self._flush_bad(), *self._make_room(raw.offset, since, text), *self._take(raw, text))

    def skip(self, raw: RawLine) -> Sequence[Item]:
        """Pass over a line that is no log line, with a checkpoint before it where nothing was fed since the last."""
        self.lines += 1
        self._end = raw.end
        since = raw.offset - self._since if self._count else SOFT_BYTES
        self._plain = self._plain if self._count else None
        return (*self._flush_bad(), *self._make_room(raw.offset, since, ""))

    def close(self) -> Sequence[Item]:
        """Return the records that are still open, and the last checkpoint."""
        return (*self._flush_bad(), *self._close_all(), *self._close_plain(), Checkpoint(self._end))

    def _forget(self, offset: int) -> None:
        self._since = offset
        self._count = 0
        self._open: dict[str | None, Gathering] = {}
        self._context: dict[str | None, deque[Kept]] = {}
        self._joined: dict[str | None, Gathering] = {}  # writers whose last lines went into another's record
        self._writer: str | None = None
        self._raw: str | None = None

    def _make_room(self, offset: int, since: int, text: str) -> Sequence[Item]:
        """Give a checkpoint before this line where one is due and possible."""
        if since >= HARD_BYTES:
            done: Sequence[Item] = (*self._close_all(), *self._close_plain())
        elif self._plain is not None or since < SOFT_BYTES:
            return ()
        elif not self._open:
            done = ()
        elif "Traceback (most recent call last)" in text and all(item.settled for item in self._open.values()):
            done = self._close_all()
        else:
            return ()
        self._forget(offset)
        return (*done, Checkpoint(offset))

    def _take_bad(self, raw: RawLine, since: int) -> Sequence[Item]:
        self.undecodable += 1
        done = (*self._flush_bad(), *self._make_room(raw.offset, since, "")) if since >= HARD_BYTES else ()
        if self._bad is None:
            self._bad = NotText(raw)
        else:
            self._bad.add(raw)
        return done

    def _flush_bad(self) -> Sequence[Item]:
        bad, self._bad = self._bad, None
        return () if bad is None else (bad.item(),)

    def _take(self, raw: RawLine, text: str) -> Sequence[Item]:
        line = peel(text)
        self._count += 1
        if line[4] is not NO_FACTS:
            self.named.add(line[4])
        if self._open and text[:1] in _BLANK and self._count % 64 and self._frame(raw, line):
            return ()
        key = self._writer_of(line)
        silent = self._close_silent() if self._open and self._count % 64 == 0 else ()
        gathering = self._open.get(key)
        if gathering is None:
            self._start(key, raw, line)
            return silent
        done = self._continue(key, gathering, raw, line)
        return (*silent, *done) if silent or done else ()

    def _frame(self, raw: RawLine, line: Line) -> bool:
        """Take an indented line of the raw trace that is being printed: most lines of most traces."""
        trace = self._open.get(self._raw)
        if trace is None or not trace.in_bare_trace or line[1] is not None or line[2] is not None:
            return False
        trace.touched = self._count
        return trace.indented(tuple.__new__(Kept, (raw[0], raw[1], line, None)))

    def _writer_of(self, line: Line) -> str | None:
        """A line without any prefix belongs to the raw trace that is being printed, else to who wrote last."""
        if line[1] is None and line[2] is None and line[3] is None:
            if self._open:
                raw = self._open.get(self._raw)
                if raw is not None and raw.in_bare_trace:
                    return self._raw
            return self._writer
        self._writer = line.writer
        return line.writer

    def _kept(self, raw: RawLine, line: Line) -> Kept:
        stamp = line[3]
        if stamp != self._stamp:
            self._stamp = stamp
            self._at = parse_stamp(stamp, tz=self._options.tz, latest=self._latest) if stamp else None
        return tuple.__new__(Kept, (raw[0], raw[1], line, self._at))

    def _start(self, key: str | None, raw: RawLine, line: Line) -> None:
        """Look at a line whose writer has no record open."""
        kind = kind_of(line.text, line.level, self._options.is_failure)
        if kind < Kind.ERROR and not (self._joined and self._rest(key, raw, line, kind)):
            self._remember(key, Kept(raw.offset, raw.end, line, None))
        elif kind >= Kind.ERROR:
            self._open_or_join(key, self._kept(raw, line), kind)

    def _open_or_join(self, key: str | None, kept: Kept, kind: Kind) -> None:
        if kind is Kind.ERROR or kind is Kind.AFTERMATH or (kind is Kind.FRAME and key in self._joined):
            other = neighbour(self._open, key, kept, kind, self._count)
            if other and not other.is_of_another_attempt(kept.line):
                other.touched = self._count
                other.take(kept, Kind.AFTERMATH if kind is Kind.ERROR else kind)
                self._joined[key] = other
                return
        self._plain = None
        self._joined.pop(key, None)
        context = [self._stamped(item) for item in self._context.pop(key, ())]
        gathering = announced(self._open, key, kept, kind, self._count) or Gathering()
        gathering = Gathering() if gathering.is_of_another_attempt(kept.line) else gathering
        self._open = {other: item for other, item in self._open.items() if item is not gathering}
        gathering.preface(context)
        gathering.touched = self._count
        gathering.take(kept, kind)
        self._open[key] = gathering
        if gathering.in_bare_trace:
            self._raw = key

    def _rest(self, key: str | None, raw: RawLine, line: Line, kind: Kind) -> bool:
        """Take a line of a writer whose error went into another's record, if it may be the rest of that message."""
        gathering = self._joined.pop(key, None)
        kept = self._kept(raw, line)
        if gathering is None or kind is Kind.BENIGN or gathering.too_far(kept):
            return False
        self._joined[key] = gathering
        gathering.take(kept, kind)
        return True

    def _stamped(self, kept: Kept) -> Kept:
        stamp = kept.line.stamp
        return kept._replace(at=parse_stamp(stamp, tz=self._options.tz, latest=self._latest)) if stamp else kept

    def _remember(self, key: str | None, kept: Kept) -> None:
        context = self._context.get(key)
        if context is None:
            if len(self._context) >= _MOST_WRITERS:
                self._context.clear()
            context = self._context[key] = deque(maxlen=CONTEXT_LINES)
        context.append(kept)
        if self._plain is not None and not self._plain.add(kept):
            self._plain = None

    def _continue(self, key: str | None, gathering: Gathering, raw: RawLine, line: Line) -> Sequence[Item]:
        kept = self._kept(raw, line)
        gathering.touched = self._count
        if line[0][:1] in _BLANK and gathering.indented(kept):
            return ()
        if gathering.too_far(kept):
            return self._close_before(key, raw, line)
        fate = gathering.goes_on(kept)
        if fate is Fate.JOINED:
            return ()
        if fate is Fate.BETWEEN:
            gathering.put_between(kept, kind_of(line.text, line.level, self._options.is_failure))
            return ()
        done: Sequence[Item] = ()
        if fate is Fate.SPLIT:
            done = self._split(key, gathering)
            gathering = self._open[key]
            if gathering.kept[-1].offset == raw.offset:
                return done
        fate = gathering.take(kept, kind_of(line.text, line.level, self._options.is_failure))
        if fate is Fate.CLOSE_BEFORE:
            return (*done, *self._close_before(key, raw, line))
        if fate is Fate.SPLIT:
            return (*done, *self._split(key, gathering))
        if gathering.in_bare_trace:
            self._raw = key
        return done

    def _close_before(self, key: str | None, raw: RawLine, line: Line) -> Sequence[Item]:
        done = self._finish(key)
        self._start(key, raw, line)
        return done

    def _split(self, key: str | None, gathering: Gathering) -> Sequence[Item]:
        other = gathering.split_off()
        done = self._finish(key)
        self._open[key] = other
        return done

    def _finish(self, key: str | None) -> Sequence[Item]:
        gathering = self._open.pop(key)
        if self._joined:
            self._joined = {other: item for other, item in self._joined.items() if item is not gathering}
        parts = gathering.parts()
        self.recorded += sum(part.last for part in parts)
        return tuple(part.record(self._source, self._options.facts) for part in parts)

    def _close_all(self) -> Sequence[Item]:
        return tuple(item for key in list(self._open) for item in self._finish(key))

    def _close_silent(self) -> Sequence[Item]:
        """Close records whose writer has said nothing for long: they would hold up checkpoints."""
        silent = [key for key, item in self._open.items() if self._count - item.touched > SILENT_LINES]
        return tuple(item for key in silent for item in self._finish(key))

    def _close_plain(self) -> Sequence[Item]:
        """Give a text in which nothing looked like a failure as one record, unless its levels say that all is well."""
        plain, self._plain = self._plain, None
        if plain is None or not plain.suspicious:
            return ()
        kept = [self._stamped(item) for item in plain.kept]
        self.recorded += len(kept) + plain.gone
        return (make_record(kept, self._source, self._options.facts, 0, plain.gone > 0),)


def split(lines: Iterator[RawLine], source: str, options: SplitOptions, start_offset: int = 0) -> Iterator[Item]:
    """Yield the records, undecodable stretches and checkpoints of a source, to its end."""
    splitter = Splitter(source, options, start_offset)
    for line in lines:
        yield from splitter.feed(line)
    yield from splitter.close()


__all__ = ["Checkpoint", "Item", "SplitOptions", "Splitter", "Undecodable", "one_record", "split"]
