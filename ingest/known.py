"""Prefixes that were met before, known again at a glance: a log has the same few on most of its lines.

This changes speed, never the answer: only prefixes are kept that mean the same whatever follows, whatever their digits.
"""

from __future__ import annotations

from typing import NamedTuple

from crashpath.ingest.rulesat import Table

_KEY = 12
_SIZE = 64
_ZEROS = str.maketrans("123456789", "000000000")


class Known(NamedTuple):
    """A prefix, as it stood and with zeros for digits, and what it said; ``table`` has the rules that may follow it."""

    text: str
    zeros: str
    end: int
    table: Table
    level: str | None
    writer: str | None
    stamp: str | None
    stamp_at: tuple[int, int] | None
    writers_at: tuple[tuple[int, int], ...]


_memo: dict[str, Known] = {}


def recall(line: str) -> Known | None:
    """Return the known prefix that a line starts with, with what it says there."""
    known = _memo.get(line[:_KEY])
    if known is None:
        return None
    if not line.startswith(known.text):
        text = line[: known.end]
        if text.translate(_ZEROS) != known.zeros:
            return None
        writer = " > ".join([line[start:end] for start, end in known.writers_at]) or None
        stamp = line[known.stamp_at[0] : known.stamp_at[1]] if known.stamp_at else None
        known = _memo[line[:_KEY]] = known._replace(text=text, writer=writer, stamp=stamp)
    # A blank right after it would have been taken off with it.
    return None if known.text[-1] != " " and line[known.end : known.end + 1] == " " else known


def remember(
    text: str, table: Table, level: str | None, stamp: str | None, writer: str | None, spans: list[tuple[int, int]]
) -> None:
    """Keep a prefix that is whole in itself; ``spans`` are the places of its writers."""
    if len(_memo) >= _SIZE:
        _memo.clear()
    start = text.index(stamp) if stamp else 0
    place = (start, start + len(stamp)) if stamp else None
    zeros = text.translate(_ZEROS)
    _memo[text[:_KEY]] = Known(text, zeros, len(text), table, level, writer, stamp, place, tuple(spans))
