"""What moved: exact tests in both directions, one correction over all of them, and nothing said of few failures."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from crashpath.dashboard.evidence import ClusterFacts
from crashpath.dashboard.movements import movements
from crashpath.dashboard.review_model import Change, Movement
from crashpath.dashboard.sides import Side, make_side
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_read import FailedCell

FIRST = date(2026, 3, 1)
CLASSES = {1: "oom_host", 2: "tokenizer", 3: "oom_host", 4: "hang", 5: "load_timeout"}
FACTS = {number: ClusterFacts(number, f"title {number}", name, None, None) for number, name in CLASSES.items()}


def side(*days: Mapping[int | None, int], attempts: int = 1000, release: str = "2.0") -> Side:
    """A release with so many attempts on each day, and failures of clusters on each."""
    counts, cells = [], []
    for place, failed in enumerate(days):
        day = FIRST + timedelta(days=place)
        counts.append(
            AttemptCount(
                "deployment", day, release, "linux", "m", "ort", attempts, None, None, None, None, None, "file"
            )
        )
        cells += [
            FailedCell(
                "deployment", day, release, "linux", "m", cluster, CLASSES.get(cluster or 0, "unclassified"),
                many, 0, 0, many,
            )
            for cluster, many in failed.items()
            if many
        ]  # fmt: skip
    return make_side(release, "deployment", cells, counts)


def moved(now: Side, base: Side | None, *, min_count: int = 5, alpha: float = 0.05) -> dict[tuple[str, str], Movement]:
    """Movements by level and key; no key moves in two ways in these tests."""
    told = movements(now, base, FACTS, min_count=min_count, alpha=alpha)
    found = {(one.level, one.key): one for one in told}
    assert len(found) == len(told)
    return found


def twice(here: int, there: int, share: float) -> float:
    """Both tails of the exact conditional test."""
    return min(
        1.0, 2 * min(binomtest(here, here + there, share, alternative=way).pvalue for way in ("greater", "less"))
    )


def test_every_change_against_a_baseline_by_hand() -> None:
    """One cluster of each change: its p is that of the exact test, corrected over all that were tested."""
    now = {1: 40, 2: 12, 3: 0, 4: 3, 5: 20}
    then = {1: 10, 2: 0, 3: 30, 4: 40, 5: 22}
    found = moved(side(now), side(then, attempts=2000, release="1.0"))
    told = {key: one.change for (level, key), one in found.items() if level == "cluster"}
    assert told == {
        "C-0001": Change.REGRESSED, "C-0002": Change.NEW, "C-0003": Change.GONE, "C-0004": Change.FADING,
    }  # fmt: skip
    # Clusters 1 to 5, and the classes oom_host (1 and 3), tokenizer, hang and load_timeout.
    pairs = [(40, 10), (12, 0), (0, 30), (3, 40), (20, 22), (40, 40), (12, 0), (3, 40), (20, 22)]
    plain = [twice(*pair, 1 / 3) for pair in pairs]
    rejected, corrected, _, _ = multipletests(plain, method="holm")
    for key, place in {"C-0001": 0, "C-0002": 1, "C-0003": 2, "C-0004": 3}.items():
        assert rejected[place]
        assert found["cluster", key].p == pytest.approx(corrected[place])
    assert not rejected[4]
    assert found["class", "oom_host"].change is Change.REGRESSED
    assert found["class", "oom_host"].p == pytest.approx(corrected[5])
    assert found["cluster", "C-0001"].ratio == pytest.approx((40 / 1000) / (10 / 2000))
    assert found["cluster", "C-0003"].ratio == 0
    assert found["cluster", "C-0002"].ratio is None


def test_movements_are_in_order_with_their_words() -> None:
    """New first, then regressed, spiking, fading, gone; the sentence has counts, rates and how many times."""
    now = side({2: 1}, {2: 11, 1: 60, 4: 2}, {1: 64, 5: 300})
    then = side({1: 10, 4: 60, 3: 80}, release="1.0")
    told = movements(now, then, FACTS, min_count=5, alpha=0.05)
    order = [list(Change).index(one.change) for one in told]
    assert order == sorted(order)
    said = {(one.change, one.key): (one.title, one.headline, one.sentence) for one in told}
    assert said[Change.NEW, "C-0002"] == (
        "title 2", "tokenizer", "12 failures (0.40 % of deployments), none in the baseline",
    )  # fmt: skip
    assert said[Change.REGRESSED, "C-0001"] == (
        "title 1", "OOM", "124 failures (4.13 % of deployments), 1.00 % in the baseline: 4.13 times",
    )  # fmt: skip
    assert said[Change.SPIKING, "C-0005"] == (
        "title 5", "load timeout", "300 failures on 2026-03-03, none on the days before",
    )  # fmt: skip
    assert said[Change.SPIKING, "C-0001"][2] == "64 failures on 2026-03-03, 2.13 times the rate of the days before"
    assert said[Change.FADING, "C-0004"][2] == (
        "2 failures (0.0667 % of deployments), 6.00 % in the baseline: 0.0111 times"
    )
    assert said[Change.GONE, "C-0003"][2] == "none now, 80 failures (8.00 % of deployments) in the baseline"


def test_a_spike_by_hand() -> None:
    """The last day against those before, one tail, corrected over all with enough failures on all days together."""
    now = side({1: 10, 2: 9}, {1: 8, 2: 3}, {1: 30, 2: 5, 5: 4})
    found = moved(now, None)
    assert set(found) == {("cluster", "C-0001"), ("class", "oom_host")}
    # Cluster 1 and 2 and their classes; cluster 5 has too few failures to be tested.
    tails = [binomtest(x, n, 1 / 3, alternative="greater").pvalue for x, n in ((30, 48), (5, 17)) * 2]
    corrected = multipletests(tails, method="holm")[1]
    spike = found["cluster", "C-0001"]
    assert (spike.change, spike.failures, spike.before) == (Change.SPIKING, 48, 0)
    assert spike.p == pytest.approx(corrected[0])
    assert spike.ratio == pytest.approx(30 / (18 / 2))


def test_without_a_baseline_nothing_is_new_or_gone() -> None:
    """What was never set against anything is neither new nor more frequent; one day has none before it."""
    assert moved(side({1: 500, 2: 9}), None) == {}
    assert moved(side({1: 20}, {1: 20}), None) == {}


def test_few_failures_are_not_spoken_of() -> None:
    """Below the least count nothing is new, regressed, spiking or gone, however sure a test may be of it."""
    base = side({4: 4}, attempts=10, release="1.0")
    assert moved(side({1: 4}, attempts=100_000), base) == {}
    assert set(moved(side({1: 5}, attempts=100_000), base)) == {("cluster", "C-0001"), ("class", "oom_host")}
    rare = moved(side({}, {}, {}, {1: 4}, attempts=100_000), None, min_count=3)
    assert set(rare) == {("cluster", "C-0001"), ("class", "oom_host")}
    many = side({1: 1}, *({} for _ in range(300)), {1: 4}, attempts=100_000)
    assert moved(many, None) == {}  # five in all, of which four on the last day


def test_the_last_day_is_the_last_with_attempts() -> None:
    """Failures of a later day without attempts are on no denominator, and are no spike."""
    one = side({1: 5}, {1: 5})
    later = FailedCell(
        "deployment", FIRST + timedelta(days=5), "2.0", "linux", "m", 1, "oom_host", 90, 0, 0, 90
    )  # fmt: skip
    counts = [
        AttemptCount("deployment", day, "2.0", "linux", "m", "ort", 1000, None, None, None, None, None, "file")
        for day in one.days
    ]
    with_later = make_side("2.0", "deployment", [later], counts)
    assert (with_later.bare, with_later.tally.primary) == (90, 0)
    assert moved(with_later, None) == {}


def test_counts_that_cannot_be_say_nothing() -> None:
    """Of more failures than attempts nothing moved; against such a baseline nothing is told but spikes."""
    base = side({1: 10}, release="1.0")
    assert moved(side({1: 50}, attempts=20), base) == {}
    assert moved(side({1: 0}, attempts=0), base) == {}
    now = side({1: 10}, {1: 90})
    for bad in (side({2: 30}, attempts=20, release="1.0"), side({}, attempts=0, release="1.0")):
        assert {one.change for one in moved(now, bad).values()} == {Change.SPIKING}
    assert {one.change for one in movements(now, base, FACTS, min_count=5, alpha=0.05)} == {
        Change.SPIKING, Change.REGRESSED,
    }  # fmt: skip


def test_what_has_no_cluster_is_in_its_class_alone() -> None:
    """Signatures that no cluster has yet are of a class; a cluster whose facts are not there is named by its id."""
    found = moved(side({None: 50, 9: 50}), side({1: 10}, release="1.0"))
    assert found["class", "unclassified"].failures == 100
    assert {key for level, key in found if level == "cluster"} == {"C-0001", "C-0009"}
    assert (found["cluster", "C-0009"].title, found["cluster", "C-0009"].headline) == ("C-0009", "other")


def test_where_nothing_moved_seldom_anything_is_told() -> None:
    """Both releases fail at the same rates, frequent and rare ones: in at most alpha of reviews a movement is told.

    What is new is not counted: the baseline had none of it, which is no question of chance.
    """
    rng = np.random.default_rng(11)
    rates = np.geomspace(0.0004, 0.02, 24)
    numbers = {number + 1: float(rate) for number, rate in enumerate(rates)}
    names = {number: f"class {number % 5}" for number in numbers}
    facts = {number: ClusterFacts(number, "t", names[number], None, None) for number in numbers}

    def drawn(release: str, days: int, attempts: int) -> Side:
        counts, cells = [], []
        for place in range(days):
            day = FIRST + timedelta(days=place)
            row = ("deployment", day, release, "linux", "m")
            counts.append(AttemptCount(*row, "ort", attempts, None, None, None, None, None, "file"))
            for number, x in zip(numbers, rng.binomial(attempts, rates), strict=True):
                cells.append(FailedCell(*row, number, names[number], int(x), 0, 0, int(x)))
        return make_side(release, "deployment", cells, counts)

    reviews, alpha, wrong = 150, 0.1, 0
    gc.freeze()  # statsmodels collects garbage at each correction: let it find little
    for _ in range(reviews):
        base = drawn("1.0", 1, int(rng.choice([1000, 4000, 16_000])))
        now = drawn("2.0", 4, 1000)
        told = movements(now, base, facts, min_count=5, alpha=alpha)
        wrong += any(one.change is not Change.NEW for one in told)
        assert all(one.before == 0 and one.failures >= 5 for one in told if one.change is Change.NEW)
    gc.unfreeze()
    assert wrong <= alpha * reviews
