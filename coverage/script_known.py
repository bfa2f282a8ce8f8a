"""What a loaded TorchScript graph says of a value before it runs: an attribute of the model, a condition that stays.

A branch whose condition is the same in every run, ``if self.training:`` or ``if inplace:`` of an inlined function, is
no branch of the artefact; what stands in the other arm could never be covered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

_OPERATORS: dict[str, Callable[..., Any]] = {
    "aten::__not__": operator.not_,
    "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not,
    "aten::eq": operator.eq,
    "aten::ne": operator.ne,
    "aten::lt": operator.lt,
    "aten::le": operator.le,
    "aten::gt": operator.gt,
    "aten::ge": operator.ge,
    "prim::unchecked_cast": lambda one: one,
}
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is the same in every run."""

    value: Any


def attribute_of(module: Any, value: Any) -> Known | None:
    """Follow ``GetAttr`` from the model itself; ``None`` for a value that is something else."""
    node = value.node()
    if node.kind() == "prim::Param":
        return Known(module) if value.type().kind() == "ClassType" else None
    if node.kind() != "prim::GetAttr":
        return None
    holder, name = attribute_of(module, node.inputsAt(0)), node.s("name")
    return Known(getattr(holder.value, name)) if holder is not None and hasattr(holder.value, name) else None


def written(nodes: Iterable[Any]) -> frozenset[str] | None:
    """Return the names of the attributes that a script sets, ``None`` where it calls what the graph does not hold."""
    names = []
    for node in nodes:
        if node.kind() == "prim::CallMethod":
            return None
        if node.kind() == "prim::SetAttr":
            names.append(node.s("name"))
    return frozenset(names)


class Facts:
    """What is the same in every run of a module; ``changed`` are attributes that are not, ``None`` stands for all."""

    def __init__(self, module: Any, changed: Collection[str] | None) -> None:
        self._module = module
        self._changed = changed
        self._known: dict[str, Known | None] = {}  # asked again and again by what depends on it

    def taken(self, node: Any) -> int | None:
        """Return the arm that an ``If`` takes in every run: 0 is ``then``, 1 ``else``; ``None`` for none or both."""
        condition = self.known(node.inputsAt(0)) if node.kind() == "prim::If" else None
        return None if condition is None else int(not condition.value)

    def known(self, value: Any) -> Known | None:
        """Return a plain value that is the same in every run, ``None`` where it may change."""
        name = value.debugName()
        if name not in self._known:
            found = self._look(value)
            self._known[name] = found if found is not None and isinstance(found.value, _PLAIN) else None
        return self._known[name]

    def _look(self, value: Any) -> Known | None:
        node, kind = value.node(), value.node().kind()
        if kind == "prim::Constant":
            return Known(value.toIValue())
        if kind == "prim::GetAttr":
            steady = self._changed is not None and node.s("name") not in self._changed
            return attribute_of(self._module, value) if steady else None
        if kind == "prim::If" and (arm := self.taken(node)) is not None:
            number = [one.debugName() for one in node.outputs()].index(value.debugName())
            return self.known(list(list(node.blocks())[arm].outputs())[number])
        if kind in _OPERATORS:
            told = [self.known(one) for one in node.inputs()]
            values = [one.value for one in told if one is not None]
            return Known(_OPERATORS[kind](*values)) if len(values) == len(told) else None
        return None
