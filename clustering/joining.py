"""Which cluster that is there already a new item joins, if any, and how a cluster changes when it grows.

An item joins where it is near an exemplar and far from none. A cluster that people merged holds *families* that are
far apart, so there the item is judged against the family (exemplars connected within τ) of its nearest exemplar. Of
clusters that people told apart, only the one with the nearest exemplar may take it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from crashpath.clustering.affinity import CONFLICT, Distances
from crashpath.clustering.cohesion import Links, spread
from crashpath.clustering.state import Cluster, Join, Limits, Point, State, gaps_between, why_of

NEAR = "near an exemplar and far from none"
NEAR_FAMILY = "near an exemplar and far from none of its family, in a cluster that people merged"
LINKED = "people put them together"


@dataclass(frozen=True, slots=True)
class Ties:
    """What people's links say about clusters: which they merged, told apart (``foes``), and want new items (not) in."""

    merged: frozenset[str] = frozenset()
    foes: dict[str, set[str]] = field(default_factory=dict)
    wanted: dict[str, set[str]] = field(default_factory=dict)
    barred: dict[str, set[str]] = field(default_factory=dict)


def ties_of(state: State, links: Links) -> Ties:
    """Resolve links of signatures to the clusters that they are members of; items of no cluster are new ones."""
    if not links.must and not links.cannot:
        return Ties()
    home = {member: cluster.id for cluster in state.clusters for member in cluster.members}
    merged: set[str] = set()
    ties = Ties()
    for one, other in (sorted(pair) for pair in links.must if len(pair) == 2):
        if one in home and home[one] == home.get(other):
            merged.add(home[one])
        _tie(ties.wanted, home, one, other)
    for one, other in (sorted(pair) for pair in links.cannot if len(pair) == 2):
        _tie(ties.barred, home, one, other)
        if one in home and other in home and home[one] != home[other]:
            ties.foes.setdefault(home[one], set()).add(home[other])
            ties.foes.setdefault(home[other], set()).add(home[one])
    return replace(ties, merged=frozenset(merged))


def _tie(ties: dict[str, set[str]], home: dict[str, str], one: str, other: str) -> None:
    for new, known in ((one, other), (other, one)):
        if new not in home and known in home:
            ties.setdefault(new, set()).add(home[known])


@dataclass(frozen=True, slots=True)
class _Want:
    """An item that wants to join: how far its nearest exemplar is, and the family that it was judged against."""

    gap: float
    point: Point
    exemplar: Point
    family: int
    reach: float
    words: str

    @property
    def rank(self) -> tuple[float, str]:
        return self.gap, self.point.item.id


def join(state: State, points: Sequence[Point], limits: Limits, ties: Ties) -> tuple[dict[str, Join], State]:
    """Each item joins at most one cluster of two or more (or one that people linked it to); nearest first."""
    decisions: dict[str, Join] = {}
    clusters = {cluster.id: cluster for cluster in state.clusters}
    wants = _Nearness(state, points, limits, ties).wants() if points and state.clusters else {}
    for cluster_id in sorted(wants):
        cluster, taken = clusters[cluster_id], list[_Want]()
        for want in sorted(wants[cluster_id], key=lambda one: one.rank):
            family = [one.point for one in taken if one.family == want.family]
            if want.words != LINKED and family and float(gaps_between([want.point], family).max()) >= CONFLICT:
                continue
            taken.append(want)
            why = why_of(want.point.item, want.exemplar.item, want.gap, want.reach, want.words)
            decisions[want.point.item.id] = Join(want.point.item.id, cluster_id, why)
        clusters[cluster_id] = grow(cluster, [one.point for one in taken], limits, ties)
    return decisions, replace(state, clusters=tuple(clusters[c.id] for c in state.clusters))


