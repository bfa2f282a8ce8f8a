"""Lists that people look through: totals, clusters, sources, quarantine. SQL in, frozen dataclasses out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.schema import Base
from crashpath.ingest.tables import Cluster, CrashDaily, Night, Quarantine, Signature, Source, Variant
from crashpath.ingest.trends import ALL, Filters, conditions, crashes_by_class, days


@dataclass(frozen=True, slots=True)
class Totals:
    """What the whole store holds."""

    crashes: int
    variants: int
    signatures: int
    clusters: int
    sources: int
    quarantined: int
    unclassified: int
    nights: int
    first_day: date | None
    last_day: date | None


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster in a list. ``root_line`` stands for it; ``first_release`` is that of its first day."""

    id: str
    number: int
    name: str | None
    root_line: str
    failure_class: str
    probability: float | None
    class_by: str
    status: str
    crashes: int
    signatures: int
    first_day: date | None
    last_day: date | None
    first_release: str | None
    last_release: str | None
    releases: tuple[str, ...]
    assignee: str | None
    resolved_in: str | None
    muted_until: datetime | None
    ticket: str | None
    night_id: int | None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One source of the ledger: how far it was read, and what stood in the way. Sizes are bytes."""

    id: int
    path: str
    compressed: bool
    generation: int
    offset: int
    seen: int
    size: int | None
    mtime: datetime | None
    first_night_id: int
    last_night_id: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """One piece that gave no record: where, why, its hash and a redacted preview."""

    id: int
    source_id: int
    path: str
    offset: int
    end: int
    night_id: int
    at: datetime
    reason: str
    sha256: str
    preview: str


def store_totals(session: Session) -> Totals:
    """Count what the store holds."""
    span = days(session)
    return Totals(
        crashes=int(session.scalar(select(func.sum(CrashDaily.crashes))) or 0),  # PostgreSQL sums to a decimal
        variants=_rows(session, Variant),
        signatures=_rows(session, Signature),
        clusters=session.scalar(select(func.count()).where(Cluster.status == "active")) or 0,
        sources=_rows(session, Source),
        quarantined=_rows(session, Quarantine),
        unclassified=dict(crashes_by_class(session)).get(UNCLASSIFIED, 0),
        nights=_rows(session, Night),
        first_day=span[0] if span else None,
        last_day=span[1] if span else None,
    )


def cluster_list(
    session: Session, filters: Filters = ALL, *, limit: int | None = None, inactive: bool = False
) -> tuple[ClusterRow, ...]:
    """Return clusters with at least one crash that passes the filters, most crashes first (then by number).

    ``crashes``, days and releases are those of the crashes that pass. ``inactive`` adds merged and retired ones.
    """
    spans = _spans(session, filters)
    members = dict(
        session.execute(
            select(Signature.cluster_id, func.count())
            .where(Signature.cluster_id.is_not(None))
            .group_by(Signature.cluster_id)
        ).all()
    )
    rows: list[ClusterRow] = []
    for cluster in session.scalars(select(Cluster)):
        span = spans.get(cluster.id)
        if (span is None or cluster.status != "active") and not inactive:
            continue
        rows.append(_cluster_row(cluster, members.get(cluster.id, 0), span or []))
    rows.sort(key=lambda row: (-row.crashes, row.number))
    return tuple(rows[:limit])


def cluster_row(session: Session, number: int) -> ClusterRow | None:
    """Return one cluster as the list has it, whatever became of it; ``None`` where there never was one."""
    cluster = session.get(Cluster, number)
    if cluster is None:
        return None
    members = session.scalar(select(func.count()).where(Signature.cluster_id == number)) or 0
    return _cluster_row(cluster, members, _spans(session, Filters(cluster=number)).get(number, []))


def sources(session: Session, *, problems_only: bool = False, limit: int = 1000) -> tuple[SourceRow, ...]:
    """Return the sources of the ledger, the last read first."""
    query = select(Source).order_by(Source.last_night_id.desc(), Source.id).limit(limit)
    if problems_only:
        query = query.where(Source.problem.is_not(None))
    return tuple(
        SourceRow(
            s.id, s.path, s.compressed, s.generation, s.offset, s.seen, s.size, s.mtime, s.first_night_id,
            s.last_night_id, s.problem,
        )
        for s in session.scalars(query)
    )  # fmt: skip


def quarantine(session: Session, *, night_id: int | None = None, limit: int = 1000) -> tuple[QuarantineRow, ...]:
    """Return what is in quarantine, the newest first."""
    query = select(Quarantine, Source.path).join(Source, Source.id == Quarantine.source_id)
    if night_id is not None:
        query = query.where(Quarantine.night_id == night_id)
    return tuple(
        QuarantineRow(
            q.id, q.source_id, path, q.offset, q.end, q.night_id, q.at, q.reason, q.sha256, q.preview,
        )
        for q, path in session.execute(query.order_by(Quarantine.id.desc()).limit(limit))
    )  # fmt: skip


#: Of one release of a cluster: release, crashes, first day, last day.
_Span = tuple[str, int, date, date]


def _spans(session: Session, filters: Filters) -> dict[int, list[_Span]]:
    """Return, by cluster, its crashes and days by release."""
    query = (
        select(
            Signature.cluster_id,
            CrashDaily.release,
            func.sum(CrashDaily.crashes),
            func.min(CrashDaily.day),
            func.max(CrashDaily.day),
        )
        .select_from(CrashDaily)
        .join(Signature, Signature.id == CrashDaily.signature_id)
        .where(Signature.cluster_id.is_not(None), *conditions(filters))
        .group_by(Signature.cluster_id, CrashDaily.release)
    )
    out: dict[int, list[_Span]] = {}
    for number, release, crashes, first, last in session.execute(query):
        assert number is not None  # the query left those out
        out.setdefault(number, []).append((release, int(crashes), first, last))
    return out


def _cluster_row(cluster: Cluster, signatures: int, spans: list[_Span]) -> ClusterRow:
    first = min(spans, key=lambda s: (s[2], s[0]), default=None)
    last = max(spans, key=lambda s: (s[3], s[0]), default=None)
    return ClusterRow(
        id=cluster_id(cluster.id),
        number=cluster.id,
        name=cluster.name,
        root_line=cluster.label,
        failure_class=cluster.failure_class,
        probability=cluster.probability,
        class_by=cluster.class_by,
        status=cluster.status,
        crashes=sum(s[1] for s in spans),
        signatures=signatures,
        first_day=first[2] if first else None,
        last_day=last[3] if last else None,
        first_release=first[0] if first else None,
        last_release=last[0] if last else None,
        releases=tuple(sorted(s[0] for s in spans)),
        assignee=cluster.assignee,
        resolved_in=cluster.resolved_in,
        muted_until=cluster.muted_until,
        ticket=cluster.ticket,
        night_id=cluster.night_id,
    )


def _rows(session: Session, table: type[Base]) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0
