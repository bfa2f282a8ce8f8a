"""How a process ended: signals and exit codes in what shells, supervisors and run times print."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from crashpath.ingest.piece import Format, Piece

#: What libc's ``strsignal`` and run times say for a signal.
WORDS = {
    "segmentation fault": "SIGSEGV",
    "segmentation violation": "SIGSEGV",
    "access violation": "SIGSEGV",
    "aborted": "SIGABRT",
    "abort trap": "SIGABRT",
    "abort": "SIGABRT",
    "bus error": "SIGBUS",
    "illegal instruction": "SIGILL",
    "floating point exception": "SIGFPE",
    "floating-point exception": "SIGFPE",
    "trace/breakpoint trap": "SIGTRAP",
    "killed": "SIGKILL",
    "terminated": "SIGTERM",
    "bad system call": "SIGSYS",
}
_WORD = (
    r"Segmentation fault|Aborted|Abort trap|Bus error|Illegal instruction|Floating[ -]point exception"
    r"|Trace/breakpoint trap|Killed|Bad system call"
)
_SHELL_WORDS = ("Segm", "Abort", "Bus err", "Illegal", "Floating", "breakpoint trap", "Killed", "Bad system")
_FATAL = frozenset(WORDS.values()) | {"SIGINT"}
_WINDOWS = {0xC0000005: "SIGSEGV", 0xC000001D: "SIGILL", 0xC0000409: "SIGABRT", 0xC00000FD: "SIGSEGV"}

_SHELL = re.compile(
    rf"^(?:\S+: line \d+: +\d+ +|(?:\S+: )?line \d+: +\d+ +|\[\d+\][+-]? +(?:\d+ +)?|zsh: |\s*)({_WORD})(?: *: \d+)?"
    r"(?=[ \t]*(?:$|\(core dumped\)|  |\S+$))",
    re.M,
)
_ZSH = re.compile(r"^zsh: ([a-z /-]+?)(?: {2}| \(|$)", re.M)
_SAID = re.compile(r"\bsignal: ([a-z /-]+)|terminated by signal:? ([A-Z][a-z /]+)", re.I)
_NAMED = re.compile(
    r"\b(SIG(?:SEGV|ABRT|BUS|ILL|FPE|KILL|TRAP|TERM|SYS))\b|status=\d+/(SEGV|ABRT|BUS|ILL|FPE|KILL|TRAP)\b"
)
_NUMBERED = re.compile(r"\b(?:[Ss]ignal|SIGNAL)[ :=]+\(?(\d{1,2})\b")
_SENT_BY_OTHERS = "SIGTERM"
_CODE = re.compile(
    r"(?:[Cc]ode|CODE|[Ss]tatus|STATUS|\$\?|exited \()(?: of)?[\"']?[ \t]*[:=(]?[ \t\n]*\(?"
    r"(0x[0-9a-fA-F]+|-?\d{1,10})\b"
    r"(?!/(?:SEGV|ABRT|BUS|ILL|FPE|KILL|TRAP|TERM))"
)
_ENDING = re.compile(
    r"exit|\breturn(?:ed|s)?\b|terminat|\bdied\b|\bended\b|crashed|\becho\b|status=$|\bfinished\b",
    re.I,
)
_BEFORE = 60  # characters before a number in which the word that makes it an exit code stands


#: RE2 patterns of which a text that says how a process ended has one.
ENDS = (
    *_SHELL_WORDS,
    "zsh: ",
    r"[Ss]ignal:? ",
    r"SIG[A-Z]{3}",
    r"status=\d",
    r"xit[\w ]*(?:[Cc]ode|[Ss]tatus)",
    r"[Ee]xited \(",
    r"\$\?",
    r"(?:code|status)[ :=(]+-?\d",
)


def parse_exit(text: str) -> Sequence[Piece]:
    """Read the signal and the exit code of a text; a signal that killed goes before a ``SIGTERM`` that asked."""
    name, at = _signal(text)
    code, code_at = _exit_code(text)
    if code is not None and name is None:
        name = _WINDOWS.get(code & 0xFFFFFFFF) or (signal_name(-code) if -65 < code < 0 else None)
    if name is None and code is None:
        return ()
    start = max(at, 0) if name is not None and at >= 0 else code_at
    return (Piece(Format.NATIVE, start, start, (), name, code),)


def signal_name(number: int) -> str | None:
    """Return ``SIGSEGV`` for 11; ``None`` for a number that is no signal on Linux."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


def signal_of_words(words: str) -> str | None:
    """Return the signal that a phrase such as ``Segmentation fault`` or ``illegal instruction`` stands for."""
    return WORDS.get(words.strip().lower())


def _signal(text: str) -> tuple[str | None, int]:
    found: list[tuple[int, str]] = []
    if (
        "ault" in text
        or "ort" in text
        or "Killed" in text
        or "llegal" in text
        or "us error" in text
        or "loating" in text
    ):
        found += [(m.start(), WORDS[m.group(1).lower()]) for m in _SHELL.finditer(text)]
    if "zsh: " in text:
        found += [(m.start(), WORDS[m.group(1)]) for m in _ZSH.finditer(text) if m.group(1) in WORDS]
    if "ignal" in text:
        found += [(m.start(), name) for m in _SAID.finditer(text) if (name := _said(m.group(1) or m.group(2)))]
        found += [
            (m.start(), name) for m in _NUMBERED.finditer(text) if (name := signal_name(int(m.group(1)))) in _FATAL
        ]
    if "SIG" in text or "status=" in text:
        found += [(m.start(), m.group(1) or f"SIG{m.group(2)}") for m in _NAMED.finditer(text)]
    if not found:
        return None, -1
    at, name = min(found, key=lambda pair: (pair[1] == _SENT_BY_OTHERS, pair[0]))
    return name, at


def _said(words: str) -> str | None:
    return next((name for phrase, name in WORDS.items() if words.lower().startswith(phrase)), None)


def _exit_code(text: str) -> tuple[int | None, int]:
    if not ("xit" in text or "status" in text or "$?" in text or "code " in text or "ode:" in text):
        return None, -1
    for match in _CODE.finditer(text):
        code = int(match.group(1), 16 if match.group(1)[:2] == "0x" else 10)
        if not code or 400 <= code < 600:  # 0 is no failure, 4xx and 5xx are HTTP's
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        if _ENDING.search(text, max(line, match.start() - _BEFORE), match.start(1)):
            return code, match.start()
    return None, -1
