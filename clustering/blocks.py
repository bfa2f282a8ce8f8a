"""What moves together in a re-clustering, and which of it may become one; pure logic.

Distances are worked out in strips and kept for one part of near blocks at a time, so that memory does not follow the
square of all clusters of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from crashpath.clustering.affinity import CELLS, CONFLICT, ROUNDING, Distances, Flags, distances, square, strips
from crashpath.clustering.cohesion import Links, connected, stand_in_parts
from crashpath.clustering.propose import Proposal, Proposer
from crashpath.clustering.state import Cluster, Limits, Point, gaps_between, space_of

Apart = Callable[[Sequence[int], Sequence[int]], Flags]
"""Which blocks stay apart whatever their distance: for some rows and some others, all pairs."""
NOTHING = Proposal((), (), 0, 0, "none")


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster as it goes in, and what is looked at: the points of all its members, or of its exemplars alone.

    ``young``: born since the last re-clustering. ``decided``: people put its members together or apart. ``owned``:
    it has a person's name, class, assignee or decision. ``mass`` is the number of its crashes.
    """

    cluster: Cluster
    points: tuple[Point, ...]
    mass: int
    young: bool = False
    decided: bool = False
    owned: bool = False

    @property
    def whole(self) -> bool:
        """Whether all its members are looked at."""
        return len(self.points) == len(self.cluster.members)


@dataclass(frozen=True, slots=True)
class Block:
    """What moves together: a cluster, or a part of one that fails; ``anchor``: it keeps the cluster's id."""

    seen: Seen
    points: tuple[Point, ...]
    members: tuple[str, ...]
    mass: int
    anchor: bool
    loose: bool

    @property
    def id(self) -> str:
        return self.seen.cluster.id

    @property
    def first(self) -> str:
        return self.members[0]


def near_blocks(blocks: Sequence[Block], limits: Limits) -> list[Block]:
    """Loose blocks, and those others that have a loose one within τ."""
    loose = [block for block in blocks if block.loose]
    others = [block for block in blocks if not block.loose and block.points]
    points = [point for block in loose for point in block.points]
    if not points or not others:
        return loose
    left, right = space_of(points), space_of([point for block in others for point in block.points])
    least = np.full(len(others), np.inf)
    for strip in strips(len(left), len(right)):
        furthest = np.maximum.reduceat(distances(left.take(strip), right), _starts(others), axis=1)
        least = np.minimum(least, furthest.min(axis=0))
    return [*loose, *(block for block, gap in zip(others, least, strict=True) if gap <= limits.tau)]


def _starts(blocks: Sequence[Block]) -> NDArray[np.int64]:
    """Where the points of each block begin, of all their points in one row."""
    return np.cumsum([0, *(len(block.points) for block in blocks)])[:-1]


def group_blocks(
    blocks: Sequence[Block], links: Links, limits: Limits, proposer: Proposer
) -> tuple[tuple[tuple[int, ...], ...], Proposal]:
    """Group blocks whose pairs are all within τ, but no two that `_never` lets be one."""
    if not blocks:
        return (), NOTHING
    never = _never(blocks, links)

    def gaps_of(rows: Sequence[int]) -> Distances:
        some = [blocks[i] for i in rows]
        pairs = square(space_of([point for block in some for point in block.points]))
        starts = _starts(some)
        gaps = np.maximum.reduceat(np.maximum.reduceat(pairs, starts, axis=0), starts, axis=1)
        gaps[never(rows, rows)] = CONFLICT
        np.fill_diagonal(gaps, 0.0)
        return np.asarray(gaps, dtype=np.float64)

    proposal = proposer(np.stack([_middle(block.points).vector for block in blocks]))
    parts = connected(len(blocks), _near_pairs(blocks, never, limits.tau + ROUNDING))
    return stand_in_parts(parts, gaps_of, proposal, tau=limits.tau), proposal


def _never(blocks: Sequence[Block], links: Links) -> Apart:
    """Return what says of pairs of blocks whether they stay apart whatever their distance.

    Two that are not loose do, two that people own, and two with members that people told apart (of which a large
    cluster may show no point).
    """
    settled, owned = np.array([(not block.loose, block.seen.owned) for block in blocks], dtype=np.bool_).T
    home = {member: row for row, block in enumerate(blocks) for member in block.members}
    told = {frozenset(home[one] for one in pair) for pair in links.cannot if all(one in home for one in pair)}
    ends = np.array([sorted(pair) for pair in told if len(pair) == 2], dtype=np.int64).reshape(-1, 2)
    apart = csr_matrix((np.ones(len(ends), dtype=np.bool_), (ends[:, 0], ends[:, 1])), shape=(len(blocks),) * 2)
    apart = (apart + apart.T).tocsr()

    def never(left: Sequence[int], right: Sequence[int]) -> Flags:
        own, their = list(left), list(right)
        out = np.logical_and.outer(settled[own], settled[their]) | np.logical_and.outer(owned[own], owned[their])
        return np.asarray(out | apart[own][:, their].toarray(), dtype=np.bool_)

    return never


def _near_pairs(blocks: Sequence[Block], never: Apart, tau: float) -> Iterator[tuple[int, int]]:
    """Pairs of blocks of which all pairs of points are within τ and that may be one."""
    space, starts = space_of([point for block in blocks for point in block.points]), _starts(blocks)
    stops = np.append(starts[1:], len(space))
    first = 0
    while first < len(blocks):
        last = max(first + 1, int(np.searchsorted(stops, starts[first] + CELLS // len(space), side="right")))
        rows = range(first, min(last, len(blocks)))
        some = space.take(range(int(starts[first]), int(stops[rows[-1]])))
        gaps = np.maximum.reduceat(distances(some, space), starts, axis=1)
        gaps = np.maximum.reduceat(gaps, starts[rows.start : rows.stop] - starts[first], axis=0)
        near = (gaps <= tau) & ~never(rows, range(len(blocks)))
        yield from ((first + i, j) for i, j in np.argwhere(near).tolist())
        first = rows.stop


def _middle(points: Sequence[Point]) -> Point:
    """The point that is nearest to the others."""
    return points[0] if len(points) == 1 else points[int(gaps_between(points, points).sum(axis=1).argmin())]
