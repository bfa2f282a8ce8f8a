"""Holm's correction, held to statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from crashpath.dashboard.holm import corrected, rejected


@pytest.mark.parametrize("seed", range(20))
def test_it_is_that_of_statsmodels(seed: int) -> None:
    """Values of every size, ties and zeros among them, one or many."""
    dice = np.random.default_rng(seed)
    p = np.round(dice.random(int(dice.integers(1, 200))) ** dice.integers(1, 12), 4)
    reject, values, _, _ = multipletests(p, alpha=0.05, method="holm")
    assert corrected(p) == pytest.approx(values, abs=1e-12)
    assert rejected(p, 0.05) == list(reject)


def test_of_nothing_nothing_stands() -> None:
    """No finding is no error."""
    assert rejected([], 0.05) == []
    assert len(corrected([])) == 0
