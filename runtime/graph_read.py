"""Read an ONNX graph without its weights: versions, operators, files beside it, and what its activations take.

Runs in a child: a graph is what somebody else wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from crashpath.runtime.graph_facts import GraphFacts, Piece, Weight
from crashpath.runtime.live import ORT, TORCH, Step, live

_LARGE = 1 << 12
_NEWEST_TRIED = 40
"""How far above what every ONNX Runtime since 1.12 loads the newest version is looked for."""
Shape = tuple[int, ...]


def read_graph(path: Path, feed: Mapping[str, Shape]) -> GraphFacts:
    """Read the graph; ``feed`` gives the shapes for which activations are added up. Raises what onnx raises."""
    model = onnx.load(str(path), load_external_data=False)
    graph = model.graph
    if not graph.node:
        raise ValueError(f"{path.name} has no nodes: it is empty, or no ONNX graph")
    opset = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=0)
    stored = {one.name for one in graph.initializer}
    sizes, unsized, wrong = _sizes(model, feed)
    steps = _steps(model)
    kept = tuple(one.name for one in graph.output)
    main, fallback = (live(steps, sizes, kept, habits) for habits in (ORT, TORCH))
    return GraphFacts(
        ir=model.ir_version,
        newest_ir=_newest(lambda version: _identity(13, version), 8),
        opset=opset,
        newest_opset=_newest(lambda version: _identity(version, 8), 13),
        inputs=tuple(one.name for one in graph.input if one.name not in stored),
        outputs=kept,
        nodes=len(graph.node),
        unknown=_unknown(model),
        shapes=wrong,
        weights=_weights(model),
        pieces=_pieces(model),
        live_main=main.most,
        live_fallback=fallback.most,
        made_fallback=fallback.all,
        largest=max((sizes.get(name, 0) for step in steps for name in step.outputs), default=0),
        feed=sum(sizes.get(name, 0) for name in feed),
        unsized=unsized,
    )


def _weights(model: Any) -> tuple[Weight, ...]:
    user: dict[str, Any] = {}
    for node in model.graph.node:
        for name in node.input:
            user.setdefault(name, node)
    found = []
    for one in model.graph.initializer:
        node = user.get(one.name)
        operator = node.op_type if node is not None else ""
        blocked = operator == "Conv" and len(one.dims) == 4
        found.append(Weight(_bytes(one.dims, one.data_type), operator, bool(one.external_data), blocked))
    for node in model.graph.node:
        if node.op_type == "Constant":
            found += [
                Weight(_bytes(one.t.dims, one.t.data_type), "Constant", False, False)
                for one in node.attribute
                if one.name == "value"
            ]
    return tuple(one for one in found if one.size > _LARGE) + _small(found)


def _small(found: Sequence[Weight]) -> tuple[Weight, ...]:
    """All small ones as one, so that what goes over the pipe stays small."""
    total = sum(one.size for one in found if one.size <= _LARGE)
    return (Weight(total, "", False, False),) if total else ()


def _pieces(model: Any) -> tuple[Piece, ...]:
    ends: dict[str, int] = {}
    for one in model.graph.initializer:
        told = {entry.key: entry.value for entry in one.external_data}
        if "location" not in told:
            continue
        length = int(told.get("length") or _bytes(one.dims, one.data_type))
        ends[told["location"]] = max(ends.get(told["location"], 0), int(told.get("offset") or 0) + length)
    return tuple(Piece(file, end) for file, end in sorted(ends.items()))


def _unknown(model: Any) -> tuple[str, ...]:
    """Operators for which the installed ONNX Runtime has no schema at the graph's opsets."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    schemas: Any = getattr(state, "get_all_operator_schema", tuple)()
    if not schemas:
        return ()
    first: dict[tuple[str, str], int] = {}
    for schema in schemas:
        key = (schema.domain, schema.name)
        first[key] = min(first.get(key, schema.since_version), schema.since_version)
    opsets = {_domain(one.domain): one.version for one in model.opset_import}
    local = {(one.domain, one.name) for one in model.functions}
    found = set()
    for node in _nodes(model.graph):
        domain = _domain(node.domain)
        since = first.get((domain, node.op_type))
        known = since is not None and since <= opsets.get(domain, 0)
        if not known and (node.domain, node.op_type) not in local:
            found.add(f"{domain}:{node.op_type}" if domain else node.op_type)
    return tuple(sorted(found))


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _nodes(graph: Any) -> list[Any]:
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            for one in inner:
                found += _nodes(one)
    return found


