"""A release review as one page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from crashpath.coverage.wholefile import write_whole
from crashpath.dashboard import review_words as words
from crashpath.dashboard.figures import percent
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import CohortRow, DayRow, Measure, Review, UnitReport
from crashpath.dashboard.review_tables import (
    Table,
    apart_lines,
    by_headline,
    classes_table,
    cohort_problems,
    cohorts_table,
    days_table,
    looks_table,
    movements_table,
    proof_lines,
    rates_table,
    shares_table,
    thresholds_table,
    worst_first,
)
from crashpath.dashboard.svg import HEADLINE_COLOURS, Bar, Point, Series, Whisker, bars, rates_over_days, whiskers
from crashpath.dashboard.svg_parts import Words

WIDE, NARROW = 800, 340
"""Pixels of a picture on a screen and on a telephone: each is drawn for both."""
MOST_DRAWN = 40
"""Rows of a picture; the table below it has all."""
_MOVED = 20
"""Rows of what moved that stand open; the others are folded."""
_COLOURS = ("var(--release, #332288)", "var(--baseline, #CC6677)")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for a wide and for a narrow window, and the same figures as a table."""

    title: str
    text: str
    wide: Markup
    narrow: Markup
    table: Table


def write_page(target: Path, review: Review) -> None:
    """Write the page in one go: a page that is there is whole. Raises `OSError`."""
    write_whole(target, page(review).encode("utf-8", "backslashreplace"))


def page(review: Review) -> str:
    """Return the page."""
    template = files("crashpath.dashboard").joinpath("review_page.html").read_text(encoding="utf-8")
    moved = movements_table(review)
    ordered = sorted(review.units, key=lambda one: one.unit != review.unit)
    return (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            review=review,
            words=words,
            units=[(unit, rates_table(unit), list(pictures(review, unit)), cohort_problems(unit)) for unit in ordered],
            meaning={str(measure): meaning for measure, meaning in words.MEANING.items()},
            movements=moved.head(_MOVED),
            moved_more=replace(moved, rows=moved.rows[_MOVED:]),
            thresholds=thresholds_table(review),
            apart=apart_lines(review),
            proof=proof_lines(review.proof),
            coverage=_coverage(review),
            looks=looks_table(review),
        )
    )


def pictures(review: Review, unit: UnitReport) -> Iterator[Picture]:
    """Yield the pictures of a unit that there is something to draw in."""
    for measure in (Measure.UNANSWERED, Measure.PRIMARY):
        yield from _days(review, unit, measure)
    yield from _cohorts(review, unit)
    yield from _classes(review, unit)


def limit_of(review: Review, rule: str, unit: str) -> float | None:
    """Return the highest rate that the policy allows by a rule in a unit, where that is a rate."""
    names = (rule, f"{rule} ({unit})")
    return next((one.limit_rate for one in review.thresholds if one.rule in names and one.limit_rate), None)


def _drawn(draw: Callable[[Words, int], str], id: str, title: str, text: str, table: Table) -> Iterator[Picture]:
    wide = draw(Words(f"{id}-w", title, text), WIDE)
    if wide:
        yield Picture(title, text, Markup(wide), Markup(draw(Words(f"{id}-n", title, text), NARROW)), table)


def _days(review: Review, unit: UnitReport, measure: Measure) -> Iterator[Picture]:
    names = [name for name in (review.release, review.baseline) if name is not None]
    series = [
        Series(
            f"release {words.clean(name, 80)}" if not i else f"baseline {words.clean(name, 80)}",
            _COLOURS[i],
            tuple(_point(day, measure) for day in unit.days if day.release == name),
        )
        for i, name in enumerate(names)
    ]
    shown = [one for one in series if one.points]
    text = (
        f"A line for each release: the share of {unit.unit}s of a day of which {words.MEANING[measure]}, with its 95 % "
        "interval as a band. Days without a rate have the number of their failures (×) below the axis. "
        + " ".join(_summary(one) for one in shown)
    )
    limit = limit_of(review, f"limits.{measure}", unit.unit)
    yield from _drawn(
        lambda its, width: rates_over_days(shown, limit, its, width),
        f"{unit.unit}-{measure}-days",
        f"{str(measure).capitalize()} by day",
        text,
        days_table(unit),
    )


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


def _cohorts(review: Review, unit: UnitReport) -> Iterator[Picture]:
    rows = [_whisker(row) for row in worst_first(unit.cohorts)[:MOST_DRAWN]]
    text = (
        f"A row for each cohort, the worst first: the share of {unit.unit}s that nobody answered as a dot, its 95 % "
        "interval as a line, the baseline's rate as a bar across it, the policy's limit as a dashed line."
    )
    limit = limit_of(review, "cohorts.unanswered", unit.unit)
    yield from _drawn(
        lambda its, width: whiskers(rows, limit, its, width),
        f"{unit.unit}-cohorts",
        "Unanswered by cohort",
        text,
        cohorts_table(unit),
    )


def _whisker(row: CohortRow) -> Whisker:
    compared = row.rates.get(Measure.UNANSWERED)
    name = words.clean(str(row.cohort), 120)
    if compared is None:
        return Whisker(name, None, None, None, None, words.NO_RATE)
    rate, base = compared.release, compared.baseline
    told = words.rate_in_full(rate)
    return Whisker(name, rate.rate, rate.low, rate.high, None if base is None else base.rate, told)


def _classes(review: Review, unit: UnitReport) -> Iterator[Picture]:
    before = review.baseline is not None and any(row.baseline_share is not None for row in unit.classes)
    rows = [
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
    ]
    text = f"A bar for each headline: its share of all {unit.unit}s that failed on the main path" + (
        "; above it, hatched, its share in the baseline." if before else "."
    )
    title = "Shares of failures before (hatched) and now" if before else "Shares of failures"
    yield from _drawn(
        lambda its, width: bars(rows, its, width), f"{unit.unit}-classes", title, text, classes_table(unit)
    )


def _coverage(review: Review) -> list[Picture]:
    rows = [
        Bar(
            words.clean(one.name, 120),
            _COLOURS[0],
            one.covered / one.total if one.total else None,
            f"{words.covered_words(one)}, {one.covered:,} of {one.total:,}",
        )
        for one in review.proof.shares[:MOST_DRAWN]
    ]
    text = "A bar for each denominator of the coverage report and the drills: how much of it is covered."
    return list(
        _drawn(lambda its, width: bars(rows, its, width), "coverage", "Covered", text, shares_table(review.proof))
    )
