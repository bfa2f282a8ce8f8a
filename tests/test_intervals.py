"""Intervals of rates, differences and ratios, against scipy and statsmodels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from crashpath.dashboard.intervals import (
    compared,
    difference,
    exact_limits,
    rate,
    ratio,
    ratio_limits,
    square_and_add,
    upper_bound,
)
from crashpath.dashboard.review_model import Rate

GRID = [(x, n) for n in (1, 2, 7, 50, 274, 1_000, 20_000, 5_000_000) for x in sorted({0, 1, n // 50, n // 3, n - 1, n})]


@pytest.mark.parametrize(("x", "n"), GRID)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_a_rate_has_the_exact_interval(x: int, n: int, level: float) -> None:
    """The interval is the one of scipy's binomial test and of statsmodels' beta method."""
    got = rate(x, n, level)
    wanted = binomtest(x, n).proportion_ci(level, method="exact")
    assert got.rate == x / n
    assert (got.low, got.high) == pytest.approx((wanted.low, wanted.high), rel=1e-7, abs=1e-12)
    assert (got.low, got.high) == pytest.approx(
        proportion_confint(x, n, alpha=1 - level, method="beta"), rel=1e-7, abs=1e-12
    )


@pytest.mark.parametrize(("x", "n"), [(0, 0), (1, 0), (3, 2), (-1, 5)])
def test_there_is_no_rate_of_counts_that_form_none(x: int, n: int) -> None:
    """Of no attempts, or of more failures than attempts, there is neither rate nor interval."""
    assert rate(x, n) == Rate(x, n, None, None, None)


def test_the_ends_of_a_rate_are_0_and_1() -> None:
    """Nothing failed: the lower limit is 0. Everything failed: the upper one is 1. One attempt tells little."""
    assert rate(0, 1).low == 0.0
    assert rate(0, 1).high == pytest.approx(0.975)
    assert rate(1, 1).low == pytest.approx(0.025)
    assert rate(1, 1).high == 1.0


def test_274_clean_attempts_are_just_enough() -> None:
    """Without a failure, 274 attempts bound the rate below 1.09 % and 273 do not."""
    assert upper_bound(0, 274) < 0.0109 < upper_bound(0, 273)


@pytest.mark.parametrize(("x", "n"), GRID)
def test_the_bound_is_where_the_binomial_tail_is_the_error(x: int, n: int) -> None:
    """At the upper bound as few failures have chance .05."""
    if x < n:
        assert binom.cdf(x, n, upper_bound(x, n)) == pytest.approx(0.05, rel=1e-5)


def test_bounds_without_evidence_bound_nothing() -> None:
    """Nothing tried, or all that could went wrong: the bound is the end of the scale."""
    assert upper_bound(0, 0) == upper_bound(5, 5) == 1.0


@pytest.mark.parametrize(("x1", "n1", "x0", "n0"), [(3, 50, 1, 20_000), (0, 100, 4, 300), (120, 1_000, 90, 900)])
def test_square_and_add_is_newcombes_combination(x1: int, n1: int, x0: int, n0: int) -> None:
    """Given Wilson's limits, the combination is statsmodels' Newcombe interval."""
    one = (np.array(x1 / n1), *map(np.array, proportion_confint(x1, n1, method="wilson")))
    other = (np.array(x0 / n0), *map(np.array, proportion_confint(x0, n0, method="wilson")))
    wanted = confint_proportions_2indep(x1, n1, x0, n0, method="newcomb", compare="diff")
    assert square_and_add(one, other) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("one", "other"), list(itertools.product(GRID[6:30:3], repeat=2)))
def test_a_difference_is_about_newcombes(one: tuple[int, int], other: tuple[int, int]) -> None:
    """It is Newcombe's or wider (but for rates of 0, where Wilson's limit is a little above the exact one), turns
    around with the sides, and stays within -1 and 1."""
    got, back = difference(*one, *other), difference(*other, *one)
    low, high = confint_proportions_2indep(*one, *other, method="newcomb", compare="diff")
    assert got.high - got.low >= 0.95 * (high - low)
    assert got.low <= got.value - 0.95 * (got.value - low) + 1e-12
    assert got.high >= got.value + 0.95 * (high - got.value) - 1e-12
    assert (got.value, got.low, got.high) == pytest.approx((-back.value, -back.high, -back.low), abs=1e-12)
    assert -1 <= got.low <= got.value <= got.high <= 1


def test_no_failure_on_either_side_is_a_difference_of_0_and_no_ratio() -> None:
    """Zero in both: the difference's interval is as wide as those of the rates, and there is nothing to divide."""
    got = difference(0, 50, 0, 100)
    assert (got.value, got.low, got.high) == (0.0, -upper_bound(0, 100, 0.975), upper_bound(0, 50, 0.975))
    assert ratio(0, 50, 0, 100) is None
    assert ratio(3, 50, 0, 100) is None


