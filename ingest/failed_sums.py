"""Failed attempts of whole releases, summed by the database: what a review needs of a million rows.

``failed_read`` gives every cell of unit, day, cohort and cluster. A release with many failures has as many cells as
failures; its days, cohorts and clusters are far fewer, and none of the three sums needs the others.

A ``Scope`` says what is summed: for each unit the days of which it counts. A review takes the days of which attempts
are told, because a failure on another day has no denominator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, case, cast, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.tables import Cluster, Signature
from crashpath.ingest.tables_counts import FailedCohort, FailedDaily

Scope = Mapping[str, Collection[date]]
_COUNTS = (FailedCohort.attempts, FailedCohort.unanswered, FailedCohort.contained)


@dataclass(frozen=True, slots=True)
class DaySum:
    """``attempts`` that failed on a UTC ``day``; of ``unanswered`` and ``contained`` an event says so."""

    unit: str
    day: date
    release: str
    attempts: int
    unanswered: int
    contained: int


@dataclass(frozen=True, slots=True)
class CohortSum:
    """``attempts`` that failed in a cohort, on the days of a scope."""

    unit: str
    platform: str
    model: str
    attempts: int
    unanswered: int
    contained: int


@dataclass(frozen=True, slots=True)
class ClusterSum:
    """``attempts`` that failed with signatures of one cluster (``None``: of none yet), ``last`` of them on the last
    day of the scope.
    """

    unit: str
    cluster: int | None
    failure_class: str
    attempts: int
    last: int


def failed_days(session: Session, releases: Collection[str]) -> tuple[DaySum, ...]:
    """Return the sums of these releases in order. Days that are stale may be wrong: refresh them before."""
    key = (FailedCohort.release, FailedCohort.day, FailedCohort.unit)
    query = (
        select(*key, *map(_sum, _COUNTS))
        .where(FailedCohort.release.in_(sorted(releases)))
        .group_by(*key)
        .order_by(*key)
    )
    rows = session.connection().execute(query).all()
    return tuple(DaySum(unit, day, release, *sums) for release, day, unit, *sums in rows)


def failed_releases(
    session: Session, releases: Collection[str], since: date, until: date, units: Collection[str]
) -> dict[str, int]:
    """Return failures in these units of these releases, from day to day, both inclusive; the most first."""
    count = _sum(FailedCohort.attempts).label("count")
    query = (
        select(FailedCohort.release, count)
        .where(
            FailedCohort.release.in_(sorted(releases)),
            FailedCohort.day.between(since, until),
            FailedCohort.unit.in_(sorted(units)),
        )
        .group_by(FailedCohort.release)
        .order_by(count.desc(), FailedCohort.release)
    )
    return dict(session.execute(query).all())


def failed_cohorts(session: Session, release: str, scope: Scope) -> tuple[CohortSum, ...]:
    """Return the sums of a release in order of unit, platform and model."""
    key = (FailedCohort.unit, FailedCohort.platform, FailedCohort.model)
    query = (
        select(*key, *map(_sum, _COUNTS))
        .where(FailedCohort.release == release, _inside(FailedCohort, scope))
        .group_by(*key)
        .order_by(*key)
    )
    rows = session.connection().execute(query).all()
    return tuple(CohortSum(unit, platform, model, *sums) for unit, platform, model, *sums in rows)


def failed_clusters(session: Session, release: str, scope: Scope) -> tuple[ClusterSum, ...]:
    """Return the sums of a release by unit and cluster."""
    newest = {unit: [max(days)] for unit, days in scope.items() if days}
    # Asked of every row, and not in the WHERE: the index by signature has to be read in its own order.
    last = func.sum(case((_inside(FailedDaily, newest), FailedDaily.attempts), else_=0))
    outside = _outside(session, release, scope)
    counted = func.sum(
        case((_inside(FailedDaily, outside), 0), else_=FailedDaily.attempts) if outside else FailedDaily.attempts
    )
    by_signature = (
        select(FailedDaily.unit, FailedDaily.signature_id, counted.label("counted"), last.label("last"))
        .where(FailedDaily.release == release)
        .group_by(FailedDaily.unit, FailedDaily.signature_id)
        .subquery()
        .c
    )
    query = (
        select(
            by_signature.unit,
            Signature.cluster_id,
            func.coalesce(Cluster.failure_class, UNCLASSIFIED),
            _sum(by_signature.counted),
            _sum(by_signature.last),
        )
        .outerjoin(Signature, Signature.id == by_signature.signature_id)
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
        .where(by_signature.counted > 0)
        .group_by(by_signature.unit, Signature.cluster_id, Cluster.failure_class)
        .order_by(by_signature.unit, Signature.cluster_id)
    )
    return tuple(ClusterSum(*row) for row in session.connection().execute(query).all())


def counted_alone(session: Session, release: str, unit: str, other: str, days: Sequence[date]) -> int:
    """Return how many failures of ``unit`` on these days do not count on ``other`` as well.

    A load of which no event tells counts under ``deployment`` and under ``load``, on the same day, in the same cohort,
    with the same signature.
    """
    twin = aliased(FailedDaily)
    keys = ("release", "day", "platform", "model", "signature_id")
    both = [getattr(twin, key) == getattr(FailedDaily, key) for key in keys]
    there = func.coalesce(twin.attempts, 0)
    more = case((FailedDaily.attempts > there, FailedDaily.attempts - there), else_=0)
    query = (
        select(cast(func.coalesce(func.sum(more), 0), BigInteger))
        .select_from(FailedDaily)
        .outerjoin(twin, and_(twin.unit == other, *both))
        .where(FailedDaily.release == release, _inside(FailedDaily, {unit: days}))
    )
    return int(session.scalar(query) or 0)


def _outside(session: Session, release: str, scope: Scope) -> Scope:
    """Return the days with failures that a scope leaves out: far fewer, most often none, than it takes in."""
    there = select(FailedCohort.unit, FailedCohort.day).where(FailedCohort.release == release).distinct()
    outside: dict[str, list[date]] = {}
    for unit, day in session.execute(there):
        if day not in scope.get(unit, ()):
            outside.setdefault(unit, []).append(day)
    return outside


def _sum(column: Any) -> ColumnElement[int]:
    """A sum as an integer: PostgreSQL sums large ones to a decimal."""
    return cast(func.sum(column), BigInteger)


def _inside(table: type[FailedCohort] | type[FailedDaily], scope: Scope) -> ColumnElement[bool]:
    return or_(false(), *(and_(table.unit == unit, table.day.in_(sorted(days))) for unit, days in scope.items()))
