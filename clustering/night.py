"""The clustering step of a night: new signatures get vectors, a cluster and a class; everything else stays.

Three short transactions with the slow work between them: read what is pending, keep the new vectors, write what the
registry decided. A night that is killed in between leaves the signatures pending, and the next one takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from crashpath.clustering.classifier import Classifier, Evidence, Verdict
from crashpath.clustering.encoder import Encoder, Vectors
from crashpath.clustering.items import Item, item_of_signature
from crashpath.clustering.registry import Assignment, Birth, Cluster, Point, State, Why, assign
from crashpath.clustering.vectors import VectorCache, embed
from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.clusters import (
    SignatureFacts,
    StoredCluster,
    cluster_id,
    cluster_number,
    create_cluster,
    known_clusters,
    next_number,
    pending_signatures,
    set_shape,
    signature_facts,
)
from crashpath.ingest.clusters import assign as store_member
from crashpath.ingest.clusters import classify as store_class
from crashpath.ingest.embeddings import get_vectors, put_vectors, tie_encoder
from crashpath.ingest.store import Store


@dataclass(frozen=True, slots=True)
class Clustered:
    """What a night's clustering did. ``points`` and ``components`` are UMAP's input and output, 0 where it did not run."""

    embedded: int = 0
    points: int = 0
    components: int = 0
    groups: int = 0
    noise: int = 0
    method: str = "none"
    born: int = 0
    joined: int = 0
    seconds: tuple[tuple[str, float], ...] = ()


class StoreCache:
    """Vectors kept in the store, so that a text is encoded once in its life."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_many(self, encoder: str, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the stored vectors of these texts."""
        with self._store.read() as session:
            return get_vectors(session, encoder, texts)

    def put_many(self, encoder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep vectors of new texts."""
        with self._store.write() as session:
            put_vectors(session, encoder, vectors)
