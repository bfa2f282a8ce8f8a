"""Crashes by day and name, for a store, a release or a path of which no rates can be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from crashpath.dashboard.trends_model import ALL
from crashpath.dashboard.trends_pictures import OTHERS
from crashpath.dashboard.trends_rates import MOST_LINES
from crashpath.ingest.trends import DayCount


@dataclass(frozen=True, slots=True)
class Counts:
    """Crashes by UTC day and name, the names with the most crashes first; those of ``others`` together come last."""

    names: tuple[str, ...]
    counts: Mapping[tuple[date, str], int]
    others: tuple[str, ...]
    crashes: int


def counts_of(rows: Iterable[DayCount], since: date, *, named: bool) -> Counts:
    """Return the crashes from day ``since`` on, by name where that is asked for."""
    inside = [row for row in rows if row.day >= since]
    sums: Counter[str] = Counter()
    for row in inside:
        sums[row.key if named else ALL] += row.crashes
    order = sorted(sums, key=lambda name: (-sums[name], name))
    names, others = order[:MOST_LINES], order[MOST_LINES:]
    counts: Counter[tuple[date, str]] = Counter()
    for row in inside:
        name = row.key if named else ALL
        counts[row.day, name if name in names else OTHERS] += row.crashes
    whole = (*names, OTHERS) if others else tuple(names)
    return Counts(whole, MappingProxyType(dict(counts)), tuple(others), sums.total())
