"""Verdicts at any look: how often they are wrong, and what they find, beside a test that may be asked only once.

A release is watched for 60 nights, with a look each night. False verdicts: at a rate just over the limit no GO may
come, at one just under it no NO-GO, and neither against a baseline of the same rate, whatever its luck and size. Power:
a failure rate that doubles, beside Fisher's exact test at the last night, which would have been spent by one look.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from results_file import write_results
from scipy.stats import fisher_exact
from tables import table

from crashpath.dashboard.evalues import above_limit, below_limit, no_worse_than, worse_than

NIGHTS = 60
ALPHA = 0.05
BAR = -math.log(ALPHA)
RELEASES = 400
"""Releases a row; the error of a share of 5 % is about one point."""
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """Of so many releases, the share in which a verdict was given at any of the looks."""

    what: str
    rate: float
    attempts: int
    share: float
    fisher: float | None = None


def releases(rng: np.random.Generator, rate: float, attempts: int) -> tuple[Counts, Counts]:
    """Return failures so far, and attempts so far, at each night: releases x nights."""
    nightly = np.full(NIGHTS, attempts // NIGHTS)
    return rng.binomial(nightly, rate, (RELEASES, NIGHTS)).cumsum(axis=1), nightly.cumsum()


def ever(test: Callable[[int, int, int], float], failures: Counts, attempts: Counts) -> float:
    """Return the share of releases in which a test reaches the bar at a look; it gets release, failures, attempts."""
    shown = sum(
        any(test(place, int(x), int(n)) >= BAR for x, n in zip(row, attempts, strict=True))
        for place, row in enumerate(failures)
    )
    return shown / len(failures)


def against_limits(rng: np.random.Generator) -> list[Row]:
    """Count false verdicts at a limit of 2 %: just over it a GO, just under it a NO-GO."""
    found = []
    for attempts in (600, 6_000, 60_000):
        over, seen = releases(rng, 0.0201, attempts)
        found.append(
            Row("false GO, limit 2 %", 0.0201, attempts, ever(lambda _, x, n: below_limit(x, n, 0.02), over, seen))
        )
        under, seen = releases(rng, 0.0199, attempts)
        found.append(
            Row("false NO-GO, limit 2 %", 0.0199, attempts, ever(lambda _, x, n: above_limit(x, n, 0.02), under, seen))
        )
    return found


def against_baselines(rng: np.random.Generator) -> list[Row]:
    """Count false verdicts against a baseline of the same rate, which ends before the release begins."""
    found = []
    for rate, base in ((0.002, 600), (0.02, 600), (0.02, 6_000), (0.02, 60_000), (0.2, 6_000)):
        for attempts in (6_000, 60_000):
            failures, seen = releases(rng, rate, attempts)
            before = rng.binomial(base, rate, RELEASES)
            for name, test in (("false NO-GO", worse_than), ("false GO", no_worse_than)):
                share = ever(
                    lambda i, x, n, test=test, before=before, base=base: test(x, n, int(before[i]), base, 1.0),
                    failures,
                    seen,
                )
                found.append(Row(f"{name}, baseline of {base:,}", rate, attempts, share))
    return found


def power(rng: np.random.Generator) -> list[Row]:
    """Count how often a rate that doubles is shown to be worse than a baseline of as many attempts."""
    found = []
    for then, now, attempts in ((0.01, 0.02, 6_000), (0.02, 0.04, 1_200), (0.02, 0.04, 6_000)):
        failures, seen = releases(rng, now, attempts)
        before = rng.binomial(attempts, then, RELEASES)
        share = ever(lambda i, x, n, b=before, a=attempts: worse_than(x, n, int(b[i]), a, 1.0), failures, seen)
        fisher = np.mean([_fisher(int(x), attempts, int(k)) for x, k in zip(failures[:, -1], before, strict=True)])
        found.append(Row(f"found, {then:.0%} to {now:.0%}", now, attempts, share, float(fisher)))
    return found


def _fisher(failures: int, attempts: int, before: int) -> bool:
    told = [[failures, attempts - failures], [before, attempts - before]]
    return bool(fisher_exact(told, alternative="greater").pvalue < ALPHA)


def main() -> int:
    """Print the tables and write the figures; 1 where verdicts are wrong more often than alpha and its error allow."""
    rng = np.random.default_rng(14)
    wrong = (*against_limits(rng), *against_baselines(rng))
    found = power(rng)
    _print("False verdicts at any of 60 looks, alpha 5 %", wrong)
    _print("Regressions found, with 60 looks", found)
    write_results(
        "verdicts", {"nights": NIGHTS, "releases": RELEASES, "rows": [asdict(one) for one in (*wrong, *found)]}
    )
    error = 2 * math.sqrt(ALPHA * (1 - ALPHA) / RELEASES)
    return int(any(one.share > ALPHA + error for one in wrong))


def _print(title: str, rows: Sequence[Row]) -> None:
    fisher = [() if one.fisher is None else (f"{one.fisher:.1%}",) for one in rows]
    head = ("what", "rate", "attempts", "share", *(("Fisher, one look",) if any(fisher) else ()))
    table(
        title,
        head,
        [(r.what, f"{r.rate:.2%}", f"{r.attempts:,}", f"{r.share:.1%}", *f) for r, f in zip(rows, fisher, strict=True)],
    )


if __name__ == "__main__":
    sys.exit(main())
