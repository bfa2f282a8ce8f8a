"""A release review as one page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from crashpath.dashboard import review_drawn as drawn
from crashpath.dashboard import review_words as words
from crashpath.dashboard.review_model import Measure, Review, UnitReport
from crashpath.dashboard.review_tables import (
    Table,
    apart_lines,
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
)
from crashpath.dashboard.svg import bars, rates_over_days, whiskers
from crashpath.dashboard.svg_parts import Words

WIDE, NARROW = 800, 340
"""Pixels of a picture on a screen and on a telephone: each is drawn for both."""
_MOVED = 20
"""Rows of what moved that stand open; the others are folded."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for a wide and for a narrow window, and the same figures as a table."""

    title: str
    text: str
    wide: Markup
    narrow: Markup
    table: Table


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
        days = drawn.days(review, unit, measure)
        yield from _drawn(
            partial(rates_over_days, days.series, days.limit),
            f"{unit.unit}-{measure}-days",
            days,
            days_table(unit),
        )
    cohorts, classes = drawn.cohorts(review, unit), drawn.classes(review, unit)
    yield from _drawn(
        partial(whiskers, cohorts.rows, cohorts.limit),
        f"{unit.unit}-cohorts",
        cohorts,
        cohorts_table(unit),
    )
    yield from _drawn(partial(bars, classes.rows), f"{unit.unit}-classes", classes, classes_table(unit))


def _coverage(review: Review) -> list[Picture]:
    covered = drawn.covered(review)
    return list(_drawn(partial(bars, covered.rows), "coverage", covered, shares_table(review.proof)))


def _drawn(
    draw: Callable[[Words, int], str], id: str, of: drawn.Days | drawn.Cohorts | drawn.Shares, table: Table
) -> Iterator[Picture]:
    wide = draw(Words(f"{id}-w", of.title, of.text), WIDE)
    if wide:
        narrow = draw(Words(f"{id}-n", of.title, of.text), NARROW)
        yield Picture(of.title, of.text, Markup(wide), Markup(narrow), table)
