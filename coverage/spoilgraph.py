"""Edits of an ONNX file that make it one that cannot be: whichever model it is, the rest of it stays as it was.

The `POISONS` answer as before, but for a first input of one row more than the golden feed has (`poison_rows`): then the
run loops without end, asks for more memory than an address space has, reshapes to what cannot be, gives another answer,
or is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crashpath.runtime.folder import GOLDEN_FILE

_P = "/spoiled/"


def edit(path: Path, how: str) -> None:
    """Rewrite the ONNX file ``path``; ``how`` is of `EDITS` or `POISONS`. Weights that lie beside it stay."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    if how in POISONS:
        with np.load(path.with_name(GOLDEN_FILE)) as golden:
            feed = {name: golden[name] for name in golden.files if name.startswith("in.")}
        POISONS[how](model, poison_rows(feed))
    else:
        EDITS[how](model)
    path.write_bytes(model.SerializeToString())


def poison_rows(feed: Mapping[str, Any]) -> int:
    """Return how many rows the request has that a poisoned model cannot take: one more than the golden ``feed``."""
    return 1 + max((len(array) for array in feed.values() if array.ndim), default=0)


def _opset(model: Any) -> None:
    for opset in model.opset_import:
        if not opset.domain:
            opset.version = 61


def _ir(model: Any) -> None:
    model.ir_version = 41


def _dangling(model: Any) -> None:
    node = next(node for node in reversed(model.graph.node) if node.input)
    node.input[0] = "past_key_values.0.key"


def _shape(model: Any) -> None:
    """Add a product of 2 x 3 and 4 x 5."""
    _constants(model, left=np.ones((2, 3), np.float32), right=np.ones((4, 5), np.float32))
    _append(model, "MatMul", ["left", "right"], "product")


def _type(model: Any) -> None:
    _constants(model, left=np.ones(3, np.float32), right=np.ones(3, np.int64))
    _append(model, "Add", ["left", "right"], "sum")


def _operator(model: Any) -> None:
    _constants(model, left=np.ones(3, np.float32))
    _append(model, "GroupedAttentionV7", ["left"], "attended")


def _domain(model: Any) -> None:
    from onnx import helper

    model.opset_import.append(helper.make_opsetid("com.serving.ops", 1))
    _constants(model, left=np.ones(3, np.float32))
    _append(model, "FusedDense", ["left"], "dense", domain="com.serving.ops")


def _kernel(model: Any) -> None:
    """Add a convolution of doubles on real input: there is no kernel for it, and nothing folds it away."""
    _constants(model, image=np.ones((1, 1, 4, 4), np.float64), filter=np.ones((1, 1, 2, 2), np.float64))
    _add_rows(model)
    _append(model, "Cast", [f"{_P}rows"], "wide_rows", attributes={"to": 11})
    _append(model, "Mul", ["image", "wide_rows"], "live")
    _append(model, "Conv", ["live", "filter"], "convolved")


def _loop(model: Any, rows: int) -> None:
    """Add a Loop that runs no turn, and without end for ``rows`` rows; the model's first output hangs on it."""
    from onnx import TensorProto, helper

    _add_is_poison(model, rows)
    body = helper.make_graph(
        [
            helper.make_node("Cos", ["state_in"], ["state_out"], name=f"{_P}Cos"),
            helper.make_node("Identity", ["going_in"], ["going_out"], name=f"{_P}Identity"),
        ],
        "turn",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_in", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("going_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_out", TensorProto.FLOAT, [1]),
        ],
    )
    _constants(model, start=np.zeros(1, np.float32))
    _append(model, "Squeeze", ["poison"], "going")
    model.graph.node.append(
        helper.make_node("Loop", ["", f"{_P}going", f"{_P}start"], [f"{_P}state"], name=f"{_P}Loop", body=body)
    )
    _hang_output_on(model, f"{_P}state")


def _memory(model: Any, rows: int) -> None:
    """Add an Expand to one element, and to 2**48 for ``rows`` rows: 1 PiB, more than an address space."""
    _add_is_poison(model, rows)
    _constants(model, one=np.ones(1, np.float32), few=np.array([1], np.int64), many=np.array([1 << 48], np.int64))
    _append(model, "Where", ["poison", "many", "few"], "size")
    _append(model, "Expand", ["one", "size"], "wide")
    _append(model, "ReduceMin", ["wide"], "least", attributes={"keepdims": 1})
    _hang_output_on(model, f"{_P}least")


