"""Everything that a review knows of a release and its baseline, read from the store in one look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.dashboard.review_words import clean
from crashpath.dashboard.sides import Group, Side, make_side, units_told
from crashpath.dashboard.unheard import Unheard, unheard
from crashpath.ingest.attempts import UNITS
from crashpath.ingest.attempts_summed import summed_attempts
from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_read import failed_releases as named_releases
from crashpath.ingest.failed_read import releases as known_releases
from crashpath.ingest.failed_read import tried_releases
from crashpath.ingest.failed_sums import (
    CohortSum,
    DaySum,
    Scope,
    counted_alone,
    failed_clusters,
    failed_cohorts,
    failed_days,
    failed_releases,
)
from crashpath.ingest.first_seen import first_days, first_releases, has_earlier
from crashpath.ingest.heard import HeardCohort, heard
from crashpath.ingest.nights import NightSeen, last_night
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables import Cluster

_MOST_TITLE = 120
"""Most characters of a cluster's title: the figures of a sentence come behind it."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a review says of a cluster: ``title`` is one line, cut. ``first_release`` is that of its first day, where
    that was asked.
    """

    number: int
    title: str
    failure_class: str
    resolved_in: str | None
    first_release: str | None

    @property
    def id(self) -> str:
        """The id that people know it by."""
        return cluster_id(self.number)


@dataclass(frozen=True, slots=True)
class Known:
    """One release: a side for each unit of which attempts are told, and what does not fit on any.

    ``untold`` are failed attempts of units without any attempts; ``ahead`` counts attempts, and failures, of days to
    come, which are in no side.
    """

    release: str
    sides: tuple[Side, ...]
    untold: Mapping[str, int]
    unheard: tuple[Unheard, ...]
    ahead: tuple[int, int]
    first_day: date | None
    last_day: date | None

    def side(self, unit: str) -> Side | None:
        """Return what is known in a unit; ``None`` where no attempts are told in it."""
        return next((one for one in self.sides if one.unit == unit), None)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A release, its baseline, and what both stand on. ``nameless``: failures by unit that name no release.

    These are of days on which the release was tried; any of them may be of it. ``strangers``: failures of that time by
    other releases of which no attempts are told.
    """

    release: Known
    baseline: Known | None
    nameless: Mapping[str, int]
    strangers: Mapping[str, int]
    clusters: Mapping[int, ClusterFacts]
    first_days: Mapping[str, date]
    night: NightSeen | None
    releases: tuple[str, ...]
    at: datetime


def gather(session: Session, release: str, baseline: str | None, *, at: datetime) -> Evidence:
    """Read what is known. ``at`` is now: what is dated later than its UTC day is not counted."""
    names = (release,) if baseline is None else (release, baseline)
    cells = failed_days(session, (*names, UNKNOWN))
    counts = summed_attempts(session, ("unit", "day", "release"), releases=names)
    homes = summed_attempts(session, ("unit", "release", "platform", "model"), releases=names, until=at.date())
    ears = heard(session, names)
    known = {name: _known(session, name, cells, counts, homes, ears, at) for name in names}
    clusters = _clusters(session, known[release], None if baseline is None else known[baseline])
    return Evidence(
        release=known[release],
        baseline=None if baseline is None else known[baseline],
        nameless=_nameless(known[release], cells),
        strangers=_strangers(session, known[release], names),
        clusters=clusters,
        first_days=first_days(session, {one.resolved_in for one in clusters.values() if one.resolved_in} | {release}),
        night=last_night(session),
        releases=known_releases(session),
        at=at,
    )


def _known(
    session: Session,
    release: str,
    all_cells: Sequence[DaySum],
    all_counts: Sequence[AttemptCount],
    all_homes: Sequence[AttemptCount],
    ears: Sequence[HeardCohort],
    at: datetime,
) -> Known:
    today = at.date()
    cells = [cell for cell in all_cells if cell.release == release]
    counts = [row for row in all_counts if row.release == release]
    now_cells = [cell for cell in cells if cell.day <= today]
    now_counts = [row for row in counts if row.day <= today]
    homes = [row for row in all_homes if row.release == release]
    told = units_told(now_counts)
    days = sorted({row.day for row in now_counts} | {cell.day for cell in now_cells})
    return Known(
        release,
        _sides(session, release, told, now_cells, now_counts, homes),
        _untold(session, told, now_cells),
        unheard(session, release, homes, [ear for ear in ears if ear.release == release], today),
        (
            sum(row.attempts for row in counts if row.day > today),
            _by_unit(session, [cell for cell in cells if cell.day > today], "load").total(),
        ),
        days[0] if days else None,
        days[-1] if days else None,
    )


