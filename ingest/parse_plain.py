"""Plain text, the last resort: exception lines that stand without any stack."""

from __future__ import annotations

from collections.abc import Sequence

from crashpath.ingest.model import Thrown
from crashpath.ingest.piece import MAX_PIECES, Format, Piece, line_at
from crashpath.ingest.thrown import bare_exception


def parse_plain(text: str) -> Sequence[Piece]:
    """Read exception lines in order of appearance, each a piece of its own."""
    pieces: list[Piece] = []
    position = 0
    while len(pieces) < MAX_PIECES and (line := bare_exception(text, position, len(text))) is not None:
        thrown = Thrown(line.type, line.message, line_at(text, line.start))
        pieces.append(Piece(Format.PLAIN, line.start, line.end, (thrown,)))
        position = max(line.end, line.start + 1)
    return pieces
