"""What a drill saw, apart by where it comes from: only what does not come from the runtime under test is proof."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crashpath.coverage.drillstage import Asked
from crashpath.coverage.overhear import alive
from crashpath.coverage.strikes import read_marks
from crashpath.runtime.messages import RemoteError

_FRAME = re.compile(r"^\s+File .*$", re.MULTILINE)


@dataclass(slots=True)
class Seen:
    """What an attack saw. ``since`` is the number of the first event that it may have caused.

    ``notes`` are observations: marks of a strike, ``/proc``, exit statuses, files, what a library says when it is asked
    apart. ``output`` is what the struck processes wrote. ``told`` are the runtime's own words, for people alone.
    ``hits`` of a strike were counted in its marks, and ``wanted`` are as many as there must be.
    """

    since: int
    wanted: int = 0
    hits: int = 0
    asked: list[Asked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    output: str = ""
    trace: str = ""

    def note(self, text: str) -> None:
        """Keep an observation, once."""
        if text and text not in self.notes:
            self.notes.append(text)

    def hear(self, text: str) -> None:
        """Keep what the runtime told, once."""
        if text and text not in self.told:
            self.told.append(text)

    @property
    def printed(self) -> str:
        """What the struck process said: its output, or the traceback of the library's error."""
        return self.output or self.trace

    def proves(self, pattern: str) -> bool:
        """Whether an observation matches; an empty pattern is proof of nothing.

        Names of functions and files in a dump of stacks are no words of anybody's.
        """
        observed = "\n".join((*self.notes, _FRAME.sub("", self.output)))
        return bool(pattern) and re.search(pattern, observed) is not None


def note_marks(seen: Seen, marks: Path, how: Callable[[int], str]) -> None:
    """Say which processes a strike reached, how it came back, and how those that are gone ended, as ``how`` tells."""
    found = read_marks(marks)
    seen.hits = len(found.pids)
    for pid in found.pids:
        seen.note(f"hit {'this process' if pid == os.getpid() else 'a worker'}")
        if pid != os.getpid() and not alive(pid):
            seen.note(f"that worker {how(pid) or 'is gone, nobody saw how'}")
    if len(found.pids) > len(found.ended):
        seen.note("hit, and not back")
    for ended in found.ended:
        seen.note(f"ended with {ended}" if ":" in ended else f"ended {ended}")


def words(cause: BaseException | None) -> str:
    """Return type and message of the library's error below a failure of the runtime, or ``""``."""
    library = None if cause is None else cause.__cause__
    if library is None:
        return ""
    if isinstance(library, RemoteError):
        return "" if library.type.startswith("crashpath.runtime") else str(library)
    if type(library).__module__.startswith("crashpath.runtime"):
        return ""
    return f"{type(library).__name__}: {library}"


def trace(cause: BaseException) -> str:
    """Return the traceback of the library's error: that of the worker where it was raised there."""
    library = cause.__cause__
    if library is None:
        return ""
    return library.trace if isinstance(library, RemoteError) else "".join(traceback.format_exception(library))
