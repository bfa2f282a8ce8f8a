"""A store for tests of the page Ingest health: three nights, two of them partial, with hostile bytes in quarantine."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import Store, open_store

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $x$ \x1b[31mred \u202e"
BROKEN = b"\xff\xfe\xfd\xfc " + HOSTILE.encode() + b"\xff" * 200 + b"\n"


def trace(number: int) -> bytes:
    """One failure, and a line with what has to be redacted."""
    return (
        f"2026-03-01 03:{number:02d}:00 ERROR app: failed\nTraceback (most recent call last):\n"
        f'  File "/app/x.py", line 3, in f\n    g()\nValueError: bad thing asked by bob@example.org\n'
        f"2026-03-01 03:{number:02d}:40 INFO went on\n"
    ).encode()


def fill(store: Store, folder: Path) -> None:
    """Read three nights of two logs; in the second one bytes that are no text, in the third an archive that is cut."""
    logs = folder / "logs"
    logs.mkdir()
    options = NightOptions(max_quarantine=0.01)
    for number in range(3):
        for name in ("a.log", "b.log"):
            with (logs / name).open("ab") as file:
                file.write(b"".join(trace(10 * number + n) for n in range(2 + number)))
                file.write(BROKEN if (number, name) == (1, "a.log") else b"")
        if number == 2:
            (logs / "cut.log.gz").write_bytes(gzip.compress(os.urandom(40_000).hex().encode())[:9_000])
        a_night(store, [logs], options)


def make(folder: Path) -> str:
    """Write the store into a file of its own and return its URL."""
    url = f"sqlite:///{folder}/crashpath.db"
    with open_store(url) as store:
        fill(store, folder)
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return url
