"""Which other clusters are nearest to a cluster or signature, from stored vectors: nothing is encoded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.clustering.affinity import (
    CONFLICTS,
    Flags,
    Space,
    cosine,
    cue_conflict,
    kind_conflict,
    shared_and_differing,
    softer,
)
from crashpath.clustering.items import item_of_signature
from crashpath.clustering.state import Point, space_of
from crashpath.ingest.clusters import cluster_id, signature_facts
from crashpath.ingest.embeddings import embeddings
from crashpath.ingest.tables import Cluster, Project, Signature

LOOKED_AT = 12
"""Clusters with the nearest vectors that are compared in full."""


@dataclass(frozen=True, slots=True)
class Near:
    """Another cluster: the two signatures that are nearest, how far apart they are, and on what they (dis)agree.

    ``contradicts`` says why the two may never share a cluster, whatever their distance; empty where they may.
    """

    cluster: str
    label: str
    own: str
    other: str
    distance: float
    shared: tuple[str, ...]
    differing: tuple[str, ...]
    contradicts: tuple[str, ...]


def nearest_clusters(session: Session, own: Sequence[str], home: str | None, limit: int = 3) -> tuple[Near, ...]:
    """Return the clusters nearest to these signatures, leaving out their own ``home``."""
    encoder = session.scalar(select(Project.encoder_id))
    labels, others = _exemplars(session, home)
    if encoder is None or not others or not own:
        return ()
    texts = dict(session.execute(select(Signature.id, Signature.text).where(Signature.id.in_(own))).all())
    texts |= {one: text for members in others.values() for one, text in members}
    vectors = embeddings(session, encoder, list(texts.values()))
    mine = [one for one in own if texts.get(one) in vectors]
    if not mine:
        return ()
    stack = np.stack([vectors[texts[one]] for one in mine])
    ranked: list[tuple[float, int]] = []
    for number, members in others.items():
        theirs = [vectors[text] for _, text in members if text in vectors]
        if theirs:
            ranked.append((float(cosine(stack, np.stack(theirs)).min()), number))
    chosen = [number for _, number in sorted(ranked)[:LOOKED_AT]]
    ids = [one for number in chosen for one, text in others[number] if text in vectors]
    facts = {one.id: one for one in signature_facts(session, [*mine, *ids])}
    points = {one: Point(item_of_signature(fact), vectors[fact.text]) for one, fact in facts.items()}
    found = [
        _near(cluster_id(number), labels[number], [points[one] for one in mine],
              [points[one] for one, _ in others[number] if one in points])
        for number in chosen
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda near: (near.distance, near.cluster))[:limit])


def _exemplars(session: Session, home: str | None) -> tuple[dict[int, str], dict[int, list[tuple[str, str]]]]:
    query = (
        select(Cluster.id, Cluster.name, Cluster.label, Signature.id, Signature.text)
        .join(Signature, Signature.cluster_id == Cluster.id)
        .where(Cluster.status == "active", Signature.is_exemplar)
        .order_by(Signature.id)
    )
    labels: dict[int, str] = {}
    others: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for number, name, label, one, text in session.execute(query):
        if cluster_id(number) != home:
            labels[number] = name or label
            others[number].append((one, text))
    return labels, others


def _near(cluster: str, label: str, mine: Sequence[Point], theirs: Sequence[Point]) -> Near:
    left, right = space_of(mine), space_of(theirs)
    gaps = softer(left, right)
    i, j = divmod(int(gaps.argmin()), len(theirs))
    shared, differing = shared_and_differing(mine[i].item.terms, theirs[j].item.terms)
    return Near(
        cluster, label, mine[i].item.id, theirs[j].item.id, float(gaps[i, j]), shared, differing,
        tuple(_contradictions(left.take([i]), right.take([j]))),
    )  # fmt: skip


def _contradictions(one: Space, other: Space) -> Iterator[str]:
    """Say of two items why they may never share a cluster."""
    (mine,), (theirs,) = one.items, other.items
    named: dict[Callable[[Space, Space], Flags], str] = {
        cue_conflict: f": {mine.cue} here, {theirs.cue} there",
        kind_conflict: f": {mine.kind} here, {theirs.kind} there",
    }
    for words, conflict in CONFLICTS.items():
        if conflict(one, other)[0, 0]:
            yield words + named.get(conflict, "")
