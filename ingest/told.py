"""What a record has told so far, to know a repeat of its failure from an echo, and both from another failure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from crashpath.ingest.assemble import Kept
from crashpath.ingest.elapsed import Clocks
from crashpath.ingest.opening import AFTERMATH, Kind, same_words

MOST_IDLE = 30
"""Lines of the same writer after the last sign of a failure until its record is closed."""

OTHER_SECONDS = 5.0
"""Seconds in which what only a level marks is told of the same failure."""

_REPEAT_SECONDS = 1.0
_ECHO_SECONDS = 0.05
_MESSAGE = 12
"""Characters of a message that does not stand in two failures by chance."""


class Trace(NamedTuple):
    """A complete trace: the words that it ended in, whether it had no prefix, and its time."""

    words: str
    bare: bool
    at: datetime | None


class Told:
    """The error lines and traces of one record. Words have their numbers taken out."""

    __slots__ = ("_said", "_seen", "clocks", "known", "traces")

    def __init__(self) -> None:
        """Start with nothing."""
        self.traces: list[Trace] = []
        self.known = False  # whether anything but a level says that it is a failure
        self.clocks = Clocks()
        self._said: set[str] = set()
        self._seen: dict[str, tuple[datetime | None, int]] = {}

    def say(self, words: str) -> None:
        """Remember a logger's line that may announce an exception, or tell that one was caught."""
        self._said.add(words)

    def see(self, words: str, at: datetime | None, index: int) -> None:
        """Remember an error line or the end of a trace; ``index`` counts the record's lines."""
        self._seen.setdefault(words, (at, index))

    def is_another(self, kept: Kept, kind: Kind, index: int) -> bool:
        """Whether an error line is a failure of its own: the same words at another time, or others much later.

        What only its level marks is no repeat while a failure that is known is fresh.
        """
        if kind is not Kind.ERROR and kind is not Kind.FAILURE:
            return False
        before = self._seen.get(same_words(kept.line.text))
        if before is None or (self.known and kind is Kind.ERROR):
            return self.clocks.later(kept.at, kept.line.stamp) > OTHER_SECONDS
        then, there = before
        if kept.at is not None and then is not None:
            return (kept.at - then).total_seconds() > _REPEAT_SECONDS
        return index - there > MOST_IDLE

    def echoes(self, trace: Trace) -> bool:
        """Whether a second trace is the first one again: from a logger and the interpreter, or twice at once."""
        for words, bare, at in self.traces:
            if words != trace.words:
                continue
            if bare != trace.bare:
                return True
            if trace.at is not None and at is not None:
                return abs((trace.at - at).total_seconds()) <= _ECHO_SECONDS
        return False

    def follows(self, trace: Trace, final: str, native: bool) -> bool:
        """Whether a second trace only tells what the first one led to, or what a log line has told before it."""
        if AFTERMATH.search(final, 0, 2000):
            return True
        if any(words == trace.words for words, _, _ in self.traces):
            return False
        message = trace.words.partition(": ")[2]
        if len(message) >= _MESSAGE and any(said.endswith(message) for said in self._said):
            return True  # it was caught, logged and raised again
        return native  # a process dies but once
