"""Re-clustering: which clusters are one, which is two, and which id stays; pure logic, nothing is written here.

It looks at *loose* clusters alone: births since the last re-clustering, clusters of one, and those that fail the
cohesion test; all others keep their members and may only take in. There is play between the limits, so that nothing
moves back and forth: two become one where all their pairs are within τ, and one is cut only where a pair is further
apart than τ and the registry's slack together. What people decided stands: a cluster whose members they put together
or apart is never cut, and one with a person's name, class or decision never goes into another. Of clusters that become
one, a person's keeps its id, else the one with most crashes; of parts, the one with most crashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crashpath.clustering.affinity import square
from crashpath.clustering.blocks import NOTHING, Block, Seen, group_blocks, near_blocks
from crashpath.clustering.cohesion import NO_LINKS, Links, cut, linked
from crashpath.clustering.joining import Ties, grow, ties_of
from crashpath.clustering.propose import Proposal, Proposer, UmapHdbscan
from crashpath.clustering.state import LIMITS, Cluster, Limits, State, Why, gaps_between, space_of, why_of

WHOLE = 512
"""Most members that are all compared with each other; of a larger cluster the exemplars stand for it."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Signatures that went from one cluster to another, all for one reason."""

    items: tuple[str, ...]
    old: str
    new: str
    why: Why


@dataclass(frozen=True, slots=True)
class Reclustering:
    """What a re-clustering decided; ``Moved`` in the order of clusters.

    ``merged`` are clusters that went into another as a whole, ``split`` parts that left one (``made``: ids that are
    new). ``shapes`` are the changed clusters as they are now. ``looked_at`` counts the clusters that were loose.
    """

    merged: tuple[Moved, ...] = ()
    split: tuple[Moved, ...] = ()
    made: tuple[str, ...] = ()
    shapes: tuple[Cluster, ...] = ()
    looked_at: int = 0
    proposal: Proposal = NOTHING

    @property
    def moved(self) -> int:
        """How many signatures went to another cluster."""
        return sum(len(one.items) for one in (*self.merged, *self.split))


def recluster(
    seen: Sequence[Seen],
    mass: Mapping[str, int],
    next_number: int,
    *,
    links: Links = NO_LINKS,
    limits: Limits = LIMITS,
    proposer: Proposer | None = None,
) -> Reclustering:
    """Decide what becomes one and what is cut. ``mass`` is the number of crashes by signature."""
    order = sorted(seen, key=lambda one: number_of(one.cluster.id))
    ties = ties_of(State(tuple(one.cluster for one in order), next_number), links)
    blocks = [block for one in order for block in _parts(one, mass, links, limits)]
    loose = {block.id for block in blocks if block.loose}
    near = near_blocks(blocks, limits)
    near.sort(key=lambda block: block.first)
    groups, proposal = group_blocks(near, links, limits, proposer or UmapHdbscan())
    settled = _settle([[near[i] for i in rows] for rows in groups], next_number)
    outcome = _outcome(settled, limits, ties)
    return replace(outcome, looked_at=len(loose), proposal=proposal)


def number_of(cluster: str) -> int:
    """Return the number in an id."""
    return int(cluster.rpartition("-")[2])


def _parts(seen: Seen, mass: Mapping[str, int], links: Links, limits: Limits) -> list[Block]:
    """Cut a cluster that fails the cohesion test; any other is one block."""
    alone = len(seen.cluster.members) == 1
    whole = Block(seen, seen.points, seen.cluster.members, seen.mass, True, (seen.young or alone) and seen.whole)
    if alone or seen.decided or not seen.whole or not seen.points:
        return [whole]
    points = sorted(seen.points, key=lambda point: point.item.id)
    space = space_of(points)
    gaps = linked(space, square(space), Links(cannot=links.cannot))
    widest = limits.tau + limits.slack
    if float(gaps.max()) <= widest:
        return [whole]
    parts = []
    for rows in cut(gaps, widest):
        its = tuple(points[i] for i in rows)
        ids = tuple(point.item.id for point in its)
        parts.append(Block(seen, its, ids, sum(mass.get(one, 0) for one in ids), False, True))
    parts.sort(key=lambda part: (-part.mass, -len(part.members), part.first))
    return [replace(parts[0], anchor=True), *parts[1:]]


