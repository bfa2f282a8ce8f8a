"""Crashes over days and cohorts, from the daily counts: SQL only, quick whatever the number of crashes.

A day is the UTC day of the crash. A crash whose signature has no cluster yet counts as ``unclassified``, and one of
which nothing said where it belongs counts under ``unknown``; nothing is left out of a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED, headline_of
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, CrashDaily, Signature

Dimension = Literal["headline", "class", "release", "platform", "model", "path", "phase", "cluster", "signature"]
DIMENSIONS: tuple[Dimension, ...] = (
    "headline", "class", "release", "platform", "model", "path", "phase", "cluster", "signature",
)  # fmt: skip
#: What crashes of signatures without a cluster are called under ``cluster``.
UNASSIGNED = "unassigned"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which crashes to count; ``None`` lets all pass. Days are inclusive. ``cluster`` is a cluster's number."""

    since: date | None = None
    until: date | None = None
    release: str | None = None
    platform: str | None = None
    model: str | None = None
    path: str | None = None
    phase: str | None = None
    failure_class: str | None = None
    cluster: int | None = None
    signature: str | None = None


ALL = Filters()
_FEW = timedelta(days=5)


class Count(NamedTuple):
    """Crashes under one value of a dimension."""

    key: str
    crashes: int


class DayCount(NamedTuple):
    """Crashes of one UTC day under one value of a dimension."""

    day: date
    key: str
    crashes: int


def counts_by_day(session: Session, by: Dimension, filters: Filters = ALL) -> tuple[DayCount, ...]:
    """Return crashes by day and value, in order; days and values without a crash have no row."""
    sums: dict[tuple[date, str], int] = {}
    for day, value, crashes in session.execute(_query(by, filters, CrashDaily.day)):
        place = (day, _key(by, value))
        sums[place] = sums.get(place, 0) + int(crashes)
    return tuple(DayCount(day, key, n) for (day, key), n in sorted(sums.items()))


