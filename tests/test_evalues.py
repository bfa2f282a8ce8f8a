"""E-values: false verdicts stay rare whenever one looks, and a rate that is bad or good is found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crashpath.dashboard.evalues import (
    above_limit,
    attempts_to_compare,
    attempts_to_decide,
    below_limit,
    either,
    no_worse_than,
    p_value,
    worse_than,
)

BAR = math.log(20)


def test_an_e_value_has_a_mean_of_at_most_one_at_the_limit() -> None:
    """At the limit itself the mean of an e-value is 1, so by Markov a bar of 20 is crossed in at most 5 %."""
    from scipy.stats import binom

    for test in (above_limit, below_limit):
        mean = sum(math.exp(binom.logpmf(x, 400, 0.03) + test(x, 400, 0.03)) for x in range(401))
        assert mean == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("test", "rate"), [(above_limit, 0.02), (below_limit, 0.0201)])
def test_sixty_looks_keep_false_verdicts_rare(test: object, rate: float) -> None:
    """With a look each night for 60 nights, at the limit or just beyond it, at most 5 % are wrong."""
    assert callable(test)
    draws = np.random.default_rng(6).binomial(200, rate, (400, 60)).cumsum(axis=1)
    wrong = sum(any(test(int(x), 200 * (i + 1), 0.02) >= BAR for i, x in enumerate(row)) for row in draws)
    assert wrong <= 400 * 0.05


@pytest.mark.parametrize("base", [40, 4])
def test_a_baseline_of_the_same_rate_is_seldom_beaten(base: int) -> None:
    """Against a baseline of the same rate, whatever its luck, at most 5 % are called worse, or no worse, wrongly."""
    rng = np.random.default_rng(7)
    worse = better = 0
    for _ in range(300):
        before = int(rng.binomial(base * 50, 0.02))
        row = rng.binomial(100, 0.02, 60).cumsum()
        counts = [(int(x), 100 * (i + 1), before, base * 50) for i, x in enumerate(row)]
        worse += any(worse_than(*one, 1.0) >= BAR for one in counts)
        better += any(no_worse_than(*one, 1.0) >= BAR for one in counts)
    assert worse <= 15
    assert better <= 15


def test_a_doubled_rate_is_found_and_a_halved_one_shown() -> None:
    """4 % against 2 % is worse after thousands of attempts, and 1 % is no worse than 1.25 times 2 %."""
    assert worse_than(400, 10_000, 200, 10_000, 1.25) >= BAR
    assert no_worse_than(100, 10_000, 200, 10_000, 1.25) >= BAR
    assert worse_than(200, 10_000, 200, 10_000, 1.25) < 0


def test_nothing_tried_says_nothing() -> None:
    """Without attempts on either side there is no evidence in any direction."""
    assert above_limit(0, 0, 0.01) == below_limit(0, 0, 0.01) == worse_than(0, 0, 5, 100, 1.0) == 0.0
    assert worse_than(5, 100, 0, 0, 1.0) == no_worse_than(5, 100, 0, 0, 1.0) == 0.0


def test_counts_that_cannot_be_say_nothing() -> None:
    """More failures than attempts, on either side, are evidence in no direction, and no number of attempts is told."""
    assert above_limit(101, 100, 0.01) == below_limit(101, 100, 0.01) == 0.0
    for test in (worse_than, no_worse_than):
        assert test(101, 100, 1, 1000, 1.0) == test(10, 100, 1001, 1000, 1.0) == 0.0
        assert test(100, 100, 1, 1000, 1.0) != 0.0
        assert test(10, 100, 1000, 1000, 1.0) != 0.0
    assert attempts_to_decide(101, 100, 0.01, 0.05) is None
    assert attempts_to_compare(101, 100, 1, 1000, 1.0, 0.05) is None
    assert attempts_to_compare(1, 100, 1001, 1000, 1.0, 0.05) is None
    assert attempts_to_compare(1, 100, 0, 0, 1.0, 0.05) is None
    assert above_limit(100, 100, 0.01) > BAR


def test_failures_apart_can_make_counts_that_cannot_be() -> None:
    """Where what stands apart is more than all attempts leave room for, nothing is needed that anyone could tell."""
    assert attempts_to_decide(3, 100, 0.01, 0.05, 97) is not None
    assert attempts_to_decide(3, 100, 0.01, 0.05, 98) is None
    assert attempts_to_compare(3, 100, 60, 1000, 1.0, 0.05, 97) is not None
    assert attempts_to_compare(3, 100, 60, 1000, 1.0, 0.05, 98) is None
    assert attempts_to_decide(0, 0, 0.01, 0.05, 1) is None


@pytest.mark.parametrize(("failures", "ratio"), [(0, 1.25), (20, 1.25), (400, 2.0)])
def test_the_number_needed_settles_a_comparison(failures: int, ratio: float) -> None:
    """At the rate so far it is shown after as many attempts more, and not after half of them."""
    needed = attempts_to_compare(failures, 4000, 200, 8000, ratio, 0.05)
    assert needed is not None

    def shown(more: int) -> float:
        counts = (failures * (1 + more / 4000), 4000 + more, 200, 8000, ratio)
        return max(worse_than(*counts), no_worse_than(*counts))

    assert shown(needed) >= BAR
    assert needed == 0 or shown(needed // 2) < BAR


def test_the_number_needed_is_the_number_that_decides() -> None:
    """With as many clean attempts as are said to be needed the rate is shown to be below, a little earlier not."""
    needed = attempts_to_decide(0, 0, 0.0109, 0.05)
    assert needed is not None
    assert below_limit(0, needed, 0.0109) >= BAR > below_limit(0, needed - needed // 50 - 3, 0.0109)
    assert attempts_to_decide(109, 10_000, 0.0109, 0.05) is None


def test_apart_failures_raise_the_number_needed() -> None:
    """Failures that stand on no denominator have to be outweighed."""
    plain, held = attempts_to_decide(2, 1000, 0.01, 0.05), attempts_to_decide(2, 1000, 0.01, 0.05, 10)
    assert plain is not None
    assert held is not None
    assert held > plain


def test_a_mean_of_two_and_its_p_value() -> None:
    """Evidence against two things at once is their mean; a p-value is never over 1."""
    assert either(math.log(40), math.log(1e-9)) == pytest.approx(math.log(20), abs=1e-6)
    assert p_value(-3.0) == 1.0
    assert p_value(math.log(20)) == pytest.approx(0.05)
