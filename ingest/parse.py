"""Reads a record's text with every format's parser and joins what they found into one ``Parsed``.

``PARSERS`` is in order of how much a format tells: of several in one record, the first that found an exception names
the record. A piece that stands inside another (a Python traceback in a Java message) is its cause and comes before
it; pieces side by side are in order of appearance. Plain text is read only where nothing else found an exception.
"""

from __future__ import annotations

from crashpath.ingest.model import Parsed, Thrown
from crashpath.ingest.parse_dotnet import parse_dotnet
from crashpath.ingest.parse_exit import parse_exit
from crashpath.ingest.parse_faulthandler import parse_faulthandler
from crashpath.ingest.parse_gdb import parse_gdb
from crashpath.ingest.parse_go import parse_go
from crashpath.ingest.parse_group import parse_group
from crashpath.ingest.parse_java import parse_java
from crashpath.ingest.parse_kernel import parse_kernel
from crashpath.ingest.parse_native import parse_native
from crashpath.ingest.parse_node import parse_node
from crashpath.ingest.parse_notebook import parse_notebook
from crashpath.ingest.parse_ort import canonical, parse_ort
from crashpath.ingest.parse_plain import parse_plain
from crashpath.ingest.parse_python import parse_python
from crashpath.ingest.parse_rust import parse_rust
from crashpath.ingest.parse_sanitizer import parse_sanitizer
from crashpath.ingest.piece import Format, Parser, Piece

PARSERS: tuple[Parser, ...] = (
    parse_python,
    parse_group,
    parse_notebook,
    parse_java,
    parse_node,
    parse_dotnet,
    parse_go,
    parse_rust,
    parse_faulthandler,
    parse_sanitizer,
    parse_gdb,
    parse_kernel,
    parse_ort,
    parse_native,
    parse_exit,
    parse_plain,  # the last resort
)

#: Formats whose lines often say again what an exception of the same record says.
_ECHOING = frozenset({Format.ORT, Format.NATIVE})
_ECHO_LENGTH = 12  # shorter messages are contained in others by chance


def parse(text: str) -> Parsed:
    """Read a record's text, which has no prefixes any more. What no parser knows is ``plain`` with an empty chain."""
    pieces: list[Piece] = []
    for parser in PARSERS:
        if parser is parse_plain and any(piece.chain for piece in pieces):
            break
        pieces.extend(parser(text))
    if not pieces:
        return Parsed(Format.PLAIN)
    telling = next((piece for piece in pieces if piece.chain), pieces[0])
    return Parsed(
        format=telling.format,
        chain=_without_repeats([canonical(thrown) for thrown in _causes_first(_without_echoes(pieces))]),
        signal=next((piece.signal for piece in pieces if piece.signal), None),
        exit_code=next((piece.exit_code for piece in pieces if piece.exit_code is not None), None),
    )


def _without_echoes(pieces: list[Piece]) -> list[Piece]:
    """Drop the log lines whose whole message an exception repeats."""
    if len(pieces) < 2 or not any(piece.format in _ECHOING and piece.chain for piece in pieces):
        return pieces
    telling = [thrown.message for piece in pieces if piece.format not in _ECHOING for thrown in piece.chain]
    telling += [thrown.message for piece in pieces if piece.format is Format.NATIVE for thrown in piece.chain]
    kept: list[Piece] = []
    for piece in pieces:
        said = piece.chain[0].message if piece.chain and piece.format in _ECHOING else ""
        if len(said) < _ECHO_LENGTH or not any(said in message and said != message for message in telling):
            kept.append(piece)
    return kept


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
