"""The registry decides which cluster a new signature belongs to: join or birth, with the reason.

Pure logic over a frozen state. Within one call every join is judged against the state that came in, births are found
together, and all is done in the order of ids, so the order of the input never matters. Membership once given stays:
clusters are never put together here, and a cluster of one may grow but keeps its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from crashpath.clustering.affinity import CONFLICT, Distances, Space, distances, shared_and_differing, square
from crashpath.clustering.cohesion import NO_LINKS, TAU, Links, linked, spread, stand
from crashpath.clustering.encoder import Vectors
from crashpath.clustering.items import Item
from crashpath.clustering.propose import Proposal, Proposer, UmapHdbscan

EXEMPLARS = 16
SLACK = 0.12
"""How far outside its own spread a cluster may reach for a new member, never further than τ."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """An item and its vector, float32 ``(dim,)``."""

    item: Item
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: ``members`` are item ids, ``exemplars`` some of them with their vectors, ``spread`` in distance."""

    id: str
    members: tuple[str, ...]
    exemplars: tuple[Point, ...] = field(repr=False)
    spread: float
    cue: str | None


@dataclass(frozen=True, slots=True)
class State:
    """All clusters, sorted by number, and the number that the next birth gets."""

    clusters: tuple[Cluster, ...] = ()
    next_number: int = 1


@dataclass(frozen=True, slots=True)
class Why:
    """Why an item went where it went: nearest exemplar and distance, the threshold, and terms on which they (dis)agree.

    For the first member of a cluster, ``exemplar`` is the nearest of another cluster, or ``None`` where there is none.
    """

    exemplar: str | None
    distance: float
    threshold: float
    shared: tuple[str, ...]
    differing: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Join:
    """An item became a member of a cluster that was there before."""

    item: str
    cluster: str
    why: Why


@dataclass(frozen=True, slots=True)
class Birth:
    """An item became a member of a cluster that this call made."""

    item: str
    cluster: str
    why: Why


@dataclass(frozen=True, slots=True)
class Assignment:
    """What ``assign`` decided, in the order of item ids; the state after it; what UMAP and HDBSCAN proposed."""

    decisions: tuple[Join | Birth, ...]
    state: State
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of the registry, in distance."""

    tau: float = TAU
    slack: float = SLACK
    exemplars: int = EXEMPLARS

    def reach(self, cluster: Cluster) -> float:
        """Return how near an exemplar a new member must be."""
        return min(self.tau, cluster.spread + self.slack)


LIMITS = Limits()


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
    joined, grown = _join(state, points, limits, links)
    left = [point for point in points if point.item.id not in joined]
    singles = [cluster for cluster in grown.clusters if len(cluster.members) == 1]
    groups, proposal = _group(left, singles, limits, links, proposer or UmapHdbscan())
    born, after = _settle(grown, left, singles, groups, limits, links)
    decisions = {**joined, **_explain(state, born, left, limits)}
    return Assignment(tuple(decisions[key] for key in sorted(decisions)), after, proposal)


def _distinct(state: State, new: Sequence[Point]) -> list[Point]:
    known = {member for cluster in state.clusters for member in cluster.members}
    first: dict[str, Point] = {}
    for point in new:
        if point.item.id not in known:
            first.setdefault(point.item.id, point)
    return list(first.values())


def _space(points: Sequence[Point]) -> Space:
    return Space([point.item for point in points], np.stack([point.vector for point in points]))


def _gaps(left: Sequence[Point], right: Sequence[Point], links: Links) -> Distances:
    """Distances with people's decisions; ``left`` and ``right`` may overlap."""
    gaps = distances(_space(left), _space(right))
    if links.must or links.cannot:
        column = {point.item.id: j for j, point in enumerate(right)}
        row = {point.item.id: i for i, point in enumerate(left)}
        for pairs, value in ((links.must, 0.0), (links.cannot, CONFLICT)):
            for a, b in (tuple(sorted(pair)) for pair in pairs if len(pair) == 2):
                for one, other in ((a, b), (b, a)):
                    if one in row and other in column:
                        gaps[row[one], column[other]] = value
    return gaps


def _join(state: State, points: Sequence[Point], limits: Limits, links: Links) -> tuple[dict[str, Join | Birth], State]:
    """Each item joins at most one cluster of two or more (or one that people linked it to); nearest first."""
    decisions: dict[str, Join | Birth] = {}
    clusters = {cluster.id: cluster for cluster in state.clusters}
    wanted = _wanted(state, points, limits, links)
    for cluster_id in sorted(wanted):
        cluster, taken = clusters[cluster_id], list[Point]()
        for gap, _, point, exemplar in sorted(wanted[cluster_id], key=lambda want: want[:2]):
            if taken and float(_gaps([point], taken, links).max()) >= CONFLICT:
                continue
            taken.append(point)
            why = _why(point.item, exemplar.item, gap, limits.reach(cluster), "near an exemplar and far from none")
            decisions[point.item.id] = Join(point.item.id, cluster_id, why)
        clusters[cluster_id] = _grow(cluster, taken, limits, links)
    return decisions, replace(state, clusters=tuple(clusters[c.id] for c in state.clusters))


