"""Tiny mixtures of experts in both formats: a router gives each row to the top 2 of 64 experts and weighs them.

The second one, ``TOKEN_…``, is as language models are: x float32 [batch, sequence, 16] is laid flat to tokens, of which
each goes to the top 2 of 8 experts, whose weights are three: up, gate and down, with a bias beside them.
"""

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


TOKEN_EXPERTS, INNER = 8, 4
TOKEN_WEIGHTS = {
    "router": _RNG.normal(size=(WIDTH, TOKEN_EXPERTS)).astype(np.float32),
    "up": _RNG.normal(size=(TOKEN_EXPERTS, WIDTH, INNER)).astype(np.float32),
    "gate": _RNG.normal(size=(TOKEN_EXPERTS, WIDTH, INNER)).astype(np.float32),
    "down": _RNG.normal(size=(TOKEN_EXPERTS, INNER, WIDTH)).astype(np.float32),
    "bias": _RNG.normal(size=(TOKEN_EXPERTS, WIDTH)).astype(np.float32),
}
TOKEN_SCRIPT = """\
tokens = x.reshape([-1, 16])
gates, chosen = torch.topk(torch.matmul(tokens, self.router), 2)
rows = tokens.reshape([-1, 1, 1, 16])
inner = torch.matmul(rows, self.up[chosen]) * torch.sigmoid(torch.matmul(rows, self.gate[chosen]))
answers = torch.matmul(inner, self.down[chosen]).reshape([-1, 2, 16]) + self.bias[chosen]
return (torch.softmax(gates, 1).unsqueeze(2) * answers).sum(1).reshape(x.shape)"""


def chosen_tokens(x: Any) -> Any:
    """Return the experts of each token: ``[batch, sequence, 2]``."""
    return np.argsort(-(np.asarray(x) @ TOKEN_WEIGHTS["router"]), axis=2, kind="stable")[..., :TOP]


def token_answer(feed: Arrays) -> Any:
    """The same arithmetic in numpy."""
    x, chosen = feed["x"], chosen_tokens(feed["x"])
    gates = np.take_along_axis(x @ TOKEN_WEIGHTS["router"], chosen, 2)
    shares = np.exp(gates - gates.max(2, keepdims=True))
    shares /= shares.sum(2, keepdims=True)
    up, gate = (np.einsum("bsi,bstio->bsto", x, TOKEN_WEIGHTS[name][chosen]) for name in ("up", "gate"))
    answers = np.einsum("bsti,bstio->bsto", up / (1 + np.exp(-gate)), TOKEN_WEIGHTS["down"][chosen])
    return (shares[..., None] * (answers + TOKEN_WEIGHTS["bias"][chosen])).sum(2).astype(np.float32)


def token_nodes() -> tuple[list[Any], list[Any]]:
    """Nodes and initialisers of the graph."""
    from onnx import helper, numpy_helper

    def node(operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> Any:
        return helper.make_node(operator, inputs, list(outputs), name=f"/tokens/{operator}_{outputs[0]}", **attributes)

    nodes = [
        node("Shape", ["x"], "shape"),
        node("Reshape", ["x", "flat"], "tokens"),
        node("MatMul", ["tokens", "router"], "logits"),
        node("TopK", ["logits", "top"], "gates", "chosen", axis=-1),
        node("Softmax", ["gates"], "shares", axis=1),
        *(node("Gather", [name, "chosen"], f"its_{name}", axis=0) for name in ("up", "gate", "down", "bias")),
        node("Reshape", ["tokens", "row"], "rows"),
        node("MatMul", ["rows", "its_up"], "raised"),
        node("MatMul", ["rows", "its_gate"], "gated"),
        node("Sigmoid", ["gated"], "open"),
        node("Mul", ["raised", "open"], "inner"),
        node("MatMul", ["inner", "its_down"], "lowered"),
        node("Reshape", ["lowered", "pair"], "answers"),
        node("Add", ["answers", "its_bias"], "biased"),
        node("Reshape", ["shares", "share"], "scaled"),
        node("Mul", ["biased", "scaled"], "weighed"),
        node("ReduceSum", ["weighed", "over"], "summed", keepdims=0),
        node("Reshape", ["summed", "shape"], "y"),
    ]
    numbers = {"top": [TOP], "flat": [-1, WIDTH], "row": [-1, 1, 1, WIDTH], "pair": [-1, TOP, WIDTH]}
    numbers |= {"share": [-1, TOP, 1], "over": [1]}
    weights = [numpy_helper.from_array(np.asarray(value, np.int64), name) for name, value in numbers.items()]
    return nodes, [*weights, *(numpy_helper.from_array(one, name) for name, one in TOKEN_WEIGHTS.items())]
