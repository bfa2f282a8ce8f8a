"""The step of a night that gives signatures their places on the map, after everything that is decided.

Mostly it puts the night's new signatures beside what is like them, in a moment. The whole map is laid out where there
is none, and again when a fifth more signatures have come than it was laid out of. The slow work is outside any
transaction; a night that is killed leaves signatures without a place, and the next one places them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from crashpath.clustering.encoder import Vectors
from crashpath.clustering.places import Places, enough, lay_out, parted, put
from crashpath.ingest.chunks import chunks
from crashpath.ingest.embeddings import embeddings
from crashpath.ingest.lineage import tied_encoder
from crashpath.ingest.places import Placed, laid_out, placed_signatures, put_places, unplaced
from crashpath.ingest.store import Store

SHARE = 0.2
"""More signatures than it was laid out of, as a share, after which a map is laid out anew."""
MOST = 10_000
"""Most signatures that a map is laid out of, which takes about a minute; all others are put beside these."""
_CHUNK = 5_000
"""Signatures written at once: a short transaction."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What was done: of how many signatures the map is laid out, and how many got a place: all where ``anew``."""

    laid_out: int
    placed: int
    anew: bool

    def document(self) -> dict[str, Any]:
        """These figures as JSON."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """Say what was done, on one line."""
        if self.anew:
            return f"{self.placed:,} signatures laid out"
        return f"{self.placed:,} new, put beside what is like them; laid out of {self.laid_out:,}"


class Mapper:
    """Keeps the map of a store."""

    def __init__(self, *, share: float = SHARE, most: int = MOST) -> None:
        self._share, self._most = share, most

    def run(self, store: Store, *, say: Callable[[str], None], fence: Callable[[Session], None]) -> Mapped | None:
        """Place what has no place; ``None`` where nothing is to be done, or too little is there for a map."""
        with store.read() as session:
            if not unplaced(session):
                return None
            rows, size, encoder = placed_signatures(session), laid_out(session), tied_encoder(session)
            known = embeddings(session, encoder, [one.text for one in rows]) if encoder else {}
        rows = tuple(one for one in rows if one.text in known)
        there = sum(one.x is not None for one in rows)
        grown = len(rows) > (1 + self._share) * (there if size is None else size)
        if there == len(rows):  # what has no place has no vector either
            return None
        if grown or not there:
            return self._anew(store, rows, known, say, fence)
        say("map")
        new = [one for one in rows if one.x is None]
        self._write(store, new, _beside(new, [one for one in rows if one.x is not None], known), fence)
        return Mapped(there if size is None else size, len(new), anew=False)

    def _anew(
        self,
        store: Store,
        rows: Sequence[Placed],
        known: Mapping[str, Vectors],
        say: Callable[[str], None],
        fence: Callable[[Session], None],
    ) -> Mapped | None:
        whole, rest = rows[: self._most], rows[self._most :]  # ids are hashes: the first are as good as any
        vectors = _vectors(whole, known)
        if not enough(vectors):
            return None
        say("map")
        old = [one for one in whole if one.x is not None]
        start = None
        if len(old) > len(whole) // 2:
            start = np.empty((len(whole), 2))
            here = np.array([one.x is not None for one in whole])
            start[here] = _places(old)
            start[~here] = _beside([one for one in whole if one.x is None], old, known)
        places = lay_out(vectors, start)
        self._write(store, whole, places, fence)
        self._write(store, rest, parted(put(_vectors(rest, known), vectors, places)) if rest else places[:0], fence)
        return Mapped(len(rows), len(rows), anew=True)

    @staticmethod
    def _write(store: Store, rows: Sequence[Placed], places: Places, fence: Callable[[Session], None]) -> None:
        triples = [(one.id, float(x), float(y)) for one, (x, y) in zip(rows, places, strict=True)]
        for some in chunks(triples, _CHUNK):
            with store.write() as session:
                fence(session)
                put_places(session, some)


def _vectors(rows: Sequence[Placed], known: Mapping[str, Vectors]) -> Vectors:
    return np.stack([known[one.text] for one in rows]).astype(np.float32, copy=False)


def _places(rows: Sequence[Placed]) -> Places:
    return np.array([(one.x, one.y) for one in rows], dtype=np.float64)


def _beside(new: Sequence[Placed], old: Sequence[Placed], known: Mapping[str, Vectors]) -> Places:
    if not new:
        return np.empty((0, 2))
    places = _places(old)
    together = np.vstack((places, put(_vectors(new, known), _vectors(old, known), places)))
    return parted(together)[len(old) :]
