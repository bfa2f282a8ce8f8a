"""The files that strikes are given: graphs that cannot work, a script without end, libraries that do not load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crashpath.coverage.breakage import compile_shared, truncate


def loop(path: Path) -> None:
    """Write a graph whose Loop takes longer than anybody lives: ``input`` float32 [8, 8]."""
    from onnx import TensorProto, helper

    from crashpath.coverage.tinymodels import constant, tensor

    body = helper.make_graph(
        [
            _node("MatMul", ["state_in", "w"], ["mixed"]),
            _node("Tanh", ["mixed"], ["state_out"]),
            _node("Identity", ["going_in"], ["going_out"]),
        ],
        "decode",
        [
            tensor("step", dtype=TensorProto.INT64),
            tensor("going_in", dtype=TensorProto.BOOL),
            tensor("state_in", 8, 8),
        ],
        [tensor("going_out", dtype=TensorProto.BOOL), tensor("state_out", 8, 8)],
    )
    nodes = [_node("Loop", ["", "going", "input"], ["y"], body=body)]
    weights = [constant("w", 8, 8), constant("going", dtype="bool")]
    _write(path, nodes, [tensor("input", 8, 8)], [tensor("y", 8, 8)], weights)


def expand(path: Path) -> None:
    """Write a graph that takes as much memory as it is told: ``shape`` int64 [2]."""
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import constant, tensor

    nodes = [_node("Expand", ["one", "shape"], ["wide"]), _node("ReduceSum", ["wide"], ["y"], keepdims=0)]
    _write(path, nodes, [tensor("shape", 2, dtype=TensorProto.INT64)], [tensor("y")], [constant("one", 1, 1)])


def run_shapes(path: Path) -> None:
    """Write a graph that loads, and whose product of a square of two with its own reshape to four rows never fits."""
    import numpy as np
    from onnx import numpy_helper

    from crashpath.coverage.tinymodels import tensor

    target = numpy_helper.from_array(np.array([4, -1], dtype=np.int64), "target")
    nodes = [_node("Reshape", ["a", "target"], ["folded"]), _node("MatMul", ["a", "folded"], ["y"])]
    _write(path, nodes, [tensor("a", "n", "w")], [tensor("y", "p", "q")], [target])


def load_shapes(path: Path) -> None:
    """Write a graph whose shapes cannot be, as shape inference sees at load."""
    from crashpath.coverage.tinymodels import constant, tensor

    nodes = [_node("MatMul", ["a", "w"], ["y"])]
    _write(path, nodes, [tensor("a", 2, 3)], [tensor("y", "p", "q")], [constant("w", 4, 5)])


def torn(path: Path) -> None:
    """Write the first half of a graph, as a download that was cut off leaves it."""
    load_shapes(path)
    truncate(path, 0.5)


def fixed_shapes(path: Path) -> None:
    """Write a graph that takes squares of four and no others."""
    from crashpath.coverage.tinymodels import tensor

    _write(path, [_node("Relu", ["a"], ["y"])], [tensor("a", 4, 4)], [tensor("y", 4, 4)])


def load_types(path: Path) -> None:
    """Write a graph that adds two types, as type inference sees at load."""
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import tensor

    sides = [tensor("a", 4, 4), tensor("b", 4, 4, dtype=TensorProto.INT64)]
    _write(path, [_node("Add", ["a", "b"], ["y"])], sides, [tensor("y", 4, 4)])


def kernel_missing(path: Path) -> None:
    """Write a graph of an operator that the CPU has no kernel for in that type."""
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import tensor

    sides = [
        tensor("image", 1, 3, 8, 8, dtype=TensorProto.BFLOAT16),
        tensor("kernel", 4, 3, 3, 3, dtype=TensorProto.BFLOAT16),
    ]
    outputs = [tensor("y", "a", "b", "c", "d", dtype=TensorProto.BFLOAT16)]
    _write(path, [_node("Conv", ["image", "kernel"], ["y"])], sides, outputs, opset=22)


def domain_unknown(path: Path) -> None:
    """Write a graph with an operator of a domain that nobody registered."""
    from crashpath.coverage.tinymodels import tensor

    nodes = [_node("GroupedAttention", ["a"], ["y"], domain="com.serving.ops")]
    _write(path, nodes, [tensor("a", 4, 4)], [tensor("y", 4, 4)], domains=("com.serving.ops",))


def library_unlinked(path: Path) -> None:
    """Compile a library that needs a symbol which no version of its neighbours has."""
    compile_shared("int fused_kernel_v2(int);\nint run(void) { return fused_kernel_v2(1); }\n", path)


def provider_unlinked(path: Path) -> None:
    """Compile a provider library against a vendor library that is gone when it is loaded."""
    stub = path.with_name("libcublasLt.so.12")
    compile_shared("int vendor_init(void) { return 0; }\n", stub, "-Wl,-soname,libcublasLt.so.12")
    source = "int vendor_init(void);\nint CreateEpFactories(void) { return vendor_init(); }\n"
    compile_shared(source, path, f"-L{stub.parent}", "-l:libcublasLt.so.12")
    stub.unlink()


def closed_file(path: Path) -> None:
    """Write a file of mode 000."""
    path.write_bytes(b"calibration table\n")
    path.chmod(0)


FILES: dict[str, Callable[[Path], None]] = {
    "loop": loop,
    "expand": expand,
    "run_shapes": run_shapes,
    "load_shapes": load_shapes,
    "torn": torn,
    "fixed_shapes": fixed_shapes,
    "load_types": load_types,
    "kernel_missing": kernel_missing,
    "domain_unknown": domain_unknown,
    "library_unlinked": library_unlinked,
    "provider_unlinked": provider_unlinked,
    "closed_file": closed_file,
}
"""By the name that an argument says in braces: ``{loop}|5`` is the file of `loop`, then ``|5``."""


def _node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    from crashpath.coverage.tinymodels import node

    return node(operator, inputs, outputs, f"/decode/{operator}", **attributes)


def _write(
    path: Path,
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    weights: list[Any] | None = None,
    **options: Any,
) -> None:
    from crashpath.coverage.tinymodels import graph_model, save

    save(graph_model(nodes, inputs, outputs, initializer=weights or [], **options), path)
