"""A tiny mixture of experts in both formats: a router gives each row to the top 2 of 64 experts and weighs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crashpath.runtime.values import Arrays

EXPERTS, TOP, WIDTH = 64, 2, 16
_RNG = np.random.default_rng(7)
ROUTER = _RNG.normal(size=(WIDTH, EXPERTS)).astype(np.float32)
WEIGHTS = _RNG.normal(size=(EXPERTS, WIDTH, WIDTH)).astype(np.float32) / WIDTH
SCRIPT = """\
gates, chosen = torch.topk(torch.matmul(x, self.router), 2)
weights = torch.index_select(self.experts, 0, chosen.reshape([-1])).reshape([-1, 2, 16, 16])
answers = torch.matmul(x.reshape([-1, 1, 1, 16]), weights).reshape([-1, 2, 16])
return (torch.softmax(gates, 1).unsqueeze(2) * answers).sum(1)"""


def expert_answer(feed: Arrays) -> Any:
    """The same arithmetic in numpy."""
    x = feed["x"]
    logits = x @ ROUTER
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
    gates = np.take_along_axis(logits, chosen, 1)
    shares = np.exp(gates - gates.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    answers = np.einsum("bi,btio->bto", x, WEIGHTS[chosen])
    return (shares[:, :, None] * answers).sum(1).astype(np.float32)


def reached_by(x: Any) -> set[int]:
    """Return the experts that rows ``[batch, 16]`` are given to."""
    chosen = np.argsort(-(np.asarray(x) @ ROUTER), axis=1, kind="stable")[:, :TOP]
    return {int(one) for one in chosen.reshape(-1)}


def expert_nodes() -> tuple[list[Any], list[Any]]:
    """Nodes and initialisers of the graph."""
    from onnx import helper, numpy_helper

    def node(operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> Any:
        return helper.make_node(operator, inputs, list(outputs), name=f"/experts/{operator}_{outputs[0]}", **attributes)

    nodes = [
        node("MatMul", ["x", "router"], "logits"),
        node("TopK", ["logits", "top"], "gates", "chosen", axis=1),
        node("Softmax", ["gates"], "shares", axis=1),
        node("Gather", ["experts", "chosen"], "weights", axis=0),
        node("Reshape", ["x", "row"], "rows"),
        node("MatMul", ["rows", "weights"], "answers"),
        node("Reshape", ["shares", "share"], "scaled"),
        node("Mul", ["answers", "scaled"], "weighed"),
        node("ReduceSum", ["weighed", "over"], "y", keepdims=0),
    ]
    numbers = {"top": [TOP], "row": [-1, 1, 1, WIDTH], "share": [-1, TOP, 1, 1], "over": [1, 2]}
    weights = [numpy_helper.from_array(np.asarray(value, np.int64), name) for name, value in numbers.items()]
    return nodes, [*weights, numpy_helper.from_array(ROUTER, "router"), numpy_helper.from_array(WEIGHTS, "experts")]
