"""Faults of the onnx package: reading, checking, inferring shapes, converting, parsing, evaluating."""

from __future__ import annotations

from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.fault import Arena, Fault


def _saved(arena: Arena, model: object) -> Path:
    from crashpath.coverage.tinymodels import save

    path = arena.path("models/{model}/{stem}.onnx")
    save(model, path)
    return path


def _model(arena: Arena, **options: object) -> Path:
    from crashpath.coverage.tinymodels import mlp

    return _saved(arena, mlp(arena.variation.width, arena.variation.other, **options))


def _serve_check(arena: Arena, path: Path, full: bool = False) -> None:
    call = arena.rng.choice(("onnx.checker.check_model(model{})", "onnx.checker.check_model(path{})"))
    body = f"model = onnx.load(path)\n{call.format(', full_check=True' if full else '')}\nreturn model"
    arena.serve(Code.of(body, "import onnx", path=path))


def _broken_file(arena: Arena) -> None:
    path = _model(arena)
    arena.rng.choice(
        (
            lambda: truncate(path, arena.rng.uniform(0.2, 0.9)),
            lambda: write_garbage(path, 8192, arena.rng),
            lambda: write_lfs_pointer(path, arena.rng),
        )
    )()
    arena.serve(Code.of("model = onnx.load(path)\nreturn model.graph", "import onnx", path=path))


def _external_data_missing(arena: Arena) -> None:
    from crashpath.coverage.tinymodels import mlp, save

    path = arena.path("models/{model}/{stem}.onnx")
    data = path.with_name(path.name + arena.rng.choice((".data", "_data", ".weights")))
    save(mlp(arena.variation.width, arena.variation.other), path, external=data.name)
    if arena.rng.random() < 0.6:
        data.unlink()
    else:
        truncate(data, 0.4)
    arena.serve(Code.of("model = onnx.load(path)\nreturn model.graph", "import onnx", path=path))


def _checker_ir_version(arena: Arena) -> None:
    _serve_check(arena, _model(arena, ir_version=arena.rng.randint(40, 99)))


def _checker_graph(arena: Arena) -> None:
    import onnx
    from onnx.helper import make_attribute

    path = _model(arena)
    model = onnx.load(path)
    node = arena.rng.choice(list(model.graph.node))
    case = arena.rng.randrange(4)
    if case == 0:
        node.input[0] = arena.rng.choice(("hidden_states.17", "past_key_values.3.value", "onnx::Add_912"))
    elif case == 1:
        model.graph.ClearField("name")
    elif case == 2:
        node.attribute.extend([make_attribute("alpha_scale", 2.0)])
    else:
        node.output[0] = "input"
    _serve_check(arena, _saved(arena, model))


def _checker_operator(arena: Arena) -> None:
    import onnx

    path = _model(arena)
    model = onnx.load(path)
    node = arena.rng.choice(list(model.graph.node))
    node.op_type = arena.rng.choice(("FusedMatMul", "GroupedAttention", "RMSNormV2", "SwiGLU", "FlashDecode"))
    _serve_check(arena, _saved(arena, model))


def _shapes(arena: Arena) -> Path:
    from crashpath.coverage.tinymodels import constant, graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    second, attributes = arena.rng.choice((("MatMul", {}), ("Gemm", {}), ("Concat", {"axis": 0}), ("Add", {})))
    nodes = [make_node(second, ["input", "w"], ["y"], name=f"/blocks.{v.batch}/{second}", **attributes)]
    weight = constant("w", v.width + v.other, v.width + v.other + 1)
    return _saved(
        arena,
        graph_model(nodes, [tensor("input", v.batch + 1, v.width)], [tensor("y", "a", "b")], initializer=[weight]),
    )


def _strict_inference(arena: Arena) -> None:
    data_prop = arena.rng.choice((", data_prop=True", ""))
    arena.serve(
        Code.of(
            f"""
            model = onnx.load(path)
            inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True{data_prop})
            return inferred.graph.output
            """,
            "import onnx",
            path=_shapes(arena),
        )
    )


def _strict_types(arena: Arena) -> None:
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    operator = arena.rng.choice(("Add", "Mul", "Sub", "Div", "MatMul"))
    other = arena.rng.choice((TensorProto.INT64, TensorProto.DOUBLE, TensorProto.FLOAT16))
    nodes = [make_node(operator, ["a", "b"], ["y"], name=f"/fuse/{operator}")]
    sides = [tensor("a", v.width, v.width), tensor("b", v.width, v.width, dtype=other)]
    path = _saved(arena, graph_model(nodes, sides, [tensor("y", v.width, v.width)]))
    _serve_check(arena, path, full=True)


