"""Declares the nodes of an ONNX graph, bodies of ``If``, ``Loop`` and ``Scan`` and of local functions included.

ONNX Runtime's profile knows nodes by name alone, and names may be empty or used twice; so a traced run uses a copy in
which every node is named by its place. A local function is copied for each of its calls, for that reason, too.
``Constant`` nodes are apart: ONNX Runtime makes initialisers of them and never runs one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashpath.coverage.experts import Router, expert_units, find_routers
from crashpath.coverage.onnx_graph import Calls, link_beside, nodes_of
from crashpath.coverage.units import Declared, Kind, Unit
from crashpath.runtime.values import Path as Which

CONSTANT = "ONNX Runtime makes an initialiser of a Constant when it loads"
MODEL = "model.onnx"


@dataclass(frozen=True, slots=True)
class Named:
    """A copy of a model in which every node is named by its place, and the units that are declared for it.

    ``routers`` are those of experts, whose choice the copy gives as outputs besides. ``calls`` are the units that call
    a local function; the nodes of the function have the call as their parent.
    """

    declared: Declared
    routers: tuple[Router, ...] = ()
    calls: tuple[str, ...] = ()


def declare(model: Any) -> Named:
    """Name the nodes of a ``ModelProto`` in place, give each call a local function of its own, and declare them."""
    units: list[Unit] = []
    calls = Calls(model)
    for place, number, node, parent in nodes_of(model.graph.node, calls=calls):
        known = node.name or next(iter(node.output), "")
        node.name = f"{place}/{number}:{node.op_type}"
        reason = CONSTANT if node.op_type == "Constant" else None
        units.append(Unit(Kind.NODE, node.name, node.op_type, known, parent, reason))
    calls.finish()
    routers = find_routers(model.graph)
    return Named(Declared(Which.MAIN, (*units, *expert_units(routers))), routers, calls.made)


def write_named(source: Path, target: Path) -> Named:
    """Write the named copy of a model into the folder ``target`` and return what it declares.

    External data is linked, not copied; weights stay where they are. Raises `OutsideError`, `OSError`, and what the
    format's library raises of a file that is no model.
    """
    import onnx

    model = onnx.load(str(source), load_external_data=False)
    named = declare(model)
    given = {one.name for one in model.graph.output}
    for router in named.routers:
        if router.indices not in given:
            kind = onnx.TensorProto.INT64
            model.graph.output.append(onnx.helper.make_tensor_value_info(router.indices, kind, None))
    link_beside(model, source.parent, target)
    onnx.save(model, str(target / MODEL))
    return named
