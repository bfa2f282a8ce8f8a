"""How many bytes of activations live at one time while a graph runs in its order. Pure arithmetic over sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"})
"""Give another shape to the same memory, in both libraries."""
STRIDED = frozenset({"Transpose", "Slice", "Split", "Expand"})
"""Views in torch, copies in ONNX Runtime."""
IN_PLACE = frozenset(
    {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Elu", "Gelu", "Erf", "Exp", "Sqrt", "Neg", "Softmax", "Cast"}
    | {"Add", "Sub", "Mul", "Div", "Pow", "Where", "BatchNormalization", "LayerNormalization"}
)
"""Where an input of the same size is not needed again, ONNX Runtime writes the output over it (or fuses the node)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node. ``scratch``: torch's kernel reorders both its input and its output beside them."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scratch: bool = False


@dataclass(frozen=True, slots=True)
class Habits:
    """What a library does without new memory, and whether a step's scratch counts."""

    views: frozenset[str]
    in_place: frozenset[str]
    scratch: bool


ORT = Habits(VIEWS, IN_PLACE, scratch=False)
TORCH = Habits(VIEWS | STRIDED, frozenset(), scratch=True)


@dataclass(frozen=True, slots=True)
class Live:
    """Bytes: ``most`` is the largest sum of buffers that live at one time, ``all`` of all that one run makes."""

    most: int
    all: int


def live(steps: Sequence[Step], sizes: Mapping[str, int], kept: Sequence[str], habits: Habits) -> Live:
    """Follow the buffers of one run through the graph's order.

    Tensors without a size (weights, inputs, those whose shape is not known) count nothing: weights are counted
    elsewhere, and the inputs are the caller's. ``kept`` (the outputs) are never freed.
    """
    uses = Counter(name for step in steps for name in step.inputs if name)
    uses.update(kept)
    made = {name for step in steps for name in step.outputs if name}
    home: dict[str, str] = {}  # tensor → the tensor whose buffer it lives in
    holders: Counter[str] = Counter()
    now = most = made_in_all = 0
    for step in steps:
        for name in step.outputs:
            if not name:
                continue
            source = _source(step, name, sizes, uses, home, holders, habits)
            home[name] = home.get(source, source) if source else name
            holders[home[name]] += 1
            if home[name] == name:
                now += sizes.get(name, 0)
                made_in_all += sizes.get(name, 0)
        scratch = _scratch(step, sizes) if habits.scratch and step.scratch else 0
        most = max(most, now + scratch)
        made_in_all += scratch
        for name in (*dict.fromkeys(step.inputs), *(one for one in step.outputs if one and not uses[one])):
            uses[name] -= step.inputs.count(name)
            if name in made and uses[name] <= 0 and name in home:
                owner = home.pop(name)
                holders[owner] -= 1
                if not holders[owner]:
                    now -= sizes.get(owner, 0) if owner in made else 0
    return Live(most, made_in_all)


def _source(
    step: Step,
    name: str,
    sizes: Mapping[str, int],
    uses: Mapping[str, int],
    home: Mapping[str, str],
    holders: Mapping[str, int],
    habits: Habits,
) -> str | None:
    """Return the input whose memory the output takes over, or ``None`` where it gets its own."""
    if step.operator in habits.views and step.inputs and step.inputs[0]:
        return step.inputs[0]
    if step.operator not in habits.in_place or name not in sizes:
        return None
    for one in step.inputs:
        last = uses.get(one, 0) == step.inputs.count(one)
        if one in home and last and holders[home[one]] == 1 and sizes.get(home[one]) == sizes[name]:
            return one
    return None


def _scratch(step: Step, sizes: Mapping[str, int]) -> int:
    return max(sizes.get(step.inputs[0], 0), sizes.get(step.outputs[0], 0))
