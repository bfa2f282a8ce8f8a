"""Checks of the ONNX graph, read by a child without its weights: versions, operators, shapes, files beside it."""

from __future__ import annotations

from pathlib import Path

from crashpath.runtime.finding import Check, Result, fail, ok
from crashpath.runtime.folder import MAIN_FILE
from crashpath.runtime.folder_read import FILE, kind_of
from crashpath.runtime.look import Look
from crashpath.runtime.probe_child import GRAPH
from crashpath.runtime.wording import many, size

_NEEDS = ("folder.spec", "files.readable", "files.content", "main.file")


def parses(look: Look) -> Result:
    """The graph can be read at all."""
    found = look.probe(GRAPH)
    if found.graph is not None:
        return ok(f"{many(found.graph.nodes, 'node')}, read by onnx {found.version}")
    return fail(
        f"{MAIN_FILE} is cut short or no ONNX graph ({found.message})", f"Copy {MAIN_FILE} again, or: {look.export}"
    )


def external(look: Look) -> Result:
    """Files with weights beside the graph are there and long enough."""
    pieces = look.graph().pieces
    for piece in pieces:
        path = look.model.path / piece.file
        if ".." in Path(piece.file).parts or Path(piece.file).is_absolute():
            return fail(f"weights in {piece.file}, outside the folder", "Export again with weights beside the graph.")
        if kind_of(path) != FILE:
            return fail(f"weights are in {piece.file}, which is not there", f"Copy {piece.file} into {look.path}.")
        if (there := path.stat().st_size) < piece.end:
            return fail(f"{piece.file} has {there:,} of at least {piece.end:,} bytes", f"Copy {piece.file} again.")
    total = sum(piece.end for piece in pieces)
    return ok(f"{many(len(pieces), 'file')}, {size(total)}" if pieces else "all weights are inside the graph")


def ir_version(look: Look) -> Result:
    """The installed ONNX Runtime reads this IR version."""
    graph = look.graph()
    if graph.ir > graph.newest_ir:
        fix = f"Export with IR version {graph.newest_ir} or older, or: pip install --upgrade onnxruntime"
        return fail(f"IR version {graph.ir}; this ONNX Runtime reads up to {graph.newest_ir}", fix)
    return ok(f"IR version {graph.ir}, up to {graph.newest_ir} is read")


def opset(look: Look) -> Result:
    """The installed ONNX Runtime knows this opset."""
    graph = look.graph()
    if graph.opset > graph.newest_opset:
        fix = f"Export with opset {graph.newest_opset} or older, or: pip install --upgrade onnxruntime"
        return fail(f"opset {graph.opset}; this ONNX Runtime knows up to {graph.newest_opset}", fix)
    return ok(f"opset {graph.opset}, up to {graph.newest_opset} is known")


def operators(look: Look) -> Result:
    """Every operator has a schema in the installed ONNX Runtime, and a kernel where it was loaded."""
    unknown = look.graph().unknown
    fix = "Export with another opset or decomposition, or upgrade onnxruntime."
    if unknown:
        return fail(f"ONNX Runtime does not know {', '.join(unknown)}", fix)
    return ok("ONNX Runtime knows every operator")


def shapes(look: Look) -> Result:
    """Shapes and types fit each other for the golden feed."""
    graph = look.graph()
    if graph.shapes:
        return fail(graph.shapes, "Export again; look at the node that is named.")
    unsized = f", {graph.unsized} not told" if graph.unsized else ""
    return ok(f"shapes and types fit for the golden feed{unsized}")


def names(look: Look) -> Result:
    """The graph takes and gives what ``model.toml`` says, by name."""
    graph, model = look.graph(), look.model
    for what, there, wanted in (
        ("takes", set(graph.inputs), {one.name for one in model.inputs}),
        ("gives", set(graph.outputs), {one.name for one in model.outputs}),
    ):
        if there != wanted:
            told = f"the graph {what} {', '.join(sorted(there))}; model.toml says {', '.join(sorted(wanted))}"
            return fail(told, f"Correct the names in model.toml, or: {look.export}")
    return ok(f"takes {', '.join(graph.inputs)}; gives {', '.join(graph.outputs)}")


_READ = ("graph.parses",)
GRAPH_CHECKS = (
    Check("graph.parses", "load_corrupt", "the graph can be read", parses, _NEEDS),
    Check("graph.external", "load_corrupt", "weights beside the graph are whole", external, _READ),
    Check("graph.ir", "load_corrupt", "ONNX Runtime reads its IR version", ir_version, _READ),
    Check("graph.opset", "load_corrupt", "ONNX Runtime knows its opset", opset, _READ),
    Check("graph.operators", "unsupported_op", "ONNX Runtime knows its operators", operators, (*_READ, "graph.opset")),
    Check("graph.shapes", "shape_inference", "its shapes fit", shapes, (*_READ, "graph.opset", "graph.operators")),
    Check("graph.names", "shape_inference", "its names are those declared", names, _READ),
)
