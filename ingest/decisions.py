"""What people decided: the list of it, what of it holds, and the links that clustering has to respect.

``deciding`` and ``marking`` take decisions on clusters, ``reviews`` those on releases, and ``undoing`` takes them back.
A row of ``decision`` is added and never changed (a re-key maps its signature ids); an undo is a row as well, and may
itself be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from crashpath.ingest.changes import Changes, Move, before_of, changes_of, members_by_id
from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import add_event, cluster_id
from crashpath.ingest.links import Links
from crashpath.ingest.said import person, said
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Cluster, Project
from crashpath.ingest.tables_evidence import Decision, Review

Kind = Literal["merge", "split", "name", "assign", "resolve", "mute", "ticket", "note", "override", "undo"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MEMBERSHIP = ("merge", "split", "undo")
"""Kinds after which the members of a cluster may be others."""


@dataclass(frozen=True, slots=True)
class By:
    """Who decides, when, and why; without secrets and personal data, whatever was given."""

    who: str
    at: datetime
    why: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "who", person(self.who))
        object.__setattr__(self, "why", None if self.why is None else said(self.why))


@dataclass(frozen=True, slots=True)
class Taken:
    """A decision in the list. ``signatures`` are those that moved; ``undone_by`` is the undo that holds.

    ``assignee`` is who was given the cluster, where ``assignee_changed``. ``value`` is what it said (a name, a class, a
    release, a moment, a link, a text); ``None`` where it took that away. Of an override, and of its undo, ``release``
    is the one that was reviewed, and ``over`` the verdict that ``value`` was put in the place of.
    """

    number: int
    at: datetime
    who: str
    kind: str
    cluster: str | None
    other: str | None
    signatures: tuple[str, ...]
    value: str | None
    why: str | None
    undoes: int | None
    undone_by: int | None
    assignee_changed: bool
    assignee: str | None
    release: str | None
    over: str | None


def decisions(session: Session, number: int | None = None) -> tuple[Taken, ...]:
    """Return what people decided, oldest first; of one cluster where ``number`` says so. Raises ``NoSuchThing``."""
    query = select(Decision).where(Decision.kind.in_(KINDS)).order_by(Decision.id)
    if number is not None:
        if session.get(Cluster, number) is None:
            raise NoSuchThing(f"There is no cluster {cluster_id(number)}.", "`crashpath clusters` lists them.")
        query = query.where(or_(Decision.cluster_id == number, Decision.other_id == number))
    rows = session.scalars(query).all()
    undone, reviewed = undoers(session), _reviewed(session, rows)
    return tuple(_taken(row, undone, reviewed) for row in rows)


def taken(session: Session, row: Decision) -> Taken:
    """Return one decision as the list has it."""
    return _taken(row, undoers(session), _reviewed(session, [row]))


def _reviewed(session: Session, rows: Iterable[Decision]) -> dict[int, tuple[str, str]]:
    """Release and verdict of each review that decisions are on; not its report, which is long."""
    ids = sorted({row.review_id for row in rows if row.review_id is not None})
    query = select(Review.id, Review.release, Review.verdict)
    return {
        number: (release, verdict)
        for chunk in chunks(ids)
        for number, release, verdict in session.execute(query.where(Review.id.in_(chunk)))
    }


def _taken(row: Decision, undone: Mapping[int, int], reviewed: Mapping[int, tuple[str, str]]) -> Taken:
    changes = changes_of(row)
    moved = tuple(move.was.id for move in changes.moves if move.moved)
    person = [one.new for one in changes.fields if row.kind == "assign" and one.field == "assignee"]
    release, over = (None, None) if row.review_id is None else reviewed[row.review_id]
    return Taken(
        row.id, row.at, row.who, row.kind, _shown(row.cluster_id), _shown(row.other_id), moved, row.value, row.why,
        row.undoes_id, undone.get(row.id), bool(person), person[0] if person else None, release, over,
    )  # fmt: skip


def _shown(number: int | None) -> str | None:
    return None if number is None else cluster_id(number)


def undoers(session: Session) -> dict[int, int]:
    """Return, for each decision that was taken back, the undo that holds. An undo that was undone holds no more."""
    query = select(Decision.id, Decision.undoes_id).where(Decision.undoes_id.is_not(None)).order_by(Decision.id.desc())
    undone: dict[int, int] = {}
    for undo, what in session.execute(query):
        if undo not in undone and what is not None:  # newest first: whoever undid this one was seen already
            undone[what] = undo
    return undone


def holding(session: Session) -> Iterator[Decision]:
    """Return the decisions (no undos) that hold now, oldest first."""
    undone = undoers(session)
    query = select(Decision).where(Decision.kind.in_(KINDS), Decision.kind != "undo").order_by(Decision.id)
    for row in session.scalars(query):
        if row.id not in undone:
            yield row


def links(session: Session) -> Links:
    """Return the pairs that people want together and apart; bounded: a few signatures speak for each side.

    A later decision outweighs an earlier one: what was split and then merged is together again. A merge that was taken
    back parts as a split does, as long as its sides are in two clusters: no re-clustering does again what people undid.
    """
    home: dict[str, int | None] = {}
    must: set[frozenset[str]] = set()
    cannot: set[frozenset[str]] = set()
    for row in holding(session):
        if row.kind not in MEMBERSHIP:
            continue
        moves = changes_of(row).moves
        if row.kind == "merge":  # what earlier decisions tell of goes along
            home.update({one: row.cluster_id for one, where in home.items() if where == row.other_id})
        home.update({move.was.id: move.new for move in moves})
        (must if row.kind == "merge" else cannot).update(_pairs(moves))
    must = {pair for pair in must if len({home[one] for one in pair}) == 1}
    cannot = {pair for pair in cannot if len({home[one] for one in pair}) == 2}
    unmerged = _unmerged(session)
    parted = _parted(session, must | unmerged)  # an undo sends back what came before a later merge, too
    must -= parted
    return Links(must=frozenset(must), cannot=frozenset(cannot | (unmerged & parted)))


def _unmerged(session: Session) -> set[frozenset[str]]:
    """Pairs of merges that were taken back."""
    undone = [row for row in (session.get_one(Decision, number) for number in undoers(session)) if row.kind == "merge"]
    return {pair for row in undone for pair in _pairs(changes_of(row).moves)}


def _parted(session: Session, pairs: set[frozenset[str]]) -> set[frozenset[str]]:
    """Those pairs that are in two clusters now."""
    now = {
        member.id: member.cluster for member in members_by_id(session, sorted({one for pair in pairs for one in pair}))
    }
    return {pair for pair in pairs if len({now.get(one) for one in pair} - {None}) == 2}


def _pairs(moves: Sequence[Move]) -> Iterator[frozenset[str]]:
    """Pairs of a signature that moved and one that stayed (which a re-key may have made one)."""
    moved, stayed = ([m.was.id for m in moves if m.speaks and m.moved is side] for side in (True, False))
    return (frozenset((one, other)) for one in moved for other in stayed if one != other)


def decided_clusters(session: Session) -> frozenset[int]:
    """Return the active clusters whose members people put together or apart."""
    found = {number for row in holding(session) if row.kind in MEMBERSHIP for number in changes_of(row).clusters()}
    active = session.scalars(select(Cluster.id).where(Cluster.status == "active"))
    return frozenset(found.intersection(active))


def noted(session: Session) -> list[int]:
    """Return the clusters with a note that was not taken back."""
    undone = undoers(session)
    rows = session.execute(select(Decision.id, Decision.cluster_id).where(Decision.kind == "note"))
    return sorted({number for decision, number in rows if number is not None and decision not in undone})


def hold(session: Session) -> int:
    """Keep all others from changing who is a member of what until this transaction ends; return ``last`` of now.

    Whoever read clusters in an earlier transaction and wants to write compares it with what ``last`` was then.
    """
    # A row lock on a server; SQLite writers are alone anyway. Read to its end: a cursor that is left open would keep
    # SQLite's snapshot over the commit, and this connection from writing until something collects it.
    session.execute(select(Project.id).with_for_update()).all()
    return last(session)


def last(session: Session) -> int:
    """Return the number of the last decision after which members may be others; 0 before the first."""
    on_clusters = Decision.kind.in_(MEMBERSHIP), Decision.review_id.is_(None)  # the undo of an override moves nobody
    return session.scalar(select(func.max(Decision.id)).where(*on_clusters)) or 0


def record(
    session: Session,
    kind: Kind,
    by: By,
    changes: Changes,
    *,
    cluster: int | None,
    other: int | None = None,
    review: int | None = None,
    value: str | None = None,
    undoes: int | None = None,
) -> Decision:
    """Add the row of a decision whose changes are made already, in the same transaction.

    It is on a cluster or, where ``cluster`` is ``None``, on a ``review``.
    """
    row = Decision(
        at=by.at, who=by.who, kind=kind, cluster_id=cluster, other_id=other, review_id=review,
        signatures=[move.was.id for move in changes.moves], value=value, why=by.why, before=before_of(changes),
        undoes_id=undoes,
    )  # fmt: skip
    session.add(row)
    session.flush()
    return row


def tell(session: Session, row: Decision, number: int, kind: str, other: int | None = None, **detail: object) -> None:
    """Write what a decision did to a cluster into its lineage."""
    add_event(session, number, kind, {"decision": row.id, **detail}, other=other, night_id=None, now=row.at)


def rekey(session: Session, new_ids: Mapping[str, Sequence[str]]) -> int:
    """Map the signature ids of all decisions; one id may become several. Return how many decisions changed.

    Ids that are not in the mapping stay. For the caller's transaction, after the new signatures are stored.
    """
    changed = 0
    for row in session.scalars(select(Decision).where(Decision.kind.in_(KINDS))):
        if not any(one in new_ids for one in row.signatures):
            continue
        ids, members = _mapped(row.signatures, row.before.get("members", ()), new_ids)
        row.signatures, row.before = ids, {**row.before, "members": members}
        changed += 1
    return changed


def _mapped(
    ids: Iterable[str], members: Iterable[list[object]], new_ids: Mapping[str, Sequence[str]]
) -> tuple[list[str], list[list[object]]]:
    """Each id once: of several old ones that became one, what was told of the first stays."""
    out: dict[str, list[object]] = {}
    for one, told in zip(ids, members, strict=True):
        for new in new_ids.get(one, (one,)):
            out.setdefault(new, told)
    return list(out), list(out.values())
