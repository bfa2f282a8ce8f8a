"""Reports of the sanitizers (address, leak, thread, memory, undefined behaviour) and of libFuzzer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import native_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.native_stack import find_stacks
from crashpath.ingest.piece import Format, Piece, line_at

_HEAD = re.compile(  # a logger takes the level off the line
    r"(?:(?:ERROR|WARNING): |^(?=\w+Sanitizer: (?:\S+ on (?:unknown )?address|attempting |detected |use-of-)))"
    r"((?:\w+Sanitizer|libFuzzer)):? ([^\n]*)",
    re.M,
)
_UNDEFINED = re.compile(r"^[ \t]*(\S+?)(?::\d+){1,2}: runtime error: ([^\n]*)", re.M)
_WHERE = re.compile(r" ?\((?:pc|bp|sp) [^)\n]*\)| at pc 0x\S+(?: bp \S+)?(?: sp \S+)?| in thread T\d+:?$| T\d+\)?$")
SIGNALS = {
    "SEGV": "SIGSEGV",
    "ABRT": "SIGABRT",
    "ILL": "SIGILL",
    "FPE": "SIGFPE",
    "BUS": "SIGBUS",
    "TRAP": "SIGTRAP",
    "access-violation": "SIGSEGV",
    "breakpoint": "SIGTRAP",
}
"""Signals that a sanitizer caught, by the first word of its report."""


def parse_sanitizer(text: str) -> Sequence[Piece]:
    """Read each report; its frames are those of the first stack, the place of the error."""
    pieces: list[Piece] = []
    if "runtime error: " in text:
        pieces += [_undefined(text, match) for match in _UNDEFINED.finditer(text)]
    if "Sanitizer" in text or "libFuzzer" in text:
        pieces += [_report(text, match) for match in _HEAD.finditer(text) if "DEADLYSIGNAL" not in match.group(2)]
    return pieces


def _report(text: str, match: re.Match[str]) -> Piece:
    kind, message = match.group(1), _WHERE.sub("", match.group(2)).strip()
    frames, end = _first_stack(text, match.end())
    thrown = Thrown(kind, message, line_at(text, match.start()), frames)
    signal = SIGNALS.get(message.split(" ", 1)[0])
    return Piece(Format.SANITIZER, match.start(), max(end, match.end()), (thrown,), signal)


def _undefined(text: str, match: re.Match[str]) -> Piece:
    following = text[match.end() : match.end() + 400].lstrip("\n")
    frames, end = _first_stack(text, match.end()) if re.match(r"[ \t]*#0", following) else ((), 0)
    place = (native_frame("", match.group(1)),)
    thrown = Thrown("UndefinedBehaviorSanitizer", match.group(2), line_at(text, match.start()), frames or place)
    return Piece(Format.SANITIZER, match.start(), max(end, match.end()), (thrown,))


def _first_stack(text: str, start: int) -> tuple[tuple[Frame, ...], int]:
    stacks = find_stacks(text, start)
    return (stacks[0].frames, stacks[0].end) if stacks else ((), start)
