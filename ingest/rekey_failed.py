"""Take the counts of failed attempts along with a re-key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, MetaData, Table, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.stale import mark_stale
from crashpath.ingest.tables import Crash
from crashpath.ingest.tables_counts import FailedDaily, StaleDay

_KEY = tuple(column.name for column in FailedDaily.__table__.primary_key)
_SUMS = tuple(column.name for column in FailedDaily.__table__.columns if not column.primary_key)
_rows = Table(
    "rekey_failed", MetaData(), *(Column(name, FailedDaily.__table__.c[name].type) for name in (*_KEY, *_SUMS)),
    prefixes=["TEMPORARY"],
)  # fmt: skip


def move_failures(session: Session, moves: Table, mains: Table) -> None:
    """Give counts to the signature that stands for the old one; days with crashes that go elsewhere are stale then.

    ``moves`` has variant_id, old and new, ``mains`` old and new. Call it in the transaction of the re-key.
    """
    connection, daily = session.connection(), FailedDaily.__table__
    _rows.create(connection, checkfirst=False)
    told = [mains.c.new if name == "signature_id" else daily.c[name] for name in (*_KEY, *_SUMS)]
    moved = select(*told).join_from(daily, mains, mains.c.old == daily.c.signature_id)
    connection.execute(insert(_rows).from_select([*_KEY, *_SUMS], moved))
    session.execute(delete(FailedDaily).where(FailedDaily.signature_id.in_(select(mains.c.old))))
    key = [_rows.c[name] for name in _KEY]
    # (SQLite takes ON CONFLICT behind a SELECT only where a clause stands between.)
    summed = select(*key, *(func.sum(_rows.c[name]) for name in _SUMS)).group_by(*key).having(func.count() > 0)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(daily).from_select([*_KEY, *_SUMS], summed)
    added = {name: daily.c[name] + statement.excluded[name] for name in _SUMS}
    connection.execute(statement.on_conflict_do_update(index_elements=[*_KEY], set_=added))
    _rows.drop(connection)
    # Who is counting days right now has the old ids: those marks become others, so that nothing of it is written.
    session.execute(update(StaleDay).values(touched=StaleDay.touched + 1))
    elsewhere = (
        select(Crash.day)
        .join(moves, moves.c.variant_id == Crash.variant_id)
        .join(mains, mains.c.old == moves.c.old)
        .where(moves.c.new != mains.c.new)
        .distinct()
    )
    mark_stale(session, session.scalars(elsewhere))
