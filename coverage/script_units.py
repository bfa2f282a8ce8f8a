"""Declares the blocks and operators of a TorchScript model, and puts a counter at the head of each block.

The graph is inlined first, so that the blocks of every module and function are blocks of one graph. A counter adds one
to its place in a tensor that is an attribute of the model: only what is written to something that outlives the run
survives dead-code elimination (a constant does not), and writing to it in place changes no value of the model. A block
runs from its head to its end, so the counter of a block counts each operator in it. One more counter stands before each
raise: a run that raised there reached what stands before it, in its block and in the blocks around it. What comes after
a raise, or in an arm that no run takes, is declared so; what a fork runs is declared and has no counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from crashpath.coverage.experts import Router
from crashpath.coverage.script_known import Facts, written
from crashpath.coverage.script_routers import Twins, find_twins
from crashpath.coverage.units import Declared, Kind, Unit
from crashpath.runtime.values import Path as Which

COUNTS = "crashpath_counts"
"""The attribute that holds the counts."""
HEARD: list[tuple[int, Any]] = []
"""Who was chosen, by number of the router, since this was emptied: what the operator ``crashpath::chosen`` hears."""
RAISED = "it stands behind a raise in its block"
NEVER = "the condition of its branch is the same in every run of this artefact"
FORKED = "a fork runs it beside the request, where two counters at once could lose a count"
NOT_SEEN = "it is called through an interface, so the graph does not hold its blocks"
_SILENT = frozenset(
    {"prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct", "prim::Uninitialized"}
)
"""What only names or packs values: no operator that could fail or be missed."""
_RAISE = "prim::RaiseException"


@dataclass(frozen=True, slots=True)
class Raise:
    """A raise, by the place of its counter; of its block and those around it: their place, and what it comes after."""

    site: int
    reached: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """A model with counters: its units, the id of each block by its place in ``counts``, and of the operators in it.

    The counters of ``raises`` stand behind those of the blocks.
    """

    declared: Declared
    blocks: tuple[str, ...]
    operators: tuple[tuple[str, ...], ...]
    raises: tuple[Raise, ...]
    counts: Any
    twins: Twins
    """The operators that choose experts."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A block, its id, and the block around it with the number of the node there that holds it."""

    block: Any
    id: str = "/"
    label: str = "forward"
    around: _Block | None = None
    holder: int = 0
    reason: str | None = None

    @property
    def parent(self) -> str:
        return self.around.id if self.around else ""


def insert_counters(module: Any, routers: Sequence[Router] = ()) -> Counted:
    """Put counters into a loaded ``ScriptModule``, before its first run, and declare its units.

    The twins of ``routers`` are heard: who they chose is in `HEARD` after a run, by number of the router.
    """
    import torch

    graph = module.graph
    _inline(graph)
    facts = Facts(module, written(_all_nodes(graph)))
    walked = tuple(_blocks(_Block(graph), facts))
    blocks = [one for one in walked if one.reason != FORKED]
    units = {one.id: tuple(_operators(one)) for one in walked}
    raising = [
        (one, number, node) for one in blocks for number, node in enumerate(one.block.nodes()) if node.kind() == _RAISE
    ]
    sites = {one.id: site for site, one in enumerate(blocks)}
    raises = tuple(
        Raise(len(blocks) + at, tuple(_reached(one, number, units, sites)))
        for at, (one, number, _) in enumerate(raising)
    )
    counts = torch.zeros(len(blocks) + len(raises), dtype=torch.int64)
    module._c._register_attribute(COUNTS, torch._C.TensorType.get(), counts)
    declared = []
    for one in walked:
        declared.append(Unit(Kind.BLOCK, one.id, one.label, _where(one.block), one.parent, one.reason))
        declared.extend(unit for _, unit in units[one.id])
    twins = find_twins(module, [one.block for one in blocks], routers)
    get = _insert(graph, [*(_head(one.block) for one in blocks), *(node for _, _, node in raising)])
    for number, node in enumerate(twins.nodes):
        _listen(graph, get, node, number)
    return Counted(
        Declared(Which.FALLBACK, tuple(declared)),
        tuple(sites),
        tuple(tuple(unit.id for _, unit in units[id] if unit.counted) for id in sites),
        raises,
        counts,
        twins,
    )


def _all_nodes(block: Any) -> Iterator[Any]:
    """Yield every node, those of inner blocks and of what forks run included, which are inlined for that."""
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _all_nodes(inner)
        if "Subgraph" in node.attributeNames():
            body = node.g("Subgraph")
            _inline(body)
            yield from _all_nodes(body)


def _blocks(outer: _Block, facts: Facts) -> Iterator[_Block]:
    """Yield a block and every block in it, outer before inner, bodies of forks included."""
    yield outer
    raised = False
    for number, node in enumerate(outer.block.nodes()):
        reason = outer.reason or (RAISED if raised else None)
        names = ("then", "else") if node.kind() == "prim::If" else ("body",)
        arm = None if outer.reason == FORKED else facts.taken(node)  # values of another graph have the same names
        for at, inner in enumerate(node.blocks()):
            word = names[at] if at < len(names) else f"block{at}"
            why = reason or (NEVER if arm not in (None, at) else None)
            yield from _blocks(_inside(outer, number, node, inner, word, why), facts)
        if "Subgraph" in node.attributeNames():
            yield from _blocks(_inside(outer, number, node, node.g("Subgraph"), "body", FORKED), facts)
        raised = raised or _ends(node)


def _inside(outer: _Block, number: int, node: Any, block: Any, word: str, reason: str | None) -> _Block:
    place = f"{outer.id.rstrip('/')}/{number}:{_short(node)}/{word}"
    return _Block(block, place, f"{_short(node)} {word}", outer, number, reason)


def _inline(graph: Any) -> None:
    import torch

    torch._C._jit_pass_inline(graph)


def _ends(node: Any) -> bool:
    """Whether nothing after a node is reached: it raises, or each of its branches does."""
    if node.kind() == _RAISE:
        return True
    return node.kind() == "prim::If" and all(any(_ends(one) for one in branch.nodes()) for branch in node.blocks())


def _operators(block: _Block) -> Iterator[tuple[int, Unit]]:
    """Yield the operators of a block with their numbers in it."""
    raised = False
    for number, node in enumerate(block.block.nodes()):
        if node.kind() not in _SILENT:
            reason = RAISED if raised else NOT_SEEN if node.kind() == "prim::CallMethod" else None
            place = f"{block.id.rstrip('/')}/{number}:{_short(node)}"
            yield number, Unit(Kind.OP, place, node.kind(), _source(node), block.id, block.reason or reason)
        raised = raised or _ends(node)


def _reached(
    block: _Block, number: int, units: Mapping[str, tuple[tuple[int, Unit], ...]], sites: Mapping[str, int]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield what had run where the node of that number raised: of its block, and of each block around that one."""
    done = tuple(unit.id for at, unit in units[block.id] if at <= number and unit.counted)
    yield sites[block.id], done
    if block.around is not None:
        yield from _reached(block.around, block.holder, units, sites)


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


def _insert(graph: Any, places: Sequence[Any]) -> Any:
    """Put a counter before each of these nodes, the first of which is the first; returns the tensor of counts."""
    import torch

    own = next(iter(graph.inputs()))
    get = graph.create("prim::GetAttr", [own], 1)
    get.s_("name", COUNTS)
    get.output().setType(torch._C.TensorType.get())
    for site, node in enumerate(places):
        with graph.insert_point_guard(node):
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