def _sizes(model: Any, feed: Mapping[str, Shape]) -> tuple[dict[str, int], int, str]:
    """Bytes of each activation for the feed, how many could not be told, and what inference said was wrong."""
    bare = onnx.ModelProto()
    bare.CopyFrom(_without_weights(model))
    for one in bare.graph.input:
        if (shape := feed.get(one.name)) is not None and len(shape) == len(one.type.tensor_type.shape.dim):
            for dimension, size in zip(one.type.tensor_type.shape.dim, shape, strict=True):
                dimension.dim_value = size
    for one in bare.graph.output:
        one.type.tensor_type.ClearField("shape")  # its free dimensions would contradict the fixed feed
    wrong = ""
    try:
        bare = onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        wrong = " ".join(str(error).split())[:300]
    sizes: dict[str, int] = {}
    for value in (*bare.graph.value_info, *bare.graph.input, *bare.graph.output):
        tensor = value.type.tensor_type
        dims = tensor.shape.dim
        if tensor.HasField("shape") and all(one.HasField("dim_value") for one in dims):
            sizes[value.name] = _bytes([one.dim_value for one in dims], tensor.elem_type)
    made = [name for node in bare.graph.node if node.op_type != "Constant" for name in node.output if name]
    return sizes, sum(name not in sizes for name in made), wrong


def _without_weights(model: Any) -> Any:
    """The graph with large weights as inputs: inference needs their shapes, not their values."""
    bare = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            getattr(bare, field.name).MergeFrom(value) if field.is_repeated else setattr(bare, field.name, value)
    graph = bare.graph
    graph.name = model.graph.name or "graph"
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    named = {one.name for one in graph.input}
    for one in model.graph.initializer:
        if _bytes(one.dims, one.data_type) <= _LARGE and not one.external_data:
            graph.initializer.append(one)
        elif one.name not in named:
            graph.input.append(helper.make_tensor_value_info(one.name, one.data_type, list(one.dims)))
    return bare


def _steps(model: Any) -> tuple[Step, ...]:
    steps = []
    for node in model.graph.node:
        if node.op_type == "Constant":
            continue
        kernel = next((tuple(one.ints) for one in node.attribute if one.name == "kernel_shape"), ())
        scratch = node.op_type == "Conv" and any(size > 1 for size in kernel)
        steps.append(Step(node.op_type, tuple(node.input), tuple(node.output), scratch))
    return tuple(steps)


def _bytes(dims: Sequence[int], kind: int) -> int:
    count = 1
    for size in dims:
        count *= max(0, int(size))
    if kind in (TensorProto.UNDEFINED, TensorProto.STRING):
        return count
    return int(count * helper.tensor_dtype_to_np_dtype(kind).itemsize)


def _newest(make: Any, known: int) -> int:
    """Return the newest version for which a graph of one node loads: tried, not looked up."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    newest = known
    for version in range(known, known + _NEWEST_TRIED):
        try:
            ort.InferenceSession(make(version), providers=["CPUExecutionProvider"])
        except Exception:  # noqa: BLE001  whatever it says: this version does not load
            break
        newest = version
    return newest


def _identity(opset: int, ir: int) -> bytes:
    one = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "t", one[:1], one[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    return bytes(made.SerializeToString())