@pytest.mark.parametrize(("x1", "n1", "x0", "n0"), [(5, 100, 3, 200), (0, 50, 1, 50), (900, 20_000, 7, 60)])
def test_a_ratio_is_the_odds_of_an_exact_share(x1: int, n1: int, x0: int, n0: int) -> None:
    """At each limit the conditional binomial test of x1 among all failures has one-sided p = .025."""
    got = ratio(x1, n1, x0, n0)
    assert got is not None
    assert got.value == pytest.approx((x1 / n1) / (x0 / n0))
    for limit, side in ((got.low, "greater"), (got.high, "less")):
        if limit:
            share = limit * n1 / (limit * n1 + n0)
            assert binomtest(x1, x1 + x0, share, alternative=side).pvalue == pytest.approx(0.025, rel=1e-6)


def test_a_release_without_a_failure_has_the_ratio_0() -> None:
    """Its lower limit is 0 and its upper one finite."""
    got = ratio(0, 1_000, 20, 1_000)
    assert got is not None
    assert (got.value, got.low) == (0.0, 0.0)
    assert 0 < got.high < 1


@pytest.mark.parametrize("counts", [(1, 0, 1, 5), (1, 5, 0, 0), (6, 5, 1, 5), (1, 5, -1, 5)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int]) -> None:
    """Two rates that cannot be formed are not compared silently."""
    for compare in (difference, ratio):
        with pytest.raises(ValueError, match="attempts"):
            compare(*counts)


def test_compared_leaves_out_what_cannot_be_told() -> None:
    """Without a baseline, or where one of both is no rate, there is no difference and no ratio."""
    good, none = rate(3, 100), rate(5, 3)
    assert compared(good, None).difference is None
    assert compared(good, none).ratio is None
    assert compared(none, good).difference is None
    both = compared(good, rate(0, 100))
    assert both.difference == difference(3, 100, 0, 100)
    assert both.ratio is None
    assert compared(good, good).ratio == ratio(3, 100, 3, 100)


@pytest.mark.parametrize(
    ("n1", "p1", "n0", "p0"), [(50, 0.003, 20_000, 0.001), (200, 0.2, 50, 0.02), (50, 0.001, 50, 0.001)]
)
def test_intervals_hold_the_truth_where_the_usual_ones_do_not(n1: int, p1: float, n0: int, p0: float) -> None:
    """Summed over all outcomes, each interval holds the truth with at least its level."""
    x1, x0 = np.meshgrid(np.arange(n1 + 1), np.arange(int(binom.ppf(1 - 1e-9, n0, p0)) + 1), indexing="ij")
    chance = binom.pmf(x1, n1, p1) * binom.pmf(x0, n0, p0)
    (low1, high1), (low0, high0) = exact_limits(x1, n1), exact_limits(x0, n0)
    low, high = square_and_add((x1 / n1, low1, high1), (x0 / n0, low0, high0))
    assert chance[(low <= p1 - p0) & (p1 - p0 <= high)].sum() >= 0.95
    low, high = ratio_limits(x1, n1, np.maximum(x0, 1), n0)
    assert chance[(x0 == 0) | ((low <= p1 / p0) & (p1 / p0 <= high))].sum() >= 0.95


@pytest.mark.parametrize("x", [0, 1, 1_000, 400_000_000, 999_999_000, 1_000_000_000])
def test_many_attempts_have_limits_on_both_sides(x: int) -> None:
    """Of a billion attempts the limits lie around the rate, about where the normal law has them."""
    n = 1_000_000_000
    got = rate(x, n)
    assert got.low is not None
    assert got.rate is not None
    assert got.high is not None
    assert got.low <= got.rate <= got.high
    assert got.high > got.low
    if 1_000 <= x <= n - 1_000:
        width = 2 * 1.96 * math.sqrt(got.rate * (1 - got.rate) / n)
        assert width * 0.99 < got.high - got.low < width * 1.35


@pytest.mark.parametrize("x", [0, 3, 1_000, 30_000_000])
def test_limits_go_on_where_the_law_changes(x: int) -> None:
    """At the largest number of attempts that is solved exactly, the next one has nearly the same limits."""
    exact, counts = rate(x, 100_000_000), rate(x, 100_000_001)
    assert exact.high == pytest.approx(counts.high, rel=1e-3)
    assert exact.low == pytest.approx(counts.low, rel=1e-3)
