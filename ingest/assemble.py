"""Put the lines of a failure together to a record of bounded size."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from crashpath.ingest.facts import facts_in
from crashpath.ingest.lines import NO_FACTS, Line, inner_lines
from crashpath.ingest.model import Facts, Mark, Record

RECORD_BYTES = 256 * 1024
"""A longer record is cut: its head and its tail stay, and it is marked."""


class Kept(NamedTuple):
    """A line of a record, with where it stands in the source."""

    offset: int
    end: int
    line: Line
    at: datetime | None


def attempt_named(line: Line) -> str | None:
    """Return the attempt that a line names, among its fields or in its words."""
    if line.facts.attempt_id is None and "attempt_id" in line.text:
        return facts_in(line.text).attempt_id
    return line.facts.attempt_id


def trim_bounds(kept: list[Kept]) -> tuple[int, int]:
    """Return which lines to drop so that head and tail are about a third of RECORD_BYTES each."""
    room = RECORD_BYTES // 3
    start = size = 0
    while start < len(kept) and size + len(kept[start].line.text) < room:
        size += len(kept[start].line.text) + 1
        start += 1
    stop, size = len(kept), 0
    while stop > start and size + len(kept[stop - 1].line.text) < room:
        stop -= 1
        size += len(kept[stop].line.text) + 1
    return start, stop


def make_record(kept: list[Kept], source: str, facts: Facts, first: int, truncated: bool) -> Record:
    """Join lines to a record. ``first`` is the line whose time is the failure's, where it has one."""
    marked = any(not item.line.bare for item in kept)
    texts: list[str] = []
    marks: list[Mark] = []
    for item in kept:
        outer = item.line
        for n, line in enumerate(inner_lines(outer.text) if "\n" in outer.text else (outer,)):
            texts.append(line.text)
            if marked:  # the level outside is that of the first line; what follows has its own or none
                mark = Mark(line.level or (outer.level if n == 0 else None), outer.writer, item.at)
                marks.extend([mark] * (line.text.count("\n") + 1))
    text = "\n".join(texts)
    if len(text) > RECORD_BYTES:
        text, marks = _cut(text, marks)
        truncated = True
    times = [item.at for item in kept[first:] if item.at] or [item.at for item in kept if item.at]
    at = times[0] if times else None
    return Record(
        source, kept[0].offset, kept[-1].end, text, tuple(marks), _told(kept, first).over(facts), at, truncated
    )


def _told(kept: list[Kept], first: int) -> Facts:
    """Return what the lines tell: those of the failure first, then what was said before it, the nearest first."""
    lines = [item.line for item in (*kept[first:], *reversed(kept[:first]))]
    found = NO_FACTS
    for line in lines:
        if line.facts is not NO_FACTS:
            found = found.over(line.facts)
    failing = len(kept) - first if first < len(kept) else len(kept)
    found = found.over(facts_in("\n".join(line.text for line in lines[:failing])))
    return found.over(facts_in("\n".join(line.text for line in lines[failing:])))


def _cut(text: str, marks: list[Mark]) -> tuple[str, list[Mark]]:
    """Keep head and tail of a text that is too long even as lines."""
    half = RECORD_BYTES // 2
    head, tail = text[:half], text[-half:]
    if not marks:
        return head + tail, marks
    ahead, behind = head.count("\n") + 1, tail.count("\n")
    return head + tail, marks[:ahead] + (marks[-behind:] if behind else [])
