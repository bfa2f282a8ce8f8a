"""Groups of one input, fitted on this input alone, and for each record the most similar other one.

Three tiers: one signature is one point; points are embedded and UMAP + HDBSCAN propose; cohesion decides. Ids are local
(``G-1`` …, in input order). Nothing depends on the order of the input but the names of the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crashpath.clustering.affinity import Distances, Space, conflicts, softer, square
from crashpath.clustering.cohesion import NO_LINKS, TAU, Links, linked, stand
from crashpath.clustering.encoder import Encoder
from crashpath.clustering.items import Item
from crashpath.clustering.propose import Proposal, Proposer, UmapHdbscan
from crashpath.clustering.vectors import MemoryCache, VectorCache, embed

CONFLICT_PENALTY = 0.15
CUE_BONUS = 0.05
CHUNK = 512


@dataclass(frozen=True, slots=True)
class Nearest:
    """The most similar other record; ``similarity`` in 0 … 1, and 1 for the same signature."""

    id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Grouped:
    """Where a record belongs. ``nearest`` is ``None`` only for a record that is alone."""

    id: str
    cluster: str
    nearest: Nearest | None


@dataclass(frozen=True, slots=True)
class Grouping:
    """One entry a record in input order, what was proposed, and how many groups of two or more points stand."""

    records: tuple[Grouped, ...]
    proposal: Proposal
    cohesive: int


def group(
    items: Sequence[Item],
    encoder: Encoder,
    *,
    cache: VectorCache | None = None,
    tau: float = TAU,
    links: Links = NO_LINKS,
    proposer: Proposer | None = None,
) -> Grouping:
    """Group records; ``items`` have record ids, and ``signature`` says which are one point."""
    points, point_of = _points(items)
    vectors, _ = embed([point.text for point in points], encoder, cache or MemoryCache())
    space = Space(points, vectors)
    proposal = (proposer or UmapHdbscan())(vectors)
    final = stand(linked(space, square(space), links), proposal, tau=tau)
    name_of = {row: i for i, rows in enumerate(final) for row in rows}
    names: dict[int, str] = {}
    for point in point_of:
        names.setdefault(name_of[point], f"G-{len(names) + 1}")
    near = nearest_rows(space)
    twins = _twins(point_of)
    records = tuple(
        Grouped(item.id, names[name_of[point_of[i]]], _nearest(i, items, point_of, twins, near))
        for i, item in enumerate(items)
    )
    return Grouping(records, proposal, sum(len(rows) > 1 for rows in final))


def nearest_rows(space: Space) -> tuple[tuple[int, float] | None, ...]:
    """Return for each row the nearest other row and its similarity; ties go to the lower row."""
    out: list[tuple[int, float] | None] = []
    for start in range(0, len(space), CHUNK):
        part = space.take(range(start, min(start + CHUNK, len(space))))
        gaps = ranked(part, space)
        for i in range(len(part)):
            gaps[i, start + i] = np.inf
        best = gaps.argmin(axis=1) if len(space) > 1 else []
        out.extend((int(j), _similarity(float(gaps[i, j]))) for i, j in enumerate(best))
    return tuple(out) if out else (None,) * len(space)


def ranked(left: Space, right: Space) -> Distances:
    """Return the distances that ``nearest`` ranks by: a conflict is far, yet never hides the nearest there is."""
    gaps = softer(left, right) + CONFLICT_PENALTY * conflicts(left, right)
    cues = [np.array([item.cue or "" for item in side.items], dtype=np.str_) for side in (left, right)]
    agree = (cues[0][:, None] == cues[1][None, :]) & (cues[0] != "")[:, None]
    return np.asarray(gaps - CUE_BONUS * agree, dtype=np.float64)


def _points(items: Sequence[Item]) -> tuple[list[Item], list[int]]:
    """Return one item a distinct signature, sorted by it, and for each record its point."""
    first: dict[str, Item] = {}
    for item in items:
        key = item.signature or item.id
        known = first.get(key)
        if known is None or _rank(item) < _rank(known):
            first[key] = item
    order = {key: i for i, key in enumerate(sorted(first))}
    return [first[key] for key in order], [order[item.signature or item.id] for item in items]


def _rank(item: Item) -> tuple[str, tuple[str, ...], list[str], str]:
    """Order of the records of one signature by what they say, so that their place in the input does not matter."""
    return item.text, item.frames, sorted(item.terms.codes | item.terms.words | item.terms.names), item.id


def _twins(point_of: Sequence[int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    for record, point in enumerate(point_of):
        members.setdefault(point, []).append(record)
    return members


def _nearest(
    record: int,
    items: Sequence[Item],
    point_of: Sequence[int],
    twins: dict[int, list[int]],
    near: Sequence[tuple[int, float] | None],
) -> Nearest | None:
    """A record of the same signature comes first, then one of the nearest point: in both, the lowest id."""
    point = point_of[record]
    same = [items[i].id for i in twins[point] if i != record]
    if same:
        return Nearest(min(same), 1.0)
    other = near[point]
    return None if other is None else Nearest(min(items[i].id for i in twins[other[0]]), other[1])


def _similarity(gap: float) -> float:
    return round(max(0.0, min(0.9999, 1.0 - gap)), 4)
