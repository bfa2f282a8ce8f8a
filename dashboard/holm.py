"""Holm's correction (1979) of p-values, for how many were looked at.

`statsmodels` has it as well, and its import alone would take a third of the time of a review: it is held to that one
in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def corrected(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return each p-value as it stands among all: at most 1, and never less than a smaller one's."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(steps, 1.0)
    return out


def rejected(p_values: Sequence[float] | NDArray[np.float64], alpha: float) -> list[bool]:
    """Tell which of several findings stand at ``alpha`` when all of them were looked at."""
    return [bool(one) for one in corrected(p_values) <= alpha]
