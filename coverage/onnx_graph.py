"""Walks ONNX graphs and changes copies: a function for each call, a marker behind a node, weights beside it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

MARK = "#ran"
"""What the name of a marker has after the name of the node that it stands behind."""
_INLINED = "_inlfunc_"
"""What ONNX Runtime puts before the names of nodes of a function that it dissolves."""

Place = tuple[str, int, Any, str]
"""The place of a graph, the number of a node in it, the node, and the id of the node that holds the graph."""


class OutsideError(ValueError):
    """A model names weights outside of its folder, which ONNX Runtime does not load either."""


class Calls:
    """Gives each call of a local function a copy of the function, so that nodes of two calls may have two names."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._functions = {_key(one.domain, one.name, one): one for one in model.functions}
        self._copies: list[Any] = []
        self._open: list[Any] = []
        self.made: tuple[str, ...] = ()
        """Names of the nodes that call a local function, outer calls first."""

    def nodes_of(self, call: Any) -> Iterator[Place]:
        """Yield the nodes of the function that a node calls, with those of calls in it; none of another node."""
        function = self._functions.get(_key(call.domain, call.op_type, call))
        if function is None or any(function is one for one in self._open):  # one that calls itself is refused later
            return
        copy = type(function)()
        copy.CopyFrom(function)
        copy.name = call.op_type = f"f{len(self._copies)}"
        if hasattr(copy, "overload"):
            copy.overload = call.overload = ""
        self._copies.append(copy)
        self.made += (call.name,)
        self._open.append(function)
        yield from nodes_of(copy.node, call.name, call.name, calls=self)
        self._open.pop()

    def finish(self) -> None:
        """Put the copies in the place of the functions."""
        del self._model.functions[:]
        self._model.functions.extend(self._copies)


def _key(domain: str, name: str, overloaded: Any) -> tuple[str, str, str]:
    return domain, name, getattr(overloaded, "overload", "")


def nodes_of(nodes: Any, place: str = "", parent: str = "", *, calls: Calls | None = None) -> Iterator[Place]:
    """Yield every node, bodies included, and what it calls with ``calls``; whoever takes one may name it first."""
    for number, node in enumerate(nodes):
        yield place, number, node, parent
        for suffix, body in _bodies(node):
            yield from nodes_of(body.node, f"{node.name}/{suffix}", node.name, calls=calls)
        if calls is not None:
            yield from calls.nodes_of(node)


def _bodies(node: Any) -> Iterator[tuple[str, Any]]:
    import onnx

    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
        for at, body in enumerate(graphs):
            yield f"{attribute.name}{at or ''}", body


def lists_of(model: Any) -> Iterator[Any]:
    """Yield every list of nodes of a model: of its graph, of its functions, and of all bodies."""
    for nodes in (model.graph.node, *(one.node for one in model.functions)):
        yield nodes
        for _, _, node, _ in nodes_of(nodes):
            for _, body in _bodies(node):
                yield body.node


def tensors_of(model: Any) -> Iterator[Any]:
    """Yield every tensor that a model holds."""
    yield from model.graph.initializer
    for nodes in lists_of(model):
        for node in nodes:
            yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))
            for _, body in _bodies(node):
                yield from body.initializer


def link_beside(model: Any, source: Path, target: Path) -> None:
    """Link the files of external data that a model in ``source`` names into ``target``, where its copy shall stand.

    A symbolic link, as the caches of hubs have them, is followed: the copy has the file. Raises `OutsideError`,
    `OSError`.
    """
    for name in sorted(set(_external(model))):
        if os.path.isabs(name) or os.path.normpath(name).split(os.sep)[0] == os.pardir:
            raise OutsideError(
                f"the model names weights outside of its folder ({name}), which ONNX Runtime does not load; export it "
                "again with its weights beside it"
            )
        link = target / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            _link(Path(os.path.realpath(source / name)), link)


def _link(source: Path, link: Path) -> None:
    """Hard links first: ONNX Runtime refuses external data behind a symbolic link that leaves the folder."""
    try:
        os.link(source, link)
    except OSError:  # another file system
        shutil.copyfile(source, link)


def _external(model: Any) -> Iterator[str]:
    for tensor in tensors_of(model):
        yield from (entry.value for entry in tensor.external_data if entry.key == "location")


def place_of(name: str) -> str:
    """Return the place that the name of a node in a session says: that of one in a function stands after a prefix."""
    at = name.find("/")
    return name[at:] if name.startswith(_INLINED) and at > 0 else name


def mark(model: Any, nodes: Collection[str]) -> None:
    """Put an ``Identity`` behind each of these nodes, which makes what the node made and runs when that is there."""
    import onnx

    for found in list(lists_of(model)):
        for at in range(len(found) - 1, -1, -1):
            node = found[at]
            first = next((number for number, name in enumerate(node.output) if name), None)
            if node.name not in nodes or first is None:
                continue
            made = node.output[first]
            node.output[first] = f"{node.name}#made"
            found.insert(
                at + 1, onnx.helper.make_node("Identity", [f"{node.name}#made"], [made], name=node.name + MARK)
            )


def present(model: Any) -> tuple[set[str], set[str]]:
    """Look at the graph that a session has: the places of its nodes, and of those whose marker waits for some node."""
    places: set[str] = set()
    waiting: set[str] = set()
    for nodes in lists_of(model):
        made = {name for node in nodes for name in node.output}
        for node in nodes:
            place = place_of(node.name)
            places.add(place)
            if place.endswith(MARK) and node.input[0] in made:
                waiting.add(place.removesuffix(MARK))
    return places, waiting


def name_apart(model: Any) -> None:
    """Name the nodes of a graph by their place, and tensors of bodies by the node that makes them.

    What ONNX Runtime saves has a body's tensors under names of the graph around it, and is refused when it is loaded.
    """
    for place, number, node, _ in nodes_of(model.graph.node):
        node.name = f"{place}/{number}:{node.op_type}"
    for node in model.graph.node:
        for _, body in _bodies(node):
            _rename(body, {})


def _rename(graph: Any, around: Mapping[str, str]) -> None:
    """Give each tensor that the nodes of a body make a name of its own; ``around`` are those renamed outside."""
    names = {**around, **{one.name: one.name for one in (*graph.input, *graph.initializer)}}
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for _, body in _bodies(node):
            _rename(body, names)
        for at, name in enumerate(node.output):
            if name:
                names[name] = node.output[at] = f"{node.name}.{at}"
    for one in graph.output:
        one.name = names.get(one.name, one.name)
    del graph.value_info[:]
