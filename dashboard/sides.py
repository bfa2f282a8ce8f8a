"""One release in one unit: its failed attempts set against its attempts, day by day and cohort by cohort.

Failures come from crashes (``FailedCell``, or sums of them) and attempts from files and events (``AttemptCount``). Both
tell of the same failed attempts, so of two totals the larger one holds, never their sum. What stands on no denominator
is kept apart, with its reason: a failure on a day of which no attempts were told, and one that names no phase where
attempts of several units are told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from crashpath.dashboard.review_model import Cohort, Measure
from crashpath.ingest.attempts import UNITS
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_read import FailedCell
from crashpath.ingest.failed_sums import CohortSum, DaySum
from crashpath.ingest.schema import UNKNOWN, may_be


@dataclass(frozen=True, slots=True)
class Tally:
    """Failed attempts of some attempts. ``tried`` of these tried the main path; the others were sent past it."""

    attempts: int = 0
    tried: int = 0
    primary: int = 0
    unanswered: int = 0

    def of(self, measure: Measure) -> tuple[int, int]:
        """Return the failures of a measure and the attempts that they are counted on."""
        if measure is Measure.PRIMARY:
            return self.primary, self.tried
        if measure is Measure.UNANSWERED:
            return self.unanswered, self.attempts
        return self.primary - self.unanswered, self.tried

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.attempts + other.attempts,
            self.tried + other.tried,
            self.primary + other.primary,
            self.unanswered + other.unanswered,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Failed attempts (primary) of one cluster, or of what has none (``cluster`` is ``None``).

    ``last`` of them are of the last day of which attempts are told.
    """

    cluster: int | None
    failure_class: str
    failures: int
    last: int


@dataclass(frozen=True, slots=True)
class CohortTally:
    """What is known of a cohort. ``told`` is ``False`` where failures name a cohort of which no attempts are told."""

    cohort: Cohort
    tally: Tally
    told: bool


@dataclass(frozen=True, slots=True)
class Side:
    """One release in one unit.

    ``days`` has every day with attempts or failures, its tally without attempts where none were told (``bare``).
    ``unlogged`` failures are told by counts of attempts alone. ``vague`` failures name no cohort of those that attempts
    are told of. ``bare`` failures are of days without attempts, ``phaseless`` of an unknown phase where that decides.
    """

    release: str
    unit: str
    tally: Tally
    days: Mapping[date, Tally]
    without_attempts: frozenset[date]
    cohorts: tuple[CohortTally, ...]
    groups: tuple[Group, ...]
    unlogged: int
    vague: int
    bare: int
    phaseless: int

    @property
    def stray(self) -> int:
        """Failures that are counted in no cohort of those that attempts are told of; any of them may be each one's."""
        return self.vague + sum(one.tally.primary for one in self.cohorts if not one.told)


@dataclass(slots=True)
class _Sums:
    """What is added up of one day or cohort, from crashes and from counts."""

    attempts: int = 0
    rerouted: int = 0
    logged: int = 0
    unanswered: int = 0
    contained: int = 0
    failures: int | None = None
    left: int | None = None
    rows: int = 0
    silent: int = 0

    def count(self, row: AttemptCount) -> None:
        self.rows += 1
        self.attempts += row.attempts
        self.rerouted += row.rerouted or 0
        if row.failures is not None:
            self.failures = (self.failures or 0) + row.failures
        if row.unanswered is None:
            self.silent += 1
        else:
            self.left = (self.left or 0) + row.unanswered

    def crash(self, cell: FailedCell | CohortSum | DaySum) -> None:
        self.logged += cell.attempts
        self.unanswered += cell.unanswered
        self.contained += cell.contained

    @property
    def unlogged(self) -> int:
        return max(0, (self.failures or 0) - self.logged)

    def tally(self) -> Tally:
        """Settle what both tell.

        Counts that say how many were left unanswered know it of the failures that they counted; a failure beyond those
        (a process that died before it could tell) was not answered, unless an event says that it was.
        """
        primary = self.logged + self.unlogged
        if self.left is None or self.silent:
            unanswered = max(primary - self.contained, self.left or 0)
        else:
            beyond = max(0, self.logged - (self.failures or 0))
            untold = self.logged - self.unanswered - self.contained
            unanswered = max(self.left, self.unanswered) + min(untold, beyond)
        primary = max(primary, unanswered)
        tried = self.attempts - self.rerouted
        return Tally(self.attempts, tried if tried >= primary else self.attempts, primary, unanswered)


