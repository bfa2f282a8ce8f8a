"""What a release review costs over the crashes and attempts in the store, as a process from its start to its end.

``crashpath review --release R --baseline B --json`` against stores that 60 nights of a fleet of 300 cohorts left
(``reviews_store``): two releases with two fifths of the crashes each, 3,000 clusters, five attempts a crash. Attempts
are told in two ways, as they may be: *coarse* by day, release and platform, or *fine* by model and path as well, partly
by events, in 234,240 rows. Beside each stands a bare process that sums up the same rows with SQLite alone, what the
first count of all failed attempts takes (a night does it), and what stages take inside of the process.

Everything runs on two cores at most. The figures go to ``results/reviews.json``; nothing here is red, it is to be read.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, TypeVar

from processes import COMMAND, environment
from results_file import write_results
from reviews_store import BASELINE, RELEASE, STEEPNESS, Plan, end_of_nights, make_attempts, make_crashes
from tables import table

from crashpath.ingest.failed_daily import refresh_failures
from crashpath.ingest.store import open_store

SIZES = (100_000, 300_000, 1_000_000)
LEAST = 50_000
ATTEMPTS = 5
"""Attempts a crash."""
CORES = 2
RUNS = 3
ANSWERED = (0, 1, 3)
"""Exit codes of a verdict."""
SCAN = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
names = (sys.argv[2], sys.argv[3], "unknown")
for table, columns in (("failed_daily", ("attempts", "unanswered", "contained")), ("heard", ("last_at",)),
                       ("attempts", ("attempts", "failures", "unanswered", "rerouted"))):
    sums = ", ".join(f"sum({column})" for column in columns)
    store.execute(f"select count(*), {sums} from {table} where release in (?, ?, ?)", names).fetchall()
"""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Ran:
    """One process: its seconds from start to end, its peak in MB (10^6 bytes), its exit code, what it printed."""

    seconds: float
    peak_mb: float
    code: int
    printed: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What a review costs at one size. ``stages`` are seconds inside of such a process."""

    crashes: int
    told: str
    attempts: int
    attempt_rows: int
    failed_rows: int
    store_mb: float
    first_count_seconds: float
    seconds: float
    bare_seconds: float
    peak_mb: float
    verdict: str
    stages: dict[str, float]


def run(command: Sequence[object]) -> Ran:
    """Run a command to its end."""
    started = time.perf_counter()
    child = Popen([str(part) for part in command], env=environment(), stdout=PIPE, stderr=DEVNULL, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Ran(time.perf_counter() - started, used.ru_maxrss * 1024 / 1e6, child.returncode, printed)


def quickest(command: Sequence[object], codes: Sequence[int] = (0,)) -> Ran:
    """Run a command a few times and return the quickest run: the machine may be shared."""
    ran = [run(command) for _ in range(RUNS)]
    for one in ran:
        if one.code not in codes:
            raise RuntimeError(f"exit {one.code} of {' '.join(map(str, command))}")
    return min(ran, key=lambda one: one.seconds)


def stages(url: str) -> None:
    """Be a process that reviews as the command does, and print what each stage took."""
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], _T]) -> _T:
        begun = time.perf_counter()
        done = work()
        seconds[name] = time.perf_counter() - begun
        return done

    def modules() -> Any:
        from crashpath.dashboard import review, review_json, review_looks

        return review, review_json, review_looks

    review, review_json, review_looks = timed("import", modules)
    from crashpath.dashboard.policy import Policy

    policy, at = Policy(), end_of_nights()
    store = timed("open", lambda: open_store(url, create=False))
    timed("count", lambda: refresh_failures(store))
    with store.read() as session:
        evidence = timed("gather", lambda: review.gather(session, RELEASE, BASELINE, at=at))
        proof = timed("proof", lambda: review.proven(session, RELEASE, policy.coverage, now=at))
    made = timed("judge", lambda: review.judge(evidence, proof, policy, policy_name="defaults"))
    with store.write() as session:
        made, _ = timed("look", lambda: review_looks.look(session, made, policy))
    timed("json", lambda: json.dumps(review_json.document(made)))
    print(json.dumps(seconds))


def cost(file: Path, crashes: int, told: str, counted: float) -> Cost:
    """Measure one size, with attempts told in one way."""
    url = f"sqlite:///{file}"
    with open_store(url) as store:
        make_attempts(store, ATTEMPTS * crashes, fine=told == "fine")
        with store.engine.connect() as connection:
            rows, attempts = connection.exec_driver_sql("select count(*), sum(attempts) from attempts").one()
            failed = connection.exec_driver_sql("select count(*) from failed_daily").scalar_one()
    bare = quickest([sys.executable, "-c", SCAN, file, RELEASE, BASELINE])
    asked = ["review", "--release", RELEASE, "--baseline", BASELINE, "--as-of", end_of_nights().isoformat()]
    ran = quickest([*COMMAND, *asked, "--db", url, "--json"], ANSWERED)
    inside = json.loads(quickest([sys.executable, __file__, "--stages", url]).printed)
    verdict = json.loads(ran.printed)["verdict"]
    return Cost(
        crashes, told, attempts, rows, failed, file.stat().st_size / 1e6, counted, ran.seconds, bare.seconds,
        ran.peak_mb, verdict, inside,
    )  # fmt: skip


def measure(folder: Path, crashes: int, steepness: float) -> list[Cost]:
    """Make a store, measure it with attempts told in both ways, and remove it."""
    file = folder / f"{crashes}.db"
    with open_store(f"sqlite:///{file}") as store:
        make_crashes(store, Plan(crashes, steepness))
        begun = time.perf_counter()
        refresh_failures(store)
        counted = time.perf_counter() - begun
    found = [cost(file, crashes, told, counted) for told in ("coarse", "fine")]
    file.unlink()
    return found


def exponent(costs: Sequence[Cost], of: Callable[[Cost], float]) -> float | None:
    """Return the power of the number of crashes with which something grows, from the smallest to the largest."""
    first, last = costs[0], costs[-1]
    if first.crashes == last.crashes:
        return None
    return math.log(of(last) / of(first)) / math.log(last.crashes / first.crashes)


def print_costs(costs: Sequence[Cost]) -> None:
    """Print what was measured."""
    head = ("crashes, attempts", "rows told", "review s", "bare s", "ratio", "peak MB", "first count s")
    rows = [
        (f"{one.crashes:,}, {one.told}", f"{one.attempt_rows:,}", f"{one.seconds:.2f}", f"{one.bare_seconds:.2f}",
         f"{one.seconds / one.bare_seconds:.1f}", f"{one.peak_mb:.0f}", f"{one.first_count_seconds:.1f}")
        for one in costs
    ]  # fmt: skip
    table(f"A review of {RELEASE} against {BASELINE}, the whole process", head, rows)
    names = list(costs[0].stages)
    inside = [(f"{one.crashes:,}, {one.told}", *(f"{one.stages[name]:.2f}" for name in names)) for one in costs]
    table("Seconds inside of it", ("crashes, attempts", *names), inside)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the figures; 0, or an error where a review gives no verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, action="append", help="sizes in place of 0.1, 0.3 and 1 million")
    parser.add_argument("--steepness", type=float, default=STEEPNESS, help="of Zipf's law over failures and cohorts")
    parser.add_argument("--stages", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if any(crashes < LEAST for crashes in options.crashes or ()):
        parser.error(f"--crashes below {LEAST:,} leaves cohorts without an attempt")
    if options.stages:
        stages(options.stages)
        return 0
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(prefix="crashpath-reviews-") as folder:
        for crashes in options.crashes or SIZES:
            costs += measure(Path(folder), crashes, options.steepness)
            print_costs(costs)
    growth = {
        told: {
            "review": exponent(same, lambda one: one.seconds),
            "gather": exponent(same, lambda one: one.stages["gather"]),
        }
        for told in ("coarse", "fine")
        if (same := [one for one in costs if one.told == told])
    }
    for told, powers in growth.items():
        known = ", ".join(f"{name} n^{power:.2f}" for name, power in powers.items() if power is not None)
        print(f"growth with the crashes, attempts {told}: {known or 'of one size none'}")
    write_results(
        "reviews",
        {
            "used_cores": CORES,
            "steepness": options.steepness,
            "costs": [asdict(one) for one in costs],
            "growth": growth,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
