"""The tables of a release review as text, row by row: each form of the report shows these, and computes none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crashpath.dashboard.figures import percent
from crashpath.dashboard.review_model import ClassRow, CohortRow, Compared, Measure, Proof, Review, UnitReport
from crashpath.dashboard.review_words import (
    MEANING,
    attempts_words,
    class_name,
    clean,
    counts_words,
    covered_words,
    interval_words,
    met_words,
    p_words,
    rate_lines,
    rate_words,
    ratio_words,
    share_words,
    stamp,
)

MOST_NAME = 120


@dataclass(frozen=True, slots=True)
class Column:
    """A column; numbers stand on the right."""

    name: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, all inert text; ``strong`` are the rows that sum up those below them."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[int] = frozenset()

    def head(self, most: int) -> Table:
        """Return the first rows alone."""
        return Table(self.caption, self.columns, self.rows[:most], self.strong)


def rates_table(unit: UnitReport) -> Table:
    """Each measure: of release and baseline the rate, its interval and what was counted; difference and ratio."""
    rows: list[tuple[str, ...]] = []
    strong: list[int] = []
    for measure, compared in ordered(unit):
        for place, (name, value, interval, counts) in enumerate(rate_lines(compared)):
            if not place:
                strong.append(len(rows))
            rows.append((str(measure) if not place else "", name, value, interval, counts))
    columns = (
        Column("failures"),
        Column("of"),
        Column("rate", True),
        Column("95 % interval", True),
        Column(f"failed of {unit.unit}s", True),
    )
    return Table(f"Rates by {clean(unit.unit, 40)}", columns, tuple(rows), frozenset(strong))


def ordered(unit: UnitReport) -> Iterator[tuple[Measure, Compared]]:
    """Yield what is known of each measure, in the order in which they are shown."""
    yield from ((measure, unit.rates[measure]) for measure in MEANING if measure in unit.rates)


def worst_first(rows: Iterable[CohortRow]) -> list[CohortRow]:
    """Return cohorts by what is certain of their rate of unanswered attempts; by the lower limit, then the rate."""

    def bad(row: CohortRow) -> tuple[float, float, int, CohortRow]:
        compared = row.rates.get(Measure.UNANSWERED)
        rate = None if compared is None else compared.release
        low = -1.0 if rate is None or rate.low is None else rate.low
        value = -1.0 if rate is None or rate.rate is None else rate.rate
        return -low, -value, -(0 if rate is None else rate.attempts), row

    return sorted(rows, key=lambda row: (bad(row)[:3], row.cohort))


def cohorts_table(unit: UnitReport) -> Table:
    """Cohorts, the worst first: unanswered with interval and counts, the baseline's, and primary."""
    columns = (
        Column("cohort"),
        Column("unanswered", True),
        Column("95 % interval", True),
        Column("failed of", True),
        Column("baseline", True),
        Column("primary", True),
    )
    return Table("Cohorts, the worst first", columns, tuple(_cohort(row) for row in worst_first(unit.cohorts)))


def _cohort(row: CohortRow) -> tuple[str, ...]:
    unanswered, primary = row.rates.get(Measure.UNANSWERED), row.rates.get(Measure.PRIMARY)
    release = None if unanswered is None else unanswered.release
    return (
        clean(str(row.cohort), MOST_NAME),
        rate_words(release),
        interval_words(release),
        counts_words(release),
        rate_words(None if unanswered is None else unanswered.baseline) if _has_baseline(unanswered) else "–",
        rate_words(None if primary is None else primary.release),
    )


def _has_baseline(compared: Compared | None) -> bool:
    return compared is not None and compared.baseline is not None


def cohort_problems(unit: UnitReport) -> list[str]:
    """Return what cannot be told or trusted of cohorts, a sentence each."""
    return [
        f"{clean(str(row.cohort), MOST_NAME)}: {clean(row.problem)}" for row in worst_first(unit.cohorts) if row.problem
    ]


def classes_table(unit: UnitReport) -> Table:
    """Headlines, each with its classes below it: share of all failures now and before, rate, interval, counts."""
    rows = by_headline(unit.classes)
    columns = (
        Column("class"),
        Column("share", True),
        Column("before", True),
        Column("rate", True),
        Column("95 % interval", True),
        Column("failed of", True),
        Column("ratio", True),
    )
    strong = frozenset(i for i, row in enumerate(rows) if row.failure_class is None)
    return Table("Failures on the main path by class", columns, tuple(_class(row) for row in rows), strong)


def by_headline(rows: Sequence[ClassRow]) -> list[ClassRow]:
    """Return headlines in their order, each followed by its classes, the most failures first."""
    order = list(dict.fromkeys(row.headline for row in rows if row.failure_class is None))
    order += [name for name in dict.fromkeys(row.headline for row in rows) if name not in order]
    place = {name: i for i, name in enumerate(order)}
    return sorted(
        rows,
        key=lambda row: (
            place[row.headline],
            row.failure_class is not None,
            -row.rate.release.failures,
            row.failure_class or "",
        ),
    )


