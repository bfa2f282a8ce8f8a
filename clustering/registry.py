"""The registry decides which cluster a new signature belongs to: join or birth, with the reason.

Pure logic over a frozen state. Within one call every join is judged against the state that came in, births are found
together, and all is done in the order of ids, so the order of the input never matters. Membership once given stays:
clusters are never put together here, and a cluster of one may grow but keeps its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crashpath.clustering.affinity import CONFLICT, ROUNDING, Distances, Space, distances, square, strips
from crashpath.clustering.cohesion import NO_LINKS, Links, connected, linked, stand_in_parts, together
from crashpath.clustering.joining import Ties, apart, grow, join, ties_of
from crashpath.clustering.propose import Proposal, Proposer, UmapHdbscan
from crashpath.clustering.state import (
    LIMITS,
    Birth,
    Cluster,
    Join,
    Limits,
    Point,
    State,
    Why,
    gaps_between,
    space_of,
    why_of,
)

__all__ = ["LIMITS", "Assignment", "Birth", "Cluster", "Join", "Limits", "Point", "State", "Why", "assign"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What ``assign`` decided, in the order of item ids; the state after it; what UMAP and HDBSCAN proposed."""

    decisions: tuple[Join | Birth, ...]
    state: State
    proposal: Proposal


def assign(
    state: State,
    new: Sequence[Point],
    *,
    limits: Limits = LIMITS,
    links: Links = NO_LINKS,
    proposer: Proposer | None = None,
) -> Assignment:
    """Assign new items (no member of any cluster yet) and return the state after it."""
    points = sorted(_distinct(state, new), key=lambda point: point.item.id)
    ties = ties_of(state, links)
    joined, grown = join(state, points, limits, ties)
    left = [point for point in points if point.item.id not in joined]
    singles = [cluster for cluster in grown.clusters if len(cluster.members) == 1]
    wanted = Links(links.must, links.cannot | apart(state, left, ties))
    groups, proposal = _group(left, singles, limits, wanted, proposer or UmapHdbscan())
    born, after = _settle(grown, left, singles, groups, limits, ties)
    decisions = {**joined, **_explain(state, born, left, limits)}
    return Assignment(tuple(decisions[key] for key in sorted(decisions)), after, proposal)


def _distinct(state: State, new: Sequence[Point]) -> list[Point]:
    known = {member for cluster in state.clusters for member in cluster.members}
    first: dict[str, Point] = {}
    for point in new:
        if point.item.id not in known:
            first.setdefault(point.item.id, point)
    return list(first.values())


def _group(
    left: Sequence[Point], singles: Sequence[Cluster], limits: Limits, links: Links, proposer: Proposer
) -> tuple[tuple[tuple[int, ...], ...], Proposal]:
    """Group what did not join with the clusters of one: rows of ``left`` come first, then ``singles``."""
    points = [*left, *(cluster.exemplars[0] for cluster in singles)]
    if not left:
        return (), Proposal((), (), 0, 0, "none")
    order = sorted(range(len(points)), key=lambda i: points[i].item.id)
    space = space_of([points[i] for i in order])
    proposal = proposer(space.vectors)
    old = [i for i, place in enumerate(order) if place >= len(left)]
    lone = set(old)

    def gaps_of(rows: Sequence[int]) -> Distances:
        some = space.take(rows)
        gaps = linked(some, square(some), Links(cannot=links.cannot))
        known = [i for i, row in enumerate(rows) if row in lone]
        gaps[np.ix_(known, known)] = CONFLICT  # two that were there before never become one here
        np.fill_diagonal(gaps, 0.0)
        return gaps

    parts = connected(len(order), _near_pairs(space, [row for row in range(len(order)) if row not in lone], limits.tau))
    standing = together(space, stand_in_parts(parts, gaps_of, proposal, tau=limits.tau), links, alone=old)
    return tuple(tuple(order[row] for row in rows) for rows in standing), proposal


def _near_pairs(space: Space, rows: Sequence[int], tau: float) -> Iterator[tuple[int, int]]:
    """Pairs of one of some rows and any row that are within τ, or would be but for rounding."""
    for strip in strips(len(rows), len(space)):
        mine = rows[strip.start : strip.stop]
        near = distances(space.take(mine), space) <= tau + ROUNDING
        yield from ((mine[i], j) for i, j in np.argwhere(near).tolist())


def _settle(
    state: State,
    left: Sequence[Point],
    singles: Sequence[Cluster],
    groups: Sequence[Sequence[int]],
    limits: Limits,
    ties: Ties,
) -> tuple[dict[str, tuple[str, bool]], State]:
    """Give every group an id: that of the old cluster of one in it, else a new number; item → (cluster, joined)."""
    clusters = {cluster.id: cluster for cluster in state.clusters}
    number = state.next_number
    born: dict[str, tuple[str, bool]] = {}
    fresh = [(min(left[i].item.id for i in rows if i < len(left)), rows) for rows in groups if min(rows) < len(left)]
    for _, rows in sorted(fresh, key=lambda one: one[0]):
        new = sorted((left[i] for i in rows if i < len(left)), key=lambda point: point.item.id)
        host = next((singles[i - len(left)] for i in rows if i >= len(left)), None)
        if host is None:
            host = Cluster(f"C-{number:04d}", (), (), 0.0, None)
            number += 1
        clusters[host.id] = grow(clusters.get(host.id, host), new, limits, ties)
        born.update({point.item.id: (host.id, bool(host.members)) for point in new})
    after = tuple(sorted(clusters.values(), key=lambda cluster: (len(cluster.id), cluster.id)))
    return born, State(after, number)


def _explain(
    state: State, born: dict[str, tuple[str, bool]], left: Sequence[Point], limits: Limits
) -> dict[str, Join | Birth]:
    """Say for each item which known exemplar or fellow is nearest, and why it is (not) in that cluster."""
    old = [point for cluster in state.clusters for point in cluster.exemplars]
    home = {member: cluster.id for cluster in state.clusters for member in cluster.members}
    own: dict[str, list[int]] = {}
    for row, other in enumerate(old):
        own.setdefault(home[other.item.id], []).append(row)
    out: dict[str, Join | Birth] = {}
    gaps = gaps_between(left, old) if old and left else np.zeros((len(left), 0))
    for i, point in enumerate(left):
        cluster, joined = born[point.item.id]
        rows = own.get(cluster, []) if joined else slice(None)
        near = gaps[i, rows]
        j = int(np.arange(len(old))[rows][near.argmin()]) if near.size else None
        if joined and j is not None:
            why = why_of(point.item, old[j].item, float(gaps[i, j]), limits.tau, "grouped with a cluster of one")
            out[point.item.id] = Join(point.item.id, cluster, why)
        elif j is None:
            out[point.item.id] = Birth(point.item.id, cluster, Why(None, 1.0, limits.tau, (), (), "nothing known yet"))
        else:
            gap = float(gaps[i, j])
            words = "contradicts the nearest known" if gap >= CONFLICT else "too far from all that is known"
            out[point.item.id] = Birth(point.item.id, cluster, why_of(point.item, old[j].item, gap, limits.tau, words))
    return out
