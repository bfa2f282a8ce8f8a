"""Experts of a mixture of experts as units: which of them traffic reached, and which pairs.

A router is found in the graph, not declared: a ``TopK`` whose indices pick rows of a weight (``Gather`` on an
initialiser, along its first axis) with which a product is made. A choice that picks anything else, like a detector's
boxes or the tokens of a beam, is no router. The first dimension of the weight counts the experts, the indices of a
request say who was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from crashpath.coverage.units import Kind, Unit

MOST_PAIRS = 10_000
"""Pairs of a model that are told apart: those of one router of 141 experts, or of five of 64."""
TOO_MANY = f"the model has more than the {MOST_PAIRS:,} pairs of experts that are told apart"
_PASS = frozenset({"Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Flatten", "Transpose", "Slice", "Split"})
"""What may stand between the choice and the pick, or the pick and the product, and changes no value."""
_SAME_ROWS = frozenset({"Identity", "Cast", "DequantizeLinear"})
"""What may stand between a weight and the pick."""
_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum", "Conv", "MatMulInteger"})
_RANK = 3
_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class Router:
    """``id`` of the ``TopK``; ``indices``: the tensor of who was chosen; ``weights``: those that it picks rows of.

    Along ``axis`` the indices are the choices of one row.
    """

    id: str
    indices: str
    weights: tuple[str, ...]
    count: int
    axis: int = -1


def find_routers(graph: Any) -> tuple[Router, ...]:
    """Return the routers of an ONNX graph, in its order; those inside of control flow are not looked for."""
    weights = _weights(graph)
    sizes = dict(weights.values())
    origin: dict[str, Any] = {}  # of a tensor: the TopK whose indices it is
    picked: dict[str, tuple[str, str]] = {}  # of a tensor: the indices and the weight of which it is rows
    picks: dict[str, list[str]] = {}  # of indices: the weights
    multiplied: set[tuple[str, str]] = set()
    for node in graph.node:
        first = node.input[0] if node.input else ""
        if node.op_type == "TopK" and len(node.output) > 1:
            origin[node.output[1]] = node
        elif node.op_type == "Gather" and first in weights and node.input[1] in origin and not _axis(node, 0):
            top = origin[node.input[1]]
            picked[node.output[0]] = (top.output[1], weights[first][0])
            picks.setdefault(top.output[1], []).append(weights[first][0])
        elif first in origin and (node.op_type in _PASS or node.op_type == "Gather"):
            origin |= dict.fromkeys(node.output, origin[first])
        elif first in picked and (node.op_type in _PASS or node.op_type in _SAME_ROWS):
            picked |= dict.fromkeys(node.output, picked[first])
        else:
            mine = [picked[one] for one in node.input if one in picked]
            large = [one for one in mine if len(sizes[one[1]]) >= _RANK]
            if node.op_type in _PRODUCTS:  # a row times a weight of the graph is a token that is looked up
                multiplied |= set(large if any(one in weights for one in node.input[:2]) else mine)
            elif large:  # a matrix an expert: whatever is done to it until it multiplies
                picked |= dict.fromkeys(node.output, large[0])
    ranks = _ranks(graph)
    return tuple(
        router
        for node in graph.node
        if node.op_type == "TopK" and len(node.output) > 1 and node.output[1] in picks
        for router in _routers(node, picks[node.output[1]], multiplied, sizes, ranks)
    )


def _routers(
    top: Any,
    picks: Sequence[str],
    multiplied: set[tuple[str, str]],
    sizes: Mapping[str, tuple[int, ...]],
    ranks: Mapping[str, int],
) -> Iterator[Router]:
    """Yield the router that a TopK is, if it is one."""
    indices = top.output[1]
    axis, rank = _axis(top, -1), ranks.get(top.input[0])
    experts = [one for one in picks if (indices, one) in multiplied]
    if not experts or (rank is not None and axis not in (-1, rank - 1)) or (rank is None and axis == 0):
        return
    count = sizes[experts[0]][0]
    yield Router(top.name, indices, tuple(dict.fromkeys(one for one in picks if sizes[one][0] == count)), count, axis)


def _weights(graph: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return what is a weight: name of the tensor → name of the initialiser, or Constant, it is of, and its shape."""
    found = {one.name: (one.name, tuple(one.dims)) for one in graph.initializer if one.dims}
    for node in graph.node:
        if node.op_type == "Constant" and (value := constant_of(node)) is not None and value.dims:
            found[node.output[0]] = (node.output[0], tuple(value.dims))
        elif node.op_type in _SAME_ROWS and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


