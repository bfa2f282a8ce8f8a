"""Go: panics, fatal errors of the run time, and the goroutine that raised them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at

_HEAD = re.compile(r"^(panic|fatal error): ([^\n]*)", re.M)
_GOROUTINE = re.compile(r"^goroutine \d+ (?:gp=\S+ )?(?:m=\S+ )?(?:mp=\S+ )?\[[^\]\n]*\]:\n", re.M)
_FRAME = re.compile(
    r"(?:created by )?([\w./*()\-%~$]+?)(?:\([^()\n]*\)| in goroutine \d+)?\n[ \t]+([^\s:]+):\d+[^\n]*(?:\n|$)"
)
_RUNTIME = re.compile(r"^(?:runtime|testing|reflect|sync|net/http|internal/)\b|^panic$")
_SIGNAL = re.compile(r"^\[signal (SIG[A-Z]+)", re.M)


def parse_go(text: str) -> Sequence[Piece]:
    """Read each panic with the frames of the first goroutine behind it."""
    if "goroutine " not in text and "\npanic: " not in text and not text.startswith(("panic: ", "fatal error: ")):
        return ()
    pieces: list[Piece] = []
    for head in _HEAD.finditer(text):
        goroutine = _GOROUTINE.search(text, head.end())
        frames, end = _frames(text, goroutine.end()) if goroutine is not None else ((), head.end())
        signal = _SIGNAL.search(text, head.end(), end)
        thrown = Thrown(head.group(1), head.group(2).strip(), line_at(text, head.start()), frames)
        pieces.append(Piece(Format.GO, head.start(), end, (thrown,), signal.group(1) if signal else None))
    return pieces


def _frames(text: str, position: int) -> tuple[tuple[Frame, ...], int]:
    frames: list[Frame] = []
    while (match := _FRAME.match(text, position)) is not None:
        package, _, function = match.group(1).rpartition("/")[2].partition(".")
        folder = match.group(1).rpartition("/")[0]
        module = f"{folder}/{package}" if folder else package
        frames.append(Frame(function or package, module, _RUNTIME.match(module) is None))
        position = match.end()
    return tuple(reversed(frames)), position