def units_told(counts: Iterable[AttemptCount]) -> tuple[str, ...]:
    """Return the units of which attempts are told, in their order."""
    told = {row.unit for row in counts}
    return tuple(unit for unit in UNITS if unit in told)


def make_side(
    release: str,
    unit: str,
    cells: Sequence[FailedCell] | Sequence[DaySum],
    counts: Sequence[AttemptCount],
    cohorts: Sequence[CohortSum] | None = None,
    groups: Sequence[Group] | None = None,
    homes: Sequence[AttemptCount] | None = None,
) -> Side:
    """Set failures against attempts. Both are of this release; of the counts all units, none of a day to come.

    ``cohorts`` and ``groups`` are the sums over the days of which attempts are told, in this unit and, where attempts
    are told of no other, of unknown units; left out they are those of the cells, which then have to be whole ones.
    ``homes`` are the attempts by cohort, over all days; left out they are those of the counts.
    """
    alone = units_told(counts) == (unit,)
    rows = [row for row in counts if row.unit == unit]
    mine = [cell for cell in cells if cell.unit == unit or (alone and cell.unit == UNKNOWN)]
    told = {row.day for row in rows}
    days: dict[date, _Sums] = defaultdict(_Sums)
    for row in rows:
        days[row.day].count(row)
    for cell in mine:
        days[cell.day].crash(cell)
    tallies = {day: sums.tally() for day, sums in sorted(days.items())}
    whole = [cell for cell in mine if isinstance(cell, FailedCell) and cell.day in told]
    by_cohort = rows if homes is None else [row for row in homes if row.unit == unit]
    tallied, vague = _cohorts(by_cohort, whole if cohorts is None else cohorts)
    return Side(
        release,
        unit,
        sum((tally for day, tally in tallies.items() if day in told), Tally()),
        tallies,
        frozenset(tallies.keys() - told),
        tallied,
        tuple(_groups(whole, max(told, default=None)) if groups is None else groups),
        unlogged=sum(days[day].unlogged for day in told),
        vague=vague,
        bare=sum(tally.primary for day, tally in tallies.items() if day not in told),
        phaseless=0 if alone else sum(cell.attempts for cell in cells if cell.unit == UNKNOWN),
    )


def _groups(cells: Iterable[FailedCell], newest: date | None) -> Iterator[Group]:
    groups: dict[tuple[int | None, str], list[int]] = defaultdict(lambda: [0, 0])
    for cell in cells:
        counted = groups[cell.cluster, cell.failure_class]
        counted[0] += cell.attempts
        counted[1] += cell.attempts if cell.day == newest else 0
    for (cluster, name), (failures, last) in groups.items():
        yield Group(cluster, name, failures, last)


def _cohorts(
    rows: Sequence[AttemptCount], cells: Iterable[FailedCell | CohortSum]
) -> tuple[tuple[CohortTally, ...], int]:
    """Return what is known of each cohort, the most attempts first, and how many failures fit none of them alone."""
    sums: dict[Cohort, _Sums] = defaultdict(_Sums)
    for row in rows:
        sums[Cohort(row.platform, row.model)].count(row)
    homes = frozenset(sums)
    fitting: dict[Cohort, list[Cohort]] = {}  # there are many cells of each
    vague = 0
    for cell in cells:
        named = Cohort(cell.platform, cell.model)
        if named not in fitting:
            fitting[named] = _fits(named, homes)
        fits = fitting[named]
        if len(fits) > 1:
            vague += cell.attempts
            continue
        sums[fits[0] if fits else named].crash(cell)
    found = [CohortTally(cohort, one.tally(), cohort in homes) for cohort, one in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.tally.attempts, one.cohort))), vague


def _fits(named: Cohort, homes: Collection[Cohort]) -> list[Cohort]:
    """Return the cohorts that attempts were told of in which a failure may be counted: its own, else all it fits.

    A part that was not told on either side fits any; where several fit, nobody knows which it was.
    """
    if named in homes:
        return [named]
    return [one for one in homes if may_be(one.platform, named.platform) and may_be(one.model, named.model)]
