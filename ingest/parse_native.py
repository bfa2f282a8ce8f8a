"""What C and C++ programs say when they end: uncaught exceptions, glibc's aborts, failed checks, CUDA error lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from crashpath.ingest.frames import native_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import MAX_PIECES, Format, Piece, line_at
from crashpath.ingest.thrown import message_end

_Found = tuple[str, str, tuple[Frame, ...], int]  # type, message, frames, end


class Cry(NamedTuple):
    """A kind of last words: a substring that a text with them has, their pattern, and how to read a match."""

    needle: str
    pattern: re.Pattern[str]
    read: Callable[[str, re.Match[str]], _Found]


def _terminate(text: str, match: re.Match[str]) -> _Found:
    kind, first = match.group(1) or match.group(3) or "terminate", match.group(2) or match.group(4)
    if first is None:
        return kind, "" if match.group(1) else match.group().strip(), (), match.end()
    end = message_end(text, match.end(), len(text))
    after = text.find("Traceback of TorchScript", match.end(), match.end() + 200)
    message = (first + text[match.end() : end]).strip()
    return kind, message, (), len(text) if after >= 0 else end


def _glibc(_text: str, match: re.Match[str]) -> _Found:
    return "glibc", match.group(1).strip().rstrip(": "), (), match.end()


def _check(_text: str, match: re.Match[str]) -> _Found:
    fields = match.groupdict()
    frames: tuple[Frame, ...] = ()
    if fields.get("file"):
        frames = (native_frame(fields.get("function") or "", fields["file"]),)
    what = fields["what"].strip()
    if what.startswith("`"):
        what = what[1:-1]
    return fields.get("kind") or "Assertion", what, frames, match.end()


def _cuda(_text: str, match: re.Match[str]) -> _Found:
    message = match.group("what") or match.group("quoted") or match.group("name") or ""
    return "CUDA error", message.strip(), (), match.end()


def _fatal(text: str, match: re.Match[str]) -> _Found:
    return match.group("kind"), match.group("what").strip(), (native_frame("", match.group("file")),), match.end()


_FILE = r"(?P<file>(?:[A-Za-z]:)?[^\s:*\"'`]{1,300}\.(?:cc|cpp|cxx|c|cu|cuh|h|hpp|mm|m|rs))"

#: In order; a stretch that one has read is not read again.
CRIES: tuple[Cry, ...] = (
    Cry(
        "terminat",
        re.compile(
            r"terminate called (?:after throwing an instance of '([^'\n]+)'|without an active exception|recursively)"
            r"(?:[^\n]*\n(?:[^\n]*\n){0,3}?[ \t]*what\(\):[ \t]*([^\n]*))?"
            r"|terminating (?:with|due to) (?:uncaught (?:foreign )?exception|unexpected exception)"
            r"(?: of type ([^:\n]+(?:::[^:\n]+)*))?(?:: ([^\n]*))?"
        ),
        _terminate,
    ),
    Cry(
        "(): ",
        re.compile(
            r"^(?:\S+: )?((?:free|malloc|realloc|calloc|munmap_chunk|malloc_consolidate|mremap_chunk"
            r"|_int_malloc|_int_free|unlink_chunk)\(\): [^\n]+"
            r"|double free or corruption[^\n]*|corrupted (?:size vs\. prev_size|double-linked list)[^\n]*"
            r"|pthread_mutex_\w+: [^\n]*|The futex facility returned[^\n]*)",
            re.M,
        ),
        _glibc,
    ),
    Cry(
        "*** ",
        re.compile(
            r"\*\*\* ((?:stack smashing detected|buffer overflow detected|invalid %N\$ use detected)|"
            r"(?<=\*\*\* )Error in `[^'\n]*': [^\n:]+)[^\n]*"
        ),
        _glibc,
    ),
    Cry("corrupt", re.compile(r"^((?:double free or corruption|corrupted )[^\n]*)", re.M), _glibc),
    Cry(
        "Assertion",
        re.compile(
            rf"(?:{_FILE}:\d+:[ ](?P<function>[^\n`'\[]{{0,400}}?)(?::[ ]block:[^\n`]{{0,200}})?:?[ ])?"
            r"Assertion (?P<what>`[^\n]{1,999}?['`]|[\"(][^\n]{1,999}?[\")]) ?failed"
        ),
        _check,
    ),
    Cry(
        "ASSERT",
        re.compile(rf"^[^\n]*?(?P<kind>GGML_ASSERT|TORCH_INTERNAL_ASSERT|ASSERT): {_FILE}:\d+: (?P<what>[^\n]+)", re.M),
        _check,
    ),
    Cry(
        "error while loading shared",
        re.compile(r"^(?:\S+: )?error while loading (?P<kind>shared libraries): (?P<what>[^\n]+)", re.M),
        _check,
    ),
    Cry("GGML_ASSERT(", re.compile(rf"{_FILE}:\d+: (?P<kind>GGML_ASSERT)\((?P<what>[^\n]*)\) failed"), _check),
    Cry("ASSERTION FAILED", re.compile(r"^(?P<kind>ASSERTION FAILED): (?P<what>[^\n]+)", re.M), _check),
    Cry(
        "Check fail",
        re.compile(
            rf"(?:{_FILE}(?::|\()\d+\)?[:\]] ?)?(?:\w+Error: )?(?P<kind>Check failed|Check failure)[:.] ?"
            r"(?P<what>[^\n]+)"
        ),
        _check,
    ),
    Cry(
        "CUDA error",
        re.compile(
            r"^[ \t]*CUDA error(?: \d+)?"
            r"(?: at [^\n]*?\((?P<name>cuda\w+|CUDA_\w+)\)(?: \"(?P<quoted>[^\"\n]*)\")?|: (?P<what>[^\n]+)| [^\n]*)",
            re.M,
        ),
        _cuda,
    ),
    Cry(
        "error in ",
        re.compile(
            r"^# (?P<kind>Fatal error|Runtime error) in (?P<file>[^\n,]*)(?:, line \d+)?\n(?:#[ \t]*\n)?"
            r"# ?(?P<what>[^\n]*)",
            re.M,
        ),
        _fatal,
    ),
)


def parse_native(text: str) -> Sequence[Piece]:
    """Read every last word of native code, each a piece; the same words of many threads are one exception later."""
    pieces: list[Piece] = []
    for cry in CRIES:
        if cry.needle not in text:
            continue
        for match in islice(cry.pattern.finditer(text), MAX_PIECES):
            if any(piece.start <= match.start() < piece.end for piece in pieces):
                continue
            kind, message, frames, end = cry.read(text, match)
            thrown = Thrown(kind, message, line_at(text, match.start()), frames)
            pieces.append(Piece(Format.NATIVE, match.start(), end, (thrown,)))
    return pieces
