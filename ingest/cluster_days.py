"""Clusters and the days and releases of their crashes, for what looks at every cluster of a large store at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import String, cast, func, select
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, CrashDaily, Signature


@dataclass(frozen=True, slots=True)
class ActiveCluster:
    """An active cluster that has a crash, and what people said of it. ``first_day`` is that of its first crash."""

    number: int
    name: str | None
    root_line: str
    failure_class: str
    resolved_in: str | None
    muted_until: datetime | None
    first_day: date

    @property
    def id(self) -> str:
        """The id that people see."""
        return cluster_id(self.number)


class Span(NamedTuple):
    """The crashes of a cluster in one release, with the first and the last day of them."""

    release: str
    crashes: int
    first_day: date
    last_day: date


def active_clusters(session: Session) -> tuple[ActiveCluster, ...]:
    """Return the active clusters that have crashes, in order of their numbers."""
    own = select(func.min(CrashDaily.day)).where(CrashDaily.signature_id == Signature.id).scalar_subquery()
    first = (  # looked up signature by signature: nothing is read but the beginning of each
        select(Signature.cluster_id, func.min(own).label("day"))
        .where(Signature.cluster_id.is_not(None))
        .group_by(Signature.cluster_id)
        .subquery()
    )
    columns = (
        Cluster.id, Cluster.name, Cluster.label, Cluster.failure_class, Cluster.resolved_in, Cluster.muted_until,
        first.c.day,
    )  # fmt: skip
    query = (
        select(*columns)
        .join(first, first.c.cluster_id == Cluster.id)
        .where(Cluster.status == "active", first.c.day.is_not(None))
        .order_by(Cluster.id)
    )
    return tuple(ActiveCluster(*row) for row in session.execute(query))


def days_by_cluster(session: Session, since: date, until: date) -> dict[int | None, dict[date, int]]:
    """Return crashes by cluster and UTC day, both inclusive; under ``None`` those of signatures that have no cluster.

    Clusters and days without a crash are left out.
    """
    home = dict(session.execute(select(Signature.id, Signature.cluster_id)).all())
    by_day = (  # without its end, which few days are behind: a range with two ends is read in another, slower order
        select(CrashDaily.signature_id, CrashDaily.day, func.sum(CrashDaily.crashes).label("crashes"))
        .where(CrashDaily.day >= since)
        .group_by(CrashDaily.signature_id, CrashDaily.day)
        .subquery()
        .c
    )
    # All days of a signature in one text: to make a row of each takes longer than to read them.
    day = cast(by_day.day, String) + " " + cast(by_day.crashes, String)
    query = select(by_day.signature_id, func.aggregate_strings(day, ",")).group_by(by_day.signature_id)
    known: dict[str, date] = {}
    out: dict[int | None, dict[date, int]] = {}
    for signature, told in session.connection().execute(query):
        days = out.setdefault(home[signature], {})
        for one in told.split(","):
            text, _, crashes = one.partition(" ")
            if text not in known:
                known[text] = date.fromisoformat(text)
            if (day_of := known[text]) <= until:
                days[day_of] = days.get(day_of, 0) + int(crashes)
    return {number: days for number, days in out.items() if days}


def spans_by_cluster(session: Session, numbers: Collection[int]) -> dict[int, tuple[Span, ...]]:
    """Return the crashes of these clusters by release, in order of its name; nothing for those without a crash."""
    out: dict[int, list[Span]] = {}
    for chunk in chunks(sorted(numbers)):
        query = (
            select(
                Signature.cluster_id,
                CrashDaily.release,
                func.sum(CrashDaily.crashes),
                func.min(CrashDaily.day),
                func.max(CrashDaily.day),
            )
            .join(CrashDaily, CrashDaily.signature_id == Signature.id)
            .where(Signature.cluster_id.in_(chunk))
            .group_by(Signature.cluster_id, CrashDaily.release)
            .order_by(Signature.cluster_id, CrashDaily.release)
        )
        for number, release, crashes, first, last in session.execute(query):
            assert number is not None  # the query asked for these
            out.setdefault(number, []).append(Span(release, int(crashes), first, last))
    return {number: tuple(spans) for number, spans in out.items()}
