"""What operators take, by batch: microseconds a call, for a heat map on a log scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crashpath.coverage.units import Timing


@dataclass(frozen=True, slots=True)
class Heat:
    """Operators in rows, the dearest first, and batches in columns. ``cells`` are µs a call, ``None`` where none ran.

    ``shares`` of the cells lie between 0 (the quickest of all) and 1 (the slowest), on a log scale. ``total`` is the
    share of a row in the seconds of its path.
    """

    path: str
    operators: tuple[str, ...]
    batches: tuple[int, ...]
    cells: tuple[tuple[float | None, ...], ...]
    shares: tuple[tuple[float | None, ...], ...]
    total: tuple[float, ...]


def heat(timings: Sequence[Timing], path: str, *, most: int = 20) -> Heat:
    """Return the ``most`` operators of a path that took the most time."""
    mine = [one for one in timings if one.path == path and one.calls]
    batches = tuple(sorted({one.batch for one in mine}))
    spent: dict[str, float] = {}
    for one in mine:
        spent[one.operator] = spent.get(one.operator, 0.0) + one.seconds
    operators = tuple(sorted(spent, key=lambda name: (-spent[name], name))[:most])
    known = {(one.operator, one.batch): 1e6 * one.seconds / one.calls for one in mine}
    cells = tuple(tuple(known.get((name, batch)) for batch in batches) for name in operators)
    logs = [_log(cell) for row in cells for cell in row if cell is not None]
    low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)
    width = high - low or 1.0
    shares = tuple(tuple(None if cell is None else (_log(cell) - low) / width for cell in row) for row in cells)
    whole = sum(spent.values()) or 1.0
    return Heat(path, operators, batches, cells, shares, tuple(spent[name] / whole for name in operators))


def _log(microseconds: float) -> float:
    return math.log10(max(microseconds, 0.1))  # ONNX Runtime tells whole microseconds
