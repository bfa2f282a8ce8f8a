"""Faults of ONNX Runtime at load: files, versions, graphs, rights."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.fault import Arena, Fault

ORT = "import onnxruntime as ort"


def saved(arena: Arena, model: Any) -> Path:
    """Save a model below the app's root and return its path."""
    from crashpath.coverage.tinymodels import save

    path = arena.path("models/{model}/{stem}.onnx")
    save(model, path)
    return path


def mlp_file(arena: Arena, **options: Any) -> Path:
    """Save a good model of two layers (or one that ``options`` spoil) and return its path."""
    from crashpath.coverage.tinymodels import mlp

    return saved(arena, mlp(arena.variation.width, arena.variation.other, **options))


def serve_session(arena: Arena, path: Path, *, as_nobody: bool = False) -> None:
    """Run an app that opens a session on ``path``, in one of the ways that apps do."""
    body = arena.rng.choice(
        (
            'return ort.InferenceSession(path, providers=["CPUExecutionProvider"])',
            "options = ort.SessionOptions()\noptions.log_severity_level = 2\n"
            "return ort.InferenceSession(path, options)",
            "options = ort.SessionOptions()\n"
            "options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
            'session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])\nreturn session',
        )
    )
    arena.serve(Code.of(body, ORT, path=path), as_nobody=as_nobody)


def _broken_file(arena: Arena) -> None:
    path = mlp_file(arena)
    arena.rng.choice(
        (
            lambda: truncate(path, arena.rng.uniform(0.2, 0.9)),
            lambda: write_garbage(path, 8192, arena.rng),
            lambda: write_lfs_pointer(path, arena.rng),
        )
    )()
    serve_session(arena, path)


def _file_missing(arena: Arena) -> None:
    path = mlp_file(arena)
    path.unlink()
    serve_session(arena, path)


def _file_forbidden(arena: Arena) -> None:
    path = mlp_file(arena)
    path.chmod(0)
    importlib.import_module("onnxruntime")
    serve_session(arena, path, as_nobody=True)


def _ir_version(arena: Arena) -> None:
    serve_session(arena, mlp_file(arena, ir_version=arena.rng.randint(20, 60)))


def _opset(arena: Arena) -> None:
    serve_session(arena, mlp_file(arena, opset=arena.rng.randint(40, 80)))


def _external_data(arena: Arena) -> None:
    from crashpath.coverage.tinymodels import mlp, save

    path = arena.path("models/{model}/{stem}.onnx")
    data = path.with_name(path.name + arena.rng.choice((".data", "_data", ".weights")))
    save(mlp(arena.variation.width, arena.variation.other), path, external=data.name)
    if arena.rng.random() < 0.6:
        data.unlink()
    else:
        truncate(data, 0.3)
    serve_session(arena, path)


def _graph_invalid(arena: Arena) -> None:
    import onnx

    model = onnx.load(mlp_file(arena))
    node = arena.rng.choice(list(model.graph.node)[1:])
    if arena.rng.random() < 0.7:
        node.input[0] = arena.rng.choice(("past_key_values.0.key", "encoder.hidden", "onnx::MatMul_1187"))
    else:
        model.graph.node[0].input[0] = "h3"
    serve_session(arena, saved(arena, model))


def _load_shapes(arena: Arena) -> None:
    from crashpath.coverage.tinymodels import constant, graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    operator, attributes = arena.rng.choice((("MatMul", {}), ("Gemm", {}), ("Concat", {"axis": 0}), ("Add", {})))
    name = f"/layers.{v.batch}/proj/{operator}"
    nodes = [make_node(operator, ["input", "w"], ["y"], name=name, **attributes)]
    weight = constant("w", v.width + v.other, v.width + v.other + 1)
    model = graph_model(nodes, [tensor("input", v.batch + 1, v.width)], [tensor("y", "a", "b")], initializer=[weight])
    serve_session(arena, saved(arena, model))


def _load_types(arena: Arena) -> None:
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    operator = arena.rng.choice(("Add", "Mul", "Sub", "Div", "MatMul"))
    other = arena.rng.choice((TensorProto.INT64, TensorProto.DOUBLE, TensorProto.FLOAT16))
    nodes = [make_node(operator, ["a", "b"], ["y"], name=f"/fuse/{operator}_{v.other}")]
    sides = [tensor("a", v.width, v.width), tensor("b", v.width, v.width, dtype=other)]
    serve_session(arena, saved(arena, graph_model(nodes, sides, [tensor("y", v.width, v.width)])))


FAULTS = (
    Fault("ort-broken-file", "load_corrupt", "load", "onnxruntime", "load a cut, random or pointer file", _broken_file),
    Fault("ort-file-missing", "load_corrupt", "load", "onnxruntime", "load a model that is not there", _file_missing),
    Fault("ort-file-forbidden", "permission_disk", "load", "onnxruntime", "load a model of mode 000", _file_forbidden),
    Fault("ort-ir-version", "load_corrupt", "load", "onnxruntime", "load a model of a later IR version", _ir_version),
    Fault("ort-opset", "load_corrupt", "load", "onnxruntime", "load a model of a later opset", _opset),
    Fault(
        "ort-external-data",
        "load_corrupt",
        "load",
        "onnxruntime",
        "load without (all of) its weights file",
        _external_data,
    ),
    Fault(
        "ort-graph-invalid",
        "load_corrupt",
        "load",
        "onnxruntime",
        "load a graph with a dangling edge or a cycle",
        _graph_invalid,
    ),
    Fault(
        "ort-load-shapes",
        "shape_inference",
        "load",
        "onnxruntime",
        "load a graph whose shapes do not fit",
        _load_shapes,
    ),
    Fault(
        "ort-load-types", "shape_inference", "load", "onnxruntime", "load a graph whose types do not fit", _load_types
    ),
)
