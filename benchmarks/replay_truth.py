"""The figures of the account that this project starts from, and what a seed makes of them.

The account tells of failed deployments before and after a repair in one table, and of crash logs in another, which do
not agree (docs/claims.md). So there are two data sets. What the account leaves open is chosen here and said so.
Rates and shares run from 0 to 1.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

RATE_BEFORE, RATE_AFTER = 0.143, 0.0104
THREE_BEFORE = {"oom_host": 0.582, "load_timeout": 0.246, "tokenizer": 0.172}
THREE_AFTER = {"oom_host": 0.021, "load_timeout": 0.003, "tokenizer": 0.0}
REDUCTION = 0.927
CRASH_LOGS = 12_843
SHAPE_INFERENCE = 0.631
THREE_LARGEST = 0.893
MAIN_PATH = (0.724, 0.981)
FALLBACK_PATH = (0.0, 0.946)
"""Path coverage before and after, in units that the account does not define."""

UNNAMED_AFTER = {
    "network_auth": 0.16, "load_corrupt": 0.145, "dependency": 0.13, "permission_disk": 0.12, "device_init": 0.11,
    "unsupported_op": 0.10, "shape_inference": 0.09, "oom_device": 0.08, "native_crash": 0.065,
}  # fmt: skip
"""Chosen: how the 97.6 % that the account leaves unnamed are spread; all are failures that a deployment can have."""

OTHER_TWO = {"oom_host": 0.154, "load_timeout": 0.108}
"""Chosen: the two that make 89.3 % of all crash logs together with shape inference."""

REST_OF_LOGS = {
    "tokenizer": 0.15, "load_corrupt": 0.13, "native_crash": 0.12, "device_fault": 0.11, "network_auth": 0.10,
    "hang": 0.09, "dependency": 0.08, "oom_device": 0.07, "unsupported_op": 0.06, "device_init": 0.05,
    "permission_disk": 0.04,
}  # fmt: skip
"""Chosen: how the other 10.7 % of the crash logs are spread."""

PLANTED = "device_init"
PLANTED_TIMES = 3.0
"""The planted regression: a further release in which one class is this many times as frequent."""

_MOST = 1 / 3
_FIGURES = 0  # the seed that moves nothing

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Release:
    """A release in the generator: ``rate`` of its attempts fail, and each failure is of a class by ``shares``."""

    name: str
    first_day: date
    rate: float
    shares: Shares

    def largest(self, count: int = 3) -> tuple[str, ...]:
        """Return the most frequent classes."""
        return largest(self.shares, count)


@dataclass(frozen=True, slots=True)
class Truth:
    """What the generator draws from. ``logs`` are the classes' shares of the crash logs; seed 0 moves nothing."""

    seed: int
    before: Release
    after: Release
    planted: Release
    logs: Shares


def truth_of(seed: int) -> Truth:
    """Return the account's figures, each moved at random by up to a third where the seed is not 0.

    Shares are brought back to a sum of 1 after they were moved.
    """
    rng = random.Random(f"truth:{seed}")

    def moved(value: float) -> float:
        return value if seed == _FIGURES else value * rng.uniform(1 - _MOST, 1 + _MOST)

    def all_moved(shares: Shares) -> Shares:
        return whole({name: moved(share) for name, share in shares.items()})

    unnamed = 1 - sum(THREE_AFTER.values())
    others = {name: share * unnamed for name, share in whole(UNNAMED_AFTER).items()}
    rest = 1 - THREE_LARGEST
    logs = {"shape_inference": SHAPE_INFERENCE} | OTHER_TWO | {n: s * rest for n, s in whole(REST_OF_LOGS).items()}
    before = Release("2026.05-before", date(2026, 5, 4), moved(RATE_BEFORE), all_moved(THREE_BEFORE))
    after = Release("2026.06-after", date(2026, 6, 1), moved(RATE_AFTER), all_moved(THREE_AFTER | others))
    return Truth(seed, before, after, planted(after), all_moved(logs))


def planted(after: Release) -> Release:
    """Return a release that is as ``after`` but for one class."""
    rates = {name: after.rate * share for name, share in after.shares.items()}
    rates[PLANTED] *= PLANTED_TIMES
    return replace(
        after, name="2026.07-planted", first_day=date(2026, 7, 6), rate=sum(rates.values()), shares=whole(rates)
    )


def whole(shares: Shares) -> Shares:
    """Return shares that sum to 1."""
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()}


def largest(shares: Shares, count: int = 3) -> tuple[str, ...]:
    """Return the names of the largest shares, the largest first."""
    return tuple(sorted(shares, key=lambda name: (-shares[name], name))[:count])
