"""What was new, regressed or spiking, on its day: marks of a picture over days.

By the rules of the digest: what was born in any night, what the last night noticed to have regressed or to spike, and
what digests told of that before. A mark of a cluster that is new stands on the day of its first crash, of one that
regressed on its first day in the release in which it was to be gone, or in a later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.dashboard.noticed import born_since
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.cluster_days import ActiveCluster, active_clusters, spans_by_cluster
from crashpath.ingest.cluster_facts import weights
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.first_seen import first_days
from crashpath.ingest.outbox import Thing
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables_counts import Told
from crashpath.ingest.trends import Filters

KINDS = ("new", "regressed", "spiking")
"""In the order in which they stand above each other."""
_TITLES = {one.id: one.title for one in CLASSES}


class Mark(NamedTuple):
    """One mark. ``subject`` is a cluster's id, or a class that spikes as a whole, then ``cluster`` is ``None``."""

    day: date
    kind: str
    subject: str
    cluster: int | None
    failure_class: str
    title: str


@dataclass(frozen=True, slots=True)
class _Told:
    """A kind of thing that was told of a subject, and the occasion."""

    kind: str
    subject: str
    occasion: str


def read_days(session: Session, things: tuple[Thing, ...], night: int, at: datetime | None) -> tuple[Mark, ...]:
    """Return the marks of all days, in order. ``things`` are what the last ``night`` noticed, ``at`` its time."""
    rows = {row.number: row for row in active_clusters(session)}
    muted = {row.number for row in rows.values() if at and row.muted_until is not None and row.muted_until > at}
    found = {_Told(one.kind, one.subject, one.occasion) for one in things} | set(_told(session))
    by_id = {row.id: row for row in rows.values() if row.number not in muted}
    marks = [
        _mark(row.first_day, "new", row)
        for row in (rows.get(number) for number in born_since(session, 0, night))
        if row is not None and row.number not in muted
    ]
    again = [(by_id[one.subject], one.occasion) for one in found if one.kind == "regressed" and one.subject in by_id]
    marks += _regressed(session, again)
    marks += (one for one in (_spiking(told, by_id) for told in found if told.kind == "spiking") if one is not None)
    order = {kind: place for place, kind in enumerate(KINDS)}
    return tuple(sorted(set(marks), key=lambda mark: (mark.day, order[mark.kind], mark.subject)))


def read_passing(session: Session, filters: Filters) -> frozenset[int]:
    """Return the clusters with crashes that pass."""
    return frozenset(number for number in weights(session, filters) if number is not None)


def _told(session: Session) -> Iterator[_Told]:
    """Yield what digests and webhooks told, or have still to tell."""
    query = select(Told.thing).where(Told.kind.in_(("regressed", "spiking"))).distinct()
    for thing in session.scalars(query):
        parts = thing.split(" ", 2)
        if len(parts) == 3:
            yield _Told(*parts)


def _regressed(session: Session, again: Sequence[tuple[ActiveCluster, str]]) -> Iterator[Mark]:
    if not again:
        return
    spans = spans_by_cluster(session, {row.number for row, _ in again})
    names = {span.release for of in spans.values() for span in of} | {release for _, release in again}
    began = first_days(session, names - {UNKNOWN})
    for row, release in again:
        start = began.get(release)
        days = [
            span.first_day
            for span in spans.get(row.number, ())
            if span.release == release or (start is not None and began.get(span.release, start) > start)
        ]
        if days:
            yield _mark(min(days), "regressed", row)


def _spiking(told: _Told, rows: dict[str, ActiveCluster]) -> Mark | None:
    try:
        day = date.fromisoformat(told.occasion)
    except ValueError:
        return None
    if told.subject in rows:
        return _mark(day, "spiking", rows[told.subject])
    if told.subject in _TITLES:
        return Mark(day, "spiking", told.subject, None, told.subject, _TITLES[told.subject])
    return None


def _mark(day: date, kind: str, row: ActiveCluster) -> Mark:
    return Mark(day, kind, cluster_id(row.number), row.number, row.failure_class, row.name or row.root_line)
