"""Stacks of native code in the grammars of gdb, the sanitizers, Android, absl and WinDbg."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from crashpath.ingest.frames import native_frame
from crashpath.ingest.model import Frame

_NUMBERED = re.compile(
    r"^[ \t]*(?:frame )?\#(\d+)(?:\.\d+)?:?[ \t]+(?:pc[ \t]+)?(?:(?:0x)?[0-9a-fA-F]{6,16}\b[ \t]*)?"
    r"(?:in[ \t]+)?([^\n]*)$",
    re.M,
)
_UNNUMBERED = re.compile(
    r"^[ \t]*(?:PC:[ \t]*)?(?:@|(\d+):?)[ \t]+0x[0-9a-fA-F]{6,16}[ \t]+(?:\d+[ \t]+)?([^\n]*)$"
    r"|^[# \t]*([0-9a-f]{2}) [0-9a-f`]{17} : [^\n]* : (\S+)[ \t]*$",
    re.M,
)
_GDB_PLACE = re.compile(r"^(.*?)[ \t]+(?:at|from)[ \t]+(\S+?)(?::\d+)*$")
_GDB_ARGUMENTS = re.compile(r" \((?=[\w@:]+=|\)|\.\.\.|<)")
_ANDROID = re.compile(
    r"^((?:/|<|\[)[^\s(]+)(?: \(offset 0x[0-9a-f]+\))?(?: \((.+?)(?:\+\d+)?\))?"
    r"(?: \(BuildId[^)]*\))?$"
)
_SAN_LIBRARY = re.compile(r"^(.*?)[ \t]*\(([^()\s]+)\+0x[0-9a-fA-F]+\)(?:[ \t]*\(BuildId[^)]*\))?$")
_SAN_SOURCE = re.compile(r"^(.+?)[ \t]+((?:[A-Za-z]:)?[^\s():]*[./][^\s()]*?)(?::\d+)*(?:[ \t]+[<(][^\n]*)?$")
_TORCH = re.compile(r"^(.*?) \+ 0x[0-9a-f]+ \(0x[0-9a-f]+ in ([^)]+)\)$")
_WINDOWS = re.compile(r"^([\w.-]+)(?:!([^\s+]+))?(?:\+0x[0-9a-f]+)?(?: \[.*)?$")


class Stack(NamedTuple):
    """A native stack, innermost frame last; ``start`` and ``end`` are character offsets."""

    frames: tuple[Frame, ...]
    start: int
    end: int


def find_stacks(text: str, start: int = 0) -> list[Stack]:
    """Return the stacks of a text from ``start`` on; a stack ends where the numbers start again."""
    if "#" in text and (stacks := _numbered(text, start)):
        return stacks
    return _unnumbered(text, start) if "0x" in text or "` : " in text or "`" in text else []


def _numbered(text: str, start: int) -> list[Stack]:
    stacks: list[Stack] = []
    frames: list[Frame] = []
    begin = end = last = -1
    for match in _NUMBERED.finditer(text, start):
        number = int(match.group(1))
        if frames and number <= last:
            stacks.append(Stack(tuple(reversed(frames)), begin, end))
            frames = []
        if not frames:
            begin = match.start()
        if (frame := _frame(match.group(2))) is not None:
            frames.append(frame)
        last, end = number, match.end()
    if frames:
        stacks.append(Stack(tuple(reversed(frames)), begin, end))
    return stacks


def _unnumbered(text: str, start: int) -> list[Stack]:
    frames: list[Frame] = []
    begin = end = -1
    for match in _UNNUMBERED.finditer(text, start):
        if begin >= 0 and text.count("\n", end, match.start()) > 3:
            break
        begin = match.start() if begin < 0 else begin
        end = match.end()
        frame = _windows(match.group(4)) if match.group(4) else _frame(match.group(2))
        if frame is not None:
            frames.append(frame)
    return [Stack(tuple(reversed(frames)), begin, end)] if frames else []


@lru_cache(maxsize=32768)
def _frame(rest: str) -> Frame | None:
    """Read what follows the address of a frame; ``None`` where it names nothing."""
    rest = rest.strip()
    if not rest or rest.startswith("(unknown)"):
        return None
    if (match := _ANDROID.match(rest)) is not None:
        return native_frame(match.group(2) or "", match.group(1).rsplit("!", 1)[-1])
    if (match := _TORCH.match(rest)) is not None or (match := _SAN_LIBRARY.match(rest)) is not None:
        return native_frame(match.group(1), match.group(2))
    function, place = rest, ""
    if (match := _GDB_PLACE.match(rest)) is not None or (match := _SAN_SOURCE.match(rest)) is not None:
        function, place = match.group(1), match.group(2)
    return native_frame(_GDB_ARGUMENTS.split(function, maxsplit=1)[0], place)


def _windows(site: str) -> Frame | None:
    match = _WINDOWS.match(site)
    return None if match is None else native_frame(match.group(2) or "", match.group(1) + ".dll")
