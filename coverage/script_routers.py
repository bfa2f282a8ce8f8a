"""Finds the routers of experts in an inlined TorchScript graph: the twins of those of the ONNX graph, in its order.

A router is an ``aten::topk`` whose indices pick rows of a tensor of the model. Where as many such stand in the script
as in the graph, of as many experts each, they are the same. A script may loop over its experts instead and pick
nothing; then each ``topk`` is a router, if their number fits. Else who was chosen cannot be heard, for a reason that
is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crashpath.coverage.experts import Router
from crashpath.coverage.script_known import Known, attribute_of

_TOPK = "aten::topk"
_PASS = frozenset(
    f"aten::{one}"
    for one in (
        "reshape", "view", "flatten", "unflatten", "ravel", "unsqueeze", "squeeze", "to", "contiguous", "clone",
        "detach", "index", "select", "slice", "expand", "permute", "transpose", "t", "long", "int", "alias",
    )
)  # fmt: skip
"""What may stand between the choice and the pick and changes no value."""
_PICKS = {"aten::index_select": 2, "aten::index": 1, "aten::embedding": 1}
"""Operators that pick rows of their first input, and which input says the rows."""


@dataclass(frozen=True, slots=True)
class Twins:
    """The operators that choose, one a router, each with the axis of its choices; or why they are not known."""

    nodes: tuple[Any, ...] = ()
    axes: tuple[int, ...] = ()
    reason: str | None = None


def find_twins(module: Any, blocks: Iterable[Any], routers: Sequence[Router]) -> Twins:
    """Return the twins of these routers in the blocks of a loaded module, which are in the graph's order."""
    nodes = [node for block in blocks for node in block.nodes()]
    tops = [node for node in nodes if node.kind() == _TOPK]
    sizes = _picked(module, nodes) if routers else {}
    choosing = [node for node in tops if _choice(node) in sizes] or tops
    if not routers:
        return Twins()
    if len(choosing) != len(routers):
        return Twins(
            reason=f"the script has {len(choosing)} operators that choose experts, the graph {len(routers)} routers"
        )
    for node, router in zip(choosing, routers, strict=True):
        if router.count not in sizes.get(_choice(node), {router.count}):
            return Twins(reason=f"the script chooses of other experts than the router {router.id} of the graph")
    return Twins(tuple(choosing), tuple(_axis(node) for node in choosing))


def _choice(node: Any) -> str:
    return str(node.outputsAt(1).debugName())


def _axis(node: Any) -> int:
    told = node.inputsAt(2).toIValue()
    return told if isinstance(told, int) else -1


def _picked(module: Any, nodes: Iterable[Any]) -> dict[str, set[int]]:
    """Return, of each choice that picks rows of the model's own tensors, how many rows those have."""
    origin: dict[str, str] = {}
    found: dict[str, set[int]] = {}
    for node in nodes:
        kind, inputs = node.kind(), list(node.inputs())
        if kind == _TOPK:
            origin[_choice(node)] = _choice(node)
        elif kind in _PASS or kind == "prim::ListConstruct":
            asked = inputs if kind == "prim::ListConstruct" else inputs[:1]
            first = next((origin[one.debugName()] for one in asked if one.debugName() in origin), None)
            if first is not None:
                origin |= {one.debugName(): first for one in node.outputs()}
        if kind in _PICKS and (choice := origin.get(inputs[_PICKS[kind]].debugName())) is not None:
            tensor = _tensor(module, inputs[0])
            if tensor is not None and tensor.dim():
                found.setdefault(choice, set()).add(int(tensor.shape[0]))
    return found


def _tensor(module: Any, value: Any) -> Any:
    """Return the tensor of the model that a value is, ``None`` where it is computed."""
    import torch

    node = value.node()
    if node.kind() in ("aten::to", "aten::detach", "aten::contiguous"):
        return _tensor(module, node.inputsAt(0))
    told = Known(node.t("value")) if _holds_tensor(node) else attribute_of(module, value)
    return told.value if told is not None and isinstance(told.value, torch.Tensor) else None


def _holds_tensor(node: Any) -> bool:
    return bool(node.kind() == "prim::Constant" and "value" in node.attributeNames() and node.kindOf("value") == "t")