def _parser(arena: Arena) -> None:
    text = arena.rng.choice(
        (
            "main_graph (float[N, 4] x) => (float[N, 4] y) { y = Relu(x }",
            "main_graph (float[N 4] x) => (float[N, 4] y) { y = Relu(x) }",
            "main_graph (float[N, 4] x) => (half4[N] y) { y = Cast(x) }",
            "main_graph (float[N, 4] x) = (float[N, 4] y) { y = Relu(x) }",
        )
    )
    path = arena.path("models/{model}/{stem}.onnxtxt")
    path.write_text(f'<ir_version: 9, opset_import: ["" : 17]>\n{text}\n', encoding="utf-8")
    arena.serve(
        Code.of(
            'with open(path, encoding="utf-8") as file:\n    return onnx.parser.parse_model(file.read())',
            "import onnx.parser",
            path=path,
        )
    )


def _reference_operator(arena: Arena) -> None:
    import onnx

    v = arena.variation
    path = _model(arena, domains=("com.serving",))
    model = onnx.load(path)
    node = arena.rng.choice(list(model.graph.node))
    node.domain, node.op_type = "com.serving", arena.rng.choice(("FusedDense", "QuickGelu", "SkipNorm"))
    arena.serve(
        Code.of(
            """
            session = ReferenceEvaluator(path)
            return session.run(None, {"input": np.zeros((batch, width), dtype=np.float32)})
            """,
            "import numpy as np\nfrom onnx.reference import ReferenceEvaluator",
            path=_saved(arena, model),
            batch=v.batch,
            width=v.width,
        )
    )


def _conversion(arena: Arena) -> None:
    from crashpath.coverage.tinymodels import graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    operator, target = arena.rng.choice(
        (("GroupNormalization", 17), ("Mish", 15), ("LayerNormalization", 13), ("HardSwish", 12))
    )
    extra = (
        ["scale", "bias"] if operator == "GroupNormalization" else ["scale"] if operator == "LayerNormalization" else []
    )
    options = {"num_groups": 1} if operator == "GroupNormalization" else {}
    nodes = [make_node(operator, ["input", *extra], ["y"], name=f"/norm/{operator}", **options)]
    inputs = [tensor("input", "n", v.width, 4), *(tensor(name, v.width) for name in extra)]
    path = _saved(arena, graph_model(nodes, inputs, [tensor("y", "n", v.width, 4)], opset=19))
    arena.serve(
        Code.of(
            f"model = onnx.load(path)\nreturn version_converter.convert_version(model, {target})",
            "import onnx\nfrom onnx import version_converter",
            path=path,
        )
    )


FAULTS = (
    Fault("onnx-broken-file", "load_corrupt", "load", "onnx", "read a cut, random or pointer file", _broken_file),
    Fault(
        "onnx-external-data-missing",
        "load_corrupt",
        "load",
        "onnx",
        "read without its weights file",
        _external_data_missing,
    ),
    Fault(
        "onnx-ir-version", "load_corrupt", "load", "onnx", "check a model of a later IR version", _checker_ir_version
    ),
    Fault(
        "onnx-graph-invalid", "load_corrupt", "load", "onnx", "check a graph that is not well-formed", _checker_graph
    ),
    Fault("onnx-parser", "load_corrupt", "load", "onnx", "parse a text model with a syntax error", _parser),
    Fault(
        "onnx-operator-unknown",
        "unsupported_op",
        "load",
        "onnx",
        "check an operator nobody registered",
        _checker_operator,
    ),
    Fault(
        "onnx-reference-operator",
        "unsupported_op",
        "load",
        "onnx",
        "evaluate an operator without a reference",
        _reference_operator,
    ),
    Fault(
        "onnx-conversion",
        "unsupported_op",
        "load",
        "onnx",
        "convert an operator to an opset that lacks it",
        _conversion,
    ),
    Fault(
        "onnx-strict-shapes",
        "shape_inference",
        "load",
        "onnx",
        "infer shapes that do not fit, strictly",
        _strict_inference,
    ),
    Fault("onnx-strict-types", "shape_inference", "load", "onnx", "check operands of different types", _strict_types),
)
