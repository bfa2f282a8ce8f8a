"""The newest crashes that pass some filters, found through the daily counts: no index has all crashes by time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from crashpath.ingest.cluster_filter import ClusterFilter, cluster_conditions
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, Crash, CrashDaily, Signature, Variant
from crashpath.ingest.trends import Filters, conditions

MOST_TEXT = 500
"""Characters of a root line that are read."""
_COHORT = ("release", "platform", "model", "path", "phase")


@dataclass(frozen=True, slots=True)
class CrashRow:
    """One crash in a list. ``outcome`` is ``contained`` or ``unanswered`` where an event says so."""

    id: int
    at: datetime
    release: str
    platform: str
    model: str
    path: str
    phase: str
    outcome: str | None
    cluster: str | None
    root_line: str


@dataclass(frozen=True, slots=True)
class _Cells:
    """Days and signatures that hold the newest crashes that pass."""

    days: tuple[date, ...]
    signatures: tuple[str, ...]


def count_crashes(session: Session, filters: Filters, of: ClusterFilter) -> int:
    """Count the crashes that pass, of the clusters that pass."""
    query = select(func.coalesce(func.sum(CrashDaily.crashes), 0)).where(*_passing(filters, of))
    return int(session.scalar(query) or 0)


def newest_crashes(session: Session, filters: Filters, of: ClusterFilter, limit: int = 50) -> tuple[CrashRow, ...]:
    """Return the newest crashes that pass, of the clusters that pass, the newest first."""
    cells = _newest(session, filters, of, limit)
    if not cells.days:
        return ()
    where = [getattr(Crash, name) == wanted for name in _COHORT if (wanted := getattr(filters, name)) is not None]
    query = (
        select(
            Crash.id, Crash.at, Crash.release, Crash.platform, Crash.model, Crash.path, Crash.phase, Crash.outcome,
            Signature.cluster_id, Variant.root_type, func.substr(Variant.root_message, 1, MOST_TEXT),
        )
        .join(Variant, Variant.id == Crash.variant_id)
        .join(Signature, Signature.id == Variant.signature_id)
        .where(*where, *_near(session, filters, cells))
        .order_by(Crash.day.desc(), Crash.at.desc(), Crash.id.desc())
        .limit(limit)
    )  # fmt: skip
    return tuple(_row(*row) for row in session.execute(query))


def _row(
    number: int,
    at: datetime,
    release: str,
    platform: str,
    model: str,
    path: str,
    phase: str,
    outcome: str | None,
    cluster: int | None,
    kind: str,
    said: str,
) -> CrashRow:
    home = None if cluster is None else cluster_id(cluster)
    line = f"{kind}: {said}" if said else kind
    return CrashRow(number, at, release, platform, model, path, phase, outcome, home, line)


def _newest(session: Session, filters: Filters, of: ClusterFilter, limit: int) -> _Cells:
    """Return where the newest crashes stand: as many cells as crashes are wanted are enough, and the rest of a day."""
    query = select(CrashDaily.day, CrashDaily.signature_id).where(*_passing(filters, of))
    found = list(session.execute(query.order_by(CrashDaily.day.desc()).limit(limit)))
    if len(found) == limit:
        last = found[-1][0]
        whole = select(CrashDaily.day, CrashDaily.signature_id).where(
            *_passing(replace(filters, since=last, until=last), of)
        )
        found += session.execute(whole)
    days = tuple(sorted({day for day, _ in found}))
    return _Cells(days, tuple(sorted({signature for _, signature in found})))


def _near(session: Session, filters: Filters, cells: _Cells) -> list[ColumnElement[bool]]:
    """Return the conditions that name the crashes of these cells, led by the index that has fewer to look at."""
    by_day = select(func.sum(CrashDaily.crashes)).where(CrashDaily.day.in_(cells.days))
    if filters.release is not None:
        by_day = by_day.where(CrashDaily.release == filters.release)
    by_signature = select(func.sum(CrashDaily.crashes)).where(CrashDaily.signature_id.in_(cells.signatures))
    if (session.scalar(by_day) or 0) <= (session.scalar(by_signature) or 0):
        # No index is named by what is worked out: the other one leads.
        return [Crash.day.in_(cells.days), func.coalesce(Variant.signature_id, "").in_(cells.signatures)]
    variants = select(Variant.id).where(Variant.signature_id.in_(cells.signatures))
    return [func.coalesce(Crash.day, cells.days[0]).in_(cells.days), Crash.variant_id.in_(variants)]


def _passing(filters: Filters, of: ClusterFilter) -> list[ColumnElement[bool]]:
    where = conditions(filters)
    return where if of.passes_all else [*where, CrashDaily.signature_id.in_(members(of))]


def members(of: ClusterFilter) -> Select[Any]:
    """Return the ids of the signatures in the clusters that pass."""
    clusters = select(Cluster.id).where(*cluster_conditions(of))
    return select(Signature.id).where(Signature.cluster_id.in_(clusters))
