"""Claims: the exact bound, against numbers that are known."""

from __future__ import annotations

import pytest

from crashpath.coverage.claims import lower_bound, shown


@pytest.mark.parametrize(("share", "trials"), [(0.90, 29), (0.95, 59), (0.99, 299), (0.999, 2995)])
def test_trials_without_a_miss(share: float, trials: int) -> None:
    """29, 59, 299 and 2,995 trials without a miss are needed to claim 90, 95, 99 and 99.9 %."""
    assert lower_bound(trials, 0) >= share > lower_bound(trials - 1, 0)


def test_a_miss_lowers_the_bound() -> None:
    """With misses the bound is the beta quantile: 1 miss in 100 leaves 95.3 %; it is never above the share seen."""
    assert lower_bound(100, 1) == pytest.approx(0.9534, abs=2e-4)
    assert lower_bound(100, 0) > lower_bound(100, 1) > lower_bound(100, 2)
    assert lower_bound(10, 10) == 0.0


def test_no_trial_claims_nothing() -> None:
    """Nothing tried, nothing claimed; and what cannot be is refused."""
    assert lower_bound(0, 0) == 0.0
    with pytest.raises(ValueError, match="misses"):
        lower_bound(3, 4)
    with pytest.raises(ValueError, match="confidence"):
        lower_bound(3, 0, 1.0)


def test_a_claim_is_never_rounded_up() -> None:
    """A bound is cut, not rounded."""
    assert shown(0.99899) == "99.89%"
    assert shown(0.8999) == "89.9%"
