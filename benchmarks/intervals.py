"""How often the intervals that a review shows hold the truth, from 0.1 to 20 % in 50 to 20,000 attempts.

Each place of the grid is a true rate and a number of attempts (for two rates: two of each). The chance that the
interval holds the truth is summed over all outcomes; where two rates have too many outcomes for that, it is counted in
draws. Beside each stands the interval that it took the place of. A ratio of which the baseline has no failure is not
shown and claims nothing; how often those that are shown hold the truth is told as well.

Red where an interval falls more than a point below its level: ``--draws N``, ``--seed N``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results_file import write_results
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint
from tables import table

from crashpath.dashboard.intervals import LEVEL, exact_limits, ratio_limits, square_and_add

RATES = (0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.04, 0.07, 0.1, 0.143, 0.2)
FINE = tuple(np.geomspace(0.001, 0.2, 120))
ATTEMPTS = (50, 100, 200, 500, 1_000, 4_000, 20_000)
SLACK = 0.01
"""How far an interval may fall below its level."""
MOST_OUTCOMES = 40_000
"""Outcomes of two rates that are summed; where there are more, draws are counted."""
LEFT_OUT = 1e-8
"""Chance on each side whose outcomes are left out of a sum, as if the interval missed there."""

Array = NDArray[np.float64]
Limits = Callable[[Any, Any], tuple[Array, Array]]


@dataclass(frozen=True, slots=True)
class Place:
    """Two true rates with their attempts (release, baseline), and how likely the interval holds the truth there."""

    coverage: float
    n1: int
    p1: float
    n0: int | None = None
    p0: float | None = None

    def __str__(self) -> str:
        here = f"{self.p1:.2%} of {self.n1:,}"
        return here if self.p0 is None else f"{here} against {self.p0:.2%} of {self.n0:,}"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Pairs of failures of two rates with the chance of each."""

    x1: Array
    x0: Array
    chance: Array


def wilson(x: Any, n: Any) -> tuple[Array, Array]:
    """Return Wilson's limits."""
    low, high = proportion_confint(x, n, alpha=1 - LEVEL, method="wilson")
    return low, high


@cache
def single(n: int, p: float) -> tuple[Array, Array]:
    """Return the outcomes of one rate and their chances."""
    ends = binom.ppf([LEFT_OUT, 1 - LEFT_OUT], n, p)
    x = np.arange(ends[0], ends[1] + 1)
    return x, binom.pmf(x, n, p)


def pairs(n1: int, p1: float, n0: int, p0: float, draws: int, rng: np.random.Generator) -> Outcomes:
    """Return all outcomes of two rates, or as many draws where there are too many."""
    (x1, chance1), (x0, chance0) = single(n1, p1), single(n0, p0)
    if len(x1) * len(x0) > MOST_OUTCOMES:
        drawn = np.stack([rng.binomial(n1, p1, draws), rng.binomial(n0, p0, draws)])
        (x1, x0), counts = np.unique(drawn, axis=1, return_counts=True)
        return Outcomes(x1.astype(float), x0.astype(float), counts / draws)
    both = np.meshgrid(x1, x0, indexing="ij")
    return Outcomes(both[0].ravel(), both[1].ravel(), np.outer(chance1, chance0).ravel())


def of_rates(limits: Limits) -> list[Place]:
    """Return the coverage of an interval of a rate."""
    places = []
    for n, p in itertools.product(ATTEMPTS, FINE):
        x, chance = single(n, p)
        low, high = limits(x, n)
        places.append(Place(float(chance[(low <= p) & (p <= high)].sum()), n, p))
    return places


def of_pairs(draws: int, seed: int) -> Iterator[tuple[str, Place]]:
    """Return the coverage of the intervals of a difference and of a ratio, by name, at every place."""
    rng = np.random.default_rng(seed)
    for n1, n0, p1, p0 in itertools.product(ATTEMPTS, ATTEMPTS, RATES, RATES):
        found = pairs(n1, p1, n0, p0, draws, rng)
        for name, limits in (("difference", exact_limits), ("difference, Newcombe", wilson)):
            one = (found.x1 / n1, *limits(found.x1, n1))
            other = (found.x0 / n0, *limits(found.x0, n0))
            held = holds(square_and_add(one, other), p1 - p0)
            yield name, Place(float(found.chance[held].sum()), n1, p1, n0, p0)
        shown = found.x0 > 0
        held = ~shown | holds(ratio_limits(found.x1, n1, np.maximum(found.x0, 1), n0), p1 / p0)
        yield "ratio", Place(float(found.chance[held].sum()), n1, p1, n0, p0)
        among = float(found.chance[held & shown].sum() / found.chance[shown].sum())
        yield "ratio, of those shown", Place(among, n1, p1, n0, p0)


def holds(limits: tuple[Array, Array], truth: float) -> NDArray[np.bool_]:
    """Tell in which outcomes the truth lies within; a limit that is the truth but for rounding holds it."""
    slack = 1e-12 * max(1.0, abs(truth))
    return (limits[0] <= truth + slack) & (truth - slack <= limits[1])


def told(name: str, places: Sequence[Place]) -> dict[str, Any]:
    """Return what the table and the results file say of one interval."""
    coverages = np.array([place.coverage for place in places])
    return {
        "interval": name,
        "places": len(places),
        "least": round(float(coverages.min()), 5),
        "where": str(min(places, key=lambda place: place.coverage)),
        "median": round(float(np.median(coverages)), 5),
        "short": int((coverages < LEVEL - SLACK).sum()),
        "worst": [asdict(place) for place in sorted(places, key=lambda place: place.coverage)[:5]],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print and keep; 1 where an interval that is shown falls short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    found: dict[str, list[Place]] = {"rate": of_rates(exact_limits), "rate, Wilson": of_rates(wilson)}
    for name, place in of_pairs(options.draws, options.seed):
        found.setdefault(name, []).append(place)
    rows = [told(name, places) for name, places in found.items()]
    table(
        f"Chance that a {LEVEL:.0%} interval holds the truth",
        ("interval", "places", "least", "median", f"below {LEVEL - SLACK:.0%}"),
        [
            (row["interval"], f"{row['places']:,}", f"{row['least']:.2%}", f"{row['median']:.2%}", f"{row['short']:,}")
            for row in rows
        ],
    )
    for row in rows:
        print(f"{row['interval']}: least at {row['where']}")
    write_results("intervals", {"level": LEVEL, "draws": options.draws, "seed": options.seed, "intervals": rows})
    short = [row["interval"] for row in rows if row["short"] and row["interval"] in ("rate", "difference", "ratio")]
    print(f"\nRED: {', '.join(short)}" if short else "\nNo interval that is shown falls short.")
    return int(bool(short))


if __name__ == "__main__":
    sys.exit(main())
