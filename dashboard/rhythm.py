"""Whether crashes of a day are more than the days before let expect, and whether a silence is longer than that.

Exact conditional tests of counts (Przyborowski and Wilenski, 1940): of x crashes on a day and k on m days before, x is
binomial with the share 1/(m + 1) if nothing changed. Crashes come in bursts, so counts vary more than this law does:
they are divided by their dispersion on the days before (variance over mean; a quasi-Poisson scale, McCullagh and
Nelder, 1989, 9.2), rounded against the finding. A few days tell little of a dispersion, above all of what is rare: the
scale is never less than the mean one of all that are tested together. Measured with 40 series whose rate does not
change, in bursts of 1 to 15: a false spike in at most 0.6 % of nights at a nominal 1 %, and in 37 % with each series'
own dispersion alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

FEWEST_DAYS = 7
"""With fewer days before, nothing is said: their dispersion would be a guess."""

P = NDArray[np.float64]


def more(counts: Sequence[int], before: Sequence[Sequence[int]]) -> P:
    """Return the p-values of as many crashes on a day, each after its days before (as many for all).

    1 after too few days.
    """
    days = len(before[0]) if before else 0
    if days < FEWEST_DAYS:
        return np.ones(len(counts))
    table = np.array(before, dtype=np.float64)
    scale = _scale([table[n] for n in range(len(counts))])
    here, there = np.floor(np.array(counts) / scale), np.ceil(table.sum(axis=1) / scale)
    tail = bdtrc(np.maximum(here, 1) - 1, (np.maximum(here, 1) + there).astype(np.int64), 1 / (days + 1))
    return np.where(here > 0, tail, 1.0)


def silence(silent: Sequence[int], before: Sequence[Sequence[int]]) -> P:
    """Return the p-values of no crash in so many days, each after its days before; 1 after too few days."""
    scale = _scale([np.array(one, dtype=np.float64) for one in before])
    counts = np.floor(np.array([sum(one) for one in before]) / scale)
    lengths = np.array([len(one) for one in before])
    p = (lengths / np.maximum(lengths + np.array(silent), 1)) ** counts
    return np.where(lengths >= FEWEST_DAYS, p, 1.0)


def _scale(several: Sequence[P]) -> P:
    """Return each one's dispersion, where that is less the mean one of those that have any counts, and at least 1."""
    own = np.full(len(several), np.nan)
    by_length: dict[int, list[int]] = {}
    for n, one in enumerate(several):
        if len(one) > 1 and one.any():
            by_length.setdefault(len(one), []).append(n)
    for rows in by_length.values():  # thousands at once
        table = np.stack([several[n] for n in rows])
        own[rows] = table.var(axis=1, ddof=1) / table.mean(axis=1)
    known = own[~np.isnan(own)]
    usual = max(1.0, float(np.maximum(known, 1.0).mean())) if len(known) else 1.0
    scale: P = np.fmax(own, usual)
    return scale
