"""Declares the blocks and operators of a TorchScript model, and puts a counter at the head of each block.

The graph is inlined first, so that the blocks of every module and function are blocks of one graph. A counter adds one
to its place in a tensor that is an attribute of the model: only what is written to something that outlives the run
survives dead-code elimination (a constant does not), and writing to it in place changes no value of the model. A block
runs from its head to its end, so the counter of a block counts each operator in it; where a block raises, what comes
after the raise is not reached, and is declared so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from crashpath.coverage.units import Declared, Kind, Unit
from crashpath.runtime.values import Path as Which

COUNTS = "crashpath_counts"
"""The attribute that holds the counts."""
HEARD: list[tuple[int, Any]] = []
"""Who was chosen, by number of the router, since this was emptied: what the operator ``crashpath::chosen`` hears."""
_TOPK = "aten::topk"
RAISED = "it stands behind a raise in its block"
NOT_SEEN = "it is called through an interface, so the graph does not hold its blocks"
_SILENT = frozenset({"prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct"})
"""What only names or packs values: no operator that could fail or be missed."""
_RAISE = "prim::RaiseException"


@dataclass(frozen=True, slots=True)
class Counted:
    """A model with counters: its units, the id of each block by its place in ``counts``, and of the operators in it."""

    declared: Declared
    blocks: tuple[str, ...]
    operators: tuple[tuple[str, ...], ...]
    counts: Any
    choices: int
    """Operators that choose: routers of experts, if the model has some."""


def insert_counters(module: Any) -> Counted:
    """Put counters into a loaded ``ScriptModule``, before its first run, and declare its units."""
    import torch

    graph = module.graph
    torch._C._jit_pass_inline(graph)
    blocks = tuple(_blocks(graph, "", ""))
    counts = torch.zeros(len(blocks), dtype=torch.int64)
    module._c._register_attribute(COUNTS, torch._C.TensorType.get(), counts)
    units: list[Unit] = []
    operators = []
    for id, parent, block, label in blocks:
        units.append(Unit(Kind.BLOCK, id, label, _where(block), parent))
        mine = tuple(_operators(block, id))
        units.extend(mine)
        operators.append(tuple(unit.id for unit in mine if unit.counted))
    choosing = [node for _, _, block, _ in blocks for node in block.nodes() if node.kind() == _TOPK]
    get = _insert(graph, [block for _, _, block, _ in blocks])
    for number, node in enumerate(choosing):
        _listen(graph, get, node, number)
    declared = Declared(Which.FALLBACK, tuple(units))
    return Counted(declared, tuple(id for id, _, _, _ in blocks), tuple(operators), counts, len(choosing))


def _blocks(block: Any, id: str, parent: str, label: str = "forward") -> Iterator[tuple[str, str, Any, str]]:
    """Yield every block, outer before inner: id, id of the block around it, the block, and what it is."""
    id = id or "/"
    yield id, parent, block, label
    for number, node in enumerate(block.nodes()):
        names = ("then", "else") if node.kind() == "prim::If" else ("body",)
        for at, inner in enumerate(node.blocks()):
            word = names[at] if at < len(names) else f"block{at}"
            place = f"{id.rstrip('/')}/{number}:{_short(node)}/{word}"
            yield from _blocks(inner, place, id, f"{_short(node)} {word}")


def _operators(block: Any, id: str) -> Iterator[Unit]:
    raised = False
    for number, node in enumerate(block.nodes()):
        if node.kind() in _SILENT:
            continue
        reason = RAISED if raised else NOT_SEEN if node.kind() == "prim::CallMethod" else None
        place = f"{id.rstrip('/')}/{number}:{_short(node)}"
        yield Unit(Kind.OP, place, node.kind(), _source(node), id, reason)
        raised = raised or node.kind() == _RAISE


def _listen(graph: Any, counts: Any, node: Any, number: int) -> None:
    """Put an operator behind one that chooses, which hears the choice."""
    _declare_operator()
    place = graph.create("prim::Constant", 1)
    place.i_("value", number)
    place.output().setType(_int_type())
    place.insertAfter(node)
    heard = graph.create("crashpath::chosen", [counts, node.outputsAt(1), place.output()], 0)
    heard.insertAfter(place)


def _int_type() -> Any:
    import torch

    return torch._C.IntType.get()


@cache
def _declare_operator() -> Any:
    """Declare the operator once a process. It says that it writes to the counts, else it would be taken out."""
    import torch

    library = torch.library.Library("crashpath", "DEF")  # type: ignore[no-untyped-call]
    library.define("chosen(Tensor(a!) counts, Tensor indices, int router) -> ()")  # type: ignore[no-untyped-call]
    library.impl("chosen", _hear, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    return library


def _hear(counts: Any, indices: Any, router: int) -> None:
    HEARD.append((router, indices.detach().cpu().numpy().copy()))


def _insert(graph: Any, blocks: list[Any]) -> Any:
    """Put the counters in; returns the value that is the tensor of counts."""
    import torch

    own = next(iter(graph.inputs()))
    get = graph.create("prim::GetAttr", [own], 1)
    get.s_("name", COUNTS)
    get.output().setType(torch._C.TensorType.get())
    for site, block in enumerate(blocks):
        with graph.insert_point_guard(_head(block)):
            if site == 0:
                graph.insertNode(get)
            zero, place, one = (graph.insertConstant(number) for number in (0, site, 1))
            select = graph.create("aten::select", [get.output(), zero, place], 1)
            graph.insertNode(select)
            select.output().setType(torch._C.TensorType.get())
            add = graph.create("aten::add_", [select.output(), one, one], 1)
            graph.insertNode(add)
            add.output().setType(torch._C.TensorType.get())
    return get.output()


def _head(block: Any) -> Any:
    return next(iter(block.nodes()), None) or block.returnNode()


def _short(node: Any) -> str:
    return str(node.kind()).partition("::")[2]


def _where(block: Any) -> str:
    return next((source for node in block.nodes() if (source := _source(node))), "")


def _source(node: Any) -> str:
    """Return ``file:line`` of the line of source that a node came from, ``""`` where the artefact does not say."""
    told = str(node.sourceRange())
    line = next((one for one in told.splitlines() if one.lstrip().startswith("File ")), "")
    if not line:
        return ""
    file, _, rest = line.strip().removeprefix("File ").partition(", line ")
    name = file.strip('"').replace("\\", "/").rpartition("/")[2]
    return f"{name}:{rest.partition(',')[0]}"
