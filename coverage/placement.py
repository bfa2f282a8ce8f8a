"""Where nodes ran against where they were asked to run, run by run: two runs may have asked for different providers.

ONNX Runtime only warns where a provider that was asked for is not there, and computes on the processor. What can run
where is told by the session (graph assignment), what did by the profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from crashpath.coverage.units import Placed
from crashpath.runtime.backends import CPU


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A run (its id) that asked for ``asked``, and what it did not get: see `Placement`."""

    run: str
    asked: tuple[str, ...]
    unasked: tuple[Placed, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """``nodes`` by provider; ``unasked`` are nodes on the processor though another provider was asked for first.

    ``absent`` are providers that were asked for and that no node was given to. Of several runs ``nodes`` are those of
    the newest, ``unasked`` and ``absent`` those of any, and ``runs`` says which, the oldest first.
    """

    nodes: tuple[tuple[str, int], ...]
    unasked: tuple[Placed, ...]
    absent: tuple[str, ...]
    runs: tuple[Misplaced, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes that are ``unasked``."""
        return tuple(one.node for one in self.unasked)


@dataclass(frozen=True, slots=True)
class RunPlaced:
    """Where the nodes of one run were, and which providers it asked for."""

    run: str
    placed: tuple[Placed, ...]
    asked: tuple[str, ...]


def placement(placed: Sequence[Placed], asked: Sequence[str]) -> Placement:
    """Compare where nodes of one run were with what it asked for, in order of wish.

    A node that did not run is where it was assigned.
    """
    where = {one.node: one.ran or one.assigned for one in placed}
    counts = Counter(one for one in where.values() if one)
    first = next(iter(asked), CPU)
    unasked = tuple(one for one in placed if first != CPU and where[one.node] == CPU)
    absent = tuple(one for one in asked if one != CPU and placed and not counts[one])
    return Placement(tuple(sorted(counts.items())), unasked, absent)


def placements(runs: Iterable[RunPlaced]) -> Placement | None:
    """Compare each run, the oldest first, with what it asked for itself; ``None`` where no run placed a node."""
    found: list[Misplaced] = []
    newest: Placement | None = None
    for run in runs:
        if not run.placed:
            continue
        newest = placement(run.placed, run.asked)
        if newest.unasked or newest.absent:
            found.append(Misplaced(run.run, run.asked, newest.unasked, newest.absent))
    if newest is None:
        return None
    unasked = {node.node: node for one in found for node in one.unasked}
    absent = dict.fromkeys(provider for one in found for provider in one.absent)
    return replace(newest, unasked=tuple(unasked.values()), absent=tuple(absent), runs=tuple(found))
