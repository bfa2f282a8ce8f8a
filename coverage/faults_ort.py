"""Faults of ONNX Runtime at load: files, versions, graphs, kernels, providers, rights."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import compile_shared, truncate, write_garbage, write_lfs_pointer
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


def _serve_session(arena: Arena, path: Path, *, as_nobody: bool = False) -> None:
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
    _serve_session(arena, path)


def _file_missing(arena: Arena) -> None:
    path = mlp_file(arena)
    path.unlink()
    _serve_session(arena, path)


def _file_forbidden(arena: Arena) -> None:
    path = mlp_file(arena)
    path.chmod(0)
    importlib.import_module("onnxruntime")
    _serve_session(arena, path, as_nobody=True)


def _cache_forbidden(arena: Arena) -> None:
    path = mlp_file(arena)
    target = arena.path("cache/{model}/optimized.onnx")
    target.parent.chmod(0o555)
    importlib.import_module("onnxruntime")
    arena.serve(
        Code.of(
            """
            options = ort.SessionOptions()
            options.optimized_model_filepath = optimized
            return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            """,
            ORT,
            path=path,
            optimized=target,
        ),
        as_nobody=True,
    )


def _ir_version(arena: Arena) -> None:
    _serve_session(arena, mlp_file(arena, ir_version=arena.rng.randint(20, 60)))


def _opset(arena: Arena) -> None:
    _serve_session(arena, mlp_file(arena, opset=arena.rng.randint(40, 80)))


def _external_data(arena: Arena) -> None:
    from crashpath.coverage.tinymodels import mlp, save

    path = arena.path("models/{model}/{stem}.onnx")
    data = path.with_name(path.name + arena.rng.choice((".data", "_data", ".weights")))
    save(mlp(arena.variation.width, arena.variation.other), path, external=data.name)
    if arena.rng.random() < 0.6:
        data.unlink()
    else:
        truncate(data, 0.3)
    _serve_session(arena, path)


def _graph_invalid(arena: Arena) -> None:
    import onnx

    model = onnx.load(mlp_file(arena))
    node = arena.rng.choice(list(model.graph.node)[1:])
    if arena.rng.random() < 0.7:
        node.input[0] = arena.rng.choice(("past_key_values.0.key", "encoder.hidden", "onnx::MatMul_1187"))
    else:
        model.graph.node[0].input[0] = "h3"
    _serve_session(arena, saved(arena, model))


def _load_shapes(arena: Arena) -> None:
    from onnx import helper

    from crashpath.coverage.tinymodels import constant, graph_model, tensor

    v = arena.variation
    operator, attributes = arena.rng.choice((("MatMul", {}), ("Gemm", {}), ("Concat", {"axis": 0}), ("Add", {})))
    name = f"/layers.{v.batch}/proj/{operator}"
    nodes = [helper.make_node(operator, ["input", "w"], ["y"], name=name, **attributes)]
    weight = constant("w", v.width + v.other, v.width + v.other + 1)
    model = graph_model(nodes, [tensor("input", v.batch + 1, v.width)], [tensor("y", "a", "b")], initializer=[weight])
    _serve_session(arena, saved(arena, model))


def _load_types(arena: Arena) -> None:
    from onnx import TensorProto, helper

    from crashpath.coverage.tinymodels import graph_model, tensor

    v = arena.variation
    operator = arena.rng.choice(("Add", "Mul", "Sub", "Div", "MatMul"))
    other = arena.rng.choice((TensorProto.INT64, TensorProto.DOUBLE, TensorProto.FLOAT16))
    nodes = [helper.make_node(operator, ["a", "b"], ["y"], name=f"/fuse/{operator}_{v.other}")]
    sides = [tensor("a", v.width, v.width), tensor("b", v.width, v.width, dtype=other)]
    _serve_session(arena, saved(arena, graph_model(nodes, sides, [tensor("y", v.width, v.width)])))


def _kernel_missing(arena: Arena) -> None:
    from onnx import TensorProto, helper

    from crashpath.coverage.tinymodels import graph_model, tensor

    side, half = arena.rng.choice((8, 16, 32)), TensorProto.FLOAT16
    name = f"{arena.rng.choice(('Conv', '/backbone/stem', '/features'))}_{arena.variation.other}"
    cases = (
        (
            [helper.make_node("ConvInteger", ["a", "b"], ["y"], name=f"{name}_quant")],
            [tensor("a", 1, 3, side, side, dtype=TensorProto.INT8), tensor("b", 4, 3, 3, 3, dtype=TensorProto.INT8)],
            TensorProto.INT32,
        ),
        ([helper.make_node("Det", ["a"], ["y"], name=f"{name}_det")], [tensor("a", 2, side, side, dtype=half)], half),
        (
            [helper.make_node("GridSample", ["a", "b"], ["y"], name=f"{name}_grid")],
            [tensor("a", 1, 3, side, side, dtype=TensorProto.INT64), tensor("b", 1, side, side, 2)],
            TensorProto.INT64,
        ),
        (
            [helper.make_node("Softmax", ["a"], ["y"], name=f"{name}_softmax")],
            [tensor("a", side, side, dtype=TensorProto.BFLOAT16)],
            TensorProto.BFLOAT16,
        ),
        (
            [helper.make_node("BitShift", ["a", "b"], ["y"], name=f"{name}_shift", direction="LEFT")],
            [tensor("a", side, dtype=TensorProto.UINT16), tensor("b", side, dtype=TensorProto.UINT16)],
            TensorProto.UINT16,
        ),
    )
    nodes, inputs, dtype = arena.rng.choice(cases)
    shape = tuple(f"d{axis}" for axis in range(len(inputs[0].type.tensor_type.shape.dim)))
    outputs = [tensor("y", *(shape if nodes[0].op_type != "Det" else ("d0",)), dtype=dtype)]
    _serve_session(arena, saved(arena, graph_model(nodes, inputs, outputs)))


def _domain_unknown(arena: Arena) -> None:
    import onnx

    domain = arena.rng.choice(("com.custom", "ai.onnx.contrib", "com.serving.ops", "trt.plugins", "mmdeploy"))
    model = onnx.load(mlp_file(arena, domains=(domain,)))
    node = arena.rng.choice(list(model.graph.node))
    node.domain = domain
    node.op_type = arena.rng.choice(("NMSRotated", "BertTokenizer", "FusedDense", "EfficientNMS_TRT", "GridAnchor"))
    _serve_session(arena, saved(arena, model))


def _custom_ops_library(arena: Arena) -> None:
    library = arena.path("lib/libortcustomops_{stem}.so")
    if arena.rng.random() < 0.5:
        compile_shared("int unrelated(void) { return 1; }\n", library)  # it lacks the entry point
    arena.serve(
        Code.of(
            """
            options = ort.SessionOptions()
            options.register_custom_ops_library(library)
            return ort.InferenceSession(path, options)
            """,
            ORT,
            path=mlp_file(arena),
            library=library,
        )
    )


def _provider_library(arena: Arena) -> None:
    """Link a provider library against a vendor library that is gone when it is loaded, as on a host without CUDA."""
    provider, vendor = arena.rng.choice(
        (
            ("cuda", "libcublasLt.so.12"),
            ("cuda", "libcudnn.so.9"),
            ("cuda", "libcufft.so.11"),
            ("tensorrt", "libnvinfer.so.10"),
            ("qnn", "libQnnHtp.so"),
            ("rocm", "libamdhip64.so.6"),
        )
    )
    stub = arena.path(f"vendor/{vendor}")
    compile_shared("int vendor_init(void) { return 0; }\n", stub, f"-Wl,-soname,{vendor}")
    library = arena.path(f"providers/libonnxruntime_providers_{provider}.so")
    source = "int vendor_init(void);\nint CreateEpFactories(void) { return vendor_init(); }\n"
    compile_shared(source, library, f"-L{stub.parent}", f"-l:{vendor}")
    stub.unlink()
    arena.serve(
        Code.of(
            f"""
            ort.register_execution_provider_library("{provider}", library)
            return ort.InferenceSession(path, providers=["{provider.upper()}ExecutionProvider"])
            """,
            ORT,
            path=mlp_file(arena),
            library=library,
        )
    )


FAULTS = (
    Fault("ort-broken-file", "load_corrupt", "load", "onnxruntime", "load a cut, random or pointer file", _broken_file),
    Fault("ort-file-missing", "load_corrupt", "load", "onnxruntime", "load a model that is not there", _file_missing),
    Fault("ort-file-forbidden", "permission_disk", "load", "onnxruntime", "load a model of mode 000", _file_forbidden),
    Fault(
        "ort-cache-forbidden",
        "permission_disk",
        "load",
        "onnxruntime",
        "write the optimised model to a closed folder",
        _cache_forbidden,
    ),
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
    Fault(
        "ort-kernel-missing",
        "unsupported_op",
        "load",
        "onnxruntime",
        "load an operator without a kernel for the type",
        _kernel_missing,
    ),
    Fault(
        "ort-domain-unknown",
        "unsupported_op",
        "load",
        "onnxruntime",
        "load an operator of an unknown domain",
        _domain_unknown,
    ),
    Fault(
        "ort-custom-ops-library",
        "dependency",
        "load",
        "onnxruntime",
        "register a custom operator library that is no such",
        _custom_ops_library,
        ("gcc",),
    ),
    Fault(
        "ort-provider-library",
        "device_init",
        "load",
        "onnxruntime",
        "register a provider whose vendor library is absent",
        _provider_library,
        ("linux", "gcc"),
    ),
)
