"""Two answers are the same when every entry is, by the rule that the docstring of `same` states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from crashpath.runtime.compare import same
from crashpath.runtime.folder import Tolerance

LOOSE = Tolerance(atol=1e-3, rtol=1e-2)


def _y(*values: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"y": np.array(values, dtype)}


def test_near_zero() -> None:
    """Near zero the absolute part decides, far from it the relative one; either alone would be wrong."""
    assert same(_y(1e-9, 100.0), _y(-1e-9, 100.5), LOOSE).equal
    assert not same(_y(0.01), _y(0.0), LOOSE).equal
    assert not same(_y(100.0), _y(102.0), LOOSE).equal


def test_figures() -> None:
    """The largest differences are of all entries, and the first wrong one is named."""
    found = same(_y(1.0, 2.0, 4.0), _y(1.0, 2.5, 8.0), LOOSE)
    assert (found.equal, found.worst_abs, found.worst_rel) == (False, 4.0, 0.5)
    assert found.where == "y: 2.0 against 2.5 at [1], 2 of 3 entries differ"
    assert same(_y(1.0), _y(0.0), LOOSE).worst_rel == math.inf


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.inf, 3e38, False),
        (3e38, math.inf, False),
    ],
)
def test_not_numbers(a: float, b: float, equal: bool) -> None:
    """Not-a-number equals only itself, an infinity only itself: an infinite reference tolerates nothing."""
    found = same(_y(a), _y(b), LOOSE)
    assert found.equal is equal
    assert found.worst_abs == (0.0 if equal else math.inf)


def test_form() -> None:
    """Names, shapes and dtypes are part of the answer."""
    assert "outputs" in same({"y": np.ones(2), "z": np.ones(2)}, {"y": np.ones(2)}, LOOSE).where
    assert not same(_y(1.0, 1.0), {"y": np.ones((1, 2), np.float32)}, LOOSE).equal
    assert not same(_y(1.0), _y(1.0, dtype="float64"), LOOSE).equal


def test_exact() -> None:
    """Integers, booleans and text have no tolerance; integers beyond a float's digits are still told apart."""
    assert same(_y(1, 2, dtype="int64"), _y(1, 2, dtype="int64"), LOOSE).equal
    assert not same(_y(2**60, dtype="int64"), _y(2**60 + 1, dtype="int64"), LOOSE).equal
    assert not same(_y(True, dtype="bool"), _y(False, dtype="bool"), LOOSE).equal
    assert not same({"y": np.array(["a"])}, {"y": np.array(["b"])}, LOOSE).equal


def test_top_entry() -> None:
    """Scores within tolerance with another winner are not the same answer where the tolerance asks for it."""
    a, b = _y(0.5, 0.5001), _y(0.5001, 0.5)
    assert same(a, b, LOOSE).equal
    found = same(a, b, Tolerance(1e-3, 1e-2, top1=True))
    assert (found.equal, found.top1, found.where) == (False, False, "y: another largest entry")
    assert same(a, a, Tolerance(top1=True)).top1 is True


def test_empty_and_scalar() -> None:
    """Nothing equals nothing; a tensor without dimensions is compared, too."""
    assert same(_y(), _y(), LOOSE).equal
    assert same({"y": np.array(1.0)}, {"y": np.array(1.0)}, Tolerance(top1=True)).equal
    assert not same({"y": np.array(1.0)}, {"y": np.array(2.0)}, LOOSE).equal
