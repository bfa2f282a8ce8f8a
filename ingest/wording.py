"""Wording of single lines: which only echo source code or a command, and what a line says without its wrapping."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FRAME = re.compile(r'[\s|]*File "[^"]+", line \d+|\s*File \S+:\d+, in |\s*\S+\.\w+ in \S+\(.*\)$')
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_][\w$]*\.)*(?P<name>[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Fault|Timeout))"
    r"(?:\([^)]*\))?(?::|$)"
)
_CARETS = re.compile(r"\s*[\^~]+(?:[\^~ ]*)(?: <--- HERE)?$")
_SNIPPET = re.compile(r"(?:-+> ?|\s+)\d+ .*|-+> \d+")
_CALL = re.compile(
    r"^\s*(?:\[(?:Environment|Command line)\]|(?:Running )?[Cc]ommand(?: line)?:|Running: /"
    r"|(?:\$ |export )?[A-Z]\w+_OPTIONS ?=)"
)
_CAUGHT = re.compile(r"\w*(?:Sanitizer:DEADLY ?SIGNAL|SAN:(?:DEADLY ?SIGNAL|SIG[A-Z]+))$")
_REPORT = 4
"""Lines in which the report follows that a sanitizer announced."""
# Wrapping in front of what is meant: ORT's log brackets and error grammar, glog heads, C++ source places.
_WRAPPING = (
    re.compile(r"^\s*(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ )?\[[EWFIV]:[^\]]*\] "),
    re.compile(r"^.*?\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "),
    re.compile(r"^[EWFI]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [\w./-]+:\d+\] "),
    re.compile(r"^Exception during initialization: "),
)
_HEAD = re.compile(
    r"^(?:Unhandled exception\. |Uncaught |Exception in thread \S+ |Caused by: )?"
    r"(?P<type>(?:[A-Za-z_][\w$]*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Fault|Fail|Timeout)): "
    r"(?P<message>.*)$"
)


def echoes(lines: Sequence[str]) -> list[bool]:
    """Mark the lines that only repeat source code under a stack frame, point into it, or repeat how it was called.

    What a sanitizer says on catching a signal is one of them too, where its report follows.
    """
    marked: list[bool] = []
    below = False  # whether the line above is a frame, or source code below one
    depth = 0
    for line in lines:
        is_frame = _FRAME.match(line) is not None
        indent = len(line) - len(line.lstrip(" \t|"))  # an exception group draws a bar in front of its members
        if is_frame:
            below, depth = True, indent
        elif below and (not line.strip() or indent <= depth) and not _code_without_indent(line, marked, lines):
            below = False
        marked.append(is_frame or below or _is_pointer(line) or _CALL.match(line) is not None)
    for i, line in enumerate(lines):
        if line[-6:] == "SIGNAL" or "SAN:SIG" in line:
            follows = any("Sanitizer: " in later for later in lines[i + 1 : i + 1 + _REPORT])
            marked[i] = marked[i] or (follows and _CAUGHT.search(line) is not None)
    return marked


def _code_without_indent(line: str, marked: list[bool], lines: Sequence[str]) -> bool:
    """Whether a line right under a frame is its source code although a logger has eaten the indent."""
    above = lines[len(marked) - 1] if marked else ""
    if not line.strip() or line[0].isspace() or not _FRAME.match(above):
        return False
    return _EXCEPTION.match(line) is None and above[:1] not in (" ", "\t")


def _is_pointer(line: str) -> bool:
    start = line.lstrip()[:1]
    if start in ("^", "~"):
        return _CARETS.match(line) is not None
    if start == "-":
        return _SNIPPET.match(line) is not None
    return line.startswith("   ") and start.isdigit() and _SNIPPET.match(line) is not None


def meaningful(message: str) -> str:
    """Return a message without what a runtime or logger wrapped around it."""
    for wrapping in _WRAPPING:
        message = wrapping.sub("", message, count=1)
    return message.strip()


def head(line: str) -> tuple[str, str]:
    """Split a line into the exception type that it names, if any, and what it says."""
    match = _HEAD.match(line.strip())
    return (match["type"], match["message"]) if match else ("", line.strip())
