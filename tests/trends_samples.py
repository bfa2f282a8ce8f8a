"""A small store for tests of trends: logs, events and attempts of three releases over three weeks, by real nights."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from pathlib import Path

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.store import Store

FIRST = date(2026, 3, 2)
DAYS = 21
LAST = FIRST + timedelta(days=DAYS - 1)
SILENT = frozenset((FIRST + timedelta(days=6), FIRST + timedelta(days=15)))
"""Days of which no deployments are told, although some failed."""
TODAY = date(2026, 4, 1)
RELEASES = ("1.0", "1.1", "1.2")
"""The last one has no attempts; 1.1 begins in the second week."""
PLATFORMS = ("k8s", "linux")
TEXTS = {
    "oom_device": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "tokenizer": "ValueError: tokenizer.json: vocabulary has 30522 entries, model expects 30500",
    "network_auth": "requests.exceptions.ConnectionError: 401 Client Error: Unauthorized for url: https://hub.example/m",
}


def fill(store: Store, folder: Path, *, attempts: bool = True) -> None:
    """Read the logs of deployments, the events of requests, and (if asked for) the file of deployments."""
    rng = random.Random(7)
    for number in range(DAYS):
        _logs(folder, rng, FIRST + timedelta(days=number))
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in _events(rng, attempts=attempts)))
    file = folder / "attempts.csv"
    file.write_text("unit,day,release,platform,attempts,failures\n" + "".join(_told(rng)))
    options = NightOptions(
        feed=FeedOptions(patterns=("out/{release}/{platform}/*.log",)), attempts=str(file) if attempts else None
    )
    a_night(store, [folder / "logs", folder / "events.jsonl"], options)


def began(release: str, day: date) -> bool:
    """Whether a release is out on a day."""
    return release == "1.0" or day >= FIRST + timedelta(days=9)


def _logs(folder: Path, rng: random.Random, day: date) -> None:
    for release in (*RELEASES, ""):
        for platform in PLATFORMS:
            if not began(release or "1.0", day):
                continue
            lines = []
            for number in range(rng.randrange(4)):
                phase = rng.choice(("load", "load", "warmup", "prepare"))
                told = {"attempt_id": f"{day}-{release}-{platform}-{number}", "phase": phase}
                name = rng.choice(tuple(TEXTS))
                stamp = f"{day}T10:{number:02}:00Z"
                lines += [json.dumps({"timestamp": stamp, "level": "error", "msg": TEXTS[name]} | told)] * 2
            place = folder / "logs" / (f"out/{release}/{platform}" if release else "nobody")
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{day}{'' if release else platform}.log").write_text("".join(f"{line}\n" for line in lines))


def _events(rng: random.Random, *, attempts: bool) -> list[str]:
    lines = []
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        for release in ("1.0", "1.1"):
            if not began(release, day):
                continue
            base = {"schema": "crashpath.event/1", "at": f"{day}T12:00:00.000Z", "release": release, "model": "m"}
            base |= {"platform": rng.choice(PLATFORMS), "host": "n", "pid": 1, "unit": "request"}
            failed, lost = rng.randrange(5), 0
            for place in range(failed):
                answered = rng.random() < 0.7
                lost += not answered
                name = rng.choice(("oom_device", "hang"))
                lines.append(
                    base
                    | {
                        "event": "failure", "attempt_id": f"r{number}-{release}-{place}", "phase": "infer",
                        "path": "ort", "class": name, "type": "Failure", "message": "the worker was killed",
                        "route": f"infer:{name} -> fallback:{'answered' if answered else 'failed'}",
                        "answered": answered,
                    }
                )  # fmt: skip
            if attempts:
                counts = {"attempts": 90 + number, "failures": failed + 1, "unanswered": lost, "rerouted": number % 3}
                to = {"event": "attempts", "to": f"{day}T13:00:00Z", "batch_id": f"b{number}-{release}"}
                lines.append(base | to | counts)
    return [json.dumps(line) for line in lines]


def _told(rng: random.Random) -> list[str]:
    rows = []
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        for release in ("1.0", "1.1"):
            for platform in PLATFORMS:
                if day not in SILENT and began(release, day):
                    failures = rng.choice(("", "5"))
                    rows.append(f"deployment,{day},{release},{platform},{rng.randrange(20, 60)},{failures}\n")
    return rows
