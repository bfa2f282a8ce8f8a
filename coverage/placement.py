"""Where nodes ran against where they were asked to run.

ONNX Runtime only warns where a provider that was asked for is not there, and computes on the processor. What can run
where is told by the session (graph assignment), what did by the profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crashpath.coverage.units import Placed

CPU = "CPUExecutionProvider"


@dataclass(frozen=True, slots=True)
class Placement:
    """``nodes`` by provider; ``unasked`` are nodes on the processor though another provider was asked for first.

    ``absent`` are providers that were asked for and that no node was given to.
    """

    nodes: tuple[tuple[str, int], ...]
    unasked: tuple[Placed, ...]
    absent: tuple[str, ...]


def placement(placed: Sequence[Placed], asked: Sequence[str]) -> Placement:
    """Compare where nodes ran (or were assigned, where they did not run) with what was asked for, in order of wish."""
    where = {one.node: one.ran or one.assigned for one in placed}
    counts = Counter(one for one in where.values() if one)
    wanted = [one for one in asked if one != CPU]
    unasked = tuple(one for one in placed if wanted and where[one.node] == CPU)
    absent = tuple(one for one in wanted if placed and not counts[one])
    return Placement(tuple(sorted(counts.items())), unasked, absent)
