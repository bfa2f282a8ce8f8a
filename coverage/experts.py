"""Experts of a mixture of experts as units: which of them traffic reached, and which pairs.

A router is found in the graph, not declared: a ``TopK`` whose indices pick rows of a weight (``Gather`` on an
initialiser). The first dimension of that weight counts the experts, the indices of a request say who was chosen. The
TorchScript twin has the same routers in the same order, each an ``aten::topk``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from crashpath.coverage.units import Kind, Unit

_PASS = ("Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Flatten", "Transpose")
"""What may stand between the choice and the pick without changing who was chosen."""


@dataclass(frozen=True, slots=True)
class Router:
    """``id`` of the ``TopK``; ``indices``: the tensor of who was chosen, ``[…, top]``; ``weight``: the experts'."""

    id: str
    indices: str
    weight: str
    count: int


def find_routers(graph: Any) -> tuple[Router, ...]:
    """Return the routers of an ONNX graph, in its order; those inside of control flow are not looked for."""
    sizes = {one.name: int(one.dims[0]) for one in graph.initializer if one.dims}
    origin: dict[str, Any] = {}  # of a tensor: the TopK whose indices it is
    found: dict[str, Router] = {}
    for node in graph.node:
        if node.op_type == "TopK":
            origin[node.output[1]] = node
        elif node.op_type in _PASS and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        elif node.op_type == "Gather" and node.input[0] in sizes and node.input[1] in origin:
            top = origin[node.input[1]]
            router = Router(top.name, top.output[1], node.input[0], sizes[node.input[0]])
            found.setdefault(top.name, router)
    return tuple(found.values())


def expert_units(routers: Sequence[Router]) -> Iterator[Unit]:
    """Yield a unit for every expert and every pair of experts of each router."""
    for router in routers:
        for expert in range(router.count):
            yield Unit(Kind.EXPERT, expert_id(router.id, expert), f"expert {expert} of {router.count}")
        for pair in combinations(range(router.count), 2):
            yield Unit(Kind.PAIR, pair_id(router.id, pair), f"experts {pair[0]} and {pair[1]}")


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
        self._hits: Counter[str] = Counter()

    def add(self, router: str, indices: Any) -> None:
        """Count who was chosen; ``indices`` is ``[…, top]``."""
        rows = np.asarray(indices).reshape(-1, np.asarray(indices).shape[-1])
        for row in np.sort(rows, axis=1).tolist():
            self._hits.update(expert_id(router, expert) for expert in row)
            self._hits.update(pair_id(router, pair) for pair in combinations(row, 2))

    @property
    def hits(self) -> Mapping[str, int]:
        """Rows by unit."""
        return dict(self._hits)
