"""What a record has told so far, to know a repeat of its failure from an echo, and both from another failure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from crashpath.ingest.assemble import Kept
from crashpath.ingest.elapsed import Clocks
from crashpath.ingest.opening import AFTERMATH, Kind, same_words
from crashpath.ingest.pause import RETRY, WAITED, WORK, fresh
from crashpath.ingest.prefix import ERROR_LEVELS

MOST_IDLE = 30
"""Lines of the same writer after the last sign of a failure until its record is closed."""

MOST_WORDS = 512
"""Different lines that are remembered of one record, the last ones: a record that never ends stays bounded."""

OTHER_SECONDS = 5.0
"""Seconds in which what only a level marks, or who waited, is told of the same failure."""

_REPEAT_SECONDS = 1.0
_ECHO_SECONDS = 0.05
_MESSAGE = 12
"""Characters of a message that does not stand in two failures by chance."""


class Trace(NamedTuple):
    """A complete trace: the words that it ended in, whether it had no prefix, its time, whether a process died."""

    words: str
    bare: bool
    at: datetime | None
    native: bool = False


class Told:
    """The error lines and traces of one record. Words have their numbers taken out."""

    __slots__ = ("_said", "_seen", "clocks", "known", "loud", "traces", "worked")

    def __init__(self) -> None:
        """Start with nothing."""
        self.traces: list[Trace] = []
        self.known = False  # whether anything but a level says that it is a failure
        self.loud = False  # whether an error line, or one without level, told of it; lower levels only foretell
        self.worked = False  # whether the writer went on with other work after the last sign of the failure
        self.clocks = Clocks()
        self._said: dict[str, datetime | None] = {}
        self._seen: dict[str, tuple[datetime | None, int]] = {}

    def fresh(self, stamp: str | None) -> float:
        """Return the seconds that another stage of the same failure may come later, with nothing to wait for."""
        return fresh(stamp, traced=bool(self.traces))

    @property
    def happened(self) -> bool:
        """Whether it is told of as a failure that has happened, so that another cause is another failure."""
        return bool(self.traces) or (self.known and self.loud)

    def say(self, words: str, kept: Kept) -> None:
        """Remember a logger's line that may announce an exception, or tell that one was caught."""
        self._said[words] = kept.at
        _forget(self._said)
        self.loud |= kept.line.level is None or kept.line.level in ERROR_LEVELS

    def see(self, words: str, at: datetime | None, index: int) -> None:
        """Remember an error line or the end of a trace; ``index`` counts the record's lines."""
        self._seen.setdefault(words, (at, index))
        _forget(self._seen)

    def is_another(self, kept: Kept, kind: Kind, index: int) -> bool:
        """Whether an error line is a failure of its own: the same words at another time, or others after a pause.

        What only its level marks is no repeat while a failure that is known is fresh.
        """
        if kind is not Kind.ERROR and kind is not Kind.FAILURE:
            return False
        before = self._seen.get(same_words(kept.line.text))
        if before is None or (self.known and kind is Kind.ERROR):
            return self._is_other(kept, kind)
        if kept.line.level not in ERROR_LEVELS and RETRY.search(kept.line.text, 0, 400):
            return False
        then, there = before
        if kept.at is not None and then is not None:
            return (kept.at - then).total_seconds() > _REPEAT_SECONDS
        return index - there > MOST_IDLE

    def _is_other(self, kept: Kept, kind: Kind) -> bool:
        """Whether an error line with words of its own comes too late for what was told before."""
        pause = self.clocks.later(kept.at, kept.line.stamp)
        if pause > OTHER_SECONDS or pause <= self.fresh(kept.line.stamp):
            return pause > OTHER_SECONDS
        if kind is Kind.ERROR or not self.happened:
            return self.worked
        return WAITED.search(kept.line.text, 0, 400) is None and not self._was_said(kept.line.text, kept.at)

    def is_apart(self, pause: float, stamp: str | None) -> bool:
        """Whether a trace may be another failure than what was told of this one, ``pause`` seconds before."""
        if self.traces or pause > OTHER_SECONDS:
            return True
        return pause > self.fresh(stamp) and (self.happened or self.worked)

    def went_on(self, kept: Kept) -> None:
        """See an ordinary line: after a pause, one that tells of work says that the writer is over the failure."""
        late = kept.at is not None and self.clocks.later(kept.at, kept.line.stamp) > self.fresh(kept.line.stamp)
        self.worked |= late and WORK.search(kept.line.text, 0, 400) is not None

    def is_same(self, trace: Trace, final: str, pause: float, stamp: str | None) -> bool:
        """Whether a second trace is of the failure that is known; ``final`` is the line that it ended in."""
        return self._echoes(trace) or self._follows(trace, final, pause, stamp)

    def _echoes(self, trace: Trace) -> bool:
        """Whether a second trace is the first one again: from a logger and the interpreter, or twice at once."""
        for words, bare, at, _ in self.traces:
            if words != trace.words:
                continue
            if bare != trace.bare:
                return True
            if trace.at is not None and at is not None:
                return abs((trace.at - at).total_seconds()) <= _ECHO_SECONDS
        return False

    def _follows(self, trace: Trace, final: str, pause: float, stamp: str | None) -> bool:
        """Whether a trace only tells what was told before, or what that led to; ``pause`` seconds after it."""
        if AFTERMATH.search(final, 0, 2000):
            return True
        if any(earlier.words == trace.words for earlier in self.traces):
            return False
        if self._was_said(trace.words, trace.at):
            return True  # it was caught, logged and raised again
        if trace.native:  # a process dies but once, and soon
            died = any(earlier.native for earlier in self.traces) or self.worked
            return pause <= (self.fresh(stamp) if died else OTHER_SECONDS)
        return not self.traces and pause <= OTHER_SECONDS and WAITED.search(final, 0, 400) is not None

    def _was_said(self, words: str, at: datetime | None) -> bool:
        """Whether a logger has said this message just before."""
        message = same_words(words.partition(": ")[2] or words)
        if len(message) < _MESSAGE:
            return False
        for said, then in self._said.items():
            if message in said:
                return at is None or then is None or (at - then).total_seconds() <= OTHER_SECONDS
        return False


def _forget(lines: dict[str, Any]) -> None:
    """Drop the oldest one where there are too many."""
    if len(lines) > MOST_WORDS:
        del lines[next(iter(lines))]