@dataclass(frozen=True, slots=True)
class _Group:
    """Blocks that are one cluster from now on, and its id."""

    id: str
    made: bool
    blocks: tuple[Block, ...]


def _settle(groups: Sequence[Sequence[Block]], next_number: int) -> list[_Group]:
    """Give every group an id: that of a person's cluster, else of most crashes; parts without one get a new number."""
    out = []
    for blocks in sorted(groups, key=lambda several: min(block.first for block in several)):
        named = [block for block in blocks if block.anchor]
        if named:
            best = min(named, key=lambda block: (not block.seen.owned, -block.mass, number_of(block.id)))
            out.append(_Group(best.id, False, tuple(blocks)))
        else:
            out.append(_Group(f"C-{next_number:04d}", True, tuple(blocks)))
            next_number += 1
    return out


def _outcome(groups: Sequence[_Group], limits: Limits, ties: Ties) -> Reclustering:
    anchors = {block.id: block for group in groups for block in group.blocks if block.anchor}
    merged, split, shapes = list[Moved](), list[Moved](), list[Cluster]()
    left = {block.id for group in groups for block in group.blocks if not block.anchor}
    for group in groups:
        gone = [block for block in group.blocks if not (block.anchor and block.id == group.id)]
        if not gone and group.id not in left:
            continue
        stays = [block for block in group.blocks if block not in gone]
        for block in gone:
            others = stays or [other for other in gone if other is not block]
            why = _joined(block, others, limits) if others else _parted(block, anchors[block.id], limits)
            (merged if block.anchor else split).append(Moved(block.members, block.id, group.id, why))
        shapes.append(_shape(group, stays, limits, ties))
    key = _old_and_new
    made = tuple(sorted((group.id for group in groups if group.made), key=number_of))
    by_number = tuple(sorted(shapes, key=lambda shape: number_of(shape.id)))
    return Reclustering(tuple(sorted(merged, key=key)), tuple(sorted(split, key=key)), made, by_number)


def _old_and_new(moved: Moved) -> tuple[int, int]:
    return number_of(moved.old), number_of(moved.new)


def _shape(group: _Group, stays: Sequence[Block], limits: Limits, ties: Ties) -> Cluster:
    """The cluster with what it has now: members, exemplars, spread."""
    kept = stays[0] if stays else None
    if kept is not None and not kept.seen.whole:
        new = [point for block in group.blocks if block is not kept for point in block.points]
        shape = grow(kept.seen.cluster, new, limits, ties)
    else:
        points = [point for block in group.blocks for point in block.points]
        shape = grow(Cluster(group.id, (), (), 0.0, None), points, limits, ties)
    return replace(shape, members=tuple(sorted(one for block in group.blocks for one in block.members)))


def _joined(block: Block, others: Sequence[Block], limits: Limits) -> Why:
    """Say which two are nearest."""
    points = [point for other in others for point in other.points]
    gaps = gaps_between(block.points, points)
    i, j = np.unravel_index(int(gaps.argmin()), gaps.shape)
    words = "re-clustering: all of it is within reach of all of the other"
    return why_of(block.points[int(i)].item, points[int(j)].item, float(gaps[i, j]), limits.tau, words)


def _parted(block: Block, rest: Block, limits: Limits) -> Why:
    """Say which two are furthest apart."""
    gaps = gaps_between(block.points, rest.points)
    i, j = np.unravel_index(int(gaps.argmax()), gaps.shape)
    words = "re-clustering: it contradicts the rest of its cluster, or is too far from it"
    widest = limits.tau + limits.slack
    return why_of(block.points[int(i)].item, rest.points[int(j)].item, float(gaps[i, j]), widest, words)
