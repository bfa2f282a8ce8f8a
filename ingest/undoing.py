"""Take a decision back, exactly: what it changed is as it was, and it gives no link. Of a merge one thing stays: that
people parted its two sides (``decisions.links``), so that no re-clustering does again what they undid.

An undo is a decision like any other, so it may be undone. What later decisions stand on is not taken away under them:
whoever wants that undoes those first. Signatures that came in since go where their nearest exemplar goes.
Overrides of a release change nothing but what is said of it, so nothing stands on them: the last that is left counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from crashpath.ingest.changes import (
    Changes,
    FieldChange,
    Member,
    Move,
    Recorder,
    changes_of,
    members_by_id,
    members_of,
)
from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.deciding import EXEMPLARS, set_exemplars
from crashpath.ingest.decisions import KINDS, By, hold, record, tell, undoers
from crashpath.ingest.lineage import OF_EACH, parts_of
from crashpath.ingest.standing import SOFT, later, standing_on
from crashpath.ingest.store_errors import NoSuchThing, Refused
from crashpath.ingest.tables import Cluster, ClusterEvent, Signature
from crashpath.ingest.tables_evidence import Decision

_AS_THINGS_STAND = "Merge or split as things stand now."
_LARGEST = 2**63 - 1
"""The largest number that a database has."""


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Signatures that came into ``source`` by themselves after a decision, and where its undo leaves them."""

    number: int
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did. ``returned`` signatures went back; ``elsewhere`` were moved since and stay where they are."""

    decision: Decision
    what: Decision
    returned: int
    elsewhere: int
    newcomers: tuple[Newcomers, ...]


@dataclass(frozen=True, slots=True)
class _Newcomer:
    member: Member
    nearest: str | None
    distance: float


def undo(session: Session, number: int, by: By) -> Undone:
    """Take a decision back. Raises ``NoSuchThing``, or ``Refused`` for one that is undone or that others stand on."""
    hold(session)
    what = session.get(Decision, number) if number <= _LARGEST else None
    if what is None or what.kind not in KINDS:
        raise NoSuchThing(f"There is no decision {number}.", "`crashpath decisions` lists them.")
    undone = undoers(session)
    if number in undone:
        raise Refused(
            f"Decision {number} was undone by decision {undone[number]}.",
            f"To have it again, undo that one: `crashpath undo {undone[number]}`.",
        )
    standing = standing_on(session, what)
    if standing:
        which = "that one first" if len(standing) == 1 else "those first, the last one before the others"
        raise Refused(
            f"{_listed(standing)} on decision {number}.", f"Undo {which}: `crashpath undo {standing[-1].id}`."
        )
    return _Undoing(session, what, by).run()


def _listed(rows: Sequence[Decision]) -> str:
    if len(rows) == 1:
        return f"Decision {rows[0].id} ({rows[0].kind}) stands"
    named = [f"{row.id} ({row.kind})" for row in rows]
    return f"Decisions {', '.join(named[:-1])} and {named[-1]} stand"


class _Undoing:
    """One undo, in the caller's transaction."""

    def __init__(self, session: Session, what: Decision, by: By) -> None:
        self._session, self._what, self._by = session, what, by
        self._changes = changes_of(what)
        self._recorder = Recorder(session)
        moved = [move for move in self._changes.moves if move.moved]
        #: Where the decision put signatures, and where they go back to.
        self._back = {move.new: move.was.cluster for move in moved if move.new is not None}
        self._newcomers = {one.member.id: one for one in _newcomers(session, self._changes)}
        #: Signatures that later decisions put where they are or made exemplars.
        after = [changes_of(row) for row in later(session, what)]
        self._later = {move.was.id for changes in after for move in changes.moves}
        #: Clusters that re-clusterings cut out since, and what holds of them because the decision said it of the whole.
        touched = {(one.cluster, one.field) for changes in after for one in changes.fields}
        self._parts: list[tuple[int, FieldChange]] = [
            (part, change)
            for change in self._changes.fields
            if change.field in OF_EACH
            for part in parts_of(session, change.cluster, self._changes.mark)
            if (part, change.field) not in touched
            and getattr(session.get_one(Cluster, part), change.field) == change.new
        ]

    def run(self) -> Undone:
        """Do it and tell what was done."""
        now = {member.id: member for member in members_by_id(self._session, [m.was.id for m in self._changes.moves])}
        here = [move for move in self._changes.moves if move.was.id in now and now[move.was.id].cluster == move.new]
        going = {move.was.id: move for move in here if move.moved}
        missing = sum(move.moved for move in self._changes.moves) - len(going)
        if missing and not going:
            gone = f"The signatures of decision {self._what.id} are no longer where it put them."
            raise Refused(gone, _AS_THINGS_STAND)
        followers = self._followers(going)
        self._remember([*(now[move.was.id] for move in here), *(member for member, _ in followers.values())])
        self._restore_fields()
        self._restore_members(here)
        for one, (_, target) in sorted(followers.items()):
            self._move(one, target)
        self._restore_shapes()
        return Undone(self._record(), self._what, len(going), missing, self._account(followers))

    def _followers(self, going: dict[str, Move]) -> dict[str, tuple[Member, int]]:
        """Return who goes along, and where to: whose nearest exemplar goes, and all of a cluster that ends."""
        out: dict[str, tuple[Member, int]] = {}
        for one, newcomer in self._newcomers.items():
            leader = going.get(self._leader(one, going) or "")
            if leader is not None and leader.new == newcomer.member.cluster and leader.was.cluster is not None:
                out[one] = newcomer.member, leader.was.cluster
        ends = {one.cluster for one in self._changes.fields if one.field == "status" and one.new == "active"}
        for number in sorted(ends):
            home = self._back.get(number)
            for member in members_of(self._session, number):
                if member.id not in going and member.id not in out and home is not None:
                    out[member.id] = member, home
        return out

    def _leader(self, one: str, going: dict[str, Move]) -> str | None:
        """The nearest exemplar of a newcomer; where that came in since as well, that one's, and so on."""
        seen: set[str] = set()
        leader: str | None = one
        while leader in self._newcomers and leader not in seen and leader not in going:
            seen.add(leader)
            leader = self._newcomers[leader].nearest
        return leader

    def _remember(self, members: Iterable[Member]) -> None:
        self._recorder.members(members)
        for number in sorted(self._changes.clusters()):
            if self._changes.moves:
                self._recorder.members(member for member in members_of(self._session, number) if member.exemplar)
            self._recorder.cluster(number)
        for part, _ in self._parts:
            self._recorder.cluster(part)

    def _restore_fields(self) -> None:
        made = {one.cluster for one in self._changes.fields if (one.field, one.old) == ("status", None)}
        for number in made:  # its number was seen by people: it is kept, and says where its members are
            row = self._session.get_one(Cluster, number)
            row.status, row.merged_into = "merged", self._back.get(number)
        for one in self._changes.fields:
            row = self._session.get_one(Cluster, one.cluster)
            if one.cluster not in made and (one.field not in SOFT or getattr(row, one.field) == one.new):
                setattr(row, one.field, one.old)
        for part, one in self._parts:
            setattr(self._session.get_one(Cluster, part), one.field, one.old)
        self._session.flush()
        for home in sorted({home for home in self._back.values() if home is not None}):
            if self._session.get_one(Cluster, home).status != "active":
                gone = f"{cluster_id(home)}, where decision {self._what.id} took them from, was retired since."
                raise Refused(gone, _AS_THINGS_STAND)

    def _restore_members(self, here: Sequence[Move]) -> None:
        """Give signatures their cluster, time, way and exemplar flag back; to those that stayed only the flag."""
        rows = [
            {
                "key": move.was.id, "cluster": move.was.cluster, "at": move.was.joined_at, "how": move.was.joined_by,
                "flag": move.was.exemplar,
            }
            for move in here
        ]  # fmt: skip
        if rows:
            table = Signature.__table__
            values = {"cluster_id": "cluster", "joined_at": "at", "joined_by": "how", "is_exemplar": "flag"}
            self._session.connection().execute(
                update(table)  # type: ignore[arg-type]  # a mapped table, typed as any selectable
                .where(table.c.id == bindparam("key"))
                .values({column: bindparam(key, type_=table.c[column].type) for column, key in values.items()}),
                rows,
            )

    def _move(self, signature: str, target: int) -> None:
        self._session.execute(
            update(Signature)
            .where(Signature.id == signature)
            .values(cluster_id=target, joined_at=self._by.at, joined_by="person")
        )

    def _restore_shapes(self) -> None:
        """Exemplars and spread as they were, with those of newcomers and of later decisions beside them."""
        if not self._changes.moves:
            return
        told = {move.was.id for move in self._changes.moves}
        for number in sorted(self._changes.clusters()):
            members = members_of(self._session, number)
            risen = [m.id for m in members if m.exemplar and m.id not in told | self._later | self._newcomers.keys()]
            for chunk in chunks(risen):
                self._session.execute(update(Signature).where(Signature.id.in_(chunk)).values(is_exemplar=False))
            if members and not any(member.exemplar and member.id not in risen for member in members):
                set_exemplars(self._session, [member for member in members if member.id not in risen][:EXEMPLARS])
            self._restore_spread(number, members)

    def _restore_spread(self, number: int, members: Sequence[Member]) -> None:
        change = next((one for one in self._changes.fields if (one.cluster, one.field) == (number, "spread")), None)
        if change is None or change.old is None or any(member.id in self._later for member in members):
            return
        reached = [self._newcomers[m.id].distance for m in members if m.id in self._newcomers]
        self._session.get_one(Cluster, number).spread = max([change.old, *reached])

    def _record(self) -> Decision:
        what = self._what
        row = record(
            self._session, "undo", self._by, self._recorder.changes(), cluster=what.cluster_id, other=what.other_id,
            review=what.review_id, undoes=what.id,
        )  # fmt: skip
        for number in dict.fromkeys((what.cluster_id, what.other_id, *(part for part, _ in self._parts))):
            if number is not None:
                tell(self._session, row, number, "decided", undoes=what.id)
        return row

    def _account(self, followers: dict[str, tuple[Member, int]]) -> tuple[Newcomers, ...]:
        """Count the newcomers by where they were and are."""
        ends: dict[tuple[int, int], int] = {}
        for one, newcomer in self._newcomers.items():
            source = newcomer.member.cluster
            if source is not None and source in self._back:
                target = followers[one][1] if one in followers else source
                ends[source, target] = ends.get((source, target), 0) + 1
        return tuple(Newcomers(n, cluster_id(a), cluster_id(b)) for (a, b), n in sorted(ends.items()))


def _newcomers(session: Session, changes: Changes) -> list[_Newcomer]:
    """Return who came by itself into the clusters of a decision after it."""
    if not changes.moves:
        return []
    query = select(ClusterEvent.signature_id).where(
        ClusterEvent.id > changes.mark,
        ClusterEvent.kind == "joined",
        ClusterEvent.cluster_id.in_(sorted(changes.clusters())),
        ClusterEvent.signature_id.is_not(None),
    )
    told = {move.was.id for move in changes.moves}
    ids = sorted({one for one in session.scalars(query) if one is not None} - told)
    whys = {
        one: why or {}
        for chunk in chunks(ids)
        for one, why in session.execute(select(Signature.id, Signature.why).where(Signature.id.in_(chunk)))
    }
    return [
        _Newcomer(member, whys[member.id].get("exemplar"), float(whys[member.id].get("distance") or 0.0))
        for member in members_by_id(session, ids)
    ]
