"""Whether two answers are the same answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashpath.runtime.folder import Tolerance
from crashpath.runtime.values import Arrays


@dataclass(frozen=True, slots=True)
class Compared:
    """``worst_abs`` and ``worst_rel`` are the largest differences of all outputs (infinite where they cannot be told).

    ``where`` names the output at fault and says what is wrong with it, empty where all is equal. ``top1`` is
    ``None`` where it was not asked for.
    """

    equal: bool
    worst_abs: float
    worst_rel: float
    where: str
    top1: bool | None


def same(a: Arrays, b: Arrays, tolerance: Tolerance) -> Compared:
    """Compare an answer with the one it should be.

    Equal: the same names, shapes and dtypes; everywhere ``|a - b| <= atol + rtol * |b|``; not-a-number only against
    not-a-number, an infinity only against itself; integers, booleans and text exactly; and, where the tolerance asks
    for it, the same position of the largest entry along the last axis.
    """
    if set(a) != set(b):
        return Compared(False, np.inf, np.inf, f"outputs {sorted(a)} against {sorted(b)}", None)
    worst_abs = worst_rel = 0.0
    fault = ""
    top1: bool | None = None
    for name in sorted(b):
        left, right = np.asarray(a[name]), np.asarray(b[name])
        if left.shape != right.shape or left.dtype != right.dtype:
            told = f"{name}: {left.dtype}{list(left.shape)} against {right.dtype}{list(right.shape)}"
            return Compared(False, np.inf, np.inf, told, top1)
        far_abs, far_rel, wrong = _differences(left, right, tolerance)
        worst_abs, worst_rel = max(worst_abs, far_abs), max(worst_rel, far_rel)
        if wrong and not fault:
            fault = f"{name}: {wrong}"
        if tolerance.top1 and left.ndim and left.size:
            agrees = bool(np.array_equal(_top(left), _top(right)))
            top1 = agrees if top1 is None else top1 and agrees
            if not agrees and not fault:
                fault = f"{name}: another largest entry"
    return Compared(not fault, worst_abs, worst_rel, fault, top1)


def _differences(left: NDArray[Any], right: NDArray[Any], tolerance: Tolerance) -> tuple[float, float, str]:
    if left.size == 0:
        return 0.0, 0.0, ""
    if left.dtype.kind not in "fc":
        wrong = left != right
        return (np.inf, np.inf, _first(wrong, left, right)) if wrong.any() else (0.0, 0.0, "")
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    left, right = left.astype(wide), right.astype(wide)
    alike = (left == right) | (np.isnan(left) & np.isnan(right))  # two infinities of one sign are equal
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        apart = np.where(alike, 0.0, np.abs(left - right))
        apart = np.where(np.isnan(apart), np.inf, apart)
        size = np.abs(right)
        relative = np.where(apart == 0, 0.0, np.where(size > 0, apart / size, np.inf))
        allowed = tolerance.atol + tolerance.rtol * size
    # An infinite or undefined reference allows nothing but itself.
    wrong = (apart > 0) & ~((apart <= allowed) & np.isfinite(allowed))
    relative = np.where(np.isnan(relative), np.inf, relative)
    return float(apart.max()), float(relative.max()), _first(wrong, left, right) if wrong.any() else ""


def _first(wrong: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> str:
    at = tuple(int(one) for one in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return f"{left[at]} against {right[at]} at {list(at)}, {int(wrong.sum())} of {wrong.size} entries differ"


def _top(array: NDArray[Any]) -> NDArray[Any]:
    # Where not-a-number is in a row, its position is the top one on both sides.
    return np.asarray(np.argmax(array, axis=-1))
