"""The grammar of a Python exception as it is printed: ``package.Type: message``, and where its message ends."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LINES = 24
MAX_CHARACTERS = 4000

NAME = r"[A-Za-z_]\w*(?:\.(?:<locals>|[A-Za-z_]\w*))*"
_WRAPPED = r"(?:\([\w., ]+\))?"  # RayTaskError(ValueError)
_EXCEPTION = re.compile(rf"[ \t]*({NAME}{_WRAPPED})(?::(?:[ \t]+([^\n]*))?)?[ \t]*$", re.M)

# A dotted name that ends as the names of exceptions do; possessive, so that prose fails at once.
_ENDINGS = (
    "Error",
    "Exception",
    "Interrupt",
    "SystemExit",
    "StopIteration",
    "ExceptionGroup",
    "Fault",
    "Timeout",
    "Died",
)
_TELLING = rf"(?:[A-Za-z_](?:[\w.]|<locals>)*+(?:{'|'.join(f'(?<={ending})' for ending in _ENDINGS)}))"
_ORT_NAMES = (
    r"(?:[\w.]*\b(?:Fail|InvalidArgument|NoSuchFile|NoModel|EngineError|RuntimeException|InvalidProtobuf|ModelLoaded"
    r"|NotImplemented|InvalidGraph|EPFail)(?=:[ ]\[ONNXRuntimeError\]))"
)
#: An exception line that needs no traceback around it to be told from prose.
BARE = re.compile(rf"^[ \t]*({_TELLING}{_WRAPPED}|{_ORT_NAMES})(?::(?:[ \t]+([^\n]*))?)?[ \t]*$", re.M)

#: Where the message of one exception stops because something else begins.
_STOP = re.compile(
    rf"""^[ \t]*(?:
      [^\n]*\(most[ ]recent[ ]call[ ](?:last|first)\)
    | File[ ]"
    | The[ ]above[ ]exception[ ]was | During[ ]handling[ ]of[ ]the[ ]above
    | {_TELLING}{_WRAPPED}(?::|[ \t]*$) | (?:{NAME}\.)+[A-Z]\w*:[ ]
    | \"\"\"[ \t]*$ | --[ ]Process[ ]\d+ | At:[ \t]*$ | Traceback[ ]of[ ]TorchScript
    | \[?\d{{4}}[-/]\d\d[-/]\d\d | \[?\d\d:\d\d:\d\d
    | \[?(?:INFO|DEBUG|WARN|WARNING|ERROR|FATAL|CRITICAL)\b
    | \$[ ] | >>>[ ] | [\w.-]+@[\w.-]+[: ][^\n]{{0,60}}[#$](?:[ ]|$)
    | Program[ ]received[ ]signal | Thread[ ]\d+ | terminate[ ]called
    | Segmentation[ ]fault | Aborted\b | Killed\b | Illegal[ ]instruction | Bus[ ]error
    | Fatal[ ]Python[ ]error | \w*Sanitizer:[A-Z] | ==\d+== | \*\*\*[ ]
    | free\(\): | malloc | double[ ]free | munmap_chunk
    | Process[ ][\w-]+-\d+ | \S+:[ ]line[ ]\d+: | Exception[ ](?:ignored[ ])?in[ ] | \[(?:W|E|F|I)\b | srun: | \#\d+[ ]
    | /\S+\.(?:py|cc|cpp|cu|h):\d+ | -{{20,}}[ \t]*$ | ={{20,}}[ \t]*$ | [╭╰]
    | [ \t]*\n[ \t]*\n
    )""",
    re.M | re.X,
)


class Line(NamedTuple):
    """An exception: its type and whole message; ``start`` and ``end`` are character offsets of both together."""

    type: str
    message: str
    start: int
    end: int


def clean_type(name: str) -> str:
    """Drop what the printer put before a type: ``builtins.ValueError`` is ``ValueError``."""
    return name.removeprefix("builtins.")


def message_end(text: str, start: int, limit: int) -> int:
    """Return where a message stops whose first line ends at ``start``: before the next event, or at the bounds."""
    if start >= limit:
        return limit
    window = min(limit, start + MAX_CHARACTERS)
    stop = _STOP.search(text, start + 1, window)
    end = stop.start() if stop is not None else window
    lines = text[start:end].split("\n")
    return start + len("\n".join(lines[: MAX_LINES + 1]).rstrip())


def exception_at(text: str, position: int, limit: int) -> Line | None:
    """Read the exception whose line begins at ``position``; ``None`` where the line is not one."""
    found = _EXCEPTION.match(text, position, limit)
    if found is None:
        return None
    return _line(text, found, limit)


def bare_exception(text: str, start: int, stop: int, limit: int | None = None) -> Line | None:
    """Find the first line before ``stop`` that is an exception by its looks; its message ends by ``limit``."""
    found = BARE.search(text, start, stop)
    return None if found is None else _line(text, found, stop if limit is None else limit)


def prose_at(text: str, position: int) -> str | None:
    """Return the line at ``position`` where it may be a message that lost its type, ``None`` where something begins."""
    if _STOP.match(text, position):
        return None
    end = text.find("\n", position)
    line = text[position : end if end >= 0 else len(text)].strip()
    return line or None


def _line(text: str, found: re.Match[str], limit: int) -> Line:
    name, first = clean_type(found.group(1)), found.group(2) or ""
    end = message_end(text, found.end(), limit)
    cut = first.find("Traceback (most recent call last)")
    if cut >= 0:  # the inner traceback begins on the line of the outer exception
        return Line(name, first[:cut].rstrip(" ,:"), found.start(), found.start(2) + cut)
    rest = text[found.end() : end]
    message = (first + rest if rest.strip() else first).strip()
    return Line(name, message, found.start(), max(end, found.end()))
