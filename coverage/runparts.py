"""The parts of a run file, held to what a run can have said: whatever else is in one never reaches a store or a report.

All raise `ValueError` or `TypeError`, whose message says what is wrong with the part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crashpath.coverage.units import Unit

MOST = 2**53
"""The largest count: a database adds up hundreds of them in 64 bits, and JSON of any origin holds it exactly."""
_LONGEST_KEY = 2_500
"""Bytes of what databases keep in an index: PostgreSQL takes 2,704."""
_LONGEST_S = 1e12
_DEEPEST = 150
"""Units within units: whoever draws them takes several calls for each, and Python has a thousand."""
_YEARS = range(1970, 3000)


def text(told: Any) -> str:
    """Return a text. One with a NUL, or with half of a pair of surrogates, is none that could be stored."""
    if not isinstance(told, str):
        raise TypeError(f"{told!r:.40} is no text")
    if "\0" in told:
        raise ValueError(f"{told!r:.40} has a NUL in it")
    told.encode()
    return told


def key(told: Any) -> str:
    """Return a text by which something is known: of a length that indexes take."""
    if len(text(told).encode()) > _LONGEST_KEY:
        raise ValueError(f"{told!r:.40}… has more than {_LONGEST_KEY:,} bytes")
    return str(told)


def name(told: Any) -> str:
    """Return a key that is not empty."""
    if not key(told):
        raise ValueError("an id is empty")
    return str(told)


def texts(told: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(told, list):
        raise TypeError(f"{told!r:.40} is no list")
    return tuple(text(one) for one in told)


def moment(told: Any) -> datetime:
    """Return a time with a zone, in UTC, of a year that every zone can show."""
    found = datetime.fromisoformat(told)
    if found.tzinfo is None:
        raise ValueError(f"{told} has no zone")
    if found.year not in _YEARS:
        raise ValueError(f"{told} is no time of a run")
    return found.astimezone(UTC)


def count(told: Any) -> int:
    """Return a whole number of things."""
    if type(told) is not int or not 0 <= told <= MOST:
        raise ValueError(f"{told!r:.40} is no count")
    return told


def seconds(told: Any) -> float:
    """Return a time that something took."""
    if type(told) not in (int, float) or not math.isfinite(told) or not 0 <= told <= _LONGEST_S:
        raise ValueError(f"{told!r:.40} is no number of seconds")
    return float(told)


def counts(told: Mapping[str, Any]) -> dict[str, int]:
    """Return counts by key."""
    return {key(one): count(value) for one, value in told.items()}


def once(keys: Sequence[Any]) -> None:
    """Hold keys to be different ones."""
    if len(set(keys)) != len(keys):
        raise ValueError("something is in it twice")


def nested(units: Sequence[Unit]) -> None:
    """Hold units to lie in one another as parts of a graph do: none in itself, and not without end."""
    parents = {unit.id: unit.parent for unit in units}
    depths = {"": 0}
    for unit in units:
        way: list[str] = []
        at = unit.id
        while at not in depths and at in parents and len(way) <= _DEEPEST:
            way.append(at)
            at = parents[at]
        depth = depths.get(at, 0)
        if depth + len(way) > _DEEPEST:
            raise ValueError(f"{unit.id:.40} lies in itself, or within more than {_DEEPEST} others")
        depths |= {one: depth + above for above, one in enumerate(reversed(way), start=1)}
