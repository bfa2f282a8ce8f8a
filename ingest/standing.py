"""Which later decisions stand on one: they touch what it touched, so it cannot be taken away under them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.changes import Changes, changes_of
from crashpath.ingest.decisions import holding
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
    """Return the decisions that hold, took effect after ``what``, and touch what it touched; oldest first."""
    own = touch_of(changes_of(what))
    since = _since(session)
    start = since.get(what.id, what.id)
    return [
        row
        for row in holding(session)
        if row.id != what.id and since.get(row.id, row.id) > start and own.meets(touch_of(changes_of(row)))
    ]


def _since(session: Session) -> dict[int, int]:
    """Return, for each decision that was undone and taken again, the last undo above it."""
    below: dict[int, int] = {}
    above: dict[int, int] = {}
    query = select(Decision.id, Decision.undoes_id).where(Decision.undoes_id.is_not(None)).order_by(Decision.id)
    for number, undone in session.execute(query):
        if undone is None:
            continue
        below[number] = undone
        chain: int | None = undone
        while chain is not None:
            above[chain] = number
            chain = below.get(chain)
    return above
