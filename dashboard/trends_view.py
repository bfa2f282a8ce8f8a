"""What the page Trends reads from a store: each function one look, quick whatever the number of crashes.

Days are UTC days, ranges inclusive. Rates of these are computed in ``trends_rates`` and ``trends_classes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.dashboard.trends_model import Behind, Told
from crashpath.dashboard.trends_rates import told_of
from crashpath.ingest.attempts_summed import summed_attempts
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.failed_read import releases
from crashpath.ingest.failed_trends import (
    ClassSum,
    Lot,
    PlatformSum,
    cluster_facts,
    failed_classes,
    failed_clusters_of,
    failed_platforms,
    known_platforms,
)
from crashpath.ingest.first_seen import first_days
from crashpath.ingest.tables import Crash, CrashDaily
from crashpath.ingest.tables_counts import StaleDay
from crashpath.ingest.trends import UNASSIGNED, DayCount, Dimension, Filters, counts, counts_by_day, values


@dataclass(frozen=True, slots=True)
class Known:
    """What a store knows of. ``first`` and ``last`` are days with a crash, ``None`` without any; ``later`` crashes are
    dated later than today. ``releases``, ``platforms`` and ``paths`` have crashes or attempts. ``stored`` is about how
    many crashes there are.
    """

    first: date | None
    last: date | None
    later: int
    stored: int
    releases: tuple[str, ...]
    platforms: tuple[str, ...]
    paths: tuple[str, ...]


def read_known(session: Session, today: date) -> Known:
    """Return the days, and what can be picked."""
    of_days = select(CrashDaily.day).where(CrashDaily.day <= today)
    later = select(func.sum(CrashDaily.crashes)).where(CrashDaily.day > today)
    return Known(
        session.scalar(of_days.order_by(CrashDaily.day).limit(1)),
        session.scalar(of_days.order_by(CrashDaily.day.desc()).limit(1)),
        int(session.scalar(later) or 0),
        session.scalar(select(func.max(Crash.id))) or 0,
        releases(session),
        known_platforms(session),
        values(session, "path"),
    )


def read_told(session: Session, today: date) -> Told:
    """Return what is told of attempts."""
    return told_of(summed_attempts(session, ("unit", "day", "release", "platform")), today)


def read_failed(session: Session, since: date, until: date) -> tuple[PlatformSum, ...]:
    """Return failed attempts of all releases by day, unit and platform."""
    return failed_platforms(session, releases(session), since, until)


def read_classes(
    session: Session,
    names: tuple[str, ...],
    units: tuple[str, ...],
    since: date,
    until: date,
    platforms: tuple[str, ...] | None,
) -> tuple[ClassSum, ...]:
    """Return failed attempts of these releases by day, unit and class, and by platform where some are asked for."""
    return failed_classes(session, names, units, since, until, platforms)


def read_crashes(session: Session, by: Dimension, filters: Filters) -> tuple[DayCount, ...]:
    """Return crashes by day."""
    return counts_by_day(session, by, filters)


def read_began(session: Session, names: tuple[str, ...]) -> Mapping[str, date]:
    """Return the first day of each release."""
    return MappingProxyType(first_days(session, names))


def read_stale(session: Session, since: date, until: date) -> int:
    """Return how many days have crashes whose failed attempts are not counted yet."""
    return session.scalar(select(func.count()).where(StaleDay.day.between(since, until))) or 0


def read_failed_behind(
    session: Session, lots: tuple[Lot, ...], since: date, until: date, classes: tuple[str, ...] | None
) -> tuple[Behind, ...]:
    """Return the clusters of failed attempts, the most first."""
    rows = failed_clusters_of(session, lots, since, until, classes)
    return tuple(Behind(_id(row.cluster), row.title, row.failure_class, row.attempts) for row in rows)


def read_crashes_behind(session: Session, filters: Filters, classes: tuple[str, ...] | None) -> tuple[Behind, ...]:
    """Return the clusters of crashes, the most first."""
    facts = cluster_facts(session)
    rows = []
    for key, crashes in counts(session, "cluster", filters):
        title, kind = facts[None if key == UNASSIGNED else cluster_number(key)]
        if classes is None or kind in classes:
            rows.append(Behind(None if key == UNASSIGNED else key, title, kind, crashes))
    return tuple(rows)


def _id(number: int | None) -> str | None:
    return None if number is None else cluster_id(number)