class _Nearness:
    """Distances of new items to all exemplars, cluster by cluster."""

    def __init__(self, state: State, points: Sequence[Point], limits: Limits, ties: Ties) -> None:
        asked = {cluster for several in ties.wanted.values() for cluster in several}
        self._clusters = [
            c for c in state.clusters if c.exemplars and (len(c.members) > 1 or c.id in ties.foes or c.id in asked)
        ]
        self._points, self._limits, self._ties = points, limits, ties
        self._place = {cluster.id: k for k, cluster in enumerate(self._clusters)}
        self._exemplars = [point for cluster in self._clusters for point in cluster.exemplars]
        self._starts = np.cumsum([0, *(len(cluster.exemplars) for cluster in self._clusters)])
        self._families: dict[int, tuple[tuple[int, ...], ...]] = {}

    def wants(self) -> dict[str, list[_Want]]:
        """For each cluster the items that want to join it."""
        out: dict[str, list[_Want]] = {}
        if not self._clusters:
            return out
        gaps = gaps_between(self._points, self._exemplars)
        nearest = np.minimum.reduceat(gaps, self._starts[:-1], axis=1)
        for i, point in enumerate(self._points):
            wanted = self._ties.wanted.get(point.item.id, set()) - self._ties.barred.get(point.item.id, set())
            linked = sorted(wanted & self._place.keys())  # nothing can be said of a cluster without exemplars
            if linked:
                k = self._place[linked[0]]
                want = self._want(point, k, gaps[i, self._starts[k] : self._starts[k + 1]], LINKED)
                out.setdefault(linked[0], []).append(want)
                continue
            best = self._best(point, gaps[i], nearest[i])
            if best is not None:
                out.setdefault(best[0], []).append(best[1])
        return out

    def _best(self, point: Point, gaps: Distances, nearest: Distances) -> tuple[str, _Want] | None:
        """The nearest cluster that may take the item; ties go to the lowest number."""
        best: tuple[str, _Want] | None = None
        barred = self._ties.barred.get(point.item.id, set())
        for k in np.flatnonzero(nearest <= self._limits.tau).tolist():
            cluster = self._clusters[k]
            if len(cluster.members) < 2 or cluster.id in barred or self._foe_is_nearer(k, nearest):
                continue
            row = gaps[self._starts[k] : self._starts[k + 1]]
            want = self._want(point, k, row, NEAR_FAMILY if cluster.id in self._ties.merged else NEAR)
            family = self._of(k)[want.family]
            fits = want.gap <= want.reach and float(row[list(family)].max()) <= self._limits.tau + self._limits.slack
            if fits and (best is None or want.gap < best[1].gap):
                best = cluster.id, want
        return best

    def _want(self, point: Point, k: int, row: Distances, words: str) -> _Want:
        cluster, j = self._clusters[k], int(row.argmin())
        families = self._of(k)
        family = next(n for n, rows in enumerate(families) if j in rows)
        reach = reach_of(cluster, families[family], self._limits, self._ties)
        return _Want(float(row[j]), point, cluster.exemplars[j], family, reach, words)

    def _of(self, k: int) -> tuple[tuple[int, ...], ...]:
        if k not in self._families:
            self._families[k] = families_of(self._clusters[k], self._limits, self._ties)
        return self._families[k]

    def _foe_is_nearer(self, k: int, nearest: Distances) -> bool:
        foes = self._ties.foes.get(self._clusters[k].id, set())
        return any(nearest[self._place[foe]] < nearest[k] for foe in foes if foe in self._place)


def apart(state: State, points: Sequence[Point], ties: Ties) -> frozenset[frozenset[str]]:
    """Return pairs of a new item and a cluster of one that may not take it: the other part of a split is nearer."""
    clusters = {cluster.id: cluster for cluster in state.clusters if cluster.exemplars}
    out: set[frozenset[str]] = set()
    for one in (clusters[name] for name in sorted(ties.foes) if name in clusters):
        foes = [point for foe in sorted(ties.foes[one.id]) if foe in clusters for point in clusters[foe].exemplars]
        if len(one.members) > 1 or not foes or not points:
            continue
        nearer = gaps_between(points, foes).min(axis=1) < gaps_between(points, one.exemplars).min(axis=1)
        out.update(frozenset((points[i].item.id, one.members[0])) for i in np.flatnonzero(nearer).tolist())
    return frozenset(out)


def families_of(cluster: Cluster, limits: Limits, ties: Ties) -> tuple[tuple[int, ...], ...]:
    """Return rows of the exemplars: one family, but in a cluster that people merged those connected within τ."""
    everyone = tuple(range(len(cluster.exemplars)))
    if cluster.id not in ties.merged or len(everyone) < 2:
        return (everyone,)
    return _families(gaps_between(cluster.exemplars, cluster.exemplars), limits)


def _families(gaps: Distances, limits: Limits) -> tuple[tuple[int, ...], ...]:
    number, label = connected_components(csr_matrix(gaps <= limits.tau), directed=False)
    return tuple(tuple(np.flatnonzero(label == n).tolist()) for n in range(number))


def reach_of(cluster: Cluster, family: Sequence[int], limits: Limits, ties: Ties) -> float:
    """How near an exemplar of a family a new member must be.

    What people changed has the spread of its own exemplars, not the one that was measured on the whole. One alone says
    nothing of its spread: it takes what a cluster of one would.
    """
    if cluster.id not in ties.merged and cluster.id not in ties.foes:
        return limits.reach(cluster)
    if len(family) < 2:
        return limits.tau
    own = [cluster.exemplars[i] for i in family]
    gaps = gaps_between(own, own)
    np.fill_diagonal(gaps, 0.0)
    return min(limits.tau, min(spread(gaps), limits.tau) + limits.slack)


def grow(cluster: Cluster, new: Sequence[Point], limits: Limits, ties: Ties) -> Cluster:
    """Return the cluster with new members; its exemplars are chosen anew from the old ones and the new members."""
    if not new:
        return cluster
    points = sorted([*cluster.exemplars, *new], key=lambda point: point.item.id)
    gaps = gaps_between(points, points)
    np.fill_diagonal(gaps, 0.0)
    families = _families(gaps, limits) if cluster.id in ties.merged else (tuple(range(len(points))),)
    widest = max(spread(gaps[np.ix_(rows, rows)]) for rows in families)
    cues = sorted({point.item.cue for point in points if point.item.cue is not None})
    return Cluster(
        cluster.id,
        tuple(sorted({*cluster.members, *(point.item.id for point in new)})),
        tuple(points[i] for i in _spread_out(gaps, limits.exemplars)),
        max(cluster.spread, min(widest, limits.tau)),
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