def _wanted(
    state: State, points: Sequence[Point], limits: Limits, links: Links
) -> dict[str, list[tuple[float, str, Point, Point]]]:
    """For each cluster the items whose nearest cluster it is, if they are within its reach and far from no exemplar."""
    must = {item for pair in links.must for item in pair}
    clusters = [c for c in state.clusters if len(c.members) > 1 or any(point.item.id in must for point in c.exemplars)]
    out: dict[str, list[tuple[float, str, Point, Point]]] = {}
    if not clusters or not points:
        return out
    exemplars = [point for cluster in clusters for point in cluster.exemplars]
    starts = np.cumsum([0, *(len(cluster.exemplars) for cluster in clusters)])
    gaps = _gaps(points, exemplars, links)
    for i, point in enumerate(points):
        best: tuple[float, int, int] | None = None
        for k, cluster in enumerate(clusters):
            row = gaps[i, starts[k] : starts[k + 1]]
            nearest = int(row.argmin())
            reach = limits.reach(cluster) if len(cluster.members) > 1 else 0.0
            fits = row[nearest] <= reach and row.max() <= limits.tau + limits.slack
            if fits and (best is None or float(row[nearest]) < best[0]):
                best = (float(row[nearest]), k, int(starts[k]) + nearest)
        if best is not None:
            out.setdefault(clusters[best[1]].id, []).append((best[0], point.item.id, point, exemplars[best[2]]))
    return out


def _group(
    left: Sequence[Point], singles: Sequence[Cluster], limits: Limits, links: Links, proposer: Proposer
) -> tuple[tuple[tuple[int, ...], ...], Proposal]:
    """Group what did not join with the clusters of one: rows of ``left`` come first, then ``singles``."""
    points = [*left, *(cluster.exemplars[0] for cluster in singles)]
    if not left:
        return (), Proposal((), (), 0, 0, "none")
    order = sorted(range(len(points)), key=lambda i: points[i].item.id)
    space = _space([points[i] for i in order])
    proposal = proposer(space.vectors)
    gaps = linked(space, square(space), links)
    old = np.array([i >= len(left) for i in order])
    gaps[np.logical_and.outer(old, old)] = CONFLICT
    np.fill_diagonal(gaps, 0.0)
    standing = stand(gaps, proposal, tau=limits.tau)
    return tuple(tuple(order[row] for row in rows) for rows in standing), proposal


def _settle(
    state: State,
    left: Sequence[Point],
    singles: Sequence[Cluster],
    groups: Sequence[Sequence[int]],
    limits: Limits,
    links: Links,
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
        clusters[host.id] = _grow(clusters.get(host.id, host), new, limits, links)
        born.update({point.item.id: (host.id, bool(host.members)) for point in new})
    after = tuple(sorted(clusters.values(), key=lambda cluster: (len(cluster.id), cluster.id)))
    return born, State(after, number)


def _grow(cluster: Cluster, new: Sequence[Point], limits: Limits, links: Links) -> Cluster:
    """Return the cluster with new members; its exemplars are chosen anew from the old ones and the new members."""
    if not new:
        return cluster
    points = sorted([*cluster.exemplars, *new], key=lambda point: point.item.id)
    gaps = _gaps(points, points, links)
    np.fill_diagonal(gaps, 0.0)
    cues = sorted({point.item.cue for point in points if point.item.cue is not None})
    return Cluster(
        cluster.id,
        tuple(sorted({*cluster.members, *(point.item.id for point in new)})),
        tuple(points[i] for i in _spread_out(gaps, limits.exemplars)),
        max(cluster.spread, min(spread(gaps), limits.tau)),
        cluster.cue or (cues[0] if cues else None),
    )


def _spread_out(gaps: Distances, limit: int) -> list[int]:
    """Choose at most ``limit`` rows: the most central one, then always the one furthest from all chosen."""
    if len(gaps) <= limit:
        return list(range(len(gaps)))
    chosen = [int(gaps.sum(axis=1).argmin())]
    while len(chosen) < limit:
        chosen.append(int(gaps[:, chosen].min(axis=1).argmax()))
    return sorted(set(chosen))


def _explain(
    state: State, born: dict[str, tuple[str, bool]], left: Sequence[Point], limits: Limits
) -> dict[str, Join | Birth]:
    """Say for each item which known exemplar or fellow is nearest, and why it is (not) in that cluster."""
    old = [point for cluster in state.clusters for point in cluster.exemplars]
    home = {member: cluster.id for cluster in state.clusters for member in cluster.members}
    out: dict[str, Join | Birth] = {}
    gaps = distances(_space(left), _space(old)) if old and left else np.zeros((len(left), 0))
    for i, point in enumerate(left):
        cluster, joined = born[point.item.id]
        rows = [j for j, other in enumerate(old) if not joined or home[other.item.id] == cluster]
        j = min(rows, key=lambda row: float(gaps[i, row]), default=None)
        if joined and j is not None:
            why = _why(point.item, old[j].item, float(gaps[i, j]), limits.tau, "grouped with a cluster of one")
            out[point.item.id] = Join(point.item.id, cluster, why)
        elif j is None:
            out[point.item.id] = Birth(point.item.id, cluster, Why(None, 1.0, limits.tau, (), (), "nothing known yet"))
        else:
            gap = float(gaps[i, j])
            words = "contradicts the nearest known" if gap >= CONFLICT else "too far from all that is known"
            out[point.item.id] = Birth(point.item.id, cluster, _why(point.item, old[j].item, gap, limits.tau, words))
    return out


def _why(item: Item, exemplar: Item, gap: float, threshold: float, words: str) -> Why:
    shared, differing = shared_and_differing(item.terms, exemplar.terms)
    return Why(exemplar.id, gap, threshold, shared, differing, words)
