"""Reads a record's text with every format's parser and joins what they found into one ``Parsed``.

``PARSERS`` is in order of how much a format tells: of several in one record, the first that found an exception names
the record. A piece that stands inside another (a Python traceback in a Java message) is its cause and comes before
it; pieces side by side are in order of appearance. Plain text is read only where nothing else found an exception.
"""

from __future__ import annotations

import re
from dataclasses import replace

import re2

from crashpath.ingest.event_text import event_parsed, told_by_event
from crashpath.ingest.model import Parsed, Thrown
from crashpath.ingest.parse_dotnet import parse_dotnet
from crashpath.ingest.parse_exit import ENDS, parse_exit
from crashpath.ingest.parse_faulthandler import parse_faulthandler
from crashpath.ingest.parse_gdb import parse_gdb
from crashpath.ingest.parse_go import parse_go
from crashpath.ingest.parse_group import parse_group
from crashpath.ingest.parse_java import parse_java
from crashpath.ingest.parse_kernel import parse_kernel
from crashpath.ingest.parse_native import CRIES, parse_native
from crashpath.ingest.parse_node import parse_node
from crashpath.ingest.parse_notebook import parse_notebook
from crashpath.ingest.parse_ort import canonical, parse_ort
from crashpath.ingest.parse_plain import parse_plain
from crashpath.ingest.parse_python import parse_python
from crashpath.ingest.parse_rust import parse_rust
from crashpath.ingest.parse_sanitizer import parse_sanitizer
from crashpath.ingest.piece import Format, Parser, Piece

PARSERS: tuple[Parser, ...] = (
    Parser(parse_python, (r"\(most recent call last\):", r'File "')),
    Parser(parse_group, ("Exception Group Traceback",)),
    Parser(parse_notebook, (r"\(most recent call last\)[\s]", r"At:")),
    Parser(parse_java, (r"[\t\n ]at [\w.$@/<>%-]+\(",)),
    Parser(parse_node, (r"[\t ]at .*:\d+", r"[\t ]at <anonymous>")),
    Parser(parse_dotnet, (r"  at [\w.<>`+|\[\],$]+\(",)),
    Parser(parse_go, ("goroutine ", "panic: ", "fatal error: ")),
    Parser(parse_rust, ("panicked at",)),
    Parser(
        parse_faulthandler, (r"\(most recent call first\)", "Fatal Python error", r'", line \d+ in ', r"Timeout \(")
    ),
    Parser(parse_sanitizer, ("Sanitizer", "libFuzzer", "runtime error: ")),
    Parser(
        parse_gdb,
        (
            r"#\d+",
            r"\s0x[0-9a-fA-F]{6}",
            "[0-9a-f]{8}`[0-9a-f]{8} : ",
            r"[Ss]ignal \d+ \(SIG",
            "signal SIG",
            r"\*\*\* SIG",
            r"#\s+SIG",
        ),
    ),
    Parser(parse_kernel, (": Kill", "Killed process", "oom-kill", "segfault at", "traps: ", "lowmemorykiller", "lmkd")),
    Parser(parse_ort, (":onnxruntime:", r"\[ONNXRuntimeError\]", "onnx runtime error")),
    Parser(parse_native, tuple(re.escape(cry.needle) for cry in CRIES)),
    Parser(parse_exit, ENDS),
    Parser(parse_plain, ()),  # the last resort
)


class _Cues:
    """Finds, in one pass over a text, the parsers that have anything to read in it."""

    def __init__(self, parsers: tuple[Parser, ...]) -> None:
        self.parser_of: list[int] = []
        self.set = re2.Set.SearchSet()
        for number, parser in enumerate(parsers):
            for cue in parser.cues:
                self.set.Add(cue)
                self.parser_of.append(number)
        self.set.Compile()

    def find(self, text: str) -> list[Parser]:
        """Return the parsers whose cue stands in a text, in the order of ``PARSERS``."""
        matches = self.set.Match(text.encode("utf-8", "replace")) or ()
        return [PARSERS[number] for number in sorted({self.parser_of[match] for match in matches})]


_CUES = _Cues(PARSERS)

#: Formats whose lines often say again what an exception of the same record says.
_ECHOING = frozenset({Format.ORT, Format.NATIVE})
_ECHO_LENGTH = 12  # shorter messages are contained in others by chance


def parse(text: str) -> Parsed:
    """Read a record's text, which has no prefixes any more. What no parser knows is ``plain`` with an empty chain.

    An event of the runtime that names its class is read as what it is, whatever its message looks like.
    """
    event = told_by_event(text)
    if event is None:
        return _parse(text)
    if event.failure_class is None:
        return replace(_parse(text), format=Format.EVENT, unit=event.unit, outcome=event.outcome)
    return event_parsed(event)


def _parse(text: str) -> Parsed:
    pieces: list[Piece] = []
    for parser in _CUES.find(text):
        pieces.extend(parser.read(text))
    if not any(piece.chain for piece in pieces):
        pieces.extend(parse_plain(text))
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
        key = (thrown.type, thrown.message.split("\n", 1)[0] or thrown.message)  # what follows may be other output
        earlier = kept.get(key)
        if earlier is None:
            kept[key] = thrown
        elif not earlier.frames and thrown.frames:
            kept[key] = Thrown(thrown.type, thrown.message, earlier.line, thrown.frames)
    return tuple(kept.values())
