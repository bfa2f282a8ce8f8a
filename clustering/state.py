"""What the registry knows and decides, as plain values: points, clusters, limits, joins and births with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from crashpath.clustering.affinity import Distances, Space, distances, shared_and_differing
from crashpath.clustering.cohesion import TAU
from crashpath.clustering.encoder import Vectors
from crashpath.clustering.items import Item

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

    def document(self) -> dict[str, Any]:
        """Return it as the store keeps it, JSON."""
        return asdict(self) | {"distance": round(self.distance, 4)}


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
class Limits:
    """Thresholds of the registry, in distance."""

    tau: float = TAU
    slack: float = SLACK
    exemplars: int = EXEMPLARS

    def reach(self, cluster: Cluster) -> float:
        """Return how near an exemplar a new member must be."""
        return min(self.tau, cluster.spread + self.slack)


LIMITS = Limits()


def space_of(points: Sequence[Point]) -> Space:
    """Return points (one or more) ready for distances."""
    return Space([point.item for point in points], np.stack([point.vector for point in points]))


def gaps_between(left: Sequence[Point], right: Sequence[Point]) -> Distances:
    """Return distances ``(len(left), len(right))``; both have one point or more."""
    return distances(space_of(left), space_of(right))


def why_of(item: Item, exemplar: Item, gap: float, threshold: float, words: str) -> Why:
    """Return why an item went where it went, seen from the exemplar that is nearest."""
    shared, differing = shared_and_differing(item.terms, exemplar.terms)
    return Why(exemplar.id, gap, threshold, shared, differing, words)