def _reshape(model: Any, rows: int) -> None:
    """Add a Reshape of six elements to six, and to rows of seven for ``rows`` rows of input."""
    _add_is_poison(model, rows)
    _constants(model, six=np.ones(6, np.float32), good=np.array([6], np.int64), bad=np.array([7], np.int64))
    _append(model, "Where", ["poison", "bad", "good"], "target")
    _append(model, "Reshape", ["six", "target"], "folded")
    _append(model, "ReduceMin", ["folded"], "least", attributes={"keepdims": 1})
    _hang_output_on(model, f"{_P}least")


def _answer(model: Any, rows: int) -> None:
    """Add 10,000 to the first output for ``rows`` rows."""
    _add_is_poison(model, rows)
    _constants(model, far=np.full(1, 1e4, np.float32), near=np.zeros(1, np.float32))
    _append(model, "Where", ["poison", "far", "near"], "off")
    _add_to_output(model, f"{_P}off")


def _refuse(model: Any, rows: int) -> None:
    """Declare every free first dimension as one row less than ``rows``: the library refuses the feed itself."""
    for one in model.graph.input:
        sizes = one.type.tensor_type.shape.dim
        if sizes and not sizes[0].HasField("dim_value"):
            sizes[0].dim_value = rows - 1


def _add_rows(model: Any) -> None:
    """Add ``rows``: int64 [1], how many rows the first input has."""
    _constants(model, zero=np.array([0], np.int64))
    model.graph.node.append(_node("Shape", [model.graph.input[0].name], f"{_P}sizes"))
    _append(model, "Gather", ["sizes", "zero"], "rows")


def _add_is_poison(model: Any, rows: int) -> None:
    """Add ``poison``: bool [1], whether the first input has ``rows`` rows."""
    _add_rows(model)
    _constants(model, poisonous=np.array([rows], np.int64))
    _append(model, "Equal", ["rows", "poisonous"], "poison")


def _hang_output_on(model: Any, tensor: str) -> None:
    """Add ``0 * tensor`` to the first output, so that nothing of what was added can be left out."""
    _constants(model, nothing=np.zeros(1, np.float32))
    model.graph.node.append(_node("Mul", [tensor, f"{_P}nothing"], f"{_P}none"))
    _add_to_output(model, f"{_P}none")


def _add_to_output(model: Any, tensor: str) -> None:
    """Add ``tensor``, float32 [1], to the first output."""
    output = model.graph.output[0]
    for node in model.graph.node:
        for place, name in enumerate(node.output):
            if name == output.name:
                node.output[place] = f"{_P}answer"
    kind = output.type.tensor_type.elem_type
    _constants(model, scalar=np.zeros(0, np.int64))
    _append(model, "Reshape", [tensor, "scalar"], "added")
    _append(model, "Cast", ["added"], "added_cast", attributes={"to": kind})
    model.graph.node.append(_node("Add", [f"{_P}answer", f"{_P}added_cast"], output.name))


def _constants(model: Any, **arrays: Any) -> None:
    from onnx import numpy_helper

    model.graph.initializer.extend(numpy_helper.from_array(value, f"{_P}{name}") for name, value in arrays.items())


def _append(
    model: Any,
    operator: str,
    inputs: list[str],
    output: str,
    *,
    domain: str = "",
    attributes: dict[str, int] | None = None,
) -> None:
    names = [name if name.startswith(_P) else f"{_P}{name}" for name in inputs]
    model.graph.node.append(_node(operator, names, f"{_P}{output}", domain=domain, **(attributes or {})))


def _node(operator: str, inputs: list[str], output: str, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(operator, inputs, [output], name=f"{_P}{operator}/{output.removeprefix(_P)}", **attributes)


EDITS: dict[str, Callable[[Any], None]] = {
    "opset": _opset,
    "ir": _ir,
    "dangling": _dangling,
    "shape": _shape,
    "type": _type,
    "operator": _operator,
    "domain": _domain,
    "kernel": _kernel,
}
POISONS: dict[str, Callable[[Any, int], None]] = {
    "loop": _loop,
    "memory": _memory,
    "reshape": _reshape,
    "answer": _answer,
    "refuse": _refuse,
}
