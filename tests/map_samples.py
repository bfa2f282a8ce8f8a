"""A store for tests of the map: two nights, eight failures, of which the last one has no place."""

from __future__ import annotations

import json
from pathlib import Path

from crashpath.dashboard.testing import a_night
from crashpath.ingest.places import placed_signatures, put_places
from crashpath.ingest.store import Store, open_store

HOSTILE = "<img src=x onerror=alert(1)> **bold** [x](javascript:alert(1)) \u202e \x1b[31mred"
FIRST = (
    ("2.0", 5, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    ("2.0", 2, "Permission denied: '/models/bert.onnx'"),
    ("2.1", 3, "invalid vocabulary in tokenizer.json"),
    ("2.1", 1, "Connection refused by the model registry"),
    ("2.1", 1, "illegal memory access was encountered"),
    ("2.0", 1, "dimension mismatch between feed and graph"),
)
SECOND = (("2.1", 1, HOSTILE), ("2.1", 1, "the watchdog of the decoder barked"))


def log(folder: Path, failures: tuple[tuple[str, int, str], ...], day: int) -> None:
    """Write one log a failure; each has its own words and is of its own release."""
    folder.mkdir(parents=True)
    for number, (release, times, message) in enumerate(failures):
        file = folder / f"{number}.log"
        file.write_text(
            "".join(
                f"2026-03-{day:02d} 03:{10 * n:02d}:00 ERROR app: failed\nTraceback (most recent call last):\n"
                f'  File "/app/part{number}_{day}.py", line 3, in step{number}\n    go()\nRuntimeError: {message}\n'
                for n in range(times)
            )
        )
        (folder / f"{number}.log.meta.json").write_text(json.dumps({"release": release, "platform": f"p{number % 2}"}))


def make(folder: Path) -> str:
    """Write the store into a file of its own and return its URL."""
    url = f"sqlite:///{folder}/crashpath.db"
    with open_store(url) as store:
        fill(store, folder)
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return url


def fill(store: Store, folder: Path) -> None:
    """Read two nights of logs. Places are on a line, by the order of ids; the last signature has none."""
    for name, failures, day in (("a", FIRST, 1), ("b", SECOND, 9)):
        log(folder / name, failures, day)
        a_night(store, [folder / name])
    place(store)


def place(store: Store) -> None:
    """Give all signatures a place but the one of the watchdog."""
    with store.write() as session:
        found = [one for one in placed_signatures(session) if "watchdog" not in one.text]
        put_places(session, [(one.id, float(n), float(n % 3)) for n, one in enumerate(found)])
