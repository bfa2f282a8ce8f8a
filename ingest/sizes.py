"""How large a store is on disk, and how many rows its tables have; cheap, however large it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Select, Table, func, select, text
from sqlalchemy.orm import Session

from crashpath.ingest.tables_evidence import SCHEMA

EXACT = 50_000
"""Rows up to which a table is counted; beyond, a number close by is told, or that there are more."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table. ``rows`` is exact where ``kind`` is empty, else what there are ``about``, or ``over``."""

    name: str
    rows: int
    kind: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class StoreSize:
    """Bytes on disk: ``file`` with all that is in it, ``log`` of what is not yet written back (SQLite's ``-wal``)."""

    file: int
    log: int | None
    tables: tuple[TableRows, ...]

    @property
    def total(self) -> int:
        """Bytes of both."""
        return self.file + (self.log or 0)


def store_bytes(session: Session) -> int:
    """Return the bytes of all that the store holds: of its pages, wherever they are, or of its database on a server.

    Unlike the files, this does not swell while a night writes.
    """
    if session.connection().dialect.name != "sqlite":
        return _bytes(session)[0]
    pages, length = (session.scalar(text(f"PRAGMA {name}")) or 0 for name in ("page_count", "page_size"))
    return int(pages) * int(length)


def store_size(session: Session) -> StoreSize:
    """Return sizes and rows; bytes of single tables where the database tells them (PostgreSQL)."""
    file, log = _bytes(session)
    sqlite = session.connection().dialect.name == "sqlite"
    rows = [_of_sqlite(session, one) if sqlite else _of_server(session, one) for one in SCHEMA.sorted_tables]
    return StoreSize(file, log, tuple(sorted(rows, key=lambda one: (-(one.bytes or 0), -one.rows, one.name))))


def _bytes(session: Session) -> tuple[int, int | None]:
    bind = session.connection()
    if bind.dialect.name != "sqlite":
        return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0), None
    file = Path(bind.engine.url.database or "")
    return _length(file), _length(Path(f"{file}-wal"))


def _length(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # the log goes away with the last connection
        return 0


def _of_sqlite(session: Session, table: Table) -> TableRows:
    counted = _counted(session, table)
    if counted <= EXACT:
        return TableRows(table.name, counted, "", None)
    numbered = "id" in table.c and table.c.id.type.python_type is int
    if not numbered:
        return TableRows(table.name, EXACT, "over", None)
    first, last = session.execute(select(func.min(table.c.id), func.max(table.c.id))).one()
    return TableRows(table.name, int(last) - int(first) + 1, "about", None)  # rows that are gone left gaps


def _of_server(session: Session, table: Table) -> TableRows:
    query = text("SELECT reltuples, pg_total_relation_size(oid) FROM pg_class WHERE oid = CAST(:name AS regclass)")
    guess, size = session.execute(query, {"name": f'"{table.name}"'}).one()
    if guess > EXACT:
        return TableRows(table.name, int(guess), "about", int(size))
    counted = _counted(session, table)
    return TableRows(table.name, min(counted, EXACT), "over" if counted > EXACT else "", int(size))


def _counted(session: Session, table: Table) -> int:
    """Count rows, one more than ``EXACT`` at most."""
    some: Select[Any] = select(*table.primary_key).limit(EXACT + 1)
    return session.scalar(select(func.count()).select_from(some.subquery())) or 0
