"""Native backtraces without a sanitizer: gdb, Android tombstones, absl's and the JVM's fatal errors, WinDbg.

The type is the signal that the text names, else ``Backtrace``. An Android abort message, or the JVM's problematic
frame, is the message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import native_frame
from crashpath.ingest.model import Thrown
from crashpath.ingest.native_stack import Stack, find_stacks
from crashpath.ingest.piece import Format, Piece, line_at

_SIGNAL = re.compile(
    r"received signal (SIG[A-Z]+)(?:, ([^\n]*?))?\.?$|[Ss]ignal \d+ \((SIG[A-Z]+)\), code -?\d+ \((\w+)\)[^\n]*"
    r"|\*\*\* (SIG[A-Z]+) received|terminated with signal (SIG[A-Z]+)(?:, ([^\n]*?))?\.?$",
    re.M,
)
_ABORT_MESSAGE = re.compile(r"^Abort message: '?([^\n]*?)'?$", re.M)
_CRASHED_THREAD = re.compile(r"^(?:backtrace:|\[Current thread is|Thread \d+[^\n]* (?:received|crashed))", re.M)
_JVM = re.compile(r"^#[ \t]+(SIG[A-Z]+|EXCEPTION_\w+) \(0x[0-9a-f]+\) at pc=", re.M)
_JVM_FRAME = re.compile(r"^# Problematic frame:\n# ([^\n]*)", re.M)
_JVM_PLACE = re.compile(r"\[([^\]+]+)(?:\+0x[0-9a-f]+)?\][ \t]*([^\n]*)")


def parse_gdb(text: str) -> Sequence[Piece]:
    """Read the first backtrace behind the signal, or the first of all."""
    if "#" not in text and "0x" not in text and "`" not in text:
        return ()
    if "Sanitizer" in text or "libFuzzer" in text or ": runtime error:" in text:
        return ()  # its stacks are a sanitizer's
    if (jvm := _JVM.search(text)) is not None:
        return (_jvm(text, jvm),)
    signal = _SIGNAL.search(text)
    begin = _CRASHED_THREAD.search(text, signal.end() if signal is not None else 0)
    stacks = find_stacks(text, begin.start() if begin is not None else 0) or find_stacks(text)
    if not stacks and signal is None:
        return ()
    return (_piece(text, signal, stacks[0] if stacks else None),)


def _piece(text: str, signal: re.Match[str] | None, stack: Stack | None) -> Piece:
    name = message = None
    if signal is not None:
        groups = signal.groups()
        name = next((group for group in groups if group and group.startswith("SIG")), None)
        message = next((group for group in groups if group and group != name), None)
    abort = _ABORT_MESSAGE.search(text)
    start = min(at for at in (signal and signal.start(), stack and stack.start) if at is not None)
    end = max(at for at in (signal and signal.end(), stack and stack.end) if at is not None)
    frames = stack.frames if stack is not None else ()
    words = abort.group(1) if abort is not None else message or ""
    thrown = Thrown(name or "Backtrace", words, line_at(text, signal.start() if signal is not None else start), frames)
    return Piece(Format.GDB, start, end, (thrown,), name)


def _jvm(text: str, head: re.Match[str]) -> Piece:
    frame = _JVM_FRAME.search(text, head.end())
    place = _JVM_PLACE.search(frame.group(1)) if frame is not None else None
    frames = (native_frame(place.group(2), place.group(1)),) if place is not None else ()
    name = "SIGSEGV" if head.group(1) == "EXCEPTION_ACCESS_VIOLATION" else head.group(1)
    thrown = Thrown(name, frame.group(1).strip() if frame is not None else "", line_at(text, head.start()), frames)
    return Piece(Format.GDB, head.start(), frame.end() if frame is not None else head.end(), (thrown,), name)
