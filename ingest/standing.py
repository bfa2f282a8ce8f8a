"""Which later decisions stand on one: they touch what it touched, so it cannot be taken away under them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.changes import Changes, changes_of
from crashpath.ingest.decisions import KINDS, undoers
from crashpath.ingest.tables_evidence import Decision

CLASS = frozenset({"failure_class", "probability", "class_by", "evidence"})
SOFT = frozenset({"label", "spread"})
"""Columns that nights and later decisions may change on their own: no decision stands on them."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What a decision touched: signatures that moved, columns by cluster, clusters it made or ended, all it used."""

    keys: frozenset[tuple[str, object]]
    ended: frozenset[int]
    used: frozenset[int]

    def meets(self, other: Touch) -> bool:
        """Whether two decisions touched one thing."""
        return bool(self.keys & other.keys or self.ended & other.used or other.ended & self.used)


def touch_of(changes: Changes) -> Touch:
    """Return what a decision touched."""
    used = changes.clusters()
    keys: set[tuple[str, object]] = {("signature", move.was.id) for move in changes.moves if move.moved}
    ended: set[int] = set()
    for one in changes.fields:
        if one.field == "status":
            ended.add(one.cluster)
        elif one.field == "class_by" and one.old is None and one.new == "person":
            keys.update(("class", number) for number in used)  # the part of a split has a person's class of the whole
        elif one.field not in SOFT:
            keys.add(("class" if one.field in CLASS else one.field, one.cluster))
    return Touch(frozenset(keys), frozenset(ended), frozenset(used))


def standing_on(session: Session, what: Decision) -> list[Decision]:
    """Return the decisions after ``what`` that hold and touch what it touched; oldest first."""
    own = touch_of(changes_of(what))
    return [row for row in later(session, what) if own.meets(touch_of(changes_of(row)))]


def later(session: Session, what: Decision) -> list[Decision]:
    """Return what was decided after ``what`` and left a trace: a decision and its undo, both after it, left none."""
    undone = undoers(session)
    rows = session.scalars(
        select(Decision).where(Decision.id > what.id, Decision.kind.in_(KINDS)).order_by(Decision.id)
    )
    return [row for row in rows if row.id not in undone and not (row.undoes_id or 0) > what.id]