def _class(row: ClassRow) -> tuple[str, ...]:
    release = row.rate.release
    return (
        class_name(row),
        share_words(row.share),
        share_words(row.baseline_share),
        rate_words(release),
        interval_words(release),
        counts_words(release),
        ratio_words(row.rate.ratio),
    )


def days_table(unit: UnitReport) -> Table:
    """Days of release and baseline; a day of which no attempts were told has failures and no rate."""
    columns = (
        Column("day (UTC)"),
        Column("release"),
        Column("attempts", True),
        Column("unanswered", True),
        Column("rate", True),
        Column("95 % interval", True),
        Column("primary", True),
        Column("rate", True),
    )
    rows = tuple(
        (
            day.day.isoformat(),
            clean(day.release, MOST_NAME),
            attempts_words(day),
            f"{day.unanswered.failures:,}",
            rate_words(day.unanswered),
            interval_words(day.unanswered),
            f"{day.primary.failures:,}",
            rate_words(day.primary),
        )
        for day in sorted(unit.days, key=lambda day: (day.day, day.release))
    )
    return Table("Failures by day", columns, rows)


def movements_table(review: Review) -> Table:
    """What is new, regressed, spiking, fading or gone."""
    columns = (Column("change"), Column("what"), Column("title"), Column("failures"), Column("p", True))
    rows = tuple(
        (
            str(one.change),
            clean(one.key, MOST_NAME),
            clean(one.title, MOST_NAME),
            clean(one.sentence),
            p_words(one.p) or "–",
        )
        for one in review.movements
    )
    return Table("What moved", columns, rows)


def thresholds_table(review: Review) -> Table:
    """Every rule of the policy beside what was measured."""
    columns = (Column("rule"), Column("of"), Column("limit"), Column("measured"), Column("result"))
    rows = tuple(
        (
            clean(one.rule, MOST_NAME),
            clean(one.subject, MOST_NAME) or "–",
            clean(one.limit),
            clean(one.measured),
            met_words(one),
        )
        for one in review.thresholds
    )
    return Table("Every rule of the policy beside what was measured", columns, rows)


def looks_table(review: Review) -> Table:
    """Earlier looks, the newest first."""
    columns = (Column("look", True), Column("at"), Column("verdict"), Column("failed of", True), Column("baseline"))
    rows = tuple(
        (
            f"{one.number:,}",
            stamp(one.at),
            str(one.verdict),
            f"{one.failures:,} of {one.attempts:,}",
            "–" if one.baseline is None else clean(one.baseline, MOST_NAME),
        )
        for one in sorted(review.earlier, key=lambda one: -one.number)
    )
    return Table("Earlier looks at this release", columns, rows)


def shares_table(proof: Proof) -> Table:
    """What was covered of what was declared."""
    columns = (Column("proven"), Column("covered", True), Column("of", True), Column("share", True))
    rows = tuple(
        (clean(one.name, MOST_NAME), f"{one.covered:,}", f"{one.total:,}", covered_words(one)) for one in proof.shares
    )
    return Table("Covered of what is declared", columns, rows)


def apart_lines(review: Review) -> list[str]:
    """Return what stands on no denominator, each with its count."""
    told = [(f"{one.failures:,}", clean(one.sentence)) for one in review.apart]
    return [words if count in words.split() else f"{count}: {words}" for count, words in told]


def proof_lines(proof: Proof) -> list[str]:
    """Return what drills have shown, as sentences."""
    found = []
    if proof.model is not None:
        found.append(f"Evidence of model {clean(proof.model, MOST_NAME)}{_age(proof)}.")
    if proof.drills:
        bound = "" if proof.lower_bound is None else f"; at least {percent(proof.lower_bound)} pass (95 % bound)"
        found.append(f"Last drills of faults: {proof.drills:,}{bound}.")
    found += [f"Red: {clean(one, MOST_NAME)}" for one in proof.red]
    field = (
        (proof.contained, "in classes that a drill shows contained"),
        (proof.checked, "in others that a check of `crashpath diagnose` looks for"),
        (proof.unproven, "in neither"),
    )
    told = [f"{percent(share)} {words}" for share, words in field if share is not None]
    if told:
        found.append(f"Of the field's crashes {', '.join(told)}.")
    if proof.uncovered_field_classes:
        names = ", ".join(clean(one, MOST_NAME) for one in proof.uncovered_field_classes)
        found.append(f"In the field, and no drill that counts shows them contained: {names}.")
    return found or ["Nothing was proven of this release: no coverage and no drill is known."]


def _age(proof: Proof) -> str:
    """Return how old the evidence is, and where nothing of it counts that it is too old for that."""
    if proof.shares or proof.age_days is None:
        return "" if proof.age_days is None else f", {proof.age_days:.1f} days old"
    days = math.ceil(10 * proof.age_days) / 10  # what is too old is never told as just on the limit
    return f", {days:,.1f} days old, does not count: it is older than the policy allows (coverage.max_age_days)"
