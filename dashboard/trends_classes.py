"""Failures by headline and class over a window, and by day, as rates or as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date

from crashpath.dashboard.intervals import rate
from crashpath.dashboard.review_model import Rate
from crashpath.dashboard.trends_model import ClassDay, Classes, ClassFigure, Rates
from crashpath.ingest.classes import HEADLINES, headline_of
from crashpath.ingest.failed_trends import ClassSum
from crashpath.ingest.trends import DayCount


def class_rates(rates: Rates, sums: Iterable[ClassSum]) -> Classes:
    """Return the rates of classes: logged failures of the attempts that tried the main path, as in a review."""
    counted = {name: one for one in rates.counted for name in one.lot.releases}
    found: Counter[tuple[date, str]] = Counter()
    for row in sums:
        one = counted.get(row.release)
        if one is None or row.day not in one.days or row.unit not in one.lot.units:
            continue
        if one.lot.platforms is None or row.platform in one.lot.platforms:
            found[row.day, row.failure_class] += row.attempts
    tried = {day: tally.tried for day, tally in rates.days.items()}
    whole = rates.tally
    return Classes(
        _figures(found, lambda failures: rate(failures, whole.tried)),
        _days(found, tried),
        max(0, whole.primary - found.total()),
    )


def class_counts(counts: Iterable[DayCount]) -> Classes:
    """Return crashes by class."""
    found = Counter({(row.day, row.key): row.crashes for row in counts})
    return Classes(_figures(found, lambda crashes: Rate(crashes, 0, None, None, None)), _days(found, {}), 0)


def _figures(found: Mapping[tuple[date, str], int], figure: Callable[[int], Rate]) -> tuple[ClassFigure, ...]:
    """Return each headline, and after it its classes, the most failures first."""
    sums: Counter[str] = Counter()
    for (_, name), failures in found.items():
        sums[name] += failures
    rows: list[ClassFigure] = []
    for headline in HEADLINES:
        inside = sorted((name for name in sums if headline_of(name) == headline), key=lambda name: (-sums[name], name))
        rows.append(ClassFigure(headline, None, figure(sum(sums[name] for name in inside))))
        rows += [ClassFigure(headline, name, figure(sums[name])) for name in inside]
    return tuple(rows)


def _days(found: Mapping[tuple[date, str], int], tried: Mapping[date, int]) -> tuple[ClassDay, ...]:
    return tuple(ClassDay(day, name, failures, tried.get(day, 0)) for (day, name), failures in sorted(found.items()))


def level(classes: Classes, opened: str | None) -> Classes:
    """Return the headlines (those with failures), or the classes of the one that is opened."""
    if opened is not None:
        figures = tuple(one for one in classes.figures if one.headline == opened and one.failure_class is not None)
        names = {one.name for one in figures}
        return Classes(figures, tuple(one for one in classes.days if one.failure_class in names), classes.unlogged)
    sums: dict[tuple[date, str], ClassDay] = {}
    for one in classes.days:
        key = (one.day, headline_of(one.failure_class))
        before = sums[key].failures if key in sums else 0
        sums[key] = ClassDay(*key, before + one.failures, one.tried)
    figures = tuple(one for one in classes.figures if one.failure_class is None and one.rate.failures)
    return Classes(figures, tuple(sums[key] for key in sorted(sums)), classes.unlogged)
