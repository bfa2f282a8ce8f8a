"""A proposed group stands only where it is cohesive in the original space.

Every pair of a standing group is within τ and free of conflict (complete linkage). People's must-links count as
distance 0, and their cannot-links and conflicts as more than any τ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from crashpath.clustering.affinity import CONFLICT, Distances, Space, distances

TAU = 0.3
"""Largest distance inside a group; calibrated by ``benchmarks/tiers.py``."""


@dataclass(frozen=True, slots=True)
class Links:
    """What people decided about pairs of item ids. A pair is unordered."""

    must: frozenset[frozenset[str]] = frozenset()
    cannot: frozenset[frozenset[str]] = frozenset()


NO_LINKS = Links()


def linked(space: Space, gaps: Distances, links: Links) -> Distances:
    """Return square distances with people's decisions worked in; a cannot-link is stronger than a must-link."""
    if not links.must and not links.cannot:
        return gaps
    out = gaps.copy()
    row = {item.id: i for i, item in enumerate(space.items)}
    for pairs, value in ((links.must, 0.0), (links.cannot, CONFLICT)):
        for i, j in _rows(pairs, row):
            out[i, j] = out[j, i] = value
    return out


def cut(gaps: Distances, tau: float) -> tuple[tuple[int, ...], ...]:
    """Cut rows into groups by complete linkage at ``tau``; groups in the order of their first row."""
    if len(gaps) < 2:
        return tuple((i,) for i in range(len(gaps)))
    square = gaps.copy()
    np.fill_diagonal(square, 0.0)
    tree = linkage(squareform(square, checks=False), method="complete")
    members: dict[int, list[int]] = {}
    for i, label in enumerate(fcluster(tree, tau, criterion="distance").tolist()):
        members.setdefault(label, []).append(i)
    return tuple(tuple(rows) for rows in members.values())


def cohere(
    space: Space, groups: Sequence[Sequence[int]], *, tau: float = TAU, links: Links = NO_LINKS
) -> tuple[tuple[int, ...], ...]:
    """Cut each group of rows of ``space`` into cohesive ones; groups of one are kept. Sorted by first row."""
    out: list[tuple[int, ...]] = []
    for group in groups:
        part = space.take(group)
        gaps = linked(part, distances(part, part), links)
        out.extend(tuple(sorted(group[i] for i in rows)) for rows in cut(gaps, tau))
    return tuple(sorted(out))


def spread(gaps: Distances) -> float:
    """Return the largest distance inside a group (0 for one member)."""
    return float(gaps.max()) if len(gaps) > 1 else 0.0


def _rows(pairs: Iterable[frozenset[str]], row: dict[str, int]) -> list[tuple[int, int]]:
    known = (sorted(row[item] for item in pair if item in row) for pair in pairs)
    return sorted((both[0], both[1]) for both in known if len(both) == 2)


def mend(
    space: Space, groups: Sequence[Sequence[int]], *, tau: float = TAU, links: Links = NO_LINKS
) -> tuple[tuple[int, ...], ...]:
    """Put groups together that the proposal kept apart although all their pairs are within τ (complete linkage)."""
    if len(groups) < 2:
        return tuple(tuple(group) for group in groups)
    gaps = linked(space, distances(space, space), links)
    blocks = [list(group) for group in groups]
    order = np.concatenate([np.array(block) for block in blocks])
    starts = np.concatenate([[0], np.cumsum([len(block) for block in blocks])[:-1]])
    between = np.maximum.reduceat(np.maximum.reduceat(gaps[np.ix_(order, order)], starts, axis=0), starts, axis=1)
    return tuple(sorted(tuple(sorted(row for i in rows for row in blocks[i])) for rows in cut(between, tau)))
