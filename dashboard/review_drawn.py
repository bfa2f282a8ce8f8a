"""What the pictures of a release review show, as values and words; each form of the report draws them its own way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from crashpath.dashboard import review_words as words
from crashpath.dashboard.figures import percent
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import CohortRow, DayRow, Measure, Review, UnitReport
from crashpath.dashboard.review_tables import by_headline, worst_first
from crashpath.dashboard.svg import HEADLINE_COLOURS, Bar, Point, Series, Whisker

MOST_DRAWN = 40
"""Rows of a picture; the table below it has all."""
_ROOM = timedelta(days=14)
"""So far from the days with a rate one without is drawn at least; farther, if they are more."""
_COLOURS = ("var(--release, #332288)", "var(--baseline, #CC6677)")


@dataclass(frozen=True, slots=True)
class Days:
    """Rates by day, a line for each release, the reviewed one first. ``text`` says what is seen, for those who do not.

    ``limit`` is the highest rate that the policy allows, if it names one.
    """

    title: str
    text: str
    series: tuple[Series, ...]
    limit: float | None


@dataclass(frozen=True, slots=True)
class Cohorts:
    """Rates by cohort with their intervals, the worst first."""

    title: str
    text: str
    rows: tuple[Whisker, ...]
    limit: float | None


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares from 0 to 1, each with its words; those of a baseline beside them where ``before`` is set in a row."""

    title: str
    text: str
    rows: tuple[Bar, ...]


def days(review: Review, unit: UnitReport, measure: Measure) -> Days:
    """Return the rates of a measure by day."""
    names = [name for name in (review.release, review.baseline) if name is not None]
    series = [
        Series(
            f"release {words.clean(name, 80)}" if not i else f"baseline {words.clean(name, 80)}",
            _COLOURS[i],
            tuple(_point(day, measure) for day in unit.days if day.release == name),
        )
        for i, name in enumerate(names)
    ]
    series, far = _near(series)
    shown = [one for one in series if one.points]
    text = (
        f"A line for each release: the share of {unit.unit}s of a day of which {words.MEANING[measure]}, with its 95 % "
        "interval as a band. Days without a rate have the number of their failures (×) below the axis. "
        + " ".join(_summary(one) for one in shown)
    )
    if far:
        text += f" Not drawn: {many(far, 'day')} without a rate far from those with one, which the table has."
    limit = limit_of(review, f"limits.{measure}", unit.unit)
    return Days(f"{str(measure).capitalize()} by day", text, tuple(shown), limit)


def _near(series: list[Series]) -> tuple[list[Series], int]:
    """Leave out days without a rate that would press those with one into a corner: a clock that was a year behind."""
    rated = [point.day for one in series for point in one.points if point.value is not None]
    if not rated:
        return series, 0
    room = max(_ROOM, max(rated) - min(rated))
    first, last = min(rated) - room, max(rated) + room
    near = [replace(one, points=tuple(point for point in one.points if first <= point.day <= last)) for one in series]
    return near, sum(len(one.points) for one in series) - sum(len(one.points) for one in near)


def _point(day: DayRow, measure: Measure) -> Point:
    rate = day.primary if measure is Measure.PRIMARY else day.unanswered
    told = words.rate_in_full(rate)
    if day.attempts is None:
        told = f"no attempts told, {many(rate.failures, 'failure')}"
    return Point(day.day, rate.rate, rate.low, rate.high, rate.failures, f"{day.day.isoformat()} (UTC): {told}")


def _summary(series: Series) -> str:
    known = [point.value for point in series.points if point.value is not None]
    bare = len(series.points) - len(known)
    if not known:
        return f"{series.name}: {many(bare, 'day')}, none with a rate."
    between = f"rates from {percent(min(known))} to {percent(max(known))}"
    return f"{series.name}: {many(len(known), 'day')} with a rate, {between}; {bare} without."


def cohorts(review: Review, unit: UnitReport) -> Cohorts:
    """Return the rates of unanswered attempts by cohort."""
    rows = tuple(_whisker(row) for row in worst_first(unit.cohorts)[:MOST_DRAWN])
    text = (
        f"A row for each cohort, the worst first: the share of {unit.unit}s that nobody answered as a dot, its 95 % "
        "interval as a line, the baseline's rate as a bar across it, the policy's limit as a dashed line."
    )
    return Cohorts("Unanswered by cohort", text, rows, limit_of(review, "cohorts.unanswered", unit.unit))


def _whisker(row: CohortRow) -> Whisker:
    compared = row.rates.get(Measure.UNANSWERED)
    name = words.clean(str(row.cohort), 120)
    if compared is None:
        return Whisker(name, None, None, None, None, words.NO_RATE)
    rate, base = compared.release, compared.baseline
    told = words.rate_in_full(rate)
    return Whisker(name, rate.rate, rate.low, rate.high, None if base is None else base.rate, told)


def classes(review: Review, unit: UnitReport) -> Shares:
    """Return the share of each headline in the failures."""
    before = review.baseline is not None and any(row.baseline_share is not None for row in unit.classes)
    rows = tuple(
        Bar(
            words.class_name(row),
            HEADLINE_COLOURS.get(row.headline, HEADLINE_COLOURS["other"]),
            row.share,
            words.share_words(row.share),
            row.baseline_share if before else None,
            words.share_words(row.baseline_share) if before else "",
        )
        for row in by_headline(unit.classes)
        if row.failure_class is None
    )
    text = f"A bar for each headline: its share of all {unit.unit}s that failed on the main path" + (
        "; above it, hatched, its share in the baseline." if before else "."
    )
    title = "Shares of failures before (hatched) and now" if before else "Shares of failures"
    return Shares(title, text, rows)


def covered(review: Review) -> Shares:
    """Return what is covered of what is declared."""
    rows = tuple(
        Bar(
            words.clean(one.name, 120),
            _COLOURS[0],
            one.covered / one.total if one.total else None,
            f"{words.covered_words(one)}, {one.covered:,} of {one.total:,}",
        )
        for one in review.proof.shares[:MOST_DRAWN]
    )
    text = "A bar for each denominator of the coverage report and the drills: how much of it is covered."
    return Shares("Covered", text, rows)


def limit_of(review: Review, rule: str, unit: str) -> float | None:
    """Return the highest rate that the policy allows by a rule in a unit, where that is a rate."""
    names = (rule, f"{rule} ({unit})")
    return next((one.limit_rate for one in review.thresholds if one.rule in names and one.limit_rate), None)
