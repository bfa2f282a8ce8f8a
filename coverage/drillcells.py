"""The eight cells of a drill, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """``green``: every cell that applies holds. ``red``: one does not. ``null``: the fault cannot be driven here."""

    GREEN = "green"
    RED = "red"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class CellName:
    """A cell: its name, its letter in a line of text, and the question that it answers."""

    id: str
    letter: str
    question: str


CELLS: tuple[CellName, ...] = (
    CellName("raised", "R", "was the fault seen to happen, by others than the runtime under test"),
    CellName("detected", "D", "did the runtime tell of a failure of that path and phase"),
    CellName("classified", "C", "under the right failure class"),
    CellName("routed", "T", "did every request that met it take the declared route"),
    CellName("answered", "A", "did every request get an answer"),
    CellName("equal", "E", "was every answer the right one"),
    CellName("in_deadline", "L", "did every request end within its deadline"),
    CellName("recovered", "B", "did the struck path itself answer again, rightly, afterwards"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of one drill: ``None`` where it does not apply. ``why`` is the reason of a ``None`` or of a false."""

    name: str
    value: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class DrillResult:
    """One fault, in one phase, driven through a session.

    ``requests`` were sent while the fault was there, ``unanswered`` of them got an error and ``wrong`` another answer
    than the model's. ``observed`` is what was seen of the fault, ``told`` what the runtime said of it, ``printed`` what
    the struck process said.
    """

    fault: str
    failure_class: str
    phase: str
    isolation: str
    policy: str
    path: str
    cells: tuple[Cell, ...]
    requests: int = 0
    unanswered: int = 0
    wrong: int = 0
    seconds: float = 0.0
    observed: str = ""
    told: str = ""
    printed: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the cells add up to."""
        values = {cell.value for cell in self.cells}
        if False in values:
            return Verdict.RED
        return Verdict.GREEN if True in values else Verdict.NULL

    @property
    def marks(self) -> str:
        """Eight characters: the letter of a cell that holds, ``x`` where it does not, ``-`` where it does not apply."""
        letters = {name.id: name.letter for name in CELLS}
        return "".join("-" if c.value is None else letters[c.name] if c.value else "x" for c in self.cells)


def none_apply(why: str) -> tuple[Cell, ...]:
    """Eight cells that do not apply, all for one reason."""
    return tuple(Cell(name.id, None, why) for name in CELLS)
