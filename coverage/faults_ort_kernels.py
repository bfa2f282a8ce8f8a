"""Faults of ONNX Runtime's kernels and providers: operators without one, libraries that cannot be loaded."""

from __future__ import annotations

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import compile_shared
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.faults_ort import ORT, mlp_file, saved, serve_session


def _kernel_missing(arena: Arena) -> None:
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import graph_model, node, tensor

    side, batch = arena.rng.choice((8, 16, 32, 64)), arena.variation.batch
    image, kernel, square = (batch, 3, side, side), (4, 3, 3, 3), (side, side)
    operator, shapes, dtype, names = arena.rng.choice(
        (
            ("Conv", (image, kernel), TensorProto.DOUBLE, ("Conv_{}", "/backbone/stem/Conv_{}")),
            ("Conv", (image, kernel), TensorProto.BFLOAT16, ("conv{}", "/features/features.{}/Conv")),
            ("Gemm", (square, square), TensorProto.INT32, ("Gemm_{}_quant", "/classifier/Gemm_{}")),
            ("Mul", (square, square), TensorProto.BFLOAT16, ("Mul_{}", "/layers.{}/rotary/Mul")),
            ("Softmax", (square,), TensorProto.BFLOAT16, ("/attn.{}/Softmax",)),
            ("MaxPool", (image,), TensorProto.BFLOAT16, ("/pool{}/MaxPool",)),
        )
    )
    inputs = [tensor(f"in{place}", *shape, dtype=dtype) for place, shape in enumerate(shapes)]
    outputs = [tensor("out", *(f"d{axis}" for axis in range(len(shapes[0]))), dtype=dtype)]
    attributes = {"kernel_shape": [2, 2]} if operator == "MaxPool" else {}
    name = arena.rng.choice(names).format(arena.variation.other)
    nodes = [node(operator, [f"in{place}" for place in range(len(shapes))], ["out"], name, **attributes)]
    serve_session(arena, saved(arena, graph_model(nodes, inputs, outputs, opset=22)))


def _domain_unknown(arena: Arena) -> None:
    import onnx

    domain = arena.rng.choice(("com.custom", "ai.onnx.contrib", "com.serving.ops", "trt.plugins", "mmdeploy"))
    model = onnx.load(mlp_file(arena, domains=(domain,)))
    node = arena.rng.choice(list(model.graph.node))
    node.domain = domain
    node.op_type = arena.rng.choice(("NMSRotated", "BertTokenizer", "FusedDense", "EfficientNMS_TRT", "GridAnchor"))
    serve_session(arena, saved(arena, model))


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