def _sides(
    session: Session,
    release: str,
    told: Sequence[str],
    cells: Sequence[DaySum],
    counts: Sequence[AttemptCount],
    by_cohort: Sequence[AttemptCount],
) -> tuple[Side, ...]:
    scope: dict[str, set[date]] = {unit: set() for unit in told}
    for row in counts:
        scope[row.unit].add(row.day)
    homes = {unit: unit for unit in told}
    if len(told) == 1:  # what names no unit can be of no other
        scope[UNKNOWN], homes[UNKNOWN] = scope[told[0]], told[0]
    return tuple(
        make_side(release, unit, cells, counts, cohorts, groups, by_cohort)
        for unit, cohorts, groups in _by_home(session, release, told, scope, homes)
    )


def _by_home(
    session: Session, release: str, told: Sequence[str], scope: Scope, homes: Mapping[str, str]
) -> Iterator[tuple[str, list[CohortSum], list[Group]]]:
    """Return for each unit the cohorts and groups of failures on the days of which attempts are told."""
    if not told:
        return
    cohorts, clusters = failed_cohorts(session, release, scope), failed_clusters(session, release, scope)
    for unit in told:
        sums: dict[tuple[int | None, str], list[int]] = {}
        for one in clusters:
            if homes[one.unit] == unit:
                counted = sums.setdefault((one.cluster, one.failure_class), [0, 0])
                counted[0] += one.attempts
                counted[1] += one.last
        groups = [Group(*key, *counted) for key, counted in sums.items()]
        yield unit, [one for one in cohorts if homes[one.unit] == unit], groups


def _untold(session: Session, told: Sequence[str], cells: Sequence[DaySum]) -> dict[str, int]:
    """Return failures by unit of which no attempts are told. A load that counts on deployments is not untold."""
    units = [unit for unit in UNITS if unit not in told]
    if not told:
        units.append(UNKNOWN)
    if not units:
        return {}
    counted = _by_unit(session, cells, "deployment" if "deployment" in told else "load")
    return {unit: counted[unit] for unit in units if counted[unit]}


def _by_unit(session: Session, cells: Sequence[DaySum], first: str) -> Counter[str]:
    """Count failures of one release by unit, those of deployments and of loads under the ``first`` of both alone."""
    counted: Counter[str] = Counter()
    for cell in cells:
        counted[cell.unit] += cell.attempts
    second = "load" if first == "deployment" else "deployment"
    if counted[first] and counted[second]:
        days = sorted({cell.day for cell in cells if cell.unit == second})
        counted[second] = counted_alone(session, cells[0].release, second, first, days)
    return counted


def _nameless(known: Known, cells: Sequence[DaySum]) -> dict[str, int]:
    if known.release == UNKNOWN:  # they are its own
        return {}
    found = {}
    for side in known.sides:
        days = side.days.keys() - side.without_attempts
        count = sum(
            cell.attempts
            for cell in cells
            if cell.release == UNKNOWN and cell.unit in (side.unit, UNKNOWN) and cell.day in days
        )
        if count:
            found[side.unit] = count
    return found


def _strangers(session: Session, known: Known, names: Collection[str]) -> dict[str, int]:
    days = sorted({day for side in known.sides for day in side.days})
    units = {side.unit for side in known.sides}
    others = set(named_releases(session)) - tried_releases(session) - {*names, UNKNOWN}
    if not days or not others:
        return {}
    units -= {"load"} if "deployment" in units else set()  # a load that only a log tells counts on both
    return failed_releases(session, others, days[0], days[-1], units)


def _clusters(session: Session, release: Known, baseline: Known | None) -> dict[int, ClusterFacts]:
    """Return facts of the clusters that failed; the first release only of those that the baseline does not have."""
    here = _numbers(release)
    before = set() if baseline is None else _numbers(baseline)
    new = sorted(here - before) if has_earlier(session, release.release) else ()
    firsts = first_releases(session, new, release.release)
    found = {}
    for chunk in chunks(sorted(here | before)):
        columns = (Cluster.id, Cluster.name, Cluster.label, Cluster.failure_class, Cluster.resolved_in)
        for number, name, label, kind, resolved in session.execute(select(*columns).where(Cluster.id.in_(chunk))):
            title = clean(name or label, _MOST_TITLE)
            found[number] = ClusterFacts(number, title, kind, resolved, firsts.get(number))
    return found


def _numbers(known: Known) -> set[int]:
    return {group.cluster for side in known.sides for group in side.groups if group.cluster is not None}
