"""Failed attempts of many releases at once, summed by the database: what pictures over days need of a million rows.

``failed_sums`` has the sums of one release for its review. Sums here are by release and day, so that whoever reads them
can leave out the days and units that have no denominator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, String, case, cast, column, func, select, values
from sqlalchemy.orm import Session

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.tables import Cluster, Signature
from crashpath.ingest.tables_counts import FailedCohort, FailedDaily
from crashpath.ingest.tables_evidence import Attempts


class PlatformSum(NamedTuple):
    """``attempts`` that failed on a UTC ``day``; of ``unanswered`` and ``contained`` an event says so."""

    release: str
    day: date
    unit: str
    platform: str
    attempts: int
    unanswered: int
    contained: int


class ClassSum(NamedTuple):
    """``attempts`` that failed on a UTC ``day`` with clusters of one class."""

    release: str
    day: date
    unit: str
    platform: str | None
    failure_class: str
    attempts: int


class ClusterSum(NamedTuple):
    """``attempts`` that failed with one cluster (``None``: with none yet)."""

    cluster: int | None
    title: str
    failure_class: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Lot:
    """Releases of which the same counts: failures of these units and platforms (``None``: all), but not on the days
    that are ``untold``.
    """

    releases: tuple[str, ...]
    units: tuple[str, ...]
    platforms: tuple[str, ...] | None = None
    untold: tuple[date, ...] = ()


def failed_platforms(session: Session, releases: Collection[str], since: date, until: date) -> tuple[PlatformSum, ...]:
    """Return the sums by release, day, unit and platform, in this order. Stale days may be wrong."""
    key = (FailedCohort.release, FailedCohort.day, FailedCohort.unit, FailedCohort.platform)
    counts = (FailedCohort.attempts, FailedCohort.unanswered, FailedCohort.contained)
    query = (  # in the order in which the rows are held
        select(*key, *map(_sum, counts))
        .where(_among(FailedCohort.release, releases), FailedCohort.day.between(since, until))
        .group_by(*key)
        .order_by(*key)
    )
    return tuple(map(PlatformSum._make, session.connection().execute(query).all()))


def failed_classes(
    session: Session,
    releases: Collection[str],
    units: Collection[str],
    since: date,
    until: date,
    platforms: Collection[str] | None = None,
) -> tuple[ClassSum, ...]:
    """Return the sums by release, day, unit and class, and by platform where ``platforms`` says which.

    What has no cluster yet is ``unclassified``.
    """
    names = sorted({*session.scalars(select(Cluster.failure_class).distinct()), UNCLASSIFIED})
    numbers: dict[Any, int] = {name: number for number, name in enumerate(names)}
    known = (
        select(
            Signature.id,
            case(numbers, value=func.coalesce(Cluster.failure_class, UNCLASSIFIED), else_=len(names)).label("number"),
        )
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
        .cte("known")
    )
    key = [FailedDaily.release, FailedDaily.day, FailedDaily.unit]
    # A column for each class, and not a row: rows would have to be sorted, which takes as long again as reading them.
    sums = [func.sum(FailedDaily.attempts).filter(known.c.number == number) for number in numbers.values()]
    query = (
        select(*key, *(cast(one, BigInteger) for one in sums))
        .select_from(FailedDaily)
        .outerjoin(known, known.c.id == FailedDaily.signature_id)
        .where(
            _among(FailedDaily.release, releases),
            FailedDaily.unit.in_(sorted(units)),
            FailedDaily.day.between(since, until),
        )
        .group_by(*key)
        .order_by(*key)
    )
    if platforms is not None:
        query = query.where(FailedDaily.platform.in_(sorted(platforms)))
        query = query.add_columns(FailedDaily.platform).group_by(FailedDaily.platform)
    found: list[ClassSum] = []
    row: Any
    for row in session.connection().execute(query):
        release, day, unit = row[:3]
        platform = row[3 + len(names)] if platforms is not None else None
        counted = zip(names, row[3:], strict=False)
        found += [ClassSum(release, day, unit, platform, name, count) for name, count in counted if count]
    return tuple(found)


def failed_clusters_of(
    session: Session, lots: Iterable[Lot], since: date, until: date, classes: Sequence[str] | None = None
) -> tuple[ClusterSum, ...]:
    """Return the sums by cluster, of these classes (``None``: of all), the most failed attempts first."""
    homes: dict[str, int | None] = dict(session.execute(select(Signature.id, Signature.cluster_id)).all())
    sums: Counter[int | None] = Counter()
    for lot in lots:
        for signature, attempts in session.connection().execute(_by_signature(lot, since, until, classes)):
            sums[homes.get(signature)] += attempts
    facts = cluster_facts(session)
    rows = [ClusterSum(one, *facts[one], attempts) for one, attempts in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.attempts, row.cluster is None, row.cluster)))


def cluster_facts(session: Session) -> dict[int | None, tuple[str, str]]:
    """Return title and class of each cluster; under ``None`` those of signatures that have none yet."""
    columns = (Cluster.id, Cluster.name, Cluster.label, Cluster.failure_class)
    found: dict[int | None, tuple[str, str]] = {None: ("not in a cluster yet", UNCLASSIFIED)}
    for number, name, label, kind in session.execute(select(*columns)):
        found[number] = (name or label, kind)
    return found


def known_platforms(session: Session) -> tuple[str, ...]:
    """Return every platform of which failed attempts or attempts are known, in order."""
    found = {*session.scalars(select(FailedCohort.platform).distinct())}
    return tuple(sorted(found.union(session.scalars(select(Attempts.platform).distinct()))))


def _by_signature(lot: Lot, since: date, until: date, classes: Sequence[str] | None) -> Any:
    query = (
        select(FailedDaily.signature_id, _sum(FailedDaily.attempts))
        .where(
            FailedDaily.release.in_(lot.releases),
            FailedDaily.unit.in_(lot.units),
            FailedDaily.day.between(since, until),
        )
        .group_by(FailedDaily.signature_id)
    )
    if lot.platforms is not None:
        query = query.where(FailedDaily.platform.in_(lot.platforms))
    if lot.untold:
        query = query.where(FailedDaily.day.not_in(lot.untold))
    if classes is not None:
        members = (
            select(Signature.id)
            .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
            .where(func.coalesce(Cluster.failure_class, UNCLASSIFIED).in_(classes))
        )
        query = query.where(FailedDaily.signature_id.in_(members))
    return query


def _among(held: Any, names: Collection[str]) -> ColumnElement[bool]:
    """Whether a column holds one of these names, asked so that SQLite expects many rows of it.

    Of a plain list with one name it expects ten rows, and would look through all signatures for each of a million.
    """
    rows = values(column("name", String)).data([(name,) for name in sorted(names)])
    asked: ColumnElement[bool] = held.in_(rows.scalar_values())
    return asked


def _sum(counted: Any) -> ColumnElement[int]:
    """A sum as an integer: PostgreSQL sums large ones to a decimal."""
    return cast(func.sum(counted), BigInteger)
