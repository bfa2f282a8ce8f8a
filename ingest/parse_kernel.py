"""Kernel messages: the OOM killer (old, new, cgroup), Android's low-memory killer, and user-mode faults."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.frames import native_frame
from crashpath.ingest.model import Thrown
from crashpath.ingest.piece import Format, Piece, line_at

_OOM = re.compile(r"of memory(?: \([^)\n]*\))?: Kill(?:ed)? process (\d+) \(([^)\n]*)\)[^\n]*")
_KILLED = re.compile(r"Killed process (\d+) \(([^)\n]*)\)[^\n]*total-vm[^\n]*")
_CONSTRAINT = re.compile(r"oom-kill:constraint=(\w+)[^\n]*")
_INVOKED = re.compile(r"invoked oom-killer: [^\n]*")
_LEAD = re.compile(r"(?:Memory cgroup out |Out |[\w./:-]+ )\Z")  # the words that the patterns leave out for speed
_LOW_MEMORY = re.compile(r"(?:lowmemorykiller|lmkd)\b[^\n]*?(Kill(?:ing)? '([^'\n]*)' \((\d+)\)[^\n]*)")
_SEGFAULT = re.compile(
    r"(\S+?)\[\d+\]: segfault at [0-9a-f]+ ip [0-9a-f]+ sp [0-9a-f]+ error \d+(?: in ([^\s\[]+)\[[^\n]*)?"
)
_TRAP = re.compile(
    r"traps: (\S+?)\[\d+\] (general protection(?: fault)?|trap invalid opcode|trap divide error)\b"
    r"[^\n]*?(?: in ([^\s\[]+)\[[^\n]*)?$",
    re.M,
)
_TRAP_SIGNALS = {"trap invalid opcode": "SIGILL", "trap divide error": "SIGFPE"}


#: In order: the line that names the victim, else what led to it.
_OOM_LINES = (
    (": Kill", _OOM),
    ("Killed process", _KILLED),
    ("oom-kill:", _CONSTRAINT),
    ("invoked oom-killer", _INVOKED),
)


def parse_kernel(text: str) -> Sequence[Piece]:
    """Read one OOM kill (the line that names the victim, else what led to it) and each user-mode fault."""
    pieces = _oom(text)
    if "segfault at" in text:
        pieces += [_fault(text, match, "segfault", "SIGSEGV", match.group(2)) for match in _SEGFAULT.finditer(text)]
    if "traps: " in text:
        pieces += [
            _fault(text, match, match.group(2), _TRAP_SIGNALS.get(match.group(2), "SIGSEGV"), match.group(3))
            for match in _TRAP.finditer(text)
        ]
    return pieces


def _oom(text: str) -> list[Piece]:
    for needle, pattern in _OOM_LINES:
        if needle in text and (match := pattern.search(text)) is not None:
            lead = _LEAD.search(text, max(0, match.start() - 60), match.start())
            start = lead.start() if lead is not None else match.start()
            thrown = Thrown("oom-kill", text[start : match.end()].strip(), line_at(text, start))
            return [Piece(Format.KERNEL_OOM, start, match.end(), (thrown,), "SIGKILL")]
    if ("lowmemorykiller" in text or "lmkd" in text) and (match := _LOW_MEMORY.search(text)) is not None:
        thrown = Thrown("lowmemorykiller", match.group(1).strip(), line_at(text, match.start()))
        return [Piece(Format.KERNEL_OOM, match.start(), match.end(), (thrown,))]
    return []


def _fault(text: str, match: re.Match[str], kind: str, signal: str, library: str | None) -> Piece:
    frames = (native_frame("", library),) if library else ()
    thrown = Thrown(kind, match.group().strip(), line_at(text, match.start()), frames)
    return Piece(Format.NATIVE, match.start(), match.end(), (thrown,), signal)
