"""Rust panics, of all compiler versions, with their backtrace where ``RUST_BACKTRACE`` printed one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import native_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at

_OLD = re.compile(r"thread '([^'\n]*)' panicked at '(.*?)', (\S+?):\d+(?::\d+)?$", re.M | re.S)
_NEW = re.compile(r"thread '([^'\n]*)'(?: \(\d+\))? panicked at (\S+?):\d+:\d+:\n")
_END = re.compile(r"^(?:stack backtrace:|note: |thread '|[ \t]*$)", re.M)
_STACK = re.compile(r"stack backtrace:\n")
_FRAME = re.compile(r"[ \t]*\d+: +(?:0x[0-9a-f]+ - )?([^\n]+)\n(?:[ \t]+at ([^\n:]+)(?::\d+)*[^\n]*\n)?")


def parse_rust(text: str) -> Sequence[Piece]:
    """Read each panic; the message is the panic's own, which may have several lines."""
    if "panicked at" not in text:
        return ()
    if not text.endswith("\n"):
        text += "\n"
    pieces = [_piece(text, match, match.group(2), match.group(3), match.end()) for match in _OLD.finditer(text)]
    for match in _NEW.finditer(text):
        stop = _END.search(text, match.end())
        end = stop.start() if stop is not None else len(text)
        pieces.append(_piece(text, match, text[match.end() : end].strip(), match.group(2), end))
    return pieces


def _piece(text: str, match: re.Match[str], message: str, file: str, end: int) -> Piece:
    frames: tuple[Frame, ...] = ()
    following = text.find("panicked at", end)
    if (stack := _STACK.search(text, end, following if following >= 0 else len(text))) is not None:
        frames, end = _frames(text, stack.end())
    thrown = Thrown("panic", message, line_at(text, match.start()), frames or (native_frame("", file),))
    return Piece(Format.RUST, match.start(), end, (thrown,))


def _frames(text: str, position: int) -> tuple[tuple[Frame, ...], int]:
    frames: list[Frame] = []
    while (match := _FRAME.match(text, position)) is not None:
        frames.append(native_frame(match.group(1), match.group(2) or ""))
        position = match.end()
    return tuple(reversed(frames)), position
