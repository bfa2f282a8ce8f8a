"""A proposed group stands only where it is cohesive in the original space.

Every pair of a standing group is within τ and free of conflict (complete linkage). People's must-links count as
distance 0, and their cannot-links and conflicts as more than any τ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from crashpath.clustering.affinity import CONFLICT, Distances, Space
from crashpath.clustering.propose import Proposal
from crashpath.ingest.links import NO_LINKS as NO_LINKS
from crashpath.ingest.links import Links as Links

TAU = 0.3
"""Largest distance inside a group; calibrated by ``benchmarks/tiers.py``."""


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


def stand(gaps: Distances, proposal: Proposal, *, tau: float = TAU) -> tuple[tuple[int, ...], ...]:
    """Return the groups that stand, as rows of the square ``gaps``: every row is in one, sorted by first row.

    A proposed group is cut where it is not cohesive. Groups and rows that the proposal kept apart although all their
    pairs are within τ are then put together, so that a split or noise of the proposal costs nothing.
    """
    blocks: list[tuple[int, ...]] = [(row,) for row in proposal.noise]
    for group in proposal.groups:
        blocks.extend(tuple(group[i] for i in rows) for rows in cut(gaps[np.ix_(group, group)], tau))
    blocks.sort()
    merged = cut(_between(gaps, blocks), tau)
    return tuple(sorted(tuple(sorted(row for i in rows for row in blocks[i])) for rows in merged))


def connected(count: int, edges: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the connected parts of ``count`` rows, each sorted, in the order of their first rows."""
    ends = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    graph = csr_matrix((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, label = connected_components(graph, directed=False)
    parts: dict[int, list[int]] = {}
    for row, part in enumerate(label.tolist()):
        parts.setdefault(part, []).append(row)
    return tuple(tuple(rows) for rows in parts.values())


def stand_in_parts(
    parts: Sequence[Sequence[int]],
    gaps_of: Callable[[Sequence[int]], Distances],
    proposal: Proposal,
    *,
    tau: float = TAU,
) -> tuple[tuple[int, ...], ...]:
    """Return the groups that stand, as `stand` does, where no pair of rows of two parts is within τ.

    Such a pair is in no group, so the distances of one part at a time are enough: memory follows the largest part, not
    the square of all rows. ``gaps_of`` returns the square distances of some rows.
    """
    proposed = {row: number for number, rows in enumerate(proposal.groups) for row in rows}
    out: list[tuple[int, ...]] = []
    for part in parts:
        if len(part) == 1:
            out.append(tuple(part))
            continue
        several: dict[int, list[int]] = {}
        for i, row in enumerate(part):
            several.setdefault(proposed.get(row, -1 - i), []).append(i)
        groups = tuple(tuple(rows) for rows in several.values() if len(rows) > 1)
        noise = tuple(rows[0] for rows in several.values() if len(rows) == 1)
        own = replace(proposal, groups=groups, noise=noise)
        out += [tuple(part[i] for i in rows) for rows in stand(gaps_of(part), own, tau=tau)]
    return tuple(sorted(out))


def together(
    space: Space, groups: Sequence[Sequence[int]], links: Links, alone: Iterable[int] = ()
) -> tuple[tuple[int, ...], ...]:
    """Put groups of rows together that a must-link joins, unless a cannot-link parts them; sorted by first row.

    Two rows of ``alone`` never come into one group this way.
    """
    row = {item.id: i for i, item in enumerate(space.items)}
    home = {i: number for number, rows in enumerate(groups) for i in rows}
    held = {number: list(rows) for number, rows in enumerate(groups)}
    foes: dict[int, set[int]] = {number: set() for number in held}
    for i, j in _rows(links.cannot, row):
        foes[home[i]].add(home[j])
        foes[home[j]].add(home[i])
    lone = {home[i] for i in alone}
    for i, j in _rows(links.must, row):
        one, other = home[i], home[j]
        if one == other or other in foes[one] or (one in lone and other in lone):
            continue
        home.update(dict.fromkeys(held[other], one))
        held[one] += held.pop(other)
        for foe in foes.pop(other):
            foes[foe] = (foes[foe] - {other}) | {one}
            foes[one].add(foe)
        lone = {one if number == other else number for number in lone}
    return tuple(sorted(tuple(sorted(rows)) for rows in held.values()))


def _between(gaps: Distances, blocks: Sequence[Sequence[int]]) -> Distances:
    """Return the largest distance between the members of two blocks, for all pairs of blocks."""
    if not blocks:
        return np.zeros((0, 0))
    order = [row for block in blocks for row in block]
    starts = np.concatenate([[0], np.cumsum([len(block) for block in blocks])[:-1]])
    rows = np.maximum.reduceat(gaps[np.ix_(order, order)], starts, axis=0)
    return np.asarray(np.maximum.reduceat(rows, starts, axis=1), dtype=np.float64)


def spread(gaps: Distances) -> float:
    """Return the largest distance inside a group (0 for one member)."""
    return float(gaps.max()) if len(gaps) > 1 else 0.0


def _rows(pairs: Iterable[frozenset[str]], row: dict[str, int]) -> list[tuple[int, int]]:
    known = (sorted(row[item] for item in pair if item in row) for pair in pairs)
    return sorted((both[0], both[1]) for both in known if len(both) == 2)
