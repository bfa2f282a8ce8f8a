"""What a re-clustering writes: members that move, clusters that end in another one, and when it was last done.

When it was done is kept with the night (``night.counts``), in the transaction that writes what came of it, so that a
process that is killed has done all of it or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.clusters import add_event, cluster_id
from crashpath.ingest.decisions import noted
from crashpath.ingest.schema import Json
from crashpath.ingest.tables import Cluster, ClusterEvent, CrashDaily, Night, Project, Signature

KEY = "reclustered"
"""Where ``night.counts`` tells of a re-clustering."""
OF_EACH = ("resolved_in", "muted_until")
"""What a person says of each failure of a cluster, so that it holds for those that a re-clustering puts elsewhere."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The last re-clustering: the night that did it (or came before it), when, and how many signatures there were.

    Before the first one, the first night that stored a signature stands for it: all of it was grouped in one go.
    """

    night: int
    at: datetime
    signatures: int


def last_mark(session: Session) -> Mark | None:
    """Return when clusters were last formed anew; ``None`` for a store without a night."""
    for night, counts in session.execute(select(Night.id, Night.counts).order_by(Night.id.desc())):
        found = counts.get(KEY)
        if found:
            return Mark(night, datetime.fromisoformat(found["at"]), int(found["signatures"]))
    stored = session.scalar(select(func.min(Signature.night_id)))
    first = session.scalar(select(func.min(Night.id))) if stored is None else stored
    if first is None:
        return None
    count = session.scalar(select(func.count()).where(Signature.night_id == first)) or 0
    return Mark(first, session.get_one(Night, first).started_at, count)


def signature_count(session: Session) -> int:
    """Return how many signatures have a cluster."""
    return session.scalar(select(func.count()).select_from(Signature).where(Signature.cluster_id.is_not(None))) or 0


def newest_night(session: Session) -> int | None:
    """Return the number of the last night that was begun."""
    return session.scalar(select(func.max(Night.id)))


def keep_mark(session: Session, night: int, document: Json) -> None:
    """Keep with a night that clusters were formed anew. ``document`` has ``at`` and ``signatures``, and the counts."""
    row = session.get_one(Night, night)
    row.counts = {**row.counts, KEY: document}


def kept_mark(session: Session, night: int) -> Json:
    """Return what ``keep_mark`` kept, as the counts of a night that got no further."""
    counts = session.get_one(Night, night).counts
    return {KEY: counts[KEY]} if counts.get(KEY) else {}


def tied_encoder(session: Session) -> str | None:
    """Return the encoder that the store is tied to; ``None`` before its first use."""
    return session.scalar(select(Project.encoder_id))


def crash_mass(session: Session) -> dict[str, int]:
    """Return the number of crashes of each signature."""
    query = select(CrashDaily.signature_id, func.sum(CrashDaily.crashes)).group_by(CrashDaily.signature_id)
    return {signature: int(count) for signature, count in session.execute(query)}


def owned_clusters(session: Session) -> frozenset[int]:
    """Return the active clusters that have a name, a class, an assignee, a note or any other mark of a person."""
    marks = (Cluster.name, Cluster.assignee, Cluster.resolved_in, Cluster.muted_until, Cluster.ticket)
    marked = Cluster.class_by == "person"
    for column in marks:
        marked |= column.is_not(None)
    marked |= Cluster.id.in_(noted(session))
    return frozenset(session.scalars(select(Cluster.id).where(Cluster.status == "active", marked)))


def born_nights(session: Session) -> dict[int, int]:
    """Return the night in which each active cluster was born; those that people made have none."""
    query = select(Cluster.id, Cluster.night_id).where(Cluster.status == "active", Cluster.night_id.is_not(None))
    return {number: night for number, night in session.execute(query) if night is not None}


def end_in(
    session: Session, gone: int, into: int, *, signatures: int, why: Json, night_id: int | None, now: datetime
) -> None:
    """Let a cluster end in another one: its id goes on to mean that one, which takes its class where it has none."""
    row, target = session.get_one(Cluster, gone), session.get_one(Cluster, into)
    row.status, row.merged_into = "merged", into
    if target.failure_class == UNCLASSIFIED and target.class_by != "person":
        _same_class(row, target)
    detail = {"by": "recluster", "signatures": signatures, "why": why}
    add_event(session, gone, "merged", {**detail, "into": cluster_id(into)}, other=into, night_id=night_id, now=now)
    add_event(session, into, "merged", {**detail, "taken": cluster_id(gone)}, other=gone, night_id=night_id, now=now)


def split_off(
    session: Session, whole: int, part: int, *, signatures: int, why: Json, night_id: int | None, now: datetime
) -> None:
    """Write down that a part of a cluster went to another one."""
    detail = {"by": "recluster", "signatures": signatures, "why": why, "part": cluster_id(part)}
    add_event(session, whole, "split", detail, other=part, night_id=night_id, now=now)


def persons_word(session: Session, whole: int, part: int) -> None:
    """Let a part that left a cluster be what a person said of the whole, and so of it: its class, and ``OF_EACH``."""
    row, new = session.get_one(Cluster, whole), session.get_one(Cluster, part)
    if row.class_by == "person":
        _same_class(row, new)
    for field in OF_EACH:
        setattr(new, field, getattr(row, field))


def parts_of(session: Session, number: int, mark: int) -> list[int]:
    """Return the clusters that re-clusterings cut out of one, and out of those, after the event ``mark``; in order."""
    query = select(ClusterEvent.cluster_id, ClusterEvent.other_id, ClusterEvent.detail).where(
        ClusterEvent.kind == "split", ClusterEvent.id > mark, ClusterEvent.other_id.is_not(None)
    )
    cut: dict[int, set[int]] = {}
    for whole, part, detail in session.execute(query):
        if part is not None and detail.get("by") == "recluster":
            cut.setdefault(whole, set()).add(part)
    found: set[int] = set()
    ends = {number}
    while ends:
        ends = {part for one in ends for part in cut.get(one, ())} - found
        found |= ends
    return sorted(found - {number})


def _same_class(source: Cluster, target: Cluster) -> None:
    target.failure_class, target.probability = source.failure_class, source.probability
    target.class_by, target.evidence = source.class_by, list(source.evidence)


def retire_empty(session: Session, *, night_id: int | None, now: datetime) -> tuple[int, ...]:
    """Retire active clusters that have no members any more, and return them."""
    members = select(Signature.id).where(Signature.cluster_id == Cluster.id).exists()
    empty = session.scalars(select(Cluster.id).where(Cluster.status == "active", ~members).order_by(Cluster.id)).all()
    for number in empty:
        session.execute(update(Cluster).where(Cluster.id == number).values(status="retired"))
        add_event(session, number, "retired", {"by": "recluster"}, night_id=night_id, now=now)
    return tuple(empty)
