"""Places of signatures on the map, as the store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from crashpath.ingest.tables import Night, Signature

KEY = "map"
"""Where ``night.counts`` tells of the map."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A signature, the text that is embedded for it, and its place, where it has one."""

    id: str
    text: str
    x: float | None
    y: float | None


def placed_signatures(session: Session) -> tuple[Placed, ...]:
    """Return all signatures with a cluster, in the order of their ids."""
    query = select(Signature.id, Signature.text, Signature.map_x, Signature.map_y)
    rows = session.execute(query.where(Signature.cluster_id.is_not(None)).order_by(Signature.id))
    return tuple(Placed(*row) for row in rows)


def unplaced(session: Session) -> bool:
    """Whether a signature with a cluster has no place."""
    query = select(Signature.id).where(Signature.cluster_id.is_not(None), Signature.map_x.is_(None)).limit(1)
    return session.scalar(query) is not None


def laid_out(session: Session) -> int | None:
    """Return of how many signatures the map was laid out the last time; ``None`` where no night tells."""
    for counts in session.scalars(select(Night.counts).order_by(Night.id.desc())):
        found = counts.get(KEY)
        if found:
            return int(found["laid_out"])
    return None


def put_places(session: Session, places: Sequence[tuple[str, float, float]]) -> None:
    """Give signatures their places: id, x, y."""
    table = Signature.__table__
    statement = update(table).where(table.c.id == bindparam("b_id"))  # type: ignore[arg-type]  # a Table
    values = [{"b_id": one, "b_x": x, "b_y": y} for one, x, y in places]
    if values:
        session.connection().execute(statement.values(map_x=bindparam("b_x"), map_y=bindparam("b_y")), values)
