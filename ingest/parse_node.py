"""JavaScript errors as Node prints them, with ``[cause]`` and the errors of an ``AggregateError``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import node_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at
from crashpath.ingest.thrown import MAX_CHARACTERS

_AT = re.compile(
    r"^[ \t]+at (?:((?:async |new )*[^\n]*?) \()?"
    r"((?:file://|node:|[A-Za-z]:[\\/]|/|\w)[^()\n]*?:\d+(?::\d+)?|native|<anonymous>|index \d+)\)?(?: \{|,)?[ \t]*\n"
    r"|^[ \t]+\.{3} \d+ lines matching [^\n]*\n|^[ \t]+\[\.{3} lines matching [^\n]*\n",
    re.M,
)
_HEAD = re.compile(
    r"^([ \t]*)(\[cause\]: |Uncaught |\(node:\d+\) \w+: |[^\n]*?(?<![\w.$]))\[?"
    r"((?:[A-Za-z_$][\w$]*)?(?:Error|Exception|Rejection))(?: \[[\w-]+\])?(?:: ([^\n]*)|(?=[ \t]*$))",
    re.M,
)
_AGGREGATE = re.compile(r"^[ \t]*\[?(AggregateError): ?([^\n\]]*)\]? \{\n[ \t]*\[errors\]: \[", re.M)


def parse_node(text: str) -> Sequence[Piece]:
    """Read each error with its stack; a ``[cause]`` goes before the error that it caused."""
    if "   at " not in text and "\tat " not in text:
        return ()
    if not text.endswith("\n"):
        text += "\n"
    pieces: list[Piece] = []
    for start, end, frames in _blocks(text):
        floor = pieces[-1].end if pieces else 0
        head = _head(text, max(floor, start - MAX_CHARACTERS), start)
        if head is None:
            continue
        message = ((head.group(4) or "") + text[head.end() : start].rstrip()).strip()
        thrown = Thrown(head.group(3), message, line_at(text, head.start(3)), frames)
        if head.group(2) == "[cause]: " and pieces:
            last = pieces[-1]
            pieces[-1] = Piece(Format.NODE, last.start, end, (thrown, *last.chain))
        else:
            pieces.append(Piece(Format.NODE, head.start(), end, (thrown,)))
    return _aggregated(text, pieces)


def _blocks(text: str) -> list[tuple[int, int, tuple[Frame, ...]]]:
    blocks: list[tuple[int, int, list[Frame]]] = []
    for match in _AT.finditer(text):
        frame = None if match.group(2) is None else node_frame(match.group(1) or "", match.group(2))
        if blocks and blocks[-1][1] == match.start():
            begin, _, frames = blocks.pop()
        else:
            begin, frames = match.start(), []
        if frame is not None:
            frames.insert(0, frame)
        blocks.append((begin, match.end(), frames))
    return [(begin, end, tuple(frames)) for begin, end, frames in blocks if frames]


def _head(text: str, start: int, stop: int) -> re.Match[str] | None:
    heads = list(_HEAD.finditer(text, start, stop))
    return heads[-1] if heads else None


def _aggregated(text: str, pieces: list[Piece]) -> list[Piece]:
    """Put an ``AggregateError`` behind the errors that it gathers."""
    if "[errors]: [" not in text or not pieces:
        return pieces
    head = _AGGREGATE.search(text)
    if head is None:
        return pieces
    inner = [piece for piece in pieces if piece.start > head.start()]
    outer = Thrown("AggregateError", head.group(2).strip(), line_at(text, head.start()))
    chain = (*(thrown for piece in inner for thrown in piece.chain), outer)
    gathered = Piece(Format.NODE, head.start(), max((piece.end for piece in inner), default=head.end()), chain)
    return [piece for piece in pieces if piece.start <= head.start()] + [gathered]
