"""Vectors by text, computed once: the first vector of a text is the one that every later decision sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from crashpath.clustering.encoder import Encoder, Vectors


class VectorCache(Protocol):
    """Keeps vectors by encoder id and text; the first one put stays."""

    def get_many(self, encoder: str, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the vectors known for these texts, each float32 ``(dim,)``."""

    def put_many(self, encoder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep vectors of new texts; a text that has one keeps it."""


class MemoryCache:
    """A ``VectorCache`` that lives as long as the process."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Vectors] = {}

    def get_many(self, encoder: str, texts: Sequence[str]) -> Mapping[str, Vectors]:
        return {text: self._known[encoder, text] for text in texts if (encoder, text) in self._known}

    def put_many(self, encoder: str, vectors: Mapping[str, Vectors]) -> None:
        for text, vector in vectors.items():
            self._known.setdefault((encoder, text), vector)


def embed(texts: Sequence[str], encoder: Encoder, cache: VectorCache) -> tuple[Vectors, int]:
    """Return vectors ``(len(texts), dim)`` in order, and how many distinct texts had to be encoded."""
    distinct = sorted(set(texts))
    known = dict(cache.get_many(encoder.id, distinct))
    missing = [text for text in distinct if text not in known]
    if missing:
        cache.put_many(encoder.id, dict(zip(missing, encoder.encode(missing), strict=True)))
        known.update(cache.get_many(encoder.id, missing))
    if not texts:
        return np.zeros((0, encoder.dim), dtype=np.float32), 0
    return np.stack([known[text] for text in texts]).astype(np.float32, copy=False), len(missing)
