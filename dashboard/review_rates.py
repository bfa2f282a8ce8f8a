"""What a review shows of one unit: rates beside the baseline's, by cohort, class, headline and day, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from crashpath.dashboard.intervals import compared, rate
from crashpath.dashboard.review_model import (
    ClassRow,
    Cohort,
    CohortRow,
    Compared,
    DayRow,
    Measure,
    Rate,
    UnitReport,
)
from crashpath.dashboard.sides import CohortTally, Side, Tally
from crashpath.ingest.classes import HEADLINES, headline_of

_NOTHING = Tally()


def unit_report(
    side: Side, base: Side | None, problems: Mapping[tuple[str, Cohort], str], attempts_needed: int | None
) -> UnitReport:
    """Return all rates of a side, beside those of a baseline that attempts are told of in the same unit."""
    return UnitReport(
        side.unit,
        _measures(side.tally, None if base is None else base.tally),
        tuple(_cohorts(side, base, problems)),
        tuple(_classes(side, base)),
        (*(() if base is None else _days(base)), *_days(side)),
        attempts_needed,
    )


def _measures(tally: Tally, base: Tally | None) -> dict[Measure, Compared]:
    return {
        measure: compared(rate(*tally.of(measure)), None if base is None else rate(*base.of(measure)))
        for measure in Measure
    }


def _cohorts(side: Side, base: Side | None, problems: Mapping[tuple[str, Cohort], str]) -> Iterator[CohortRow]:
    before: Mapping[Cohort, CohortTally] = {} if base is None else {one.cohort: one for one in base.cohorts}
    for one in side.cohorts:
        then = before.get(one.cohort)
        rates = _measures(one.tally, None if then is None else then.tally)
        yield CohortRow(one.cohort, rates, problems.get((side.unit, one.cohort)))


def _classes(side: Side, base: Side | None) -> Iterator[ClassRow]:
    """Yield each headline with failures, and after it its classes, the most failures first."""
    now, then = _counted(side), Counter() if base is None else _counted(base)
    names = sorted(now | then, key=lambda name: (-now[name], -then[name], name))
    for headline in HEADLINES:
        inside = [name for name in names if headline_of(name) == headline]
        if inside:
            yield _class(side, base, headline, None, sum(now[one] for one in inside), sum(then[one] for one in inside))
        for name in inside:
            yield _class(side, base, headline, name, now[name], then[name])


def _counted(side: Side) -> Counter[str]:
    counted: Counter[str] = Counter()
    for group in side.groups:
        counted[group.failure_class] += group.failures
    return counted


def _class(side: Side, base: Side | None, headline: str, name: str | None, now: int, then: int) -> ClassRow:
    before = _NOTHING if base is None else base.tally
    return ClassRow(
        headline,
        name,
        compared(rate(now, side.tally.tried), None if base is None else rate(then, before.tried)),
        now / side.tally.primary if side.tally.primary else None,
        then / before.primary if before.primary else None,
    )


def _days(side: Side) -> Iterator[DayRow]:
    for day, tally in side.days.items():
        attempts = None if day in side.without_attempts else tally.attempts
        yield DayRow(side.release, day, attempts, _rate(tally, Measure.PRIMARY), _rate(tally, Measure.UNANSWERED))


def _rate(tally: Tally, measure: Measure) -> Rate:
    return rate(*tally.of(measure))
