"""Failure class × phase: what the last drills say of each square, and what weight the field gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from crashpath.coverage.report import Cell
from crashpath.dashboard.plurals import many
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.schema import UNKNOWN
from crashpath.runtime.values import Phase

PHASES = (Phase.PREPARE.value, Phase.LOAD.value, Phase.WARMUP.value, Phase.INFER.value)


class State(StrEnum):
    """What the last drills of a square came to; the first ones ask for something to be done."""

    RED = "red"
    NEVER = "never driven"
    CANNOT = "cannot be driven here"
    NO_FAULT = "no fault strikes it"
    PASSED = "passed"


SIGNS = {State.RED: "✗", State.NEVER: "?", State.CANNOT: "⊘", State.NO_FAULT: "∅", State.PASSED: "✓"}
"""A sign besides the colour."""


@dataclass(frozen=True, slots=True)
class Square:
    """One class in one phase. ``crashes`` of the field; ``faults`` of the catalogue strike it."""

    failure_class: str
    phase: str
    state: State
    passed: int
    red: int
    faults: int
    newest: datetime | None
    reason: str
    crashes: int

    @property
    def words(self) -> str:
        """All of it in a sentence."""
        what = {
            State.PASSED: f"{self.passed} of {many(self.faults, 'fault')} passed last time",
            State.RED: f"{many(self.red, 'fault')} red, {self.passed} passed, of {self.faults}",
            State.NEVER: f"never driven, {many(self.faults, 'fault')} could be",
            State.CANNOT: self.reason or State.CANNOT.value,
            State.NO_FAULT: "no fault of the catalogue strikes it",
        }[self.state]
        when = f", last on {self.newest:%Y-%m-%d} (UTC)" if self.newest is not None else ""
        return f"{self.failure_class} in {self.phase}: {what}{when}; {many(self.crashes, 'crash')} in the field"


@dataclass(frozen=True, slots=True)
class Grid:
    """Squares by class, the classes with the most crashes first, and by phase; none where there is nothing to say."""

    classes: tuple[str, ...]
    phases: tuple[str, ...]
    squares: tuple[tuple[Square | None, ...], ...]

    @property
    def all(self) -> tuple[Square, ...]:
        """All squares, row by row."""
        return tuple(one for row in self.squares for one in row if one is not None)


def grid(cells: Sequence[Cell], crashes: Mapping[tuple[str, str], int]) -> Grid:
    """Return the grid of the declared cells and of all that crashes. ``crashes`` are by class and phase."""
    known = {(cell.failure_class, cell.phase): cell for cell in cells}
    weight: dict[str, int] = {}
    for (failure_class, _), count in crashes.items():
        weight[failure_class] = weight.get(failure_class, 0) + count
    order = {one.id: place for place, one in enumerate(CLASSES)}
    names = {failure_class for failure_class, _ in known} | set(weight)
    classes = sorted(names, key=lambda name: (-weight.get(name, 0), order.get(name, len(order)), name))
    others = sorted({phase for _, phase in crashes} - {*PHASES, UNKNOWN})
    phases = (*PHASES, *others, *((UNKNOWN,) if any(phase == UNKNOWN for _, phase in crashes) else ()))
    return Grid(
        tuple(classes),
        phases,
        tuple(tuple(_square(name, phase, known, crashes) for phase in phases) for name in classes),
    )


def _square(
    name: str, phase: str, known: Mapping[tuple[str, str], Cell], crashes: Mapping[tuple[str, str], int]
) -> Square | None:
    cell, count = known.get((name, phase)), crashes.get((name, phase), 0)
    if cell is None:
        return Square(name, phase, State.NO_FAULT, 0, 0, 0, None, "", count) if count else None
    state = State.RED if cell.red else State.PASSED if cell.passed else State.NEVER if cell.counted else State.CANNOT
    return Square(name, phase, state, cell.passed, cell.red, cell.faults, cell.newest, cell.reason or "", count)
