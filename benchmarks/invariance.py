"""The same logs in another order, on another day, and on two threads: the same signatures, clusters, ids and classes.

Each way is two nights of the real command with the real encoder, every one in a process of its own, with a hash seed of
its own: the second comes eight days later with other logs, and forms clusters anew. Then ``group`` reads all logs: the
same records share a group, and each has the same nearest. What may move with the day is the day of crashes whose log
carries no date; days that moved although the log is dated are counted, and are red where the stamp has a year (one
without takes the latest year that is not in the future).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from processes import Held, crashpath, held, sample
from results_file import write_results
from sqlalchemy import select
from tables import table

from crashpath.ingest.store import open_store
from crashpath.ingest.tables import Signature

SEED = 11
AS_OF = datetime(2026, 12, 20, tzinfo=UTC)
LATER = timedelta(days=40)
WEEK = timedelta(days=8)
"""Between the two nights of a way: so long that clusters are formed anew."""
HEAD = ("nights", "s", "crashes", "signatures", "clusters", "anew", "equal", "days moved")
PARTS = ("crashes", "signatures", "clusters")


@dataclass(frozen=True, slots=True)
class Night:
    """One way to run two nights, and what the store held after them. ``ids``: a cluster's id by signature.

    ``anew`` is what the second night said of forming clusters anew, ``None`` where it did not.
    """

    name: str
    seconds: float
    held: Held
    ids: Mapping[str, int | None]
    anew: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Groups:
    """One way to run ``group``: the records that share a group, and the nearest of each."""

    name: str
    seconds: float
    together: frozenset[frozenset[str]]
    nearest: Mapping[str, tuple[str, float] | None]


def two_nights(name: str, folder: Path, paths: Sequence[Path], as_of: datetime, threads: int) -> Night:
    """Run the command line over half of these paths and, a week later, over the others, into a store of its own."""
    url = f"sqlite:///{folder}/{name.replace(' ', '-')}.db"
    halves = [[path for path in paths if hash_of(path) % 2 == side] for side in (0, 1)]
    started = time.perf_counter()
    for half, at in zip(halves, (as_of, as_of + WEEK), strict=True):
        said = _said(name, "nightly", *half, "--db", url, "--as-of", at.isoformat(), "--json", threads=threads)
    with open_store(url, create=False) as store, store.read() as session:
        ids = {row[0]: row[1] for row in session.execute(select(Signature.id, Signature.cluster_id))}
    anew = json.loads(said)["reclustered"]
    return Night(name, time.perf_counter() - started, held(url), ids, anew)


def hash_of(path: Path) -> int:
    """A number that a file's name gives, the same in any order and process."""
    return crc32(path.name.encode())


def groups(name: str, paths: Sequence[Path], threads: int) -> Groups:
    """Run ``group`` over these paths."""
    started = time.perf_counter()
    rows = [json.loads(line) for line in _said(name, "group", *paths, "--json", threads=threads).splitlines()]
    members: dict[str, set[str]] = {}
    for row in rows:
        members.setdefault(row["cluster"], set()).add(row["id"])
    near = {row["id"]: (row["nearest"]["id"], row["nearest"]["similarity"]) if row["nearest"] else None for row in rows}
    return Groups(name, time.perf_counter() - started, frozenset(map(frozenset, members.values())), near)


def _said(name: str, *arguments: object, threads: int) -> str:
    done = crashpath(*arguments, threads=threads)
    if done.returncode:
        raise RuntimeError(f"{name}: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


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
    parts = [part for part in base.held.differences(other.held) if part in PARTS]
    when = {"at": None, "because": None}  # the clock of the way, and no more
    anew = [None if one.anew is None else {**one.anew, **when} for one in (base, other)]
    return parts + ["ids"] * (base.ids != other.ids) + ["anew"] * (anew[0] != anew[1] or anew[0] is None)


def explain(base: Night, other: Night) -> None:
    """Print what differs, a few of each."""
    for part in PARTS:
        a, b = set(getattr(base.held, part)), set(getattr(other.held, part))
        for sign, only in (("-", a - b), ("+", b - a)):
            for one in sorted(map(str, only))[:5]:
                print(f"  {other.name}: {part} {sign} {one[:300]}")


def same_groups(grouped: Sequence[Groups]) -> dict[str, bool]:
    """Print what ``group`` said in each way; return which ways said the same as the first."""
    base = grouped[0]
    same = {one.name: (one.together, one.nearest) == (base.together, base.nearest) for one in grouped}
    rows = [
        (
            one.name,
            f"{one.seconds:.0f}",
            str(len(one.nearest)),
            str(len(one.together)),
            "yes" if same[one.name] else "NO",
        )
        for one in grouped
    ]
    table("group on the same logs", ("way", "s", "records", "groups", "equal"), rows)
    return same


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
            two_nights("first", folder, logs, AS_OF, 1),
            two_nights("another order", folder, shuffled, AS_OF, 1),
            two_nights("two threads", folder, logs, AS_OF, 2),
        ]
        grouped = [groups("first", logs, 1), groups("another order", shuffled, 1), groups("two threads", logs, 2)]
        moved(logs, LATER)
        nights.append(two_nights(f"{LATER.days} days later", folder, logs, AS_OF + LATER, 1))
    base, *others = nights
    rows, figures, red = [], {}, False
    for night in nights:
        counts = [str(len(getattr(night.held, part))) for part in PARTS]
        undated, dated, where = days_moved(base.held, night.held)
        differs = unlike(base, night)
        red = red or bool(differs) or bool(dated) or bool(undated and night is not nights[-1])
        equal = "NO: " + " ".join(differs) if differs else "yes"
        anew = "no" if night.anew is None else str(night.anew["moved"])
        rows.append((night.name, f"{night.seconds:.0f}", *counts, anew, equal, f"{undated} undated, {dated} dated"))
        figures[night.name] = dict(zip(PARTS, map(int, counts), strict=True)) | {
            "anew": night.anew, "differs": differs, "undated_moved": undated, "dated_moved": where,
        }  # fmt: skip
    table(
        f"{len(logs)} logs in two nights, real encoder, a process each; anew: signatures that a re-clustering moved",
        HEAD,
        rows,
    )
    same = same_groups(grouped)
    red = red or not all(same.values())
    for night in others:
        explain(base, night)
        if dated := days_moved(base.held, night.held)[2]:
            print(f"  {night.name}: dated crashes on another day: {', '.join(dated[:10])}")
    groups_told = {"groups": len(grouped[0].together), "records": len(grouped[0].nearest), "same": same}
    write_results("invariance", {"seed": options.seed, "logs": len(logs), **figures, "group": groups_told})
    return int(red)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
