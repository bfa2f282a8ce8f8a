"""Which days have to be counted anew: whoever writes crashes says so in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.tables import Crash
from crashpath.ingest.tables_counts import StaleDay


def mark_stale(session: Session, days: Iterable[date], *, dropped: Collection[str] = ()) -> None:
    """Say that the failed attempts of these UTC days may be others now; call it after the crashes were written.

    ``dropped`` are attempt ids that a crash no longer has: nothing leads from its day to the days of their other
    witnesses any more, so these are marked here. (Ids that crashes do have are followed when days are counted.)
    """
    wanted = set(days)
    for chunk in chunks(sorted(dropped)):
        wanted.update(session.scalars(select(Crash.day).where(Crash.attempt_id.in_(chunk)).distinct()))
    if not wanted:
        return
    statement: Any = _insert(session).values(touched=1)
    statement = statement.on_conflict_do_update(index_elements=["day"], set_={"touched": StaleDay.touched + 1})
    # In their order: two writers that lock the same days in different ones would wait for each other.
    session.connection().execute(statement, [{"day": day} for day in sorted(wanted)])


def claim_new(session: Session, days: Iterable[date], token: int) -> None:
    """Mark days with ``token`` that are not marked; those that are stay as they are."""
    rows = [{"day": day, "touched": token} for day in sorted(days)]
    if rows:
        session.connection().execute(_insert(session).on_conflict_do_nothing(index_elements=["day"]), rows)


def _insert(session: Session) -> Any:
    dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
    return dialect.insert(StaleDay.__table__)