def counts(session: Session, by: Dimension, filters: Filters = ALL) -> tuple[Count, ...]:
    """Return crashes by value, most first (then by value)."""
    sums: dict[str, int] = {}
    for value, crashes in session.execute(_query(by, filters)):
        key = _key(by, value)
        sums[key] = sums.get(key, 0) + int(crashes)
    return tuple(Count(key, n) for key, n in sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def crashes_by_class(session: Session, filters: Filters = ALL) -> tuple[Count, ...]:
    """Return crashes by failure class, in the order of ``classes.toml``, ``unclassified`` last; classes without any
    are left out."""
    found = dict(counts(session, "class", filters))
    order = [*(c.id for c in CLASSES), UNCLASSIFIED]
    rest = sorted(set(found) - set(order))  # a class that a later version no longer has
    return tuple(Count(key, found[key]) for key in [*order, *rest] if key in found)


def headline(session: Session, filters: Filters = ALL) -> tuple[Count, ...]:
    """Return crashes by headline, all headlines, in their order."""
    found = dict(counts(session, "headline", filters))
    return tuple(Count(name, found.get(name, 0)) for name in HEADLINES)


def values(session: Session, by: Dimension) -> tuple[str, ...]:
    """Return the values of a dimension that have crashes, for pickers, sorted."""
    if by == "release":
        return tuple(sorted(set(session.scalars(_releases()))))
    if by in _COLUMNS:  # a fifth of what sums cost
        return tuple(sorted(session.scalars(select(_COLUMNS[by]).distinct())))
    return tuple(sorted(count.key for count in counts(session, by)))


def days(session: Session) -> tuple[date, date] | None:
    """Return the first and the last day with a crash; ``None`` for a store without crashes."""
    first, last = (session.scalar(select(end(CrashDaily.day))) for end in (func.min, func.max))  # each is looked up
    return None if first is None or last is None else (first, last)


_COLUMNS: dict[str, Any] = {
    "release": CrashDaily.release, "platform": CrashDaily.platform, "model": CrashDaily.model,
    "path": CrashDaily.path, "phase": CrashDaily.phase, "signature": CrashDaily.signature_id,
}  # fmt: skip
_OF_CLUSTER: dict[str, Any] = {"class": Cluster.failure_class, "headline": Cluster.failure_class, "cluster": Cluster.id}


def _query(by: Dimension, filters: Filters, *days: Any) -> Select[Any]:
    where = conditions(filters)
    if by in _COLUMNS:
        return select(*days, _COLUMNS[by], func.sum(CrashDaily.crashes)).where(*where).group_by(*days, _COLUMNS[by])
    # Summed by signature first: that is read in the order of an index, and leaves a few rows for the clusters of them.
    by_signature = (
        select(*days, CrashDaily.signature_id, func.sum(CrashDaily.crashes).label("crashes"))
        .where(*where)
        .group_by(CrashDaily.signature_id, *days)
        .subquery()
        .c
    )
    keys = [*(by_signature[day.name] for day in days), _OF_CLUSTER[by]]
    return (
        select(*keys, func.sum(by_signature.crashes))
        .join(Signature, Signature.id == by_signature.signature_id)
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
        .group_by(*keys)
    )


def _releases() -> Select[Any]:
    """Return the releases of each day, without reading all rows: from one to the next by the primary key."""
    day, release = CrashDaily.day, CrashDaily.release
    days = select(func.min(day).label("day")).cte("days", recursive=True)
    days = days.union_all(
        select(select(func.min(day)).where(day > days.c.day).scalar_subquery()).where(days.c.day.is_not(None))
    )
    first = select(func.min(release)).where(day == days.c.day).scalar_subquery().label("release")
    found = select(days.c.day, first).where(days.c.day.is_not(None)).cte("found", recursive=True)
    following = select(func.min(release)).where(day == found.c.day, release > found.c.release).scalar_subquery()
    found = found.union_all(select(found.c.day, following).where(found.c.release.is_not(None)))
    return select(found.c.release).where(found.c.release.is_not(None))


def conditions(filters: Filters) -> list[ColumnElement[bool]]:
    """Return the filters as conditions on ``crash_daily``."""
    where: list[ColumnElement[bool]] = []
    if filters.since is not None:
        where.append(CrashDaily.day >= filters.since)
    if filters.until is not None:
        where.append(_last_day(filters) <= filters.until)
    for name in ("release", "platform", "model", "path", "phase"):
        wanted = getattr(filters, name)
        if wanted is not None:
            where.append(_COLUMNS[name] == wanted)
    if filters.signature is not None:
        where.append(CrashDaily.signature_id == filters.signature)
    if filters.cluster is not None or filters.failure_class is not None:
        where.append(CrashDaily.signature_id.in_(_members(filters)))
    return where


def _last_day(filters: Filters) -> ColumnElement[date]:
    """Return the day as it is compared with ``until``.

    SQLite takes a range with two ends for a small one and reads it by day, which for weeks takes three times as long as
    by signature: of a long one only the first end is offered to its indexes.
    """
    if filters.since is None or filters.until is None or filters.until - filters.since < _FEW:
        return CrashDaily.day.expression
    return func.coalesce(CrashDaily.day, filters.until)


def _members(filters: Filters) -> Select[Any]:
    query = select(Signature.id).outerjoin(Cluster, Cluster.id == Signature.cluster_id)
    if filters.cluster is not None:
        query = query.where(Signature.cluster_id == filters.cluster)
    if filters.failure_class is not None:
        query = query.where(func.coalesce(Cluster.failure_class, UNCLASSIFIED) == filters.failure_class)
    return query


def _key(by: Dimension, value: object) -> str:
    if by == "cluster":
        return UNASSIGNED if value is None else cluster_id(int(str(value)))
    if by == "class":
        return UNCLASSIFIED if value is None else str(value)
    if by == "headline":
        return headline_of(UNCLASSIFIED if value is None else str(value))
    return str(value)
