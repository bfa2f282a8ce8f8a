"""Retention: drop old crashes and their texts; daily counts, signatures, clusters, lineage and decisions stay."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, exists, select

from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import StoreError, StoreUnusable
from crashpath.ingest.tables import Crash, Exemplar, Quarantine, Source, Variant

#: Crashes dropped in one transaction, so that a person's write never waits long.
_STEP = 5_000


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was dropped."""

    crashes: int
    examples: int
    variants: int
    quarantined: int


def prune(store: Store, *, keep_days: int, now: datetime) -> Pruned:
    """Drop crashes of days more than ``keep_days`` before ``now``'s, and quarantine as old.

    A crash behind the checkpoint of its source stays: the source will be read again from there.
    """
    if keep_days < 1:
        raise StoreError(f"--keep-days is {keep_days}.", "Keep one day at least.")
    oldest = (now - timedelta(days=keep_days)).date()
    before = datetime.combine(oldest, datetime.min.time(), tzinfo=now.tzinfo)
    crashes = examples = 0
    while True:
        with store.write() as session:
            ids = session.scalars(
                select(Crash.id)
                .join(Source, Source.id == Crash.source_id)
                .where(Crash.day < oldest, Crash.offset < Source.offset)
                .limit(_STEP)
            ).all()
            if not ids:
                break
            kept = delete(Exemplar).where(Exemplar.crash_id.in_(ids)).returning(Exemplar.id)
            examples += len(session.execute(kept).all())
            session.execute(delete(Crash).where(Crash.id.in_(ids)))
            crashes += len(ids)
    with store.write() as session:
        unused = delete(Variant).where(~exists().where(Crash.variant_id == Variant.id)).returning(Variant.id)
        variants = len(session.execute(unused).all())
        old = select(Quarantine.id).join(Source, Source.id == Quarantine.source_id)
        old = old.where(Quarantine.at < before, Quarantine.offset < Source.offset)
        held = len(session.execute(delete(Quarantine).where(Quarantine.id.in_(old)).returning(Quarantine.id)).all())
    return Pruned(crashes, examples, variants, held)


def give_back_space(store: Store) -> None:
    """Return the space of dropped rows to the file system (SQLite); needs as much free space as the store takes."""
    if store.file is None:
        return
    raw = store.engine.raw_connection()
    try:
        raw.cursor().execute("VACUUM")  # not allowed inside a transaction, so past the engine's own
    except sqlite3.Error as error:
        raise StoreUnusable(f"The space was not given back ({error}).", "Try again when nobody writes.") from error
    finally:
        raw.close()
