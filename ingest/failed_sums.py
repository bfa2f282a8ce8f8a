"""Failed attempts of whole releases, summed by the database: what a review needs of a million rows.

``failed_read`` gives every cell of unit, day, cohort and cluster. A release with many failures has as many cells as
failures; its cohorts by day and its clusters are far fewer, and neither needs the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import BigInteger, case, cast, func, select
from sqlalchemy.orm import Session, aliased

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.tables import Cluster, Signature
from crashpath.ingest.tables_counts import FailedDaily


@dataclass(frozen=True, slots=True)
class FailedCohort:
    """``attempts`` that failed on a UTC ``day`` in a cohort; of ``unanswered`` and ``contained`` an event says so."""

    unit: str
    day: date
    release: str
    platform: str
    model: str
    attempts: int
    unanswered: int
    contained: int


@dataclass(frozen=True, slots=True)
class FailedCluster:
    """``attempts`` that failed with signatures of one cluster (``None``: of none yet), ``last`` of them on a day."""

    cluster: int | None
    failure_class: str
    attempts: int
    last: int


def failed_cohorts(session: Session, releases: Collection[str]) -> tuple[FailedCohort, ...]:
    """Return the sums of these releases in order. Days that are stale may be wrong: refresh them before."""
    key = (FailedDaily.release, FailedDaily.day, FailedDaily.unit, FailedDaily.platform, FailedDaily.model)
    counts = (FailedDaily.attempts, FailedDaily.unanswered, FailedDaily.contained)
    query = (  # in the order in which the rows are held
        select(*key, *(cast(func.sum(column), BigInteger) for column in counts))
        .where(FailedDaily.release.in_(sorted(releases)))
        .group_by(*key)
        .order_by(*key)
    )
    rows = session.connection().execute(query).all()
    return tuple(FailedCohort(unit, day, release, *rest) for release, day, unit, *rest in rows)


def failed_clusters(
    session: Session, release: str, units: Collection[str], days: Sequence[date], last: date | None
) -> tuple[FailedCluster, ...]:
    """Return the sums of one release in these units over these days. ``last`` is the day that is also told alone."""
    if not days:
        return ()
    on_last = case((FailedDaily.day == last, FailedDaily.attempts), else_=0)
    by_signature = (
        select(FailedDaily.signature_id, func.sum(FailedDaily.attempts).label("all"), func.sum(on_last).label("last"))
        .where(
            FailedDaily.release == release,
            FailedDaily.unit.in_(sorted(units)),
            FailedDaily.day.between(min(days), max(days)),
            FailedDaily.day.in_(days),
        )
        .group_by(FailedDaily.signature_id)
        .subquery()
    )
    query = (
        select(
            Signature.cluster_id,
            func.coalesce(Cluster.failure_class, UNCLASSIFIED),
            cast(func.sum(by_signature.c.all), BigInteger),
            cast(func.sum(by_signature.c.last), BigInteger),
        )
        .select_from(by_signature)
        .outerjoin(Signature, Signature.id == by_signature.c.signature_id)
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
        .group_by(Signature.cluster_id, Cluster.failure_class)
        .order_by(Signature.cluster_id)
    )
    return tuple(FailedCluster(*row) for row in session.connection().execute(query).all())


def counted_alone(session: Session, release: str, unit: str, other: str, since: date, until: date) -> int:
    """Return how many failures of ``unit`` do not count on ``other`` as well, from day to day, both inclusive.

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
        .outerjoin(twin, (twin.unit == other) & both[0] & both[1] & both[2] & both[3] & both[4])
        .where(FailedDaily.release == release, FailedDaily.unit == unit, FailedDaily.day.between(since, until))
    )
    return int(session.scalar(query) or 0)
