"""Evidence that may be looked at on any night: e-values of rates against a limit, and against a baseline's rate.

An e-value is what a bet against the null hypothesis has won so far; under it, the chance that the winnings ever reach
1/alpha is at most alpha, however often and whenever one looks (Ville, 1939). So a verdict at e >= 1/alpha is wrong in
at most alpha of releases, with a look each night or one in all. All values here are natural logarithms.

**Against a limit.** Attempts are bets at the odds of the limit m: the likelihood ratio of a rate q to m, mixed over a
grid of q on one side of m (Robbins, 1970; the method of mixtures in Howard, Ramdas, McAuliffe and Sekhon, 2021). Where
the true rate is on the other side of m, each of these ratios is a supermartingale, and so is their mean. A finite grid
is a prior like any other: nothing is approximated.

**Against a baseline.** Failures are counted over exposure, in attempts; of the failures of both releases, the share
that falls into the release is compared with its share of exposure. For a rate ratio t against t0 this gives

    (t/t0)^x ((t0 n + n0) / (t n + n0))^(x + k)

for x failures in n attempts of the release and k in n0 of the baseline. If the baseline is watched up to its k-th
failure this is the likelihood ratio of the failures' times measured in units of the baseline's exposure: their law does
not depend on the baseline's unknown rate (a right Haar prior; Hendriksen, de Heide and Grünwald, 2021), so the ratio is
a martingale at every look. Baselines end at a number of attempts and not at a failure; so one failure more is given to
the baseline where it speaks for the release (`worse_than`), and none where it would speak for it wrongly
(`no_worse_than`): `benchmarks/verdicts.py` counts what that leaves of false verdicts, over rates and looks. Failures
of attempts vary less than counts of this law do, which errs on the careful side.

Counts that cannot be, of more failures than attempts, are evidence of nothing: their log e-value is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

Grid = NDArray[np.float64]

_POINTS = 48
_NEAREST = 0.003
"""Distance of the nearest point of a grid from the limit, as a share of it."""
_FARTHEST = 30.0
"""How many times the limit the farthest rate of a grid is."""
MOST_ATTEMPTS = 1_000_000_000
"""Where more than these are needed, the rate is too near the limit for any number to tell."""


def above_limit(failures: float, attempts: float, limit: float) -> float:
    """Return the log e-value against *the rate is at most* ``limit``. 0 where nothing was tried."""
    if not _can_be(failures, attempts) or not 0 < limit < 1:
        return 0.0
    return _mixture(failures, attempts, limit, _above(limit))


def below_limit(failures: float, attempts: float, limit: float) -> float:
    """Return the log e-value against *the rate is at least* ``limit``. 0 where nothing was tried."""
    if not _can_be(failures, attempts) or not 0 < limit < 1:
        return 0.0
    return _mixture(failures, attempts, limit, limit * _down())


def worse_than(failures: float, attempts: float, base_failures: float, base_attempts: float, ratio: float) -> float:
    """Return the log e-value against *the rate is at most* ``ratio`` *times the baseline's*."""
    if not _can_be(failures, attempts) or not _can_be(base_failures, base_attempts):
        return 0.0
    return _conditional(failures, attempts, base_failures + 1, base_attempts, ratio, ratio * _up())


def no_worse_than(failures: float, attempts: float, base_failures: float, base_attempts: float, ratio: float) -> float:
    """Return the log e-value against *the rate is at least* ``ratio`` *times the baseline's*."""
    if not _can_be(failures, attempts) or not _can_be(base_failures, base_attempts):
        return 0.0
    return _conditional(failures, attempts, base_failures, base_attempts, ratio, ratio * _down())


def e_value(log_e: float) -> float:
    """Return the e-value itself, infinite where it is too large for a float."""
    return math.exp(log_e) if log_e < 700 else math.inf


def p_value(log_e: float) -> float:
    """Return the p-value that is valid at any look: the smaller of 1 and 1 / e."""
    return math.exp(-max(log_e, 0.0))


def either(first: float, second: float) -> float:
    """Return the log of the mean of two e-values: evidence against what both speak against."""
    return float(np.logaddexp(first, second) - math.log(2))


def attempts_to_decide(failures: float, attempts: float, limit: float, alpha: float, apart: float = 0.0) -> int | None:
    """Return how many attempts more, at the rate so far, until ``limit`` is told from it; without any, clean ones.

    ``apart`` failures more are there, of which only a rate below the limit has to be shown in spite.
    ``None`` where that is more than ``MOST_ATTEMPTS`` (the rate is too near the limit), and where the counts cannot be.
    """
    if failures + apart > attempts:
        return None
    rate = failures / attempts if attempts > 0 else 0.0
    test, held = (below_limit, apart) if rate < limit else (above_limit, 0.0)
    return _until(lambda more: test(failures + held + rate * more, attempts + more, limit) >= -math.log(alpha))


def attempts_to_compare(
    failures: float,
    attempts: float,
    base_failures: float,
    base_attempts: float,
    ratio: float,
    alpha: float,
    apart: float = 0.0,
) -> int | None:
    """Return the same for a comparison with a baseline that does not grow."""
    if failures + apart > attempts or not _can_be(base_failures, base_attempts):
        return None
    rate = failures / attempts if attempts > 0 else 0.0
    below = rate * base_attempts < ratio * base_failures
    test, held = (no_worse_than, apart) if below else (worse_than, 0.0)

    def decided(more: int) -> bool:
        counts = (failures + held + rate * more, attempts + more)
        return test(*counts, base_failures, base_attempts, ratio) >= -math.log(alpha)

    return _until(decided)


def _can_be(failures: float, attempts: float) -> bool:
    return attempts > 0 and failures <= attempts


@lru_cache(maxsize=256)  # a review asks thousands of questions of a few limits
def _above(limit: float) -> Grid:
    """Rates above a limit."""
    far = min(_FARTHEST * limit, 0.98 * (1 - limit))
    return limit + np.geomspace(min(_NEAREST * limit * 4, far / 4), far, _POINTS)


@cache
def _up() -> Grid:
    """Ratios above the one that is allowed, as multiples of it."""
    return np.geomspace(1.05, 20.0, _POINTS)


@cache
def _down() -> Grid:
    """Shares of a limit below 1: half of the weight even, for rates far below it, half close to it."""
    return np.concatenate([np.linspace(0.0, 0.97, _POINTS), 1 - np.geomspace(_NEAREST, 1.0, _POINTS)])


def _log_mean(logs: Grid) -> float:
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def _mixture(failures: float, attempts: float, limit: float, rates: Grid) -> float:
    of_rates = xlogy(failures, rates) + xlog1py(attempts - failures, -rates)
    of_limit = xlogy(failures, limit) + xlog1py(attempts - failures, -limit)
    return _log_mean(of_rates) - float(of_limit)


def _conditional(
    failures: float, attempts: float, base_failures: float, base_attempts: float, ratio: float, ratios: Grid
) -> float:
    if ratio <= 0:
        return 0.0
    both = failures + base_failures
    exposure = math.log(ratio * attempts + base_attempts) - np.log(ratios * attempts + base_attempts)
    return _log_mean(xlogy(failures, ratios / ratio) + both * exposure)


def _until(decided: Callable[[int], bool]) -> int | None:
    """Return the fewest attempts more at which it is decided, found by doubling and halving."""
    if decided(0):
        return 0
    high = 16
    while not decided(high):
        high *= 2
        if high > MOST_ATTEMPTS:
            return None
    low = high // 2 if high > 16 else 0
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
