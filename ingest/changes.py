"""What one decision changed, written down so that it can be undone exactly.

A decision's signature ids are in ``decision.signatures`` and nowhere else, so that a re-key maps one column;
``decision.before`` tells of them by their place there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.schema import Json
from crashpath.ingest.tables import Cluster, ClusterEvent, Signature
from crashpath.ingest.tables_evidence import Decision

FIELDS = (
    "name", "label", "status", "merged_into", "spread", "failure_class", "probability", "class_by", "evidence",
    "assignee", "resolved_in", "muted_until", "ticket",
)  # fmt: skip
"""Columns of a cluster that a decision may change."""
TIMES = frozenset({"muted_until"})
"""Those that hold a moment; in JSON it is text."""
SPEAKERS = 16
"""Most signatures of a side that stand for it in the links of a decision."""


@dataclass(frozen=True, slots=True)
class Member:
    """Where a signature is, since when and by whom, and whether it stands for its cluster."""

    id: str
    cluster: int | None
    joined_at: datetime | None
    joined_by: str | None
    exemplar: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A signature before a decision, and its cluster after it (the same one where it stayed).

    ``speaks``: it stands for its side in the links that the decision gives.
    """

    was: Member
    new: int | None
    speaks: bool

    @property
    def moved(self) -> bool:
        """Whether the decision put it into another cluster."""
        return self.was.cluster != self.new


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A column of a cluster before and after a decision. A cluster that the decision made had the status ``None``."""

    cluster: int
    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Changes:
    """All that a decision changed. ``mark`` is the last lineage event before it."""

    moves: tuple[Move, ...]
    fields: tuple[FieldChange, ...]
    mark: int

    def clusters(self) -> set[int]:
        """The clusters that it touched."""
        moved = {number for move in self.moves for number in (move.was.cluster, move.new) if number is not None}
        return moved | {change.cluster for change in self.fields}


def changes_of(decision: Decision) -> Changes:
    """Read what a decision changed."""
    before = decision.before
    moves = tuple(
        Move(Member(one, old, _moment(at), by, bool(exemplar)), new, bool(speaks))
        for one, (old, new, at, by, exemplar, speaks) in zip(
            decision.signatures, before.get("members", ()), strict=True
        )
    )
    fields = tuple(FieldChange(int(c), f, *_values(f, old, new)) for c, f, old, new in before.get("clusters", ()))
    return Changes(moves, fields, int(before.get("mark", 0)))


def _values(field: str, old: Any, new: Any) -> tuple[Any, Any]:
    return (_moment(old), _moment(new)) if field in TIMES else (old, new)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


class Recorder:
    """Remembers what was there before a decision changes it, and compares at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._members: dict[str, Member] = {}
        self._clusters: dict[int, Json] = {}
        self.mark = int(session.scalar(select(func.max(ClusterEvent.id))) or 0)

    def cluster(self, number: int) -> Cluster:
        """Return the row of a cluster that is about to change."""
        row = self._session.get_one(Cluster, number)
        self._clusters.setdefault(number, {field: getattr(row, field) for field in FIELDS})
        return row

    def made(self, number: int) -> None:
        """Say that the decision itself makes this cluster."""
        self._clusters[number] = dict.fromkeys(FIELDS)

    def members(self, members: Iterable[Member]) -> None:
        """Remember signatures that are about to change, or that stand for their side."""
        for member in members:
            self._members.setdefault(member.id, member)

    def changes(self) -> Changes:
        """Compare with what is there now."""
        self._session.flush()
        now = {member.id: member for member in members_by_id(self._session, sorted(self._members))}
        speak = _speakers([(was, now[was.id].cluster) for was in self._members.values()])
        moves = tuple(Move(was, now[one].cluster, one in speak) for one, was in sorted(self._members.items()))
        fields = []
        for number, old in sorted(self._clusters.items()):
            row = self._session.get_one(Cluster, number)
            values = ((field, old[field], getattr(row, field)) for field in FIELDS)
            fields += [
                FieldChange(number, field, was, new)
                for field, was, new in values
                if was != new or (field == "spread" and moves)  # nights may widen it before an undo
            ]
        return Changes(moves, tuple(fields), self.mark)


def before_of(changes: Changes) -> Json:
    """Return what goes into ``decision.before``; the ids of the signatures go into ``decision.signatures``."""
    return {
        "mark": changes.mark,
        "members": [
            [
                move.was.cluster, move.new, _written(move.was.joined_at), move.was.joined_by, move.was.exemplar,
                move.speaks,
            ]
            for move in changes.moves
        ],
        "clusters": [[one.cluster, one.field, _written(one.old), _written(one.new)] for one in changes.fields],
    }  # fmt: skip


def _written(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _speakers(members: Sequence[tuple[Member, int | None]]) -> set[str]:
    """At most ``SPEAKERS`` of those that moved and of those that stayed: exemplars first, then by id (a hash)."""
    sides: dict[bool, list[Member]] = {True: [], False: []}
    for was, new in members:
        sides[was.cluster != new].append(was)
    return {one.id for side in sides.values() for one in sorted(side, key=lambda m: (not m.exemplar, m.id))[:SPEAKERS]}


def members_of(session: Session, number: int) -> tuple[Member, ...]:
    """Return the members of a cluster, in the order of ids."""
    return tuple(_read(session, Signature.cluster_id == number))


def members_by_id(session: Session, ids: Sequence[str]) -> tuple[Member, ...]:
    """Return signatures by their ids; unknown ids are left out."""
    return tuple(member for chunk in chunks(ids) for member in _read(session, Signature.id.in_(chunk)))


def _read(session: Session, condition: Any) -> Iterator[Member]:
    columns = (Signature.id, Signature.cluster_id, Signature.joined_at, Signature.joined_by, Signature.is_exemplar)
    for row in session.execute(select(*columns).where(condition).order_by(Signature.id)):
        yield Member(*row)
