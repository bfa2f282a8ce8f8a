"""One line as the splitter sees it: decoded, without prefixes, JSON opened, with what its prefixes said."""

from __future__ import annotations

import re
from typing import NamedTuple

from crashpath.ingest.facts import facts_in
from crashpath.ingest.jsonlog import Inside, open_line
from crashpath.ingest.model import Facts
from crashpath.ingest.prefix import Stripped, level_of, strip_line

NO_FACTS = Facts()
_MOST_BAD = 0.3
_MOST_NESTED = 3
_NEVER_A_PREFIX = frozenset(" \t")
_DOCKER = '{"log":"'
_BAD_ESCAPE = re.compile(r"\\x[0-9a-f]{2}")


class Line(NamedTuple):
    """A line without prefixes. ``text`` has newlines where a JSON or logfmt line carried a trace."""

    text: str
    level: str | None
    writer: str | None
    stamp: str | None
    facts: Facts

    @property
    def bare(self) -> bool:
        """Whether nothing stood in front of it, so that it continues what came before."""
        return self.writer is None and self.level is None and self.stamp is None


def peel(line: str) -> Line:
    """Strip prefixes and open JSON until plain text is left."""
    if line[:1] in _NEVER_A_PREFIX and "\x1b" not in line and "[0m" not in line:
        return Line(line, None, None, None, NO_FACTS)
    stripped = strip_line(line)
    text = stripped.text
    if text[:1] != "{" or text[-1:] != "}":
        facts = Facts(host=stripped.host) if stripped.host else NO_FACTS
        if not line.endswith(text):  # logfmt: what is not the message stays behind
            facts = facts_in(line).over(facts)
        return Line(text, stripped.level, stripped.writer, stripped.stamp, facts)
    return _open(stripped, _MOST_NESTED)


def _open(outer: Stripped, deeper: int) -> Line:
    """Open a JSON line. What is inside may have prefixes of its own: Docker wraps whole lines of other loggers."""
    facts = Facts(host=outer.host) if outer.host else NO_FACTS
    inside = open_line(outer.text)
    if not isinstance(inside, Inside):
        facts = inside.over(facts) if inside is not None else facts
        return Line(outer.text, outer.level, outer.writer, outer.stamp, facts)
    level = level_of(inside.level) if inside.level else None
    facts = inside.facts.over(facts)
    writer = " > ".join(filter(None, (outer.writer, inside.writer))) or None
    first, newline, rest = inside.text.partition("\n")
    inner = strip_line(first)
    if inner.text[:1] == "{" and inner.text[-1:] == "}" and not rest and deeper:
        line = _open(inner, deeper - 1)
        writer = " > ".join(filter(None, (writer, line.writer))) or None
        return Line(
            line.text,
            line.level or level or outer.level,
            writer,
            outer.stamp or inside.stamp or line.stamp,
            line.facts.over(facts),
        )
    writer = " > ".join(filter(None, (writer, inner.writer))) or None
    # Docker's own file says nothing of levels, so the level inside decides; a logger's level outside is its own word.
    level = inner.level if outer.text.startswith(_DOCKER) else level or inner.level or outer.level
    return Line(inner.text + newline + rest, level, writer, outer.stamp or inside.stamp or inner.stamp, facts)


def inner_lines(text: str) -> list[Line]:
    """Return the lines of a text that one line of a logger carried, without prefixes of their own.

    A collector's JSON holds what a program printed, with the prefixes that its own loggers and runtimes put there.
    The lines of each writer stand together.
    """
    kept: dict[str | None, list[Line]] = {}
    writer: str | None = None
    for piece in text.replace("\r\n", "\n").split("\n"):
        line = peel(visible(piece) if "\r" in piece else piece)
        writer = writer if line.bare else line.writer
        kept.setdefault(writer, []).append(line)
    return [line for group in kept.values() for line in group]


def decode(data: bytes) -> str | None:
    """Return a line as text, bad bytes written as ``\\xNN``; ``None`` where it is no text at all.

    Leading NULs go: a log that was truncated under its writer starts with a hole. Of a line that a terminal wrote over
    (progress bars end in a carriage return), what stays visible is kept.
    """
    if b"\0" in data:
        data = data.lstrip(b"\0")
        if data.count(b"\0") > _MOST_BAD * len(data):
            return None
        data = data.replace(b"\0", b"")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("utf-8", "backslashreplace")
        # Each bad byte became four characters; a Latin-1 word among ASCII stays far below the limit.
        if len(_BAD_ESCAPE.findall(text)) > _MOST_BAD * len(data):
            return None
    return visible(text) if "\r" in text else text


def visible(text: str) -> str:
    """Return what a terminal would still show of a line with carriage returns in it."""
    text = text.rstrip("\r")
    if "\r" not in text:
        return text
    parts = [part for part in text.split("\r") if part.strip()]
    if any("%" in part for part in parts[:-1]):
        return parts[-1]
    return " ".join(parts)
