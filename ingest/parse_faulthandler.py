"""Python's faulthandler: a fatal error, or a timeout, with the stacks of the threads (innermost frame first)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import python_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.parse_exit import signal_of_words
from crashpath.ingest.piece import Format, Piece, line_at

_HEAD = re.compile(r"(Fatal Python error|Windows fatal exception): ([^\n]*)|^[ \t]*(Timeout) (\(\d+:[\d:.]+\)!?)", re.M)
_STACK = re.compile(r"(Current thread|Thread|Stack)[^\n]*\(most recent call first\)[^\n]*\n")
_FRAME = re.compile(r'^[ \t]*File "([^"\n]+)", line (?:\d+|\?\?\?) in ([^\n]*)\n?', re.M)
_ANY_FRAME = re.compile(r'", line \d+ in ')
_MAX_GAP = 4  # lines between two frames of one stack, where other writers came between


def parse_faulthandler(text: str) -> Sequence[Piece]:
    """Read each fatal error; its frames are those of the current thread, else of the thread printed last."""
    if "most recent call first" not in text and "Fatal Python error" not in text and _ANY_FRAME.search(text) is None:
        return ()
    if not text.endswith("\n"):
        text += "\n"
    heads = list(_HEAD.finditer(text))
    if not heads:
        frames, end = _stack(text, 0, len(text))
        begin = _FRAME.search(text)
        if begin is None or not frames:
            return ()
        thrown = Thrown("Fatal Python error", "", line_at(text, begin.start()), frames)
        return (Piece(Format.FAULTHANDLER, begin.start(), end, (thrown,)),)
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_piece(text, head, limit) for head, limit in zip(heads, ends, strict=True)]


def _piece(text: str, head: re.Match[str], limit: int) -> Piece:
    kind, message = (head.group(1), head.group(2)) if head.group(1) else (head.group(3), head.group(4))
    frames, end = _stack(text, head.end(), limit)
    thrown = Thrown(kind, message.strip(), line_at(text, head.start()), frames)
    words = message.split(":", 1)[0]
    return Piece(Format.FAULTHANDLER, head.start(), max(end, head.end()), (thrown,), signal_of_words(words))


def _stack(text: str, start: int, limit: int) -> tuple[tuple[Frame, ...], int]:
    stacks = list(_STACK.finditer(text, start, limit))
    if not stacks:
        return _frames(text, start, limit)
    current = [stack for stack in stacks if stack.group(1) == "Current thread"]
    chosen = (current or stacks)[-1]
    following = next((stack.start() for stack in stacks if stack.start() > chosen.start()), limit)
    frames, end = _frames(text, chosen.end(), following)
    return frames, max(end, stacks[-1].end())


def _frames(text: str, start: int, limit: int) -> tuple[tuple[Frame, ...], int]:
    frames: list[Frame] = []
    end = start
    for match in _FRAME.finditer(text, start, limit):
        if frames and text.count("\n", end, match.start()) > _MAX_GAP:
            break
        frames.append(python_frame(match.group(1), match.group(2)))
        end = match.end()
    return tuple(reversed(frames)), end
