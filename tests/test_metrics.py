"""Figures that the literature defines, on cases small enough to check by hand."""

from __future__ import annotations

import math

import pytest

from crashpath.clustering.metrics import (
    accuracy,
    bcubed,
    calibration_error,
    macro_f1,
    multi,
    pairs,
    reliability,
    rr_at_1,
    wilson,
)


def test_bcubed_by_hand() -> None:
    """BCubed weighs every item the same: {a, a, b} in one group of a and one of b, against one found group."""
    found = bcubed([1, 1, 1], ["a", "a", "b"])
    assert found.precision == pytest.approx((2 / 3 + 2 / 3 + 1 / 3) / 3)
    assert found.recall == 1.0


def test_pairs_by_hand() -> None:
    """Of three pairs said one is real, and it is all there is."""
    found = pairs([1, 1, 1], ["a", "a", "b"])
    assert (found.precision, found.recall) == (pytest.approx(1 / 3), 1.0)
    assert found.f1 == pytest.approx(0.5)


def test_perfect_and_empty() -> None:
    """A perfect grouping has 1 of everything whatever its names; nothing to score is 0 and does not fail."""
    assert bcubed([3, 3, 4], "xxy").f1 == pairs([3, 3, 4], "xxy").f1 == 1.0
    assert bcubed([], []).f1 == 0.0


def test_multi_leaves_out_true_singletons() -> None:
    """Only items whose true group has two or more stay, with what was found for them."""
    assert multi([1, 2, 3], ["a", "b", "a"]) == ([1, 3], ["a", "a"])


def test_rr_at_1_asks_only_items_with_duplicates() -> None:
    """An item without duplicates is not asked; one whose nearest is no duplicate counts as a miss."""
    duplicates = {"a": frozenset({"b"}), "b": frozenset({"a"}), "c": frozenset()}
    assert rr_at_1({"a": "b", "b": "c", "c": "a"}, duplicates) == 0.5


def test_macro_f1_weighs_classes_the_same() -> None:
    """A rare class that is always missed costs as much as a frequent one."""
    truth, said = ["a"] * 9 + ["b"], ["a"] * 10
    assert accuracy(said, truth) == 0.9
    assert macro_f1(said, truth) == pytest.approx((18 / 19 + 0) / 2)


def test_wilson_interval() -> None:
    """Known values: 9 of 10 at 95 % is .596 to .982; no data is everything."""
    low, high = wilson(9, 10)
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)
    assert wilson(0, 0) == (0.0, 1.0)


def test_calibration_error() -> None:
    """Said .9 and right in half is an error of .4; certainty that is right is none."""
    assert calibration_error(reliability([0.9, 0.9], [True, False])) == pytest.approx(0.4)
    assert calibration_error(reliability([1.0, 1.0], [True, True])) == 0.0
    assert math.isnan(calibration_error(()))
