"""UMAP and HDBSCAN propose groups; nothing is decided here.

Measured, their answer moves with order, seed and a few more points, so the input is sorted by id, the seed is fixed,
and a proposed group stands only where ``cohesion`` lets it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from crashpath.clustering.affinity import cosine
from crashpath.clustering.encoder import Vectors

SEED = 7
SMALL = 15
"""Below this many points UMAP has no neighbourhoods to learn from, and complete linkage proposes."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Groups of row numbers (two or more each), the rows called noise, and what the methods were given."""

    groups: tuple[tuple[int, ...], ...]
    noise: tuple[int, ...]
    points: int
    components: int
    method: str


class Proposer(Protocol):
    """Proposes groups of the rows of ``vectors`` (float32, rows of length 1, sorted by id)."""

    def __call__(self, vectors: Vectors) -> Proposal: ...


@dataclass(frozen=True, slots=True)
class UmapHdbscan:
    """UMAP (cosine) and HDBSCAN (euclidean on its output); complete linkage where there are too few points."""

    components: int = 5
    neighbours: int = 10
    min_cluster_size: int = 2
    selection: str = "leaf"
    small_cut: float = 0.35
    seed: int = SEED

    def __call__(self, vectors: Vectors) -> Proposal:
        distinct, rows = np.unique(vectors, axis=0, return_inverse=True)
        if len(distinct) < SMALL:
            return Linkage(self.small_cut)(vectors)
        components = min(self.components, len(distinct) - 2)
        points = self._reduce(distinct, components)
        labels = self._label(points)[np.asarray(rows).reshape(-1)]
        return _proposal(labels, components, "umap+hdbscan")

    def _reduce(self, vectors: Vectors, components: int) -> NDArray[np.float32]:
        from umap import UMAP

        model = UMAP(
            n_components=components,
            n_neighbors=min(self.neighbours, len(vectors) - 1),
            min_dist=0.0,
            metric="cosine",
            random_state=self.seed,
            n_jobs=1,
            init="random" if len(vectors) < 4 * components else "spectral",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(model.fit_transform(vectors), dtype=np.float32)

    def _label(self, points: NDArray[np.float32]) -> NDArray[np.int64]:
        from hdbscan import HDBSCAN

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HDBSCAN(
                min_cluster_size=self.min_cluster_size,
                min_samples=1,
                metric="euclidean",
                cluster_selection_method=self.selection,
                core_dist_n_jobs=1,
                approx_min_span_tree=False,
            )
            return np.asarray(model.fit_predict(points.astype(np.float64)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Linkage:
    """A plain distance threshold: complete linkage on cosine distance, cut at ``cut``."""

    cut: float

    def __call__(self, vectors: Vectors) -> Proposal:
        if len(vectors) < 2:
            return Proposal((), tuple(range(len(vectors))), len(vectors), 0, "none")
        gaps = cosine(vectors, vectors)
        np.fill_diagonal(gaps, 0.0)
        tree = linkage(squareform(gaps, checks=False), method="complete")
        labels = np.asarray(fcluster(tree, self.cut, criterion="distance"), dtype=np.int64)
        return _proposal(labels, 0, "complete-linkage")


def _proposal(labels: NDArray[np.int64], components: int, method: str) -> Proposal:
    """Groups in the order of their first row. HDBSCAN's label −1 and groups of one are noise."""
    members: dict[int, list[int]] = {}
    for row, label in enumerate(labels.tolist()):
        members.setdefault(label, []).append(row)
    groups = [tuple(rows) for label, rows in members.items() if label >= 0 and len(rows) > 1]
    grouped = {row for group in groups for row in group}
    noise = tuple(row for row in range(len(labels)) if row not in grouped)
    return Proposal(tuple(sorted(groups)), noise, len(labels), components, method)
