"""Whether a store may have changed since somebody looked: a text that differs after every write."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import text

from crashpath.ingest.store import Store


def fingerprint(store: Store) -> str:
    """Return it, in well under a millisecond: of a file its times and sizes, of a server its place in the log."""
    if store.file is not None:
        return " ".join(_state(Path(f"{store.file}{end}")) for end in ("", "-wal"))
    with store.read() as session:
        return str(session.scalar(text("SELECT CAST(pg_current_wal_lsn() AS text)")))


def _state(file: Path) -> str:
    try:
        found = os.stat(file)
    except FileNotFoundError:  # a write-ahead log goes away with the last connection
        return "-"
    return f"{found.st_ino} {found.st_mtime_ns} {found.st_size}"
