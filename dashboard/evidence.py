"""Everything that a review knows of a release and its baseline, read from the store in one look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import func, select, union_all
from sqlalchemy.orm import Session

from crashpath.dashboard.review_model import Cohort
from crashpath.dashboard.review_words import clean
from crashpath.dashboard.sides import Group, Side, make_side, units_told
from crashpath.ingest.attempts import UNITS
from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.event_attempts import AttemptCount, attempt_counts
from crashpath.ingest.failed_read import releases as known_releases
from crashpath.ingest.failed_sums import FailedCohort, counted_alone, failed_clusters, failed_cohorts
from crashpath.ingest.heard import HeardCohort, heard
from crashpath.ingest.nights import NightSeen, last_night
from crashpath.ingest.schema import UNKNOWN, may_be
from crashpath.ingest.tables import Cluster, CrashDaily, Signature
from crashpath.ingest.tables_evidence import Attempts

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
class Unheard:
    """Attempts of a cohort from days on which no log source of it was looked at; ``since``: the last look, if any."""

    cohort: Cohort
    unit: str
    attempts: int
    since: date | None


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

    These are of days on which the release was tried; any of them may be of it.
    """

    release: Known
    baseline: Known | None
    nameless: Mapping[str, int]
    clusters: Mapping[int, ClusterFacts]
    first_days: Mapping[str, date]
    night: NightSeen | None
    releases: tuple[str, ...]
    at: datetime


def gather(session: Session, release: str, baseline: str | None, *, at: datetime) -> Evidence:
    """Read what is known. ``at`` is now: what is dated later than its UTC day is not counted."""
    names = (release,) if baseline is None else (release, baseline)
    cells = failed_cohorts(session, (*names, UNKNOWN))
    counts = attempt_counts(session, releases=names)
    ears = heard(session, names)
    known = {name: _known(session, name, cells, counts, ears, at) for name in names}
    clusters = _clusters(session, known[release], None if baseline is None else known[baseline])
    return Evidence(
        release=known[release],
        baseline=None if baseline is None else known[baseline],
        nameless=_nameless(known[release], cells),
        clusters=clusters,
        first_days=_first_days(session, {one.resolved_in for one in clusters.values() if one.resolved_in} | {release}),
        night=last_night(session),
        releases=known_releases(session),
        at=at,
    )


def _known(
    session: Session,
    release: str,
    all_cells: Sequence[FailedCohort],
    all_counts: Sequence[AttemptCount],
    ears: Sequence[HeardCohort],
    at: datetime,
) -> Known:
    today = at.date()
    cells = [cell for cell in all_cells if cell.release == release]
    counts = [row for row in all_counts if row.release == release]
    now_cells = [cell for cell in cells if cell.day <= today]
    now_counts = [row for row in counts if row.day <= today]
    told = units_told(now_counts)
    days = sorted({row.day for row in now_counts} | {cell.day for cell in now_cells})
    return Known(
        release,
        tuple(
            make_side(release, unit, now_cells, now_counts, _groups(session, release, unit, now_counts))
            for unit in told
        ),
        _untold(session, told, now_cells),
        _unheard([row for row in now_counts if row.attempts], [ear for ear in ears if ear.release == release]),
        (
            sum(row.attempts for row in counts if row.day > today),
            _by_unit(session, [cell for cell in cells if cell.day > today], "load").total(),
        ),
        days[0] if days else None,
        days[-1] if days else None,
    )


def _groups(session: Session, release: str, unit: str, counts: Sequence[AttemptCount]) -> tuple[Group, ...]:
    """Return the failures of each cluster on the days of which attempts are told."""
    days = sorted({row.day for row in counts if row.unit == unit})
    units = {unit, UNKNOWN} if units_told(counts) == (unit,) else {unit}
    found = failed_clusters(session, release, units, days, days[-1])
    return tuple(Group(one.cluster, one.failure_class, one.attempts, one.last) for one in found)


def _untold(session: Session, told: Sequence[str], cells: Sequence[FailedCohort]) -> dict[str, int]:
    """Return failures by unit of which no attempts are told. A load that counts on deployments is not untold."""
    counted = _by_unit(session, cells, "deployment" if "deployment" in told else "load")
    units = [unit for unit in UNITS if unit not in told]
    if not told:
        units.append(UNKNOWN)
    return {unit: counted[unit] for unit in units if counted[unit]}


