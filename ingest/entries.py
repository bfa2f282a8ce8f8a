"""Where the message of an exception ends: at the next log entry.

A message may go on over many lines, and a parser sees text alone, without what stood in front of it. The marks know
better: a line that a logger gave another level than the exception's own line, or a time where that line has none, is
an entry of its own, a healthy one or what was said of the failure afterwards, and no part of the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crashpath.ingest.model import Mark, Parsed, Thrown


def end_messages(parsed: Parsed, text: str, marks: Sequence[Mark]) -> Parsed:
    """Return what was parsed, messages cut where the next entry begins. ``marks``: one a line of ``text``, or none."""
    if not marks or not any("\n" in thrown.message for thrown in parsed.chain):
        return parsed
    lines = text.split("\n")
    return replace(parsed, chain=tuple(_ended(thrown, lines, marks) for thrown in parsed.chain))


def _ended(thrown: Thrown, lines: Sequence[str], marks: Sequence[Mark]) -> Thrown:
    said = thrown.message.split("\n")
    own = marks[thrown.line] if thrown.line < len(marks) else Mark()
    position = thrown.line
    for n, words in enumerate(said[1:], start=1):
        position = _next(lines, position + 1, words.strip())
        if position >= len(marks):
            return thrown  # a message that was put together otherwise
        mark = marks[position]
        if mark.level not in (None, own.level) or (mark.at is not None and own.at is None):
            return replace(thrown, message="\n".join(said[:n]).rstrip())
    return thrown


def _next(lines: Sequence[str], start: int, words: str) -> int:
    """Find the line with these words, here or soon below; ``len(lines)`` where there is none."""
    near = range(start, min(start + 3, len(lines)))
    return next((i for i in near if lines[i].strip() == words), len(lines))
