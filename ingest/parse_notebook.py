"""Python tracebacks in other layouts: IPython and Jupyter, rich's boxes, and pybind11's ``At:`` list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import python_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at
from crashpath.ingest.thrown import MAX_CHARACTERS, exception_at

_OTHER_HEADER = re.compile(r"Traceback \(most recent call last\)(?!:)")
_IPYTHON_HEAD = re.compile(r"^[ \t]*([A-Za-z_][\w.]*)[ \t]{2,}Traceback \(most recent call last\)[ \t]*$", re.M)
_IPYTHON_FRAME = re.compile(
    r"^(?:File[ ])?(?:"
    r"(?P<cell>(?:Cell|Input)?[ ]?In[ ]?\[[ \d]*\])(?:,[ ]line[ ]\d+|,[ ]in[ ][^\n]*)?"
    r"|(?P<path>(?:[~/.<]|[A-Za-z]:[\\/])[^\n:]*?)(?::\d+)?(?:,)?[ ]in[ ](?P<function>[^\n]*)"
    r")[ \t]*$",
    re.M,
)
_BOX_HEAD = re.compile(r"^[ \t|]*[╭+][─-]+[ ]*Traceback[ ]\(most[ ]recent[ ]call[ ]last\)[ ]*[─-]+[╮+][ \t]*$", re.M)
_BOX_FRAME = re.compile(
    r"^[ \t]*[│|][ ]*((?:[~/.<]|[A-Za-z]:[\\/])[^\n:]*?(?:\n[ \t]*[│|][ ]*[^\s│|][^\n:]*?)?):\d+[ ]+in[ ]+([^\s│|]+)",
    re.M,
)
_BOX_END = re.compile(r"^[ \t]*[╰+][─-]+[╯+][ \t]*\n", re.M)
_AT_HEAD = re.compile(r"^At:[ \t]*\n((?:[ \t]+[^\n]+\(\d+\): [^\n]*(?:\n|$))+)", re.M)
_RAISED = re.compile(r"\b((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|Exit)): ?([^\n]*)$", re.M)
_AT_FRAME = re.compile(r"^[ \t]+([^\n]+)\(\d+\): ([^\n]*)", re.M)


def parse_notebook(text: str) -> Sequence[Piece]:
    """Read the tracebacks that IPython, rich and pybind11 lay out in their own ways."""
    pieces: list[Piece] = []
    if _OTHER_HEADER.search(text) is not None:
        pieces += _ipython(text)
        pieces += _boxes(text)
    if "At:" in text:
        pieces += _at_lists(text)
    return pieces


def _ipython(text: str) -> list[Piece]:
    heads = list(_IPYTHON_HEAD.finditer(text))
    pieces: list[Piece] = []
    for index, head in enumerate(heads):
        limit = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        kind = head.group(1)
        raised = re.compile(rf"^(?:[\w.]*\.)?{re.escape(kind)}(?=:|[ \t]*$)", re.M).search(text, head.end(), limit)
        stop = raised.start() if raised is not None else limit
        frames = tuple(_ipython_frame(match) for match in _IPYTHON_FRAME.finditer(text, head.end(), stop))
        line = exception_at(text, stop, limit) if raised is not None else None
        message, at, end = (line.message, line.start, line.end) if line is not None else ("", head.start(), limit)
        pieces.append(Piece(Format.PYTHON, head.start(), end, (Thrown(kind, message, line_at(text, at), frames),)))
    return pieces


def _ipython_frame(match: re.Match[str]) -> Frame:
    if match.group("cell"):
        return python_frame("<ipython-input>", "<module>")
    function = match.group("function")
    return python_frame(match.group("path"), "<module>" if function.startswith("<") else function)


def _boxes(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    for head in _BOX_HEAD.finditer(text):
        end = _BOX_END.search(text, head.end())
        stop = end.start() if end is not None else len(text)
        frames = tuple(
            python_frame(re.sub(r"[ \t]*[│|]?[ \t]*\n[ \t]*[│|][ \t]*", "", match.group(1)), match.group(2))
            for match in _BOX_FRAME.finditer(text, head.end(), stop)
        )
        line = exception_at(text, end.end(), len(text)) if end is not None else None
        if line is not None:
            thrown = Thrown(line.type, line.message, line_at(text, line.start), frames)
            pieces.append(Piece(Format.PYTHON, head.start(), line.end, (thrown,)))
        elif frames:
            thrown = Thrown("Traceback", "", line_at(text, head.start()), frames)
            pieces.append(Piece(Format.PYTHON, head.start(), stop, (thrown,)))
    return pieces


def _at_lists(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    for head in _AT_HEAD.finditer(text):
        frames = [python_frame(*match.group(1, 2)) for match in _AT_FRAME.finditer(head.group(1))]
        frames.reverse()
        floor = max(0, head.start() - MAX_CHARACTERS)
        raised = list(_RAISED.finditer(text, floor, head.start()))
        if raised:
            kind, at = raised[-1].group(1), raised[-1].start(1)
            message = (raised[-1].group(2) + text[raised[-1].end() : head.start()]).strip()
        else:
            kind, message, at = "Traceback", "", head.start()
        pieces.append(Piece(Format.PYTHON, at, head.end(), (Thrown(kind, message, line_at(text, at), tuple(frames)),)))
    return pieces