def constant_of(node: Any) -> Any:
    """Return the tensor of a Constant node, ``None`` where it holds something else."""
    return next((one.t for one in node.attribute if one.name == "value"), None)


def _axis(node: Any, usual: int) -> int:
    return next((int(one.i) for one in node.attribute if one.name == "axis"), usual)


def _ranks(graph: Any) -> dict[str, int]:
    """Return the rank of each tensor whose shape the graph tells."""
    told = (*graph.input, *graph.value_info, *graph.output)
    return {one.name: len(one.type.tensor_type.shape.dim) for one in told if one.type.tensor_type.HasField("shape")}


def expert_units(routers: Sequence[Router], reason: str | None = None) -> Iterator[Unit]:
    """Yield a unit for every expert and every pair of experts of each router; ``reason``: why none can be seen.

    Where the pairs of a model are more than `MOST_PAIRS`, one unit stands for all of a router, apart.
    """
    paired = _paired(routers)
    for router in routers:
        for expert in range(router.count):
            label = f"expert {expert} of {router.count}"
            yield Unit(Kind.EXPERT, expert_id(router.id, expert), label, reason=reason)
        if reason is None and router.id in paired:
            for pair in combinations(range(router.count), 2):
                yield Unit(Kind.PAIR, pair_id(router.id, pair), f"experts {pair[0]} and {pair[1]}")
        else:
            label = f"{_pairs(router):,} pairs of {router.count} experts"
            yield Unit(Kind.PAIR, f"{router.id}#pairs", label, reason=reason or TOO_MANY)


def _pairs(router: Router) -> int:
    return router.count * (router.count - 1) // 2


def _paired(routers: Sequence[Router]) -> frozenset[str]:
    """Return the routers whose pairs are told apart: the first ones, as many as fit."""
    left, found = MOST_PAIRS, []
    for router in routers:
        if _pairs(router) <= left:
            left -= _pairs(router)
            found.append(router.id)
    return frozenset(found)


def expert_id(router: str, expert: int) -> str:
    """Return the id of an expert's unit."""
    return f"{router}#{expert}"


def pair_id(router: str, pair: tuple[int, int]) -> str:
    """Return the id of the unit of two experts that a row is given to together, the smaller first."""
    return f"{router}#{pair[0]}+{pair[1]}"


class Chosen:
    """Counts, of each router, the rows that an expert and a pair of experts got."""

    def __init__(self, routers: Sequence[Router]) -> None:
        self._routers = {router.id: router for router in routers}
        self._alone = {router.id: np.zeros(router.count, np.int64) for router in routers}
        paired = _paired(routers)
        self._together = {
            router.id: np.zeros((router.count, router.count), np.int64) for router in routers if router.id in paired
        }

    def add(self, router: str, indices: Any, axis: int | None = None) -> None:
        """Count who was chosen; along ``axis`` (the router's own) are the choices of one row."""
        rows = by_row(indices, self._routers[router].axis if axis is None else axis)
        alone, together = self._alone[router], self._together.get(router)
        rows = rows[((rows >= 0) & (rows < len(alone))).all(axis=1)]
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            if together is None:
                alone += np.bincount(some.reshape(-1), minlength=len(alone))
                continue
            given = np.zeros((len(some), len(alone)), np.float32)
            np.put_along_axis(given, some, 1, axis=1)
            both = (given.T @ given).astype(np.int64)  # exact: whole numbers far below 2**24
            alone += both.diagonal()
            together += both

    @property
    def hits(self) -> Mapping[str, int]:
        """Rows by unit."""
        hits: dict[str, int] = {}
        for router, alone in self._alone.items():
            hits |= {expert_id(router, int(one)): int(alone[one]) for one in np.flatnonzero(alone)}
            if router in self._together:
                pairs = np.triu(self._together[router], 1)
                hits |= {pair_id(router, (int(a), int(b))): int(pairs[a, b]) for a, b in np.argwhere(pairs)}
        return hits


def by_row(indices: Any, axis: int) -> Any:
    """Return choices as ``[rows, choices of a row]``."""
    told = np.moveaxis(np.asarray(indices), axis, -1)
    return told.reshape(-1, told.shape[-1])
