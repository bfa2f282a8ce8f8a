"""Verdicts at any look: how often they are wrong, and what they find, beside a test that may be asked only once.

A release is watched for 60 nights, with a look each night. False verdicts: at a rate just over the limit no GO may
come, at one just under it no NO-GO, and neither against a baseline of the same rate, whatever its luck and size. Power:
a failure rate that doubles, beside Fisher's exact test at the last night, which would have been spent by one look.

Then the same of the verdict as a whole, which asks dozens of questions of a release's cohorts, classes and clusters:
``verdict_streams`` draws releases, and each night is reviewed as ``crashpath review`` does it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from results_file import write_results
from scipy.stats import fisher_exact
from tables import table
from verdict_streams import CLASSES, COHORTS, NIGHTS, ZIPF, Rates, Scenario, Watched, even, watch

from crashpath.dashboard.evalues import above_limit, below_limit, no_worse_than, worse_than
from crashpath.dashboard.policy import Baseline, Classes, Cohorts, Limits, Policy
from crashpath.dashboard.review_model import Review, Verdict
from crashpath.ingest.clusters import cluster_id

ALPHA = 0.05
BAR = -math.log(ALPHA)
RELEASES = 400
"""Releases a row; the error of a share of 5 % is about one point."""
REVIEWED = 80
"""Releases a row of false verdicts of whole reviews; twice as many without a baseline, as reviews are quick then."""
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


def false_no_gos(size: int) -> list[Watched]:
    """Count NO-GOs of releases that fail at exactly the rates of their baselines, in all cohorts, classes and clusters.

    The default policy leaves margins; without them every question stands on the edge of its null hypothesis.
    """
    same = even(0.01)
    bare = Policy(
        limits=Limits(unanswered=None),
        cohorts=Cohorts(unanswered=None),
        baseline=Baseline(unanswered=1.0, primary=1.0, floor=1e-6),
        classes=Classes(regressed_ratio=1.0, regressed_floor=1e-6),
    )
    asked = (
        ("same rate, default policy", Policy(), 6_000, 6_000),
        ("same rate, short baseline", Policy(), 60_000, 600),
        ("same rate, no margins", bare, 6_000, 6_000),
        ("same rate, no margins", bare, 60_000, 60_000),
    )
    return [
        watch(15, what, Verdict.NO_GO, Scenario(same, attempts, policy, same, base, 0.5), size)
        for what, policy, attempts, base in asked
    ]


def false_gos(size: int) -> list[Watched]:
    """Count GOs of releases that are just over what is allowed, in one respect alone."""
    limit = Policy(limits=Limits(unanswered=0.02))
    one_over = _with_last_cohort(0.003, 0.0805)
    return [
        *(
            watch(16, "2.01 %, limit 2 %", Verdict.GO, Scenario(even(0.0201), attempts, limit), 2 * size)
            for attempts in (6_000, 60_000)
        ),
        watch(
            17, "1.26 times the baseline", Verdict.GO,
            Scenario(even(0.0126), 60_000, limit, even(0.01), 60_000), size,
        ),
        watch(18, "a cohort at 8.05 %, limit 8 %", Verdict.GO, Scenario(one_over, 60_000, Policy()), 2 * size),
    ]  # fmt: skip


def found(size: int) -> list[Watched]:
    """Count right verdicts: of a class that triples, of a release that doubles, of a good one, of one bad cohort."""
    triple = even(0.01) * np.where(np.arange(len(ZIPF)) == _TRIPLED, 3, 1)
    rows = [
        watch(
            19, "a class triples", Verdict.NO_GO,
            Scenario(triple, attempts, Policy(), even(0.01), attempts, 0.5), size, _names_the_class,
        )
        for attempts in (6_000, 60_000)
    ]  # fmt: skip
    rows.append(
        watch(
            20, "all doubles to 2 %", Verdict.NO_GO,
            Scenario(even(0.02), 6_000, Policy(), even(0.01), 6_000), size, _names_the_whole,
        )
    )  # fmt: skip
    rows.append(watch(21, "half of the limit", Verdict.GO, Scenario(even(0.00545), 6_000, Policy()), 2 * size))
    cohort = Scenario(_with_last_cohort(0.005, 0.01), 60_000, Policy(), even(0.005), 60_000)
    rows += [
        watch(22, "a small cohort doubles", verdict, cohort, size, right)
        for verdict, right in ((Verdict.NO_GO, _names_the_cohort), (Verdict.GO, None))
    ]
    return rows


_TRIPLED = 2
"""The cluster whose rate triples: a class by itself, with a tenth of the failures."""


def _with_last_cohort(rate: float, last: float) -> Rates:
    """Return rates of which those of the smallest cohort alone are others."""
    rates = even(rate)
    rates[-1] = even(last)[-1]
    return rates


def _no_gos(review: Review) -> list[tuple[str, str]]:
    return [(one.rule, one.subject) for one in review.reasons if one.verdict is Verdict.NO_GO]


def _names_the_class(review: Review) -> bool:
    """Whether nothing is named but the class that became more frequent, or its only cluster."""
    names = (CLASSES[_TRIPLED], f"{cluster_id(_TRIPLED + 1)} ")
    return all(
        rule == "classes.regressed_ratio" and f"{subject} ".startswith(names) for rule, subject in _no_gos(review)
    )


def _names_the_whole(review: Review) -> bool:
    """Whether the whole release is named: all else of it doubled as well."""
    return any(not subject for _, subject in _no_gos(review))


def _names_the_cohort(review: Review) -> bool:
    """Whether nothing is named but the cohort that became worse."""
    return all(subject == str(COHORTS[-1]) for _, subject in _no_gos(review))


def main() -> int:
    """Print the tables and write the figures; 1 where verdicts are wrong more often than alpha and its error allow."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--reviewed", type=int, default=REVIEWED, help="releases a row of whole verdicts")
    size = arguments.parse_args().reviewed
    rng = np.random.default_rng(14)
    wrong = (*against_limits(rng), *against_baselines(rng))
    tests = power(rng)
    _print("False verdicts at any of 60 looks, alpha 5 %", wrong)
    _print("Regressions found, with 60 looks", tests)
    false = (*false_no_gos(size), *false_gos(size))
    _print_false("False verdicts of whole reviews at any of 60 looks, alpha 5 %", false)
    right = found(max(1, size // 2))
    _print_found("Right verdicts of whole reviews, with 60 looks", right)
    write_results(
        "verdicts",
        {
            "nights": NIGHTS,
            "releases": RELEASES,
            "rows": [asdict(one) for one in (*wrong, *tests)],
            "reviewed": [asdict(one) for one in (*false, *right)],
        },
    )
    told = [(one.share, RELEASES) for one in wrong] + [(one.share, one.releases) for one in false]
    return int(any(_too_many(*one) for one in told))


def _too_many(share: float, releases: int) -> bool:
    """Whether a share of wrong verdicts is more than alpha and two standard errors of it."""
    return share > ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / releases)


def _print_false(title: str, rows: Sequence[Watched]) -> None:
    head = ("what", "gives", "attempts", "before", "share", "error", "95 % up to")
    table(title, head, [(*_cells(one), f"{one.high:.1%}") for one in rows])


def _print_found(title: str, rows: Sequence[Watched]) -> None:
    head = ("what", "gives", "attempts", "before", "share", "error", "night", "right")
    table(
        title,
        head,
        [
            (
                *_cells(one),
                "" if one.night is None else f"{one.night:g}",
                "" if one.right is None else f"{one.right:.0%}",
            )
            for one in rows
        ],
    )


def _cells(one: Watched) -> tuple[str, ...]:
    before = f"{one.base_attempts:,}" if one.base_attempts else ""
    return one.what, one.verdict, f"{one.attempts:,}", before, f"{one.share:.1%}", f"{one.error:.1%}"


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
