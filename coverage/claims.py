"""What may be claimed after n trials: the exact bound, never "100 %"."""

from __future__ import annotations

import math


def lower_bound(trials: int, misses: int, confidence: float = 0.95) -> float:
    """Return the one-sided Clopper-Pearson lower bound of the share of trials that succeed.

    With no miss it is ``(1 - confidence) ** (1 / trials)``; 0.0 without a trial. Clopper and Pearson, Biometrika 26
    (1934). Raises `ValueError` where there are more misses than trials, or the confidence is no share.
    """
    if not 0 <= misses <= trials:
        raise ValueError(f"{misses} misses in {trials} trials cannot be")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    if trials == 0 or misses == trials:
        return 0.0
    if misses == 0:
        return math.pow(1 - confidence, 1 / trials)
    from scipy.stats import beta  # takes most of a second to import

    return float(beta.ppf(1 - confidence, trials - misses, misses + 1))


def shown(share: float) -> str:
    """Return a bound for people, rounded down: a claim is never rounded up."""
    digits = 2 if share >= 0.99 else 1
    scale = 10 ** (digits + 2)
    return f"{math.floor(share * scale) / scale:.{digits}%}"
