"""Take a decision: merge, split, name, assign. Each is a short transaction of the caller's, with its row and lineage.

``marking`` takes those that say how a cluster stands. Clusters are named by number. Whatever cannot be decided as
things stand raises ``Refused`` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from crashpath.ingest.changes import FIELDS, Member, Recorder, members_of
from crashpath.ingest.chunks import chunks
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.clusters import cluster_id, next_number
from crashpath.ingest.decisions import By, hold, record, tell
from crashpath.ingest.following import followed
from crashpath.ingest.said import person, said
from crashpath.ingest.store_errors import NoSuchThing, Refused
from crashpath.ingest.tables import Cluster, Signature
from crashpath.ingest.tables_evidence import Decision

EXEMPLARS = 16
"""Most members that are made to stand for a cluster here; a night chooses again when the cluster grows."""
WORDS = ("name", "assignee", "resolved_in", "ticket")
"""What people say of a cluster and of what it goes into, too."""
CLASS_FIELDS = ("failure_class", "probability", "class_by", "evidence")
_SEEN = "`crashpath clusters` lists them."


def merge(session: Session, target: int, sources: Sequence[int], by: By) -> tuple[Decision, ...]:
    """Put the members of ``sources`` into ``target``: one decision for each source, all or none.

    What a person said of a source (name, class, who cares for it, where it was resolved, its ticket) goes along where
    the target has none of its own; not that it is muted, because nobody said that of the whole.
    """
    hold(session)
    for source in (target, *sources):
        active(session, source)
    if len({target, *sources}) <= len(sources):
        raise Refused("A cluster cannot be merged with itself.", "Name each cluster once.")
    return tuple(_merge_one(session, target, source, by) for source in sources)


def _merge_one(session: Session, target: int, source: int, by: By) -> Decision:
    recorder = Recorder(session)
    into, gone = recorder.cluster(target), recorder.cluster(source)
    recorder.members([*members_of(session, source), *(m for m in members_of(session, target) if m.exemplar)])
    into.spread = max(into.spread or 0.0, gone.spread or 0.0)
    if _class_rank(gone) > _class_rank(into):
        for field in CLASS_FIELDS:
            setattr(into, field, getattr(gone, field))
    for field in WORDS:
        setattr(into, field, getattr(into, field) or getattr(gone, field))
    gone.status, gone.merged_into = "merged", target
    session.execute(
        update(Signature)
        .where(Signature.cluster_id == source)
        .values(cluster_id=target, joined_at=by.at, joined_by="person")
    )
    row = record(session, "merge", by, recorder.changes(), cluster=target, other=source)
    tell(session, row, source, "merged", target, into=cluster_id(target))
    tell(session, row, target, "merged", source, taken=cluster_id(source))
    return row


def _class_rank(cluster: Cluster) -> int:
    """A person's class outweighs a classifier's, and any class outweighs none."""
    if cluster.class_by == "person":
        return 2
    return int(cluster.failure_class != UNCLASSIFIED)


def split(session: Session, number: int, signatures: Sequence[str], by: By) -> Decision:
    """Move signatures out of a cluster into a new one, which begins with the class of the old one.

    A signature may be given by the unique beginning of its id.
    """
    hold(session)
    old = active(session, number)
    members = {member.id: member for member in members_of(session, number)}
    moved = {_member(session, number, members, one) for one in signatures}
    if not moved:
        raise Refused("No signature was named.", f"`crashpath show {cluster_id(number)}` lists the cluster's own.")
    if len(moved) == len(members):
        raise Refused(
            f"These are all signatures of {cluster_id(number)}: nothing would stay.",
            "Leave at least one out, or give the cluster another name or class.",
        )
    recorder = Recorder(session)
    recorder.cluster(number)
    leaving = [member for one, member in members.items() if one in moved]
    staying = [member for one, member in members.items() if one not in moved]
    new = _new_cluster(session, old, leaving, by)
    recorder.made(new)
    recorder.members([*leaving, *_speaking(staying)])
    for chunk in chunks(sorted(moved)):
        session.execute(
            update(Signature).where(Signature.id.in_(chunk)).values(cluster_id=new, joined_at=by.at, joined_by="person")
        )
    if len(staying) == 1:
        old.spread = 0.0
    old.label = _label(session, old.label, staying)
    for half in (leaving, staying):
        set_exemplars(session, _speaking(half))
    row = record(session, "split", by, recorder.changes(), cluster=number, other=new)
    tell(session, row, number, "split", new, signatures=len(moved))
    detail = {"class": old.failure_class, "out_of": cluster_id(number)}
    tell(session, row, new, "born", number, **detail)
    return row


def _member(session: Session, number: int, members: dict[str, Member], given: str) -> str:
    """Find the member that a person means, by its id or the unique beginning of it."""
    wanted = given.strip()
    if wanted in members:
        return wanted
    found = [one for one in members if wanted and one.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    shown = cluster_id(number)
    if found:
        raise NoSuchThing(
            f"{len(found)} signatures of {shown} begin with {wanted}.", "Give more of the id, or all of it."
        )
    other = session.execute(
        select(Signature.id, Signature.cluster_id).where(Signature.id.startswith(wanted or "-", autoescape=True))
    ).first()
    if other is None:
        raise NoSuchThing(f"There is no signature {wanted!r}.", f"`crashpath show {shown}` lists those of {shown}.")
    where = "in no cluster yet" if other[1] is None else f"in {cluster_id(other[1])}, not in {shown}"
    raise Refused(f"The signature {other[0]} is {where}.", f"`crashpath show {shown}` lists those of {shown}.")


def _new_cluster(session: Session, old: Cluster, members: Sequence[Member], by: By) -> int:
    """Make the cluster that a split needs; what a person said of the whole (its class) holds for the part."""
    number = next_number(session)
    kept = {field: getattr(old, field) for field in CLASS_FIELDS}
    session.add(
        Cluster(
            id=number, name=None, label=_label(session, "", members), status="active", merged_into=None,
            created_at=by.at, night_id=None, encoder_id=old.encoder_id,
            spread=0.0 if len(members) == 1 else old.spread, **kept, assignee=None, resolved_in=None,
            muted_until=None, ticket=None,
        )
    )  # fmt: skip
    session.flush()
    return number


def _label(session: Session, label: str, members: Sequence[Member]) -> str:
    """The label where a member says so, else the text of the first exemplar (or member)."""
    ids = sorted(member.id for member in members)
    for chunk in chunks(ids):
        if label and session.scalar(select(Signature.id).where(Signature.id.in_(chunk), Signature.text == label)):
            return label
    first = min(members, key=lambda member: (not member.exemplar, member.id))
    return session.scalars(select(Signature.text).where(Signature.id == first.id)).one()


def _speaking(members: Sequence[Member]) -> list[Member]:
    """All exemplars, and as many others (by id, which is a hash: a fair sample) as are needed to stand for them all."""
    exemplars = sum(member.exemplar for member in members)
    return sorted(members, key=lambda member: (not member.exemplar, member.id))[: max(EXEMPLARS, exemplars)]


def set_exemplars(session: Session, members: Sequence[Member]) -> None:
    """Let these members stand for their cluster."""
    for chunk in chunks([member.id for member in members if not member.exemplar]):
        session.execute(update(Signature).where(Signature.id.in_(chunk)).values(is_exemplar=True))


def name(session: Session, number: int, text: str, by: By) -> Decision | None:
    """Name a cluster, or take its name away where the text is empty; ``None`` where nothing would change."""
    hold(session)
    active(session, number)
    recorder = Recorder(session)
    row = recorder.cluster(number)
    before, after = row.name, said(text).strip() or None
    if before == after:
        return None
    row.name = after
    made = record(session, "name", by, recorder.changes(), cluster=number, value=after)
    tell(session, made, number, "renamed", old=before, new=after)
    return made


def assign(
    session: Session, number: int, failure_class: str | None, by: By, *, assignee: str | None = None
) -> Decision | None:
    """Give a cluster a class that stands against any classifier, and a person who cares for it; ``None`` leaves either.

    An empty ``assignee`` takes that person away. Return ``None`` where nothing would change.
    """
    hold(session)
    row = active(session, number)
    if failure_class is not None and failure_class not in {UNCLASSIFIED, *(one.id for one in CLASSES)}:
        raise NoSuchThing(f"There is no failure class {failure_class}.", "`crashpath classes` lists them.")
    carer = row.assignee if assignee is None else person(assignee).strip() or None
    before = row.failure_class
    said_already = failure_class is None or (failure_class, "person") == (before, row.class_by)
    if said_already and carer == row.assignee:
        return None
    recorder = Recorder(session)
    recorder.cluster(number)
    row.assignee = carer
    if not said_already and failure_class is not None:
        row.failure_class, row.probability, row.class_by = failure_class, None, "person"
        row.evidence = [f"{by.who} said so{f': {by.why}' if by.why else ''}"]
    changes = recorder.changes()
    made = record(session, "assign", by, changes, cluster=number, value=failure_class)
    if not said_already:
        tell(session, made, number, "classified", old=before, new=failure_class, by="person")
    if assignee is not None:
        tell(session, made, number, "decided", assignee=row.assignee)
    return made


def active(session: Session, number: int) -> Cluster:
    """Return a cluster that can be decided on. Raises ``NoSuchThing`` or ``Refused``, which says where it went."""
    row = session.get(Cluster, number)
    if row is None:
        raise NoSuchThing(f"There is no cluster {cluster_id(number)}.", _SEEN)
    if row.status == "active":
        return row
    last = session.get_one(Cluster, followed(session, number)[0])
    if last.status != "active":
        raise Refused(f"{cluster_id(number)} was retired: it has no members any more.", _SEEN)
    into = cluster_id(last.id)
    raise Refused(
        f"{cluster_id(number)} went into {into}.", f"Decide on {into}, or undo: `crashpath decisions {into}`."
    )


assert {*CLASS_FIELDS, *WORDS} <= set(FIELDS)
