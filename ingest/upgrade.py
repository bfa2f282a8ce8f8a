"""Look after a store: upgrade, backup, check."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, inspect, select, text

from crashpath.ingest import store as stores
from crashpath.ingest.migrate import migrate
from crashpath.ingest.store_errors import BackupImpossible, StoreMissing, StoreUnusable
from crashpath.ingest.tables import Crash, CrashDaily
from crashpath.ingest.tables_evidence import SCHEMA


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade did: revisions, and the backup made before (``None`` when nothing had to be done)."""

    old: str | None
    new: str
    backup: Path | None


@dataclass(frozen=True, slots=True)
class Check:
    """State of a store: its problems (empty when sound), rows a table, and bytes on disk (0 on a server)."""

    revision: str
    problems: tuple[str, ...]
    rows: tuple[tuple[str, int], ...]
    size: int


def upgrade(url: str, *, now: datetime, backup_to: Path | None = None) -> Upgrade:
    """Upgrade an existing store to this code's schema. A SQLite store is backed up first, beside itself by default."""
    engine = stores.connect(url, create=False)
    try:
        with stores.spoken(engine.url):
            old = stores.revision_of(engine)
            if old == stores.HEAD:
                return Upgrade(old, stores.HEAD, None)
            if old is None:
                raise StoreMissing(
                    f"There is no store at {stores.shown(engine.url)}.", "Run `crashpath nightly LOGS…` first."
                )
            stores.refuse_newer(engine.url, old)
            kept: Path | None = None
            if engine.dialect.name == "sqlite":
                file = Path(str(engine.url.database))
                kept = backup_to or file.with_name(f"{file.name}.{old}-{now:%Y%m%dT%H%M%S}.bak")
                copy_sqlite(file, kept)
            with engine.execution_options(crashpath_writer=True).begin() as connection:
                migrate(connection)
            return Upgrade(old, stores.HEAD, kept)
    finally:
        engine.dispose()


def backup(store: stores.Store, path: Path) -> Path:
    """Copy the store to ``path`` while it is in use. Raises ``BackupImpossible`` for a store on a server."""
    if store.file is None:
        raise BackupImpossible(
            f"{stores.shown(store.engine.url)} is on a server.",
            "Back it up with pg_dump --format=custom --file=FILE DATABASE.",
        )
    if path.exists():
        raise StoreUnusable(f"{path} exists already.", "Name a new file: a backup overwrites nothing.")
    copy_sqlite(store.file, path)
    return path


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy one SQLite file with its online backup: a consistent whole, written beside and then renamed."""
    if not target.parent.is_dir():
        raise StoreUnusable(f"The folder {target.parent} does not exist.", "Make it first.")
    if target.exists() and target.samefile(source):
        raise StoreUnusable(f"{target} is the store itself.", "Name another file.")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        origin = sqlite3.connect(source)
        copy = sqlite3.connect(unfinished)
        try:
            origin.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without -wal and -shm beside it
        finally:
            copy.close()
            origin.close()
        os.replace(unfinished, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreUnusable(f"The backup to {target} failed ({error}).", "Check permissions and free space.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def check(store: stores.Store) -> Check:
    """Look for damage: pages, foreign keys, missing tables, and daily counts that differ from the crashes."""
    problems: list[str] = []
    with store.read() as session:
        if store.is_sqlite:
            pages = [row[0] for row in session.execute(text("PRAGMA integrity_check(20)")) if row[0] != "ok"]
            problems += [f"integrity: {said}" for said in pages]
            problems += [
                f"foreign key: row {row[1]} of {row[0]} points at no row of {row[2]}"
                for row in session.execute(text("PRAGMA foreign_key_check"))
            ]
        there = set(inspect(session.connection()).get_table_names())
        tables = [table for table in SCHEMA.sorted_tables if table.name in there]
        problems += [f"table missing: {name}" for name in sorted(set(SCHEMA.tables) - there)]
        rows = tuple((table.name, session.scalar(select(func.count()).select_from(table)) or 0) for table in tables)
        if not problems:
            crashes = session.scalar(select(func.count()).select_from(Crash)) or 0
            counted = session.scalar(select(func.coalesce(func.sum(CrashDaily.crashes), 0))) or 0
            if counted < crashes:  # more is right after a prune: the counts outlive the crashes
                problems.append(f"daily counts: {counted} for {crashes} crashes")
    size = sum(f.stat().st_size for f in _files(store) if f.exists())
    return Check(stores.HEAD, tuple(problems), rows, size)


def _files(store: stores.Store) -> tuple[Path, ...]:
    file = store.file
    return () if file is None else (file, file.with_name(file.name + "-wal"), file.with_name(file.name + "-shm"))
