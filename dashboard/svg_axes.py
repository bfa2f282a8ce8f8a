"""Where values stand in a picture: axes of shares with round marks, and days side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

MOST_APART = 7
"""Days between two that are drawn as so many; a longer time is drawn as ``_BREAK`` and marked."""
_BREAK = 4


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``low`` … ``high`` onto pixels from ``start`` to ``end``; what lies beyond stands at the end."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Return round values from ``low`` on, at most ``most`` steps apart."""
        step = nice_step((self.high - self.low) / most)
        return [self.low + i * step for i in range(math.floor((self.high - self.low) / step + 1e-9) + 1)]

    def label(self, value: float) -> str:
        """Return a share in percent, short."""
        return f"{100 * value:.6g} %"


def nice_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5 or 5 times a power of ten that is at least ``least``, which is above 0."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in (1, 2, 2.5, 5) if step * power >= least * (1 - 1e-9)), 10 * power)


def nice_top(value: float) -> float:
    """Return a share at or a little above one, for the end of an axis; never more than 1."""
    step = nice_step(value / 10)
    return min(1.0, math.ceil(value / step - 1e-9) * step)


def slots(days: Sequence[date]) -> tuple[dict[date, float], list[float]]:
    """Return where each day stands, a day being 1 wide, and where a long time without any was left out."""
    place: dict[date, float] = {}
    gaps = []
    at, last = 0.0, None
    for day in sorted(set(days)):
        if last is not None:
            apart = (day - last).days
            if apart > MOST_APART:
                gaps.append(at + _BREAK / 2)
                apart = _BREAK
            at += apart
        place[day] = at
        last = day
    return place, gaps
