"""Tiny models, built on the spot: an ONNX graph of two layers, and variations of it that cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 9


def graph_model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], **options: Any) -> Any:
    """Make a model of one graph. Options: ``initializer`` (tensors), ``opset``, ``ir_version``, ``domains``."""
    graph = helper.make_graph(nodes, "main_graph", inputs, outputs, initializer=options.get("initializer", ()))
    opsets = [helper.make_opsetid("", options.get("opset", OPSET))]
    opsets += [helper.make_opsetid(domain, 1) for domain in options.get("domains", ())]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=options.get("ir_version", IR_VERSION), producer_name="export"
    )


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attributes: Any) -> Any:
    """Make a node of the graph."""
    return helper.make_node(operator, inputs, outputs, name=name, **attributes)


def tensor(name: str, *shape: int | str, dtype: int = TensorProto.FLOAT) -> Any:
    """Declare an input or output; a text is a dimension that is free."""
    return helper.make_tensor_value_info(name, dtype, list(shape))


def constant(name: str, *shape: int, dtype: str = "float32") -> Any:
    """Make an initializer of ones."""
    return numpy_helper.from_array(np.ones(shape, dtype=dtype), name)


def mlp(width: int, other: int, **options: Any) -> Any:
    """Make two dense layers with a ReLU between: ``input`` (batch, width) to ``logits`` (batch, 2)."""
    nodes = [
        node("MatMul", ["input", "w1"], ["h1"], "/encoder/MatMul"),
        node("Add", ["h1", "b1"], ["h2"], "/encoder/Add"),
        node("Relu", ["h2"], ["h3"], "/encoder/act/Relu"),
        node("MatMul", ["h3", "w2"], ["logits"], "/head/MatMul"),
    ]
    weights = [constant("w1", width, other), constant("b1", other), constant("w2", other, 2)]
    return graph_model(
        nodes, [tensor("input", "batch", width)], [tensor("logits", "batch", 2)], initializer=weights, **options
    )


def save(model: Any, path: Any, *, external: str | None = None) -> None:
    """Write the model, with its weights in the file ``external`` beside it where that is given."""
    if external is None:
        onnx.save(model, str(path))
        return
    onnx.save_model(
        model, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=external, size_threshold=0
    )
