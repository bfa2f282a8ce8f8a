"""Weighted terms of many items as one sparse table, so that all pairs of items are compared at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

Pairs = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TermTable:
    """Items by terms: ``column`` numbers the terms, ``matrix`` has their weights, ``norm`` the length of each row.

    In a row terms stand in their own order, so that a product of two rows depends on the two alone, to the last bit.
    """

    column: dict[str, int]
    matrix: csr_matrix
    norm: Pairs

    def take(self, rows: Sequence[int]) -> TermTable:
        """Return the table of some items; it knows the same terms."""
        kept = list(rows)
        return TermTable(self.column, self.matrix[kept], self.norm[kept])


def table_of(items: Sequence[Mapping[str, float]]) -> TermTable:
    """Return the table of items with their terms and weights."""
    column: dict[str, int] = {}
    ordered = [sorted(terms.items()) for terms in items]
    columns = [column.setdefault(term, len(column)) for terms in ordered for term, _ in terms]
    weights = [weight for terms in ordered for _, weight in terms]
    norm = np.sqrt([sum(weight**2 for _, weight in terms) for terms in ordered])
    return TermTable(column, _matrix(weights, columns, [len(terms) for terms in ordered], len(column)), norm)


def products(left: TermTable, right: TermTable) -> Pairs:
    """Return scalar products ``(len(left), len(right))``: the number of shared terms where all weigh 1."""
    mine = left.matrix if left.column is right.column else _renumbered(left, right.column)
    return np.asarray((mine @ right.matrix.T).toarray(), dtype=np.float64)


def gaps(left: TermTable, right: TermTable) -> Pairs:
    """Return 1 − cosine ``(len(left), len(right))`` in 0 … 1, NaN where a side has no terms."""
    size = np.outer(left.norm, right.norm)
    near = products(left, right) / np.maximum(size, 1e-9)
    return np.where(size > 0, np.clip(1.0 - near, 0.0, 1.0), np.nan)


def _renumbered(table: TermTable, column: Mapping[str, int]) -> csr_matrix:
    """The matrix under another numbering of terms, without those that it does not have."""
    number = np.array([column.get(term, -1) for term in table.column], dtype=np.int64)
    matrix = table.matrix
    to = number[matrix.indices] if len(number) else np.empty(0, dtype=np.int64)
    known = to >= 0
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))[known]
    return _matrix(matrix.data[known], to[known], np.bincount(row, minlength=matrix.shape[0]), len(column))


def _matrix(weights: ArrayLike, columns: ArrayLike, lengths: ArrayLike, width: int) -> csr_matrix:
    starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))])
    parts = (np.asarray(weights, dtype=np.float64), np.asarray(columns, dtype=np.int64), starts)
    return csr_matrix(parts, shape=(len(starts) - 1, max(1, width)))
