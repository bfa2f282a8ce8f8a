"""Failover: from a main worker that is really killed to the fallback's answer, beside the plain latency.

A session in workers of its own serves one model; ``--kills`` times its main worker gets a SIGKILL (signal 9) in the
midst of a request, struck inside the guarded call. Told: p50, p99 and maximum from the kill to the fallback's answer,
of requests that the main path answers, and of runs of the fallback while nothing fails; how long the main path is
away; the resident memory of both workers. ``--model DIR`` takes a model folder, else a tiny one is made.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from results_file import write_results
from tables import table

from crashpath.coverage.claims import lower_bound, shown
from crashpath.coverage.drillrun import folder_to_drill
from crashpath.coverage.drillstage import Pace, Stage, opened
from crashpath.coverage.strikes import FUNCTION, packed
from crashpath.runtime.policy import POLICIES, BreakerSettings, Policy
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase, Strike

SHARES = (50, 99, 100)


def main(arguments: Sequence[str] = ()) -> int:
    """Run it; 1 where a request was not answered, or wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--plain", type=int, default=1000, help="requests without a kill, on each path")
    parser.add_argument("--model", type=Path)
    options = parser.parse_args(arguments)
    usual = POLICIES["breaker"]
    # It stays closed, else the fallback would answer without a kill being met.
    policy = Policy("breaker", usual.fall_back_on, BreakerSettings(calls=100, minimum=100, rate=1.0))
    with folder_to_drill(options.model) as folder, opened(folder, "process", policy, pace=Pace(load=60.0)) as stage:
        plain = [_ask(stage, Which.MAIN) for _ in range(options.plain)]
        alone = [_fallback_alone(stage) for _ in range(options.plain)]
        memory = {str(which): lane.facts().rss for which, lane in stage.lanes.items()}
        killed, away = _kill(stage, options.kills)
    missed = sum(one is None for one in (*plain, *killed))
    figures = {
        "main, plain": _shares([one for one in plain if one is not None]),
        "fallback, plain": _shares(alone),
        "main killed, fallback answers": _shares([one for one in killed if one is not None]),
        "until the main path is back": _shares(away),
    }
    rows = [(name, *(f"{value:.2f}" for value in values)) for name, values in figures.items()]
    table(f"Failover, {options.kills} kills, ms", ("", "p50", "p99", "max"), rows)
    table("Resident memory, MiB", ("worker", "MiB"), [(name, f"{rss / 2**20:.0f}") for name, rss in memory.items()])
    bound = lower_bound(len(killed), sum(one is None for one in killed))
    print(f"{missed} requests without the right answer; at least {shown(bound)} of kills are survived (95 %)")
    write_results(
        "failover",
        {
            "model": folder.name,
            "kills": options.kills,
            "missed": missed,
            "lower_bound": bound,
            "ms": {name: dict(zip(("p50", "p99", "max"), values, strict=True)) for name, values in figures.items()},
            "rss_mib": {name: round(rss / 2**20, 1) for name, rss in memory.items()},
        },
    )
    return int(missed > 0)


def _kill(stage: Stage, kills: int) -> tuple[list[float | None], list[float]]:
    """Kill the main worker in the midst of requests; milliseconds from the kill to the answer, and until it is back.

    The moment of the kill is that of the strike's mark, which it leaves just before: the import of the strike into a
    fresh worker is none of the failover.
    """
    killed: list[float | None] = []
    away: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(kills):
            marks = Path(folder, str(number))
            strike = Strike(FUNCTION, Phase.INFER, packed("process.killed", marks, ""))
            with stage.session.armed(Which.MAIN, strike):
                answered = _ask(stage, Which.FALLBACK)
            now = time.time()
            since = marks.stat().st_mtime
            killed.append(None if answered is None else (now - since) * 1000)
            stage.wait(Which.MAIN, 120)
            away.append((time.time() - since) * 1000)
            _ask(stage, Which.MAIN)
    return killed, away


def _ask(stage: Stage, path: Which) -> float | None:
    """Milliseconds of a request that ``path`` answered rightly, else ``None``."""
    asked = stage.ask()
    good = asked.right and asked.answer is not None and asked.answer.path is path
    return asked.milliseconds if good else None


def _fallback_alone(stage: Stage) -> float:
    """Milliseconds of a run of the fallback's lane, with nothing around it."""
    began = time.perf_counter()
    stage.lanes[Which.FALLBACK].run(stage.exam.feed, time.monotonic() + 60)
    return (time.perf_counter() - began) * 1000


def _shares(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(np.percentile(values, share)) if values else float("nan") for share in SHARES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
