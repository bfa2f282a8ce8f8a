"""Runs of Python frames in a text, each with its header and its exception, whole or what a log left of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from crashpath.ingest.frames import python_frame
from crashpath.ingest.model import Frame
from crashpath.ingest.thrown import Line, bare_exception, exception_at, prose_at

CUT = "Traceback"
LAST = "(most recent call last)"

# A frame and the source lines below it, which are indented deeper than it or blank.
_FRAME = re.compile(
    r"""^([ \t]*)File[ ]"([^"\n]+)",[ ]line[ ]\d+(?:,[ ]in[ ]([^\n]*))?[ \t]*\n
    (?:(?![ \t]*(?:File[ ]"|Traceback[ ]))(?:\1[ \t]+[^\n]*\n|[ \t]*\n)|\1\[Previous[ ]line[^\n]*\n)*+""",
    re.M | re.X,
)
# A frame of a traced TorchScript graph; these are printed innermost first.
_TRACED = re.compile(r"[ \t]*(?!at )([^\s():]+)\(\d+\): (\S+)[ \t]*\n")
_HEADER_WORDS = re.compile(r"(?:Exception Group |Original )?Traceback(?: of TorchScript)?[^\n]*$")
_HERE = "<--- HERE"  # TorchScript's mark in source that it prints as it stands in the file
_SCRIPT_LINES = 60
_SOURCE_LINES_LOST = 4  # lines that may stand between two frames whose source lost its indentation


@dataclass(slots=True)
class Run:
    """Frames that belong together. ``start`` is that of the header, where there is one; ``body`` that of the frames."""

    start: int
    body: int
    end: int
    frames: list[Frame] = field(default_factory=list)
    headed: bool = False
    torchscript: bool = False
    lead: str = ""
    raised: Line | None = None

    @property
    def after(self) -> int:
        """Return where the text goes on: behind the frames and the exception."""
        return self.end if self.raised is None else max(self.end, self.raised.end)


def find_runs(text: str) -> list[Run]:
    """Return every run of a text, which must end with a newline, in the order of appearance."""
    runs = _with_headers(text, _frame_runs(text))
    floor = 0
    limits = [run.start for run in runs[1:]] + [len(text)]
    for run, limit in zip(runs, limits, strict=False):
        run.raised = _raised(text, run, floor, limit)
        floor = run.after
    return [run for run in runs if run.raised is not None or run.frames]


def _frame_runs(text: str) -> list[Run]:
    runs: list[Run] = []
    frames: list[Frame] = []
    end = -1
    for match in _FRAME.finditer(text):
        start, stop = match.span()
        if start != end and (end < 0 or not _source_between(text, end, start)):
            run = Run(start, start, start)
            runs.append(run)
            frames = run.frames
        frames.append(python_frame(*match.group(2, 3)))
        run.end = end = stop
    return runs


def _source_between(text: str, end: int, start: int) -> bool:
    """Whether only source that lost its indentation stands between two frames."""
    gap = text[end:start]
    if gap.count("\n") > _SOURCE_LINES_LOST and _HERE not in gap:
        return False
    return LAST not in gap and bare_exception(gap, 0, len(gap)) is None


def _with_headers(text: str, runs: list[Run]) -> list[Run]:
    """Give each run its header, and add a run for each header with no ``File`` lines below it."""
    found: list[Run] = []
    waiting = iter(runs)
    run = next(waiting, None)
    position = text.find(LAST)
    while position >= 0:
        if not text.startswith(":", position + len(LAST)):
            position = text.find(LAST, position + 1)  # a notebook's or rich's header
            continue
        line_start = text.rfind("\n", 0, position) + 1
        body = text.find("\n", position) + 1
        while run is not None and run.body < body:
            found.append(run)
            run = next(waiting, None)
        if run is not None and not text[body : run.body].strip():
            headed, run = run, next(waiting, None)
        else:
            headed = _traced_run(text, body)
        _read_header(headed, text[line_start:position], line_start)
        found.append(headed)
        position = text.find(LAST, max(body - 1, headed.end - 1))
    if run is not None:
        found.append(run)
    return [*found, *waiting]


def _traced_run(text: str, body: int) -> Run:
    run = Run(body, body, body)
    while (match := _TRACED.match(text, run.end)) is not None:
        run.frames.insert(0, python_frame(match.group(1), match.group(2)))
        run.end = match.end()
    return run


def _read_header(run: Run, head: str, start: int) -> None:
    run.headed = True
    run.start = start
    run.torchscript = "of TorchScript" in head
    run.lead = _HEADER_WORDS.sub("", head).strip(" \t,:+|-")


def _raised(text: str, run: Run, floor: int, limit: int) -> Line | None:
    """Find the exception of a run: the line below it; without indentation, soon below it; of a cut run, above it."""
    position = run.end
    while position < limit and text[position] == "\n":
        position += 1
    if position < limit:
        apart = bool(run.frames) and text[run.end - 2 : run.end] == "\n\n" and not _double_spaced(text, run)
        lines = _SCRIPT_LINES if run.torchscript else 1 if apart else _SOURCE_LINES_LOST
        soon = _lines_down(text, position, lines, limit)
        near = bare_exception(text, position, soon, limit)
        if near is not None and (near.start <= position or run.frames):
            return near
        if not apart and (line := exception_at(text, position, limit)) is not None:
            return line
        if not apart and run.frames and (prose := prose_at(text, position)):
            return Line(CUT, prose, position, position + len(prose))
    return _raised_above(text, run, floor)


def _raised_above(text: str, run: Run, floor: int) -> Line | None:
    """Read the exception of a cut run from the words on its header's line, or from the line above its frames."""
    if run.lead:
        line = exception_at(run.lead, 0, len(run.lead))
        kind, message = (line.type, line.message) if line is not None else (CUT, run.lead)
        return Line(kind, message, run.start, run.start)
    if run.headed or not run.frames:
        return None
    above = text[max(floor, run.start - 2000) : run.start].rstrip()
    line = bare_exception(above, above.rfind("\n") + 1, len(above))
    if line is None:
        return None
    start = max(floor, run.start - 2000) + line.start
    return Line(line.type, line.message, start, start)


def _double_spaced(text: str, run: Run) -> bool:
    return len(run.frames) > 1 and text.count("\n\n", run.body, run.end) * 3 > text.count("\n", run.body, run.end)


def _lines_down(text: str, position: int, lines: int, limit: int) -> int:
    for _ in range(lines):
        position = text.find("\n", position) + 1
        if position <= 0 or position >= limit:
            return limit
    return position
