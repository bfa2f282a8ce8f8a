"""Where signatures lie on the map: in two dimensions by UMAP, so that what is alike lies together.

The map is for eyes only; nothing is decided by it. It is laid out seldom, from where things lay before, because people
remember places; in between, what is new is put beside what is most like it.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from crashpath.clustering.encoder import Vectors
from crashpath.clustering.propose import SEED, SMALL

Places = NDArray[np.float64]
"""One row ``(x, y)`` a signature; units mean nothing."""

FEWEST = SMALL
"""Different vectors that a map needs: with fewer, UMAP has no neighbourhoods to learn from."""
NEIGHBOURS = 15
NEAREST = 3
"""How many of its kind a new one is put between."""
ROUNDS = 100
"""Of a map that begins from the old one: with UMAP's 500 for few points, groups wander off from where they were."""
_ROWS = 1024
"""Rows that are compared at once."""
_GAP = 0.004
"""How far copies of one vector are parted, as a share of the map, so that each can be pointed at."""


def enough(vectors: Vectors) -> bool:
    """Whether a map can be made of these vectors."""
    return len(vectors) >= FEWEST and len(np.unique(vectors, axis=0)) >= FEWEST


def lay_out(vectors: Vectors, start: Places | None = None, *, seed: int = SEED) -> Places:
    """Return a place for each row of ``vectors`` (float32, length 1, sorted by id), of which there must be ``enough``.

    ``start``: places from which it begins, so that the new map looks like the old one. The same input gives the same.
    """
    from umap import UMAP

    distinct, first, rows = np.unique(vectors, axis=0, return_index=True, return_inverse=True)
    model = UMAP(
        n_components=2,
        n_neighbors=min(NEIGHBOURS, len(distinct) - 1),
        min_dist=0.1,
        metric="cosine",
        random_state=seed,
        n_jobs=1,
        init="spectral" if start is None else np.asarray(start[first], dtype=np.float32),
        n_epochs=None if start is None else ROUNDS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        laid = np.asarray(model.fit_transform(distinct), dtype=np.float64)
    return parted(laid[np.asarray(rows).reshape(-1)])


def put(vectors: Vectors, known: Vectors, places: Places) -> Places:
    """Return places for ``vectors`` between those of the ``known`` that are most like them; both must have a row."""
    number = min(NEAREST, len(known))
    out = np.empty((len(vectors), 2))
    for at in range(0, len(vectors), _ROWS):
        likeness = vectors[at : at + _ROWS] @ known.T
        nearest = np.argpartition(-likeness, number - 1, axis=1)[:, :number]
        near = np.take_along_axis(likeness, nearest, axis=1)
        # The most alike pulls most: what is the same as another lies where that lies, not in the middle of three.
        weights = 1.0 / (1e-6 + np.maximum(0.0, 1.0 - near.astype(np.float64)))
        out[at : at + _ROWS] = (places[nearest] * weights[:, :, None]).sum(axis=1) / weights.sum(axis=1)[:, None]
    return out


def parted(places: Places) -> Places:
    """Return the places with those that are the same parted a little: on a spiral, in the order of their rows."""
    if not len(places):
        return places
    span = float(np.ptp(places, axis=0).max()) or 1.0
    _, rows, counts = np.unique((places / span).round(4), axis=0, return_inverse=True, return_counts=True)
    rows = np.asarray(rows).reshape(-1)
    if counts.max(initial=1) == 1:
        return places
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    turn = np.empty(len(places))
    turn[order] = np.arange(len(places)) - np.repeat(starts, counts)
    angle = turn * 2.399963  # the golden angle: no two stand in a row
    radius = _GAP * span * np.sqrt(turn)
    return places + np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))
