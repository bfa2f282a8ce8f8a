"""What a session may be told, checked before anything is opened."""

from __future__ import annotations

import math

_LONGEST = 30 * 86_400.0
"""Seconds that a deadline is cut to: no lock waits much longer."""


def seconds_of(deadline_ms: float) -> float:
    """Return the deadline of a request in seconds. Raises `ValueError` for what is no number of milliseconds."""
    milliseconds = float(deadline_ms)  # a number of numpy's is none to everybody below
    if not math.isfinite(milliseconds):
        raise ValueError(f"deadline_ms is a number of milliseconds, not {deadline_ms!r}")
    return min(milliseconds / 1000, _LONGEST)


def check_options(*, deadline_ms: float, load_s: float, flush_s: float, slots: int, sample: float) -> None:
    """Raise `ValueError`, one sentence, for an option under which nothing could be served."""
    for name, seconds in (("deadline_ms", deadline_ms), ("load_s", load_s), ("flush_s", flush_s)):
        if not (seconds > 0 and math.isfinite(seconds)):
            raise ValueError(f"{name} is a time above 0, not {seconds!r}")
    if slots < 1:
        raise ValueError(f"fallback_slots is at least 1, not {slots!r}")
    if not 0 <= sample <= 1:
        raise ValueError(f"sample is a share between 0 and 1, not {sample!r}")
