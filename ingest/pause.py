"""What a pause between two signs of failure means: the rest of the one failure, or another.

Code that fails prints what follows from its failure at once: the logger's line, the exception, the abort. What comes
later has waited for something, and says so: for a process that is gone (an exit code, a timeout, a lost connection),
for the next attempt (`attempt 2 of 3`), for those who shut down. So a second cause after a pause that a computer would
not make is another failure, unless its words are of those who waited.
"""

from __future__ import annotations

import re

_FRESH_SECONDS = 0.5
_FRESH_WHOLE_SECONDS = 1.0
_STAGE_SECONDS = 2.0

WAITED = re.compile(
    r"[Tt]imed?[ -]?out|TIMEOUT|TimeoutError|DEADLINE_EXCEEDED|deadline exceeded|[Ww]atchdog|[Nn]o (?:answer|response)"
    r"|did not (?:respond|answer|become|start)|not respond|[Cc]onnection (?:reset|refused|lost|closed|aborted)"
    r"|[Cc]onnection(?:Refused|Reset|Aborted)Error|closed by|[Bb]roken pipe|[Uu]nreachable|[Uu]navailable|UNAVAILABLE"
    r"|[Pp]eer|[Hh]eartbeat|probe failed|NCCL|ProcessGroup|[Cc]ollective|[Aa]bort|OOMKilled|OOM killer"
    r"|[Kk]ill(?:ed|ing)"
    r"|\b50[0234]\b"
)
"""Words of those who waited for a process, a peer or an answer: mostly consequences of a failure before."""

RETRY = re.compile(
    r"\b(?:[Aa]ttempt|[Tt]ry|[Rr]etry(?:ing)?|[Rr]etries)\b[ :#(=]{0,3}\d+|\d+ ?(?:/|of) ?\d+ (?:attempts|tries)"
)
"""A numbered attempt, which is no failure of its own while another is to come."""

WORK = re.compile(
    r"\b(?:20[0-6]|success\w*|succeeded|completed|finished|served|ready|accepted|loaded|handled|done|ok|OK"
    r"|[Bb]ooting|(?:[Rr]es|[Ss])tart(?:ed|ing)|[Ll]oading|[Ll]istening)\b"
)
"""A line below warning that tells of success or of something new: the writer went on with other work."""


def fresh(stamp: str | None, *, traced: bool) -> float:
    """Return the seconds that one failure may take from a line to the next that waited for nothing.

    A complete trace tells all (``traced``). Where lines alone tell, as of native runtimes, each caller adds one while
    it gives up, and frees what it holds. Two lines of one moment are up to a second apart where stamps count whole
    seconds.
    """
    if not traced:
        return _STAGE_SECONDS
    fine = stamp is not None and ("." in stamp[-14:] or "," in stamp[-14:])
    return _FRESH_SECONDS if fine else _FRESH_WHOLE_SECONDS


class Tail:
    """The last error lines of a record, which announce the trace that may come: where they start, after what pause."""

    __slots__ = ("at", "pause")

    def __init__(self) -> None:
        """Start with none."""
        self.at: int | None = None
        self.pause = 0.0

    def reach(self, at: int, pause: float, fresh: float) -> int:
        """Begin at a line of the record where nothing begins yet or it comes after a pause; return where they begin.

        ``pause`` are the seconds since the last sign of failure, ``fresh`` those that are none.
        """
        if self.at is None or pause > fresh:
            self.at, self.pause = at, pause
        return min(at, self.at)

    def forget(self) -> None:
        """Have none any more."""
        self.at = None
        self.pause = 0.0
