"""Releases as streams of attempts and failures, and what a review says of them at each night's look.

A fleet of six cohorts of uneven size fails with twelve clusters, in six classes, whose shares fall as Zipf's law. Each
attempt fails or not independently of all others, at a rate that stays the same for all nights. A baseline has ended
before. What is known after each night goes to the real ``judge`` as the store would give it, each night by itself: no
verdict knows of those of earlier nights.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
from numpy.typing import NDArray

from crashpath.dashboard.evidence import ClusterFacts, Evidence, Known
from crashpath.dashboard.intervals import rate as rate_of
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.review import judge
from crashpath.dashboard.review_model import Cohort, Proof, Review, Verdict
from crashpath.dashboard.sides import Group, make_side
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_sums import CohortSum, DaySum
from crashpath.ingest.nights import NightSeen

NIGHTS = 60
UNIT = "deployment"
RELEASE, BASELINE = "2.0", "1.0"
FIRST = date(2026, 3, 1)
COHORTS = tuple(Cohort(platform, "m") for platform in ("linux-gpu", "linux-cpu", "android", "windows", "macos", "ios"))
SIZES = np.array([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
"""Shares of the attempts, by cohort."""
CLASSES = (
    "oom_host", "hang", "tokenizer", "load_timeout", "hang", "oom_host",
    "device_fault", "shape_inference", "load_timeout", "shape_inference", "hang", "oom_host",
)  # fmt: skip
"""The class of each cluster, the most frequent cluster first."""
ZIPF = (1 / np.arange(1, len(CLASSES) + 1)) / (1 / np.arange(1, len(CLASSES) + 1)).sum()
"""Shares of the failures, by cluster."""
NO_PROOF = Proof((), None, None, 0, (), None, None, None, None, ())
Rates = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Releases that all fail at the same ``rates`` (cohorts x clusters), each after a baseline of its own, if any.

    ``unanswered`` is the share of failures that nobody answered, in both.
    """

    rates: Rates
    attempts: int
    policy: Policy
    before: Rates | None = None
    base_attempts: int = 0
    unanswered: float = 1.0


def even(rate: float) -> Rates:
    """Return the rate of failures with each cluster, cohorts x clusters, where all cohorts fail at ``rate``."""
    return np.outer(np.full(len(COHORTS), rate), ZIPF)


@dataclass(frozen=True, slots=True)
class Stream:
    """One simulated release: attempts (nights x cohorts) and failures (nights x cohorts x clusters).

    ``unanswered`` are those of the failures that nobody answered (nights x cohorts).
    """

    release: str
    first: date
    attempts: Counts
    failures: Counts
    unanswered: Counts

    def known(self, nights: int) -> Known:
        """Return what the store would say of it after so many nights, told as one day: no question is about a day."""
        last = self.first + timedelta(days=nights - 1)
        failed, left = self.failures[:nights].sum(axis=0), self.unanswered[:nights].sum(axis=0)
        counts = [
            AttemptCount(UNIT, last, self.release, one.platform, one.model, "ort", n, *(None,) * 5, "file")
            for one, n in zip(COHORTS, self.attempts[:nights].sum(axis=0).tolist(), strict=True)
            if n
        ]
        cohorts = [
            CohortSum(UNIT, one.platform, one.model, x, u, x - u)
            for one, x, u in zip(COHORTS, failed.sum(axis=1).tolist(), left.tolist(), strict=True)
            if x
        ]
        groups = [
            Group(number, name, x, x)
            for number, (name, x) in enumerate(zip(CLASSES, failed.sum(axis=0).tolist(), strict=True), start=1)
            if x
        ]
        x, u = int(failed.sum()), int(left.sum())
        cells = [DaySum(UNIT, last, self.release, x, u, x - u)] if x else []
        side = make_side(self.release, UNIT, cells, counts, cohorts, groups)
        return Known(self.release, (side,), {}, (), (0, 0), self.first, last)


def stream(
    rng: np.random.Generator, release: str, first: date, rates: Rates, attempts: int, unanswered: float
) -> Stream:
    """Draw a release of ``attempts``; of its failures the share ``unanswered`` is answered by nobody."""
    nightly = rng.multinomial(attempts // NIGHTS, SIZES, NIGHTS)
    fates = np.column_stack([rates, 1 - rates.sum(axis=1)])
    failures = rng.multinomial(nightly, fates)[:, :, :-1]
    return Stream(release, first, nightly, failures, rng.binomial(failures.sum(axis=2), unanswered))


def reviews(rng: np.random.Generator, scenario: Scenario) -> Iterator[Review]:
    """Draw one release and its baseline, and yield the review of each night, the first night first."""
    before = None
    if scenario.before is not None:
        start = FIRST - timedelta(days=NIGHTS)
        drawn = stream(rng, BASELINE, start, scenario.before, scenario.base_attempts, scenario.unanswered)
        before = drawn.known(NIGHTS)
    release = stream(rng, RELEASE, FIRST, scenario.rates, scenario.attempts, scenario.unanswered)
    facts = {
        number: ClusterFacts(number, f"cluster {number}", name, None, BASELINE)
        for number, name in enumerate(CLASSES, start=1)
    }
    for night in range(1, NIGHTS + 1):
        at = datetime.combine(FIRST + timedelta(days=night - 1), time(23, 30), UTC)
        evidence = Evidence(
            release=release.known(night),
            baseline=before,
            nameless={},
            strangers={},
            clusters=facts,
            first_days={RELEASE: FIRST},
            night=NightSeen(night, "complete", None, at, at),
            releases=(BASELINE, RELEASE),
            at=at,
        )
        yield judge(evidence, NO_PROOF, scenario.policy, policy_name="benchmark")


@dataclass(frozen=True, slots=True)
class Watched:
    """Of so many ``releases``, the ``share`` that a review gave a verdict at any of the looks, and its standard error.

    ``low`` and ``high`` are the exact 95 % interval. ``night`` is the median of the first nights with that verdict,
    ``right`` the share of them on which the reasons were the right ones, where that was asked.
    """

    what: str
    verdict: str
    attempts: int
    base_attempts: int
    releases: int
    share: float
    error: float
    low: float
    high: float
    night: float | None
    right: float | None


def watch(
    seed: int, what: str, verdict: Verdict, scenario: Scenario, size: int, right: Callable[[Review], bool] | None = None
) -> Watched:
    """Review ``size`` releases each night until a verdict is given, or the nights are over."""
    nights, fits = [], []
    for place in range(size):
        rng = np.random.default_rng([seed, place])
        for night, review in enumerate(reviews(rng, scenario), start=1):
            if review.verdict is verdict:
                nights.append(night)
                fits.append(right is not None and right(review))
                break
    share, interval = len(nights) / size, rate_of(len(nights), size)
    return Watched(
        what=what,
        verdict=verdict,
        attempts=scenario.attempts,
        base_attempts=scenario.base_attempts,
        releases=size,
        share=share,
        error=math.sqrt(share * (1 - share) / size),
        low=interval.low or 0.0,
        high=1.0 if interval.high is None else interval.high,
        night=statistics.median(nights) if nights else None,
        right=sum(fits) / len(fits) if fits and right is not None else None,
    )
