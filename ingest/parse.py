"""Reads a record's text with every format's parser and joins what they found into one ``Parsed``.

``PARSERS`` is in order of how much a format tells: of several in one record, the first that found an exception names
the record. A piece that stands inside another (a Python traceback in a Java message) is its cause and comes before
it; pieces side by side are in order of appearance. Plain text is read only where nothing else found an exception.
"""

from __future__ import annotations

from crashpath.ingest.model import Parsed, Thrown
from crashpath.ingest.parse_plain import parse_plain
from crashpath.ingest.parse_python import parse_python
from crashpath.ingest.piece import Format, Parser, Piece

PARSERS: tuple[Parser, ...] = (
    parse_python,
    parse_plain,
)


def parse(text: str) -> Parsed:
    """Read a record's text, which has no prefixes any more. What no parser knows is ``plain`` with an empty chain."""
    pieces: list[Piece] = []
    for parser in PARSERS:
        if parser is parse_plain and any(piece.chain for piece in pieces):
            continue
        pieces.extend(parser(text))
    telling = next((piece for piece in pieces if piece.chain), None) or next(iter(pieces), None)
    return Parsed(
        format=telling.format if telling is not None else Format.PLAIN,
        chain=_without_repeats(_causes_first(pieces)),
        signal=next((piece.signal for piece in pieces if piece.signal), None),
        exit_code=next((piece.exit_code for piece in pieces if piece.exit_code is not None), None),
    )


def _causes_first(pieces: list[Piece]) -> list[Thrown]:
    """Flatten the pieces: one inside another goes before it, the others by where they stand."""
    chain: list[Thrown] = []
    around: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.start, -p.end)):
        while around and piece.start >= around[-1].end:
            chain.extend(around.pop().chain)
        around.append(piece)
    while around:
        chain.extend(around.pop().chain)
    return chain


def _without_repeats(chain: list[Thrown]) -> tuple[Thrown, ...]:
    """Keep each exception once, where it stands first, with the frames that any of its repeats has."""
    if len(chain) < 2:
        return tuple(chain)
    kept: dict[tuple[str, str], Thrown] = {}
    for thrown in chain:
        key = (thrown.type, thrown.message)
        earlier = kept.get(key)
        if earlier is None:
            kept[key] = thrown
        elif not earlier.frames and thrown.frames:
            kept[key] = Thrown(thrown.type, thrown.message, earlier.line, thrown.frames)
    return tuple(kept.values())
