"""Declares the nodes of an ONNX graph, bodies of ``If``, ``Loop`` and ``Scan`` included, each under a name of its own.

ONNX Runtime's profile knows nodes by name alone, and names may be empty or used twice; so a traced run uses a copy in
which every node is named by its place. ``Constant`` nodes are apart: ONNX Runtime makes initialisers of them and never
runs one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashpath.coverage.experts import Router, expert_units, find_routers
from crashpath.coverage.units import Declared, Kind, Unit
from crashpath.runtime.values import Path as Which

CONSTANT = "ONNX Runtime makes an initialiser of a Constant when it loads"
MODEL = "model.onnx"


@dataclass(frozen=True, slots=True)
class Named:
    """A copy of a model in which every node is named by its place, and the units that are declared for it.

    ``outputs`` says which node makes a tensor: (place of the graph, name of the tensor) → unit id. ``routers`` are
    those of experts, whose choice the copy gives as outputs besides.
    """

    declared: Declared
    outputs: dict[tuple[str, str], str]
    routers: tuple[Router, ...] = ()


def declare(model: Any) -> Named:
    """Name the nodes of a ``ModelProto`` in place and declare them. Local functions keep their nodes' own names."""
    units: list[Unit] = []
    outputs: dict[tuple[str, str], str] = {}
    for place, number, node, parent in _walk(model.graph, "", ""):
        known = node.name or next(iter(node.output), "")
        node.name = f"{place}/{number}:{node.op_type}"
        reason = CONSTANT if node.op_type == "Constant" else None
        units.append(Unit(Kind.NODE, node.name, node.op_type, known, parent, reason))
        outputs |= {(place, name): node.name for name in node.output if name}
    routers = find_routers(model.graph)
    return Named(Declared(Which.MAIN, (*units, *expert_units(routers))), outputs, routers)


def _walk(graph: Any, place: str, parent: str) -> Iterator[tuple[str, int, Any, str]]:
    """Yield every node with the place of its graph, its number there, and the id of the node that holds it."""
    import onnx

    for number, node in enumerate(graph.node):
        yield place, number, node, parent  # whoever takes it may name it before its bodies come
        for attribute in node.attribute:
            graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
            for at, body in enumerate(graphs):
                suffix = f"{attribute.name}{at or ''}"
                yield from _walk(body, f"{node.name}/{suffix}", node.name)


def write_named(source: Path, target: Path) -> Named:
    """Write the named copy of a model into the folder ``target`` and return what it declares.

    External data is linked, not copied; weights stay where they are. Raises `OSError`, and what the format's library
    raises of a file that is no model.
    """
    import onnx

    model = onnx.load(str(source), load_external_data=False)
    named = declare(model)
    given = {one.name for one in model.graph.output}
    for router in named.routers:
        if router.indices not in given:
            kind = onnx.TensorProto.INT64
            model.graph.output.append(onnx.helper.make_tensor_value_info(router.indices, kind, None))
    for name in sorted(_external(model)):
        link = target / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            _link(source.parent / name, link)
    onnx.save(model, str(target / MODEL))
    return named


def _link(source: Path, link: Path) -> None:
    """Hard links first: ONNX Runtime refuses external data behind a symbolic link."""
    import os
    import shutil

    try:
        os.link(source, link)
    except OSError:  # another file system
        shutil.copyfile(source, link)


def _external(model: Any) -> set[str]:
    return {
        entry.value for tensor in _tensors(model.graph) for entry in tensor.external_data if entry.key == "location"
    }


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for body in attribute.graphs:
                yield from _tensors(body)


def present(model: Any) -> dict[str, str]:
    """Return the nodes of the graph that a session really has: name → operator, bodies included."""
    return {node.name: node.op_type for _, _, node, _ in _walk(model.graph, "", "")}


def makers(model: Any) -> dict[str, str]:
    """Return which node of a graph makes a tensor: name of the tensor → name of the node. Bodies included."""
    return {name: node.name for _, _, node, _ in _walk(model.graph, "", "") for name in node.output if name}
