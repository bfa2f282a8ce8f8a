"""What can be covered: declared units, and what a traced run saw of them.

A denominator is declared, never inferred: `Declared` names every unit of an artefact before anything runs. A unit that
cannot run says why (``reason``) and stands apart, in no denominator. What ran is a `Trace`; traces add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a unit is. ``node`` is of the main path; ``block`` and ``op`` of the TorchScript fallback."""

    NODE = "node"
    BLOCK = "block"
    OP = "op"
    ROUTE = "route"
    DOMAIN = "domain"
    EXPERT = "expert"
    PAIR = "pair"


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a run may reach.

    ``id`` is stable for an artefact's hash and says the place (``/3:Loop/body/1:Mul``); ``label`` is what people know
    it by (the operator, the name in the graph), ``where`` the line of source that it came from, if that is known.
    ``parent`` is the id of the unit that holds it, ``""`` at the top. ``reason`` says why it is in no denominator.
    """

    kind: Kind
    id: str
    label: str
    where: str = ""
    parent: str = ""
    reason: str | None = None

    @property
    def counted(self) -> bool:
        """Whether it is in the denominator."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Declared:
    """The units of one artefact, in the order of the artefact."""

    path: str
    units: tuple[Unit, ...]

    def counted(self, kind: Kind) -> tuple[Unit, ...]:
        """Those of a kind that are in its denominator."""
        return tuple(unit for unit in self.units if unit.kind is kind and unit.counted)


@dataclass(frozen=True, slots=True)
class Ratio:
    """``covered`` of ``total`` units."""

    covered: int
    total: int

    @property
    def share(self) -> float | None:
        """Between 0 and 1; ``None`` of nothing."""
        return self.covered / self.total if self.total else None


def ratio(units: Iterable[Unit], hits: Mapping[str, int]) -> Ratio:
    """Return how many of the counted units were hit at least once."""
    counted = [unit for unit in units if unit.counted]
    return Ratio(sum(hits.get(unit.id, 0) > 0 for unit in counted), len(counted))


@dataclass(frozen=True, slots=True)
class Timing:
    """What one operator took in a run: ``batch`` rows, ``calls`` of it and their ``seconds`` together."""

    path: str
    operator: str
    batch: int
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A node, the execution providers that were asked for, and the one that it ran on (``""``: it did not run)."""

    node: str
    operator: str
    assigned: str
    ran: str


@dataclass(frozen=True, slots=True)
class Shipped:
    """Nodes of the optimised session that ships: how many ran, how many it has, and those that did not (``left``).

    ``problems`` are sentences: of a session that does not open (then ``nodes`` is 0), or of feeds that fail on it.
    """

    ran: int
    nodes: int
    left: tuple[str, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """What was seen of one path: hits by unit id, timings, placement. ``replaced``: unit ids, and why they are gone.

    ``problems`` are sentences: what makes the counts of this run less than what ran.
    """

    path: str
    hits: Mapping[str, int] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    placed: tuple[Placed, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    shipped: Shipped | None = None
    problems: tuple[str, ...] = ()
