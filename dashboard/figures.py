"""How rates and weights of evidence are written, the same in every form of a report."""

from __future__ import annotations

import math

_MOST_E = 1_000_000


def percent(share: float) -> str:
    """Return a share in percent with as many digits as its size asks for: ``14.3 %``, ``1.04 %``, ``0.0123 %``."""
    value = 100 * share
    if value == 0:
        return "0 %"
    digits = 1 if value >= 9.995 else 2 if value >= 0.1 else min(8, 2 - math.floor(math.log10(value)))
    return f"{value:.{digits}f} %"


def weight(e: float) -> str:
    """Return an e-value in words that fit anywhere: two digits, and no more than that it is over a million."""
    if e >= _MOST_E:
        return "e > 1,000,000"
    return f"e = {e:,.0f}" if e >= 10 else f"e = {e:.2g}"


def times(ratio: float) -> str:
    """Return a ratio: ``1.25 times``."""
    return f"{ratio:.3g} times"
