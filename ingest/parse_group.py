"""Python exception groups: the members are the causes and come before the group that wraps them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from crashpath.ingest.model import Thrown
from crashpath.ingest.parse_python import parse_python
from crashpath.ingest.piece import Format, Piece
from crashpath.ingest.thrown import bare_exception

_HEAD = "Exception Group Traceback (most recent call last)"
_MARGIN = re.compile(r"([ \t]*)(?:\| ?|\+ (?=Exception Group))(.*)")
_MEMBER = re.compile(r"([ \t]*)(\+-)?\+-+ (?:\d+|\.\.\.) -+[ \t]*")
_CLOSE = re.compile(r"([ \t]*)\+-{10,}[ \t]*")


@dataclass(slots=True)
class _Body:
    """The lines of one member, without margin, and where each stands in the text."""

    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def parse_group(text: str) -> Sequence[Piece]:
    """Read every exception group of a text as one piece, members first, nested groups before what wraps them."""
    start = text.find(_HEAD)
    if start < 0:
        return ()
    start = text.rfind("\n", 0, start) + 1
    first = text.count("\n", 0, start)
    reader = _Reader()
    end = start
    for number, line in enumerate(text[start:].split("\n"), first):
        if not reader.take(line, number):
            break
        end += len(line) + 1
    chain = reader.close()
    return (Piece(Format.PYTHON, start, min(end, len(text)), tuple(chain)),) if chain else ()


class _Reader:
    """Walks down the margins: a member opens below a group, a closing rule ends the group's members."""

    def __init__(self) -> None:
        self.chain: list[Thrown] = []
        self.groups: list[list[Thrown]] = []  # what waits for its members
        self.body = _Body()

    def take(self, line: str, number: int) -> bool:
        """Read one line; false where the groups have ended."""
        if (member := _MEMBER.fullmatch(line)) is not None:
            if member.group(2):  # the first member: what was read up to here is the group
                self.groups.append(self._flush())
            else:
                self.chain.extend(self._flush())
            return True
        if _CLOSE.fullmatch(line) is not None:
            self.chain.extend(self._flush())
            if self.groups:
                self.chain.extend(self.groups.pop())
            return bool(self.groups)
        match = _MARGIN.fullmatch(line)
        if match is None and line.strip() and self.groups:
            return False
        self.body.lines.append(match.group(2) if match is not None else line)
        self.body.numbers.append(number)
        return True

    def close(self) -> list[Thrown]:
        """End every open group, for a text that was cut."""
        self.chain.extend(self._flush())
        while self.groups:
            self.chain.extend(self.groups.pop())
        return self.chain

    def _flush(self) -> list[Thrown]:
        body, self.body = self.body, _Body()
        text = "\n".join(body.lines)
        found = [thrown for piece in parse_python(text) for thrown in piece.chain]
        if not found and (line := bare_exception(text, 0, len(text))) is not None:
            found = [Thrown(line.type, line.message, text.count("\n", 0, line.start))]
        return [Thrown(t.type, t.message, body.numbers[min(t.line, len(body.numbers) - 1)], t.frames) for t in found]
