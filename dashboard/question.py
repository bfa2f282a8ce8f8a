"""One question to a release: its evidence in both directions, and the words and figures that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from shlex import quote

from crashpath.dashboard.figures import percent, times
from crashpath.dashboard.plurals import many
from crashpath.dashboard.sides import Side


class Family(StrEnum):
    """Questions whose wrong NO-GOs share one budget."""

    OVERALL = "overall"
    COHORT = "cohort"
    CLASS = "class"


BUDGET = {Family.OVERALL: 0.5, Family.COHORT: 0.25, Family.CLASS: 0.25}
"""Share of alpha that the questions of a family have for false NO-GOs."""


_WORDS = 4096
"""Counts whose words are kept: of thousands of clusters most fail as seldom as others."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. ``good`` is ``None`` where nothing has to be shown good.

    ``subject`` is the cohort, class or cluster; ``rule`` the key in the policy. ``needed`` attempts more (of the
    subject) until an answer is likely, ``None`` where no number would do. ``limit_rate`` is the limit where it is a
    highest rate.
    """

    family: Family
    rule: str
    unit: str
    subject: str
    limit: str
    measured: str
    said: str
    bad: float
    good: float | None
    needed: int | None = None
    evidence: tuple[str, ...] = ()
    command: str = ""
    limit_rate: float | None = None


@lru_cache(_WORDS)
def margin_words(ratio: float, failures: int, attempts: int, floor: float) -> str:
    """Return a limit against a baseline of ``failures`` in ``attempts``, with the rate below which none is asked."""
    return f"at most {times(ratio)} the baseline's {rate_of(failures, attempts)}, or the floor of {percent(floor)}"


def trends_command(side: Side) -> str:
    """Return the command that shows what failed in this release."""
    return f"crashpath trends --by class --release {quote(side.release)}"


@lru_cache(_WORDS)
def measured_words(failures: int, attempts: int, apart: int = 0) -> str:
    """Return ``0.4 % (12 of 3,000)``, with the failures that stand apart."""
    more = f", and {many(apart, 'failure')} apart" if apart else ""
    return f"{rate_of(failures, attempts)} ({failures:,} of {attempts:,}){more}"


@lru_cache(_WORDS)
def of_words(failures: int, attempts: int, unit: str) -> str:
    """Return ``12 of 3,000 deployments (0.4 %)``."""
    return f"{failures:,} of {many(attempts, unit)} ({rate_of(failures, attempts)})"


@lru_cache(_WORDS)
def rate_of(failures: int, attempts: int) -> str:
    """Return a rate in words. Of nothing tried there is none, nor of more failures than attempts."""
    return percent(failures / attempts) if attempts and failures <= attempts else "no rate"
