"""The same logs in another order, on another day, and on two threads: the same signatures, clusters and classes.

Each night is the real command with the real encoder in a process of its own, with a hash seed of its own. What may
move with the day is the day of crashes whose log carries no date; days that moved although the log is dated are
counted, and are red where the stamp has a year (one without takes the latest year that is not in the future).
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from processes import Held, crashpath, held, sample
from results_file import write_results
from tables import table

SEED = 11
AS_OF = datetime(2026, 12, 20, tzinfo=UTC)
LATER = timedelta(days=40)
HEAD = ("night", "s", "crashes", "signatures", "clusters", "equal", "days moved")
PARTS = ("crashes", "signatures", "clusters")


@dataclass(frozen=True, slots=True)
class Night:
    """One way to run the night, and what the store held after it."""

    name: str
    seconds: float
    held: Held


def a_night(name: str, folder: Path, paths: Sequence[Path], as_of: datetime, threads: int) -> Night:
    """Run the command line over these paths into a store of its own."""
    url = f"sqlite:///{folder}/{name.replace(' ', '-')}.db"
    started = time.perf_counter()
    done = crashpath("nightly", *paths, "--db", url, "--as-of", as_of.isoformat(), threads=threads)
    if done.returncode:
        raise RuntimeError(f"{name}: exit {done.returncode}: {done.stderr[-2000:]}")
    return Night(name, time.perf_counter() - started, held(url))


def moved(paths: Sequence[Path], by: timedelta) -> None:
    """Move the time of files."""
    for path in paths:
        info = path.stat()
        at = info.st_mtime + by.total_seconds()
        os.utime(path, (at, at))


def days_moved(base: Held, other: Held) -> tuple[int, int, list[str]]:
    """Return how many days of undated and of dated crashes moved, and where the latter are."""
    changed = [key for key, day in base.days.items() if other.days.get(key, day)[0] != day[0]]
    dated = [key for key in changed if not base.days[key][1]]
    return len(changed) - len(dated), len(dated), sorted(f"{Path(path).name}:{offset}" for path, offset in dated)


def unlike(base: Night, other: Night) -> list[str]:
    """Name the parts that differ."""
    return [part for part in base.held.differences(other.held) if part in PARTS]


def explain(base: Night, other: Night) -> None:
    """Print what differs, a few of each."""
    for part in PARTS:
        a, b = set(getattr(base.held, part)), set(getattr(other.held, part))
        for sign, only in (("-", a - b), ("+", b - a)):
            for one in sorted(map(str, only))[:5]:
                print(f"  {other.name}: {part} {sign} {one[:300]}")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table and write the figures; 1 where something differs that may not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=150, help="logs of the corpus")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        folder = Path(name)
        logs = sample(folder / "logs", options.logs)
        shuffled = rng.sample(logs, len(logs))
        nights = [
            a_night("first", folder, logs, AS_OF, 1),
            a_night("another order", folder, shuffled, AS_OF, 1),
            a_night("two threads", folder, logs, AS_OF, 2),
        ]
        moved(logs, LATER)
        nights.append(a_night(f"{LATER.days} days later", folder, logs, AS_OF + LATER, 1))
    base, *others = nights
    rows, figures, red = [], {}, False
    for night in nights:
        counts = [str(len(getattr(night.held, part))) for part in PARTS]
        undated, dated, where = days_moved(base.held, night.held)
        differs = unlike(base, night)
        red = red or bool(differs) or bool(dated) or bool(undated and night is not nights[-1])
        equal = "NO: " + " ".join(differs) if differs else "yes"
        rows.append((night.name, f"{night.seconds:.0f}", *counts, equal, f"{undated} undated, {dated} dated"))
        figures[night.name] = dict(zip(PARTS, map(int, counts), strict=True)) | {
            "differs": differs, "undated_moved": undated, "dated_moved": where,
        }  # fmt: skip
    table(
        f"{len(logs)} logs, real encoder, a process each; equal: crashes, signatures, clusters, classes",
        HEAD,
        rows,
    )
    for night in others:
        explain(base, night)
        if dated := days_moved(base.held, night.held)[2]:
            print(f"  {night.name}: dated crashes on another day: {', '.join(dated[:10])}")
    write_results("invariance", {"seed": options.seed, "logs": len(logs), **figures})
    return int(red)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
