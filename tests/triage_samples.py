"""A small store for tests of triage, by two real nights: what is new, regressed, spiking, back, muted and hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sqlalchemy import select

from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.testing import light_clusterer
from crashpath.ingest.deciding import assign
from crashpath.ingest.decisions import By
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.marking import mute, resolve
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster

NIGHTS = (datetime(2026, 3, 10, 3, tzinfo=UTC), datetime(2026, 3, 11, 3, tzinfo=UTC))
LAST = date(2026, 3, 10)
"""The last full day, which the second night reads."""
SCRIPT = "<script>alert(1)</script> **bold** [link](javascript:alert(2)) `code` \x1b[31mred \u202egnp.exe"
LONG = "x" * 9_000
TEXTS = {
    "spiking": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "regressed": "PermissionError: [Errno 13] Permission denied to write the cache of the engine",
    "back": "ValueError: tokenizer.json: vocabulary has 30522 entries, model expects 30500",
    "new": f"RuntimeError: {SCRIPT} in the planner",
    "long": f"ZeroDivisionError: division by zero while {LONG} was planned",
    "steady": "ImportError: libnvinfer.so.10: cannot open shared object file at 100%_done",
    "muted": "requests.exceptions.ConnectionError: 401 Client Error: Unauthorized for url: https://hub.example/m",
}
_TRACE = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start()\n{}\n'


def fill(store: Store, folder: Path) -> dict[str, int]:
    """Run the nights; return the number of each text's cluster, and that of an event's class under ``event``."""
    for day in (LAST - timedelta(n) for n in range(12, 0, -1)):
        _log(folder / "one", "1.0", "k8s", day, ["spiking", "steady", *(["regressed"] * 2 if day.day == 1 else [])])
    _log(folder / "one", "1.0", "linux", date(2026, 1, 1), ["back"])
    _log(folder / "one", "1.0", "linux", date(2026, 3, 2), ["muted", "regressed"])
    (folder / "one" / "events.jsonl").write_text("".join(f"{line}\n" for line in _events()))
    _night(store, folder / "one", NIGHTS[0])
    numbers = homes(store)
    by = By("dana", NIGHTS[0] + timedelta(hours=5))
    with store.write() as session:
        resolve(session, numbers["regressed"], "1.1", by)
        mute(session, numbers["muted"], datetime(2999, 1, 1, tzinfo=UTC), by)
        assign(session, numbers["steady"], None, by, assignee="ana")
    _log(folder / "two", "1.1", "k8s", LAST, ["spiking"] * 40 + ["regressed", "new", "new", "long", "steady", "muted"])
    _log(folder / "two", "1.0", "windows", LAST, ["back"])
    _night(store, folder / "two", NIGHTS[1])
    return homes(store)


def homes(store: Store) -> dict[str, int]:
    """Return the number of each text's cluster."""
    found = {}
    with store.read() as session:
        for number, label, of in session.execute(select(Cluster.id, Cluster.label, Cluster.failure_class)):
            words = {name: text.split(":")[0].rpartition(".")[2] for name, text in TEXTS.items()}
            names = [name for name, word in words.items() if label.startswith(word)]
            found["event" if not names else names[0]] = number
            assert names or of == "hang", label
    return found


def _night(store: Store, folder: Path, at: datetime) -> None:
    options = NightOptions(feed=FeedOptions(patterns=("*/{release}/{platform}/*.log",), as_of=at))
    assert run_night(store, [str(folder)], options, light_clusterer(), clock=lambda: at).status == "complete"


def _log(folder: Path, release: str, platform: str, day: date, names: list[str]) -> None:
    place = folder / release / platform
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{day}.log").open("a", encoding="utf-8") as file:
        for number, name in enumerate(names):
            file.write(f"{day} 10:{number:02}:00 ERROR {_TRACE.format(TEXTS[name])}\n")


def _events() -> Iterator[str]:
    base = {
        "schema": "crashpath.event/1", "at": "2026-03-04T12:00:00.000Z", "release": "1.0", "model": "m", "pid": 1,
        "platform": "k8s", "host": "n", "unit": "request", "event": "failure", "phase": "infer", "path": "ort",
        "class": "hang", "type": "Failure", "message": "the watchdog ended the worker",
    }  # fmt: skip
    for place, answered in enumerate((True, True, True, False)):
        route = f"infer:hang -> fallback:{'answered' if answered else 'failed'}"
        yield json.dumps(base | {"attempt_id": f"r{place}", "route": route, "answered": answered})
