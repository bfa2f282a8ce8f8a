"""A tiny model with an ``If`` in an ``If`` in a ``Loop``, whose nodes and blocks are few enough to be counted by hand.

As many times as it is told, it adds 1 in even turns (then doubles what is above 0 in sum, else takes 3 off) and takes
0.5 off in odd ones. ONNX: 13 nodes in 5 graphs of 2, 4, 4 + 1, and 1 + 1 nodes. TorchScript: 6 blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crashpath.runtime.values import Arrays

NODES = 13
BLOCKS = 6
SCRIPT = """\
for turn in range(int(steps[0])):
    if turn % 2 == 0:
        x = x + 1.0
        if float(x.sum()) > 0.0:
            x = x * 2.0
        else:
            x = x - 3.0
    else:
        x = x - 0.5
return x"""


def branch_answer(feed: Arrays) -> Any:
    """The same arithmetic in numpy."""
    x = feed["x"]
    for turn in range(int(feed["steps"][0])):
        if turn % 2:
            x = x - np.float32(0.5)
            continue
        x = x + np.float32(1)
        x = x * np.float32(2) if x.sum() > 0 else x - np.float32(3)
    return x


def branch_nodes() -> tuple[list[Any], list[Any]]:
    """Nodes and initialisers of the graph."""
    from onnx import TensorProto, helper, numpy_helper

    def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> Any:
        return helper.make_node(operator, inputs, [output], name=f"/branches/{operator}_{output}", **attributes)

    def graph(name: str, nodes: list[Any], output: str) -> Any:
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])

    above = graph("above", [node("Mul", ["added", "two"], "doubled")], "doubled")
    below = graph("below", [node("Sub", ["added", "three"], "lowered")], "lowered")
    even = graph(
        "even",
        [
            node("Add", ["state_in", "one"], "added"),
            node("ReduceSum", ["added"], "sum", keepdims=0),
            node("Greater", ["sum", "zero"], "positive"),
            node("If", ["positive"], "evened", then_branch=above, else_branch=below),
        ],
        "evened",
    )
    odd = graph("odd", [node("Sub", ["state_in", "half"], "odded")], "odded")
    body = helper.make_graph(
        [
            node("Mod", ["turn", "modulus"], "rest"),
            node("Equal", ["rest", "first"], "is_even"),
            node("If", ["is_even"], "state_out", then_branch=even, else_branch=odd),
            node("Identity", ["going_in"], "going_out"),
        ],
        "turn",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_in", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("going_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_out", TensorProto.FLOAT, None),
        ],
    )
    nodes = [node("Squeeze", ["steps"], "trips"), node("Loop", ["trips", "going", "x"], "y", body=body)]
    numbers = {"one": 1, "two": 2, "three": 3, "zero": 0, "half": 0.5}
    weights = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in numbers.items()]
    whole = {"modulus": 2, "first": 0}
    weights += [numpy_helper.from_array(np.asarray(value, np.int64), name) for name, value in whole.items()]
    return nodes, [*weights, numpy_helper.from_array(np.asarray(True), "going")]
