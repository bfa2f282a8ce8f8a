"""A small store with two releases that can be reviewed, for the tests of the page Review."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

from crashpath.dashboard.cli import run
from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.store import open_store

DAY = date(2026, 2, 1)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"


def make_store(folder: Path) -> str:
    """A store with two releases that were tried on three days each, the newer one better; return its address."""
    url = f"sqlite:///{folder}/store.db"
    rows = []
    for release, failures, first in (("1.0", 30, DAY), ("2.0", 2, DAY + timedelta(days=7))):
        place = folder / "logs" / release / "linux"
        place.mkdir(parents=True)
        for number in range(3):
            day = first + timedelta(days=number)
            facts = {"timestamp": f"{day}T10:00:00Z", "level": "error", "phase": "load", "msg": OOM}
            lines = [facts | {"attempt_id": f"{release}-{day}-{i}"} for i in range(failures)]
            ready = facts | {"level": "info", "msg": "ready"}
            (place / f"{day}.log").write_text("".join(f"{json.dumps(line)}\n" for line in (ready, *lines)))
            rows.append(f"deployment,{day},{release},linux,1000\n")
    with open_store(url) as store:
        options = NightOptions(feed=FeedOptions(patterns=("{release}/{platform}/*.log",)))
        a_night(store, [folder / "logs"], options)
    attempts = folder / "attempts.csv"
    attempts.write_text("unit,day,release,platform,attempts\n" + "".join(rows))
    assert run(["attempts", str(attempts), "--db", url]) == 0
    return url
