"""Intervals that a review shows beside its rates: of a rate, a difference of two rates and a ratio of two rates.

They are for eyes, for one look. Verdicts stand on ``evalues``, which may be looked at on any night.

**Rate**: the exact interval of Clopper and Pearson (1934): of the rates that are not rejected by either one-sided
binomial test at half the error.

**Difference**: Newcombe (1998, method 10) adds the distances between rates and their limits like sides of a right
angle, with Wilson's limits. Where failures are rare that falls short: of rates from 0.1 to 20 % in 50 to 20,000
attempts a nominal 95 % is 86.2 % at worst (0.3 % in 50 attempts against 0.1 % in 20,000), and below 94 % in one of 18
places of the grid, because Wilson's own limits fall short there (84.0 % at worst). The same combination of exact limits
(the method of variance estimates recovery of Zou and Donner, 2008, with Clopper and Pearson's limits) is 94.9 % at
worst on that grid and is used here. `benchmarks/intervals.py` counts both.

**Ratio**: of all failures, the share that falls into the release has a binomial law in which only the ratio is left
unknown (Przyborowski and Wilenski, 1940), so the exact limits of that share give the ratio's. Failures are taken as
counts over exposure; those of attempts vary less, which errs on the wide side. It is the law that ``evalues`` tests.
A baseline without a failure has no ratio. So a ratio is shown after a choice that the counts made, and where less than
one failure of the baseline is expected, those shown hold the truth less often than 95 % (84 % at worst on the grid),
while of all reviews no more than 5 % show one that does not.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, gammaincinv

from crashpath.dashboard.review_model import Compared, Estimate, Rate

LEVEL = 0.95
Array = NDArray[np.float64]
Limits = tuple[Array, Array]
Estimated = tuple[Array, Array, Array] | tuple[float, float, float]
"""Rates with their lower and their upper limits."""

_MOST = 1e8
"""Up to here scipy's inverse of the beta law can be relied on. It gives, of 1,000 failures in 10^9 attempts, a lower
limit above the rate (scipy 1.17); beyond, the law of counts is inverted, whose limits are a little wider."""


def rate(failures: int, attempts: int, level: float = LEVEL) -> Rate:
    """Return a rate with its exact two-sided interval; without one where there are no attempts, or more failures."""
    if not 0 <= failures <= attempts or attempts == 0:
        return Rate(failures, attempts, None, None, None)
    return Rate(failures, attempts, failures / attempts, *_limits_of(failures, attempts, level))


def difference(x1: int, n1: int, x0: int, n0: int, level: float = LEVEL) -> Estimate:
    """Return ``x1 / n1 - x0 / n0`` with its interval. Raises ``ValueError`` where a rate cannot be formed."""
    _check(x1, n1, x0, n0)
    between = x1 / n1 - x0 / n0
    low, high = square_and_add((x1 / n1, *_limits_of(x1, n1, level)), (x0 / n0, *_limits_of(x0, n0, level)))
    return Estimate(between, float(low), float(high))


def ratio(x1: int, n1: int, x0: int, n0: int, level: float = LEVEL) -> Estimate | None:
    """Return ``(x1 / n1) / (x0 / n0)`` with its interval; ``None`` where ``x0`` is 0.

    Raises ``ValueError`` where a rate cannot be formed.
    """
    _check(x1, n1, x0, n0)
    if x0 == 0:
        return None
    low, high = ratio_limits(x1, n1, x0, n0, level)
    return Estimate((x1 / n1) / (x0 / n0), float(low), float(high))


def compared(release: Rate, baseline: Rate | None, level: float = LEVEL) -> Compared:
    """Return two rates side by side, with difference and ratio where both are rates."""
    if baseline is None or release.rate is None or baseline.rate is None:
        return Compared(release, baseline, None, None)
    counts = (release.failures, release.attempts, baseline.failures, baseline.attempts)
    return Compared(release, baseline, difference(*counts, level), ratio(*counts, level))


def upper_bound(failures: int, attempts: int, level: float = LEVEL) -> float:
    """Return the exact one-sided upper bound of a rate: 1 where nothing was tried.

    274 attempts without a failure are just enough to claim less than 1.09 %. Raises ``ValueError`` for impossible
    counts.
    """
    _possible(failures, attempts)
    return float(_upper(failures, attempts, 1 - level)) if attempts else 1.0


@lru_cache(maxsize=4096)  # of one rate several intervals are shown
def _limits_of(x: int, n: int, level: float) -> tuple[float, float]:
    low, high = exact_limits(x, n, level)
    return float(low), float(high)


def exact_limits(x: ArrayLike, n: ArrayLike, level: float = LEVEL) -> Limits:
    """Return the limits of Clopper and Pearson for ``x`` of ``n``, element by element. ``n`` is at least 1."""
    tail = (1 - level) / 2
    return _lower(x, n, tail), _upper(x, n, tail)


def difference_limits(x1: ArrayLike, n1: ArrayLike, x0: ArrayLike, n0: ArrayLike, level: float = LEVEL) -> Limits:
    """Return the limits of ``x1 / n1 - x0 / n0``, element by element."""
    return square_and_add(_estimated(x1, n1, level), _estimated(x0, n0, level))


def square_and_add(one: Estimated, other: Estimated) -> Limits:
    """Combine two estimates, each with its limits, into the limits of their difference (Newcombe, 1998)."""
    (p1, low1, high1), (p0, low0, high0) = one, other
    between = p1 - p0
    return between - np.hypot(p1 - low1, high0 - p0), between + np.hypot(high1 - p1, p0 - low0)


def ratio_limits(x1: ArrayLike, n1: ArrayLike, x0: ArrayLike, n0: ArrayLike, level: float = LEVEL) -> Limits:
    """Return the limits of ``(x1 / n1) / (x0 / n0)``, element by element. ``x0`` is at least 1."""
    x1, n1, x0, n0 = (np.asarray(one, dtype=np.float64) for one in (x1, n1, x0, n0))
    low, high = exact_limits(x1, x1 + x0, level)
    exposure = n0 / n1
    return exposure * low / (1 - low), exposure * high / (1 - high)


def _lower(x: ArrayLike, n: ArrayLike, tail: float) -> Array:
    """Return the rate at which ``x`` or more of ``n`` have the chance ``tail``; 0 where ``x`` is 0."""
    x, n = np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64)
    some = np.maximum(x, 1)  # where there is no law to invert another one is inverted in its place and not used
    low: Array = betaincinv(some, n - some + 1, tail)
    if (n > _MOST).any():
        low = np.where(n > _MOST, _lower_of_many(some, n, tail), low)
    return np.where(x == 0, 0.0, low)


def _upper(x: ArrayLike, n: ArrayLike, tail: float) -> Array:
    """Return the rate at which ``x`` or fewer of ``n`` have the chance ``tail``; 1 where ``x`` is ``n``."""
    x, n = np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64)
    some = np.minimum(x, n - 1)
    high: Array = betaincinv(some + 1, n - some, 1 - tail)
    if (n > _MOST).any():
        high = np.where(n > _MOST, 1 - _lower_of_many(n - some, n, tail), high)
    return np.where(x == n, 1.0, high)


def _lower_of_many(x: Array, n: Array, tail: float) -> Array:
    """Return the lower limit of Poisson counts: of the failures, or, where those are more than half, of the rest."""
    few: Array = gammaincinv(x, tail) / n
    return np.where(x <= n / 2, few, 1 - gammaincinv(n - x + 1, 1 - tail) / n)


def _estimated(x: ArrayLike, n: ArrayLike, level: float) -> Estimated:
    low, high = exact_limits(x, n, level)
    return np.asarray(x, dtype=np.float64) / np.asarray(n, dtype=np.float64), low, high


def _check(x1: int, n1: int, x0: int, n0: int) -> None:
    for x, n in ((x1, n1), (x0, n0)):
        _possible(x, n)
        if n == 0:
            raise ValueError("No attempts: there is no rate to compare. Ask for the rates first.")


def _possible(x: int, n: int) -> None:
    if not 0 <= x <= n:
        raise ValueError(f"{x} of {n} is no count of attempts: it has to lie between 0 and {n}.")