def _by_unit(session: Session, cells: Sequence[FailedCohort], first: str) -> Counter[str]:
    """Count failures of one release by unit, those of deployments and of loads under the ``first`` of both alone."""
    counted: Counter[str] = Counter()
    for cell in cells:
        counted[cell.unit] += cell.attempts
    second = "load" if first == "deployment" else "deployment"
    if counted[first] and counted[second]:
        days = [cell.day for cell in cells]
        counted[second] = counted_alone(session, cells[0].release, second, first, min(days), max(days))
    return counted


def _unheard(counts: Iterable[AttemptCount], ears: Sequence[HeardCohort]) -> tuple[Unheard, ...]:
    last: dict[Cohort, date | None] = {}
    missed: dict[tuple[Cohort, str, date | None], int] = {}
    for row in counts:
        cohort = Cohort(row.platform, row.model)
        if cohort not in last:
            looks = (
                ear.last_at.date()
                for ear in ears
                if may_be(ear.platform, row.platform) and may_be(ear.model, row.model)
            )
            last[cohort] = max(looks, default=None)
        since = last[cohort]
        if since is None or row.day > since:
            key = (cohort, row.unit, since)
            missed[key] = missed.get(key, 0) + row.attempts
    return tuple(
        Unheard(cohort, unit, attempts, since) for (cohort, unit, since), attempts in sorted(missed.items(), key=str)
    )


def _nameless(known: Known, cells: Sequence[FailedCohort]) -> dict[str, int]:
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


def _clusters(session: Session, release: Known, baseline: Known | None) -> dict[int, ClusterFacts]:
    """Return facts of the clusters that failed; the first release only of those that the baseline does not have."""
    here = _numbers(release)
    before = set() if baseline is None else _numbers(baseline)
    new = sorted(here - before) if _has_earlier(session, release.release) else ()
    firsts = _first_releases(session, new, release.release)
    found = {}
    for chunk in chunks(sorted(here | before)):
        for row in session.scalars(select(Cluster).where(Cluster.id.in_(chunk))):
            title = clean(row.name or row.label, _MOST_TITLE)
            found[row.id] = ClusterFacts(row.id, title, row.failure_class, row.resolved_in, firsts.get(row.id))
    return found


def _numbers(known: Known) -> set[int]:
    return {group.cluster for side in known.sides for group in side.groups if group.cluster is not None}


def _has_earlier(session: Session, release: str) -> bool:
    """Whether another release crashed before this one: else all that it has is new, and that says nothing."""
    first = select(func.min(CrashDaily.day))
    own = session.scalar(first.where(CrashDaily.release == release))
    others = session.scalar(first.where(CrashDaily.release.not_in((release, UNKNOWN))))
    return own is not None and others is not None and others < own


def _first_releases(session: Session, numbers: Sequence[int], last: str) -> dict[int, str]:
    """Return the release in which each cluster was first seen; of one day several releases, the first by name.

    Release ``last`` comes behind them: what another one had on the same day is not known to be new in it.
    """
    first: dict[int, tuple[date, bool, str]] = {}
    for chunk in chunks(numbers):
        query = (
            select(Signature.cluster_id, CrashDaily.release, func.min(CrashDaily.day))
            .join(Signature, Signature.id == CrashDaily.signature_id)
            .where(Signature.cluster_id.in_(chunk))
            .group_by(Signature.cluster_id, CrashDaily.release)
        )
        for number, release, day in session.execute(query):
            assert number is not None  # the query asked for these
            place = (day, release == last, release)
            first[number] = min(first.get(number, place), place)
    return {number: release for number, (_, _, release) in first.items()}


def _first_days(session: Session, releases: Iterable[str]) -> dict[str, date]:
    """Return the first day on which each release is known to have run: it crashed, or it was tried."""
    first: dict[str, date] = {}
    for chunk in chunks(sorted(releases)):
        crashed = select(CrashDaily.release, CrashDaily.day).where(CrashDaily.release.in_(chunk))
        tried = select(Attempts.release, Attempts.day).where(Attempts.release.in_(chunk), Attempts.attempts > 0)
        days = union_all(crashed, tried).subquery().c
        first |= dict(session.execute(select(days.release, func.min(days.day)).group_by(days.release)).all())
    return first
