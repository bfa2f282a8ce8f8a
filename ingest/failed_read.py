"""Read what is counted of failed attempts; ``refresh_failures`` counts it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import BigInteger, cast, func, select
from sqlalchemy.orm import Session

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.tables import Cluster, Crash, Signature
from crashpath.ingest.tables_counts import FailedDaily, Heard, StaleDay
from crashpath.ingest.tables_evidence import Attempts


@dataclass(frozen=True, slots=True)
class FailedCell:
    """``attempts`` that failed on a UTC ``day`` in a cohort, with signatures of one cluster.

    ``cluster`` is its number, ``None`` for signatures that are in none yet. ``unanswered`` and ``contained`` are those
    of which an event says so. ``witnesses`` are the crashes that tell of them. A load of which no event tells counts
    under ``deployment`` and under ``load``: sum over one unit, never over all.
    """

    unit: str
    day: date
    release: str
    platform: str
    model: str
    cluster: int | None
    failure_class: str
    attempts: int
    unanswered: int
    contained: int
    witnesses: int


def failed_cells(
    session: Session, *, releases: Collection[str] | None = None, since: date | None = None, until: date | None = None
) -> tuple[FailedCell, ...]:
    """Return what is counted, in order of release, day, unit, platform and model. Days are inclusive.

    Days that are stale may be wrong: call ``refresh_failures`` before.
    """
    cell = (FailedDaily.release, FailedDaily.day, FailedDaily.unit, FailedDaily.platform, FailedDaily.model)
    key = (*cell, Signature.cluster_id)
    counts = (FailedDaily.attempts, FailedDaily.unanswered, FailedDaily.contained, FailedDaily.witnesses)
    query = (  # in the order in which the rows are held
        select(*key, *(cast(func.sum(column), BigInteger) for column in counts))
        .outerjoin(Signature, Signature.id == FailedDaily.signature_id)
        .group_by(*key)
        .order_by(*key)
    )
    if releases is not None:
        query = query.where(FailedDaily.release.in_(sorted(releases)))
    if since is not None:
        query = query.where(FailedDaily.day >= since)
    if until is not None:
        query = query.where(FailedDaily.day <= until)
    classes: dict[int | None, str] = dict(session.execute(select(Cluster.id, Cluster.failure_class)).all())
    return tuple(
        FailedCell(unit, day, release, platform, model, cluster, classes.get(cluster, UNCLASSIFIED), *sums)
        for release, day, unit, platform, model, cluster, *sums in session.connection().execute(query)
    )


def stale_days(session: Session) -> tuple[date, ...]:
    """Return the days whose failed attempts have to be counted anew, in order."""
    return tuple(session.scalars(select(StaleDay.day).order_by(StaleDay.day)))


def releases(session: Session) -> tuple[str, ...]:
    """Return every release that something is known of, in order: failed attempts, crashes not counted yet, attempts,
    or a log source that told of it.
    """
    found: set[str] = set()
    for column in (FailedDaily.release, Attempts.release, Heard.release):
        found |= _distinct(session, column)
    uncounted = select(Crash.release).where(Crash.day.in_(select(StaleDay.day))).distinct()
    found.update(session.scalars(uncounted))
    return tuple(sorted(found))


def failed_releases(session: Session) -> tuple[str, ...]:
    """Return every release of which failed attempts are counted, in order."""
    return tuple(sorted(_distinct(session, FailedDaily.release)))


def tried_releases(session: Session) -> frozenset[str]:
    """Return every release of which attempts are told."""
    return frozenset(_distinct(session, Attempts.release))


def _distinct(session: Session, column: Any) -> set[str]:
    """Go from value to value by the column's index: there are few of them in many rows."""
    found: set[str] = set()
    value = session.scalar(select(func.min(column)))
    while value is not None:
        found.add(value)
        value = session.scalar(select(func.min(column)).where(column > value))
    return found
