"""How far two failures are apart: cosine of their embeddings, mended by what an embedding does not see.

``distance = embedding · (1 − cos) + words · (1 − cos of terms) + kind · [kinds differ] + frames · (1 − cos of frames)``
in 0 … 1, over the parts that both sides have. Where a root text says little (``NullPointerException:`` and no more) or
only how native code ended (``SEGV on unknown address``) the frames take the larger share, else a small one: two
deployments that fail alike call from other code. Within one code base (names with a common package) they take a share
of their own, because there the same words from another place are likely another failure; and two functions of one
class are nearer than those of two. A distance depends on the two alone, never on their company, so that a prediction
agrees with a fit. A *conflict* (classes, exception kinds or codes that contradict each other, or plain words that only
the other side lacks) is the largest distance there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crashpath.clustering.encoder import Vectors
from crashpath.clustering.items import Item
from crashpath.clustering.term_table import TermTable, gaps, products, table_of
from crashpath.clustering.terms import WEAK, Terms, family

Distances = NDArray[np.float64]
Flags = NDArray[np.bool_]

CONFLICT = 2.0
DECIMALS = 5
ROUNDING = 10.0 ** (1 - DECIMALS)
"""More than two ways of working out one distance can differ by."""
CELLS = 2_000_000
"""Pairs that are worked out at once; each takes some ten numbers meanwhile."""
_CODE_BASE = 3
"""Parts of a package's name that name its project: ``org.acme.serve``."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the parts of a distance, and what counts as other words (see ``word_conflict``)."""

    embedding: float = 0.5
    words: float = 0.3
    kind: float = 0.1
    frames: float = 0.05
    weak_frames: float = 2.0
    same_code_frames: float = 0.4
    module: float = 1.5
    own_words: int = 3
    own_share: float = 0.3
    said: float = 0.8


WEIGHTS = Weights()


class Space:
    """Items with their vectors and terms, ready for distances. Row i is item i."""

    def __init__(self, items: Sequence[Item], vectors: Vectors, weights: Weights = WEIGHTS) -> None:
        self.items, self.vectors, self.weights = tuple(items), vectors, weights
        self._tables: dict[str, TermTable] = {}

    @property
    def terms(self) -> tuple[Terms, ...]:
        """The terms of each item."""
        return tuple(item.terms for item in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Sequence[int]) -> Space:
        """Return the space of some rows."""
        part = Space([self.items[i] for i in rows], self.vectors[list(rows)], self.weights)
        part._tables = {name: table.take(rows) for name, table in self._tables.items()}
        return part

    def table(self, name: str, terms: Callable[[Item], Mapping[str, float]]) -> TermTable:
        """Return the table of what ``terms`` says of each item; made once, under its name."""
        if name not in self._tables:
            self._tables[name] = table_of([terms(item) for item in self.items])
        return self._tables[name]


def cosine(left: Vectors, right: Vectors) -> Distances:
    """Return cosine distances ``(len(left), len(right))``, rounded so that thread counts do not show."""
    product = left.astype(np.float64) @ right.astype(np.float64).T
    return np.clip(np.round(1.0 - product, DECIMALS), 0.0, 2.0)


def distances(left: Space, right: Space) -> Distances:
    """Return distances ``(len(left), len(right))`` in 0 … 1, and ``CONFLICT`` where two may never be one."""
    out = np.empty((len(left), len(right)), dtype=np.float64)
    for rows in strips(len(left), len(right)):
        part = left if len(rows) == len(left) else left.take(rows)
        out[rows.start : rows.stop] = np.where(conflicts(part, right), CONFLICT, softer(part, right))
    return out


def strips(rows: int, columns: int) -> Iterator[range]:
    """Cut rows into strips of so few that memory is bounded, whatever the columns."""
    step = max(1, CELLS // max(1, columns))
    return (range(start, min(start + step, rows)) for start in range(0, rows, step))


def square(space: Space) -> Distances:
    """Return the distances of all pairs, symmetric with zeros on the diagonal."""
    out = distances(space, space)
    out = np.maximum(out, out.T)
    np.fill_diagonal(out, 0.0)
    return out


def softer(left: Space, right: Space) -> Distances:
    """Return the distances without conflicts: what ``nearest`` ranks by."""
    w = left.weights
    near = cosine(left.vectors, right.vectors)
    total, weight = w.embedding * near, np.full(near.shape, w.embedding)
    weak = np.logical_or.outer(_weak(left), _weak(right))
    strong = np.where(_same_code(left, right), w.same_code_frames, w.frames)
    for gap, share in (
        (gaps(_text(left), _text(right)), np.full(near.shape, w.words)),
        (_frame_gap(left, right), np.where(weak, w.weak_frames, strong)),
    ):
        known = ~np.isnan(gap)
        total += np.where(known, share * gap, 0.0)
        weight += np.where(known, share, 0.0)
    both, same = _equal([item.kind for item in left.items], [item.kind for item in right.items])
    total += np.where(both & ~same, w.kind, 0.0)
    weight += np.where(both, w.kind, 0.0)
    return np.asarray(np.round(np.clip(total / weight, 0.0, 1.0), DECIMALS), dtype=np.float64)


def conflicts(left: Space, right: Space) -> Flags:
    """Return where two items may never share a cluster, whatever their distance."""
    out = np.zeros((len(left), len(right)), dtype=np.bool_)
    for found in CONFLICTS.values():
        out |= found(left, right)
    return out


def cue_conflict(left: Space, right: Space) -> Flags:
    """Return where the rules that chose both roots know two classes."""
    both, same = _equal([item.cue or "" for item in left.items], [item.cue or "" for item in right.items])
    return np.asarray(both & ~same, dtype=np.bool_)


def kind_conflict(left: Space, right: Space) -> Flags:
    """Return where both have an exception kind that tells of a cause, and not the same."""
    both, same = _equal([item.kind for item in left.items], [item.kind for item in right.items])
    return np.asarray(both & ~same, dtype=np.bool_)


def code_conflict(left: Space, right: Space) -> Flags:
    """Return where both texts have codes of one family (HTTP status, errno, signal …) and share none of them."""
    out = np.zeros((len(left), len(right)), dtype=np.bool_)
    for name in sorted(_families(left) & _families(right)):
        a, b = (side.table(f"codes {name}", partial(_codes, name)) for side in (left, right))
        out |= np.outer(a.norm > 0, b.norm > 0) & (products(a, b) == 0)
    return out


def _families(space: Space) -> set[str]:
    return {family(code) for terms in space.terms for code in terms.codes}


def _codes(name: str, item: Item) -> dict[str, float]:
    return {code: 1.0 for code in item.terms.codes if family(code) == name}


def word_conflict(left: Space, right: Space) -> Flags:
    """Return where each side states a cause in plain words that the other lacks.

    Both must have at least ``own_words`` such words, and they must be ``own_share`` of its plain words: a wrapper's
    sentence on one side alone is no contradiction, and neither are other names or values.
    """
    w = left.weights
    shared = products(_words(left), _words(right))
    size_a, size_b = _sizes(t.words for t in left.terms), _sizes(t.words for t in right.terms)
    own_a, own_b = size_a[:, None] - shared, size_b[None, :] - shared
    least = np.minimum(own_a, own_b)
    share = np.minimum(own_a / np.maximum(size_a[:, None], 1), own_b / np.maximum(size_b[None, :], 1))
    return np.asarray((least >= w.own_words) & (share >= w.own_share), dtype=np.bool_)


def cause_conflict(left: Space, right: Space) -> Flags:
    """Return where one says what the other says, and behind its last colon a cause that the other knows nothing of.

    What a wrapper puts in front is no cause: the words behind its colon are the other's own.
    """
    return _further(left, right) | _further(right, left).T


def _further(left: Space, right: Space) -> Flags:
    w = left.weights
    causes = right.table("cause", lambda item: dict.fromkeys(item.terms.cause, 1.0))
    new = _sizes(t.cause for t in right.terms)[None, :] - products(_words(left), causes)
    size = _sizes(t.words for t in left.terms)
    said = products(_words(left), _words(right)) >= np.maximum(1.0, w.said * size)[:, None]
    whole = np.maximum(_sizes(t.words for t in right.terms), 1.0)[None, :]
    return np.asarray(said & (new >= w.own_words) & (new / whole >= w.own_share), dtype=np.bool_)


def unrelated_conflict(left: Space, right: Space) -> Flags:
    """Return where one has an exception kind of its own, the other says enough in words, and they share no term.

    Their frames alone would make them one: the same line that loads a model meets many failures.
    """
    a, b = ([item.kind for item in side.items] for side in (left, right))
    _, same = _equal(a, b)
    telling = np.logical_or.outer([kind != "" for kind in a], [kind != "" for kind in b])
    enough = np.logical_or.outer(~_weak(left), ~_weak(right))
    shared = products(_text(left), _text(right))
    return np.asarray(telling & ~same & enough & (shared == 0), dtype=np.bool_)


CONFLICTS: dict[str, Callable[[Space, Space], Flags]] = {
    "rules tell of two classes": cue_conflict,
    "the exceptions are of two kinds": kind_conflict,
    "their codes differ": code_conflict,
    "each states a cause in words that the other lacks": word_conflict,
    "one names a further cause that the other knows nothing of": cause_conflict,
    "one is an exception of its own kind, and their words share nothing": unrelated_conflict,
}
"""Why two may never be one, in words, and where it is so."""


def shared_and_differing(left: Terms, right: Terms, limit: int = 8) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return terms that two texts share and terms that one has alone, codes first, at most ``limit``."""

    def listed(pick: Callable[[frozenset[str], frozenset[str]], frozenset[str]]) -> tuple[str, ...]:
        parts = ((left.codes, right.codes), (left.words, right.words), (left.names, right.names))
        return tuple(term for a, b in parts for term in sorted(pick(a, b)))[:limit]

    return listed(lambda a, b: a & b), listed(lambda a, b: a ^ b)


def _weak(space: Space) -> NDArray[np.bool_]:
    return np.array([item.native or item.terms.strength < WEAK for item in space.items], dtype=np.bool_)


def _text(space: Space) -> TermTable:
    return space.table("text", lambda item: dict.fromkeys(item.terms.words | item.terms.names | item.terms.codes, 1.0))


def _sizes(sets: Iterable[frozenset[str]]) -> Distances:
    return np.array([len(one) for one in sets], dtype=np.float64)


def _words(space: Space) -> TermTable:
    return space.table("words", lambda item: dict.fromkeys(item.terms.words, 1.0))


def _frames(space: Space) -> TermTable:
    """The innermost frame weighs most: 1, 1/2, 1/3 …; its package and class count apart, by ``module`` as much."""

    def weighed(item: Item) -> dict[str, float]:
        weights: dict[str, float] = {}
        for place, frame in enumerate(dict.fromkeys(item.frames), start=1):
            weights[frame] = 1.0 / place
            module = frame.rpartition(":")[0]
            if "." in module:  # a bare file name is anybody's
                weights.setdefault(module, space.weights.module / place)
        return weights

    return space.table("frames", weighed)


def _frame_gap(left: Space, right: Space) -> Distances:
    """Return how far the frames are apart, NaN where that cannot be said.

    Of two native ends of which one has no frames, nothing says that they are one: 1.
    """
    gap = gaps(_frames(left), _frames(right))
    native = np.logical_and.outer(*([item.native for item in side.items] for side in (left, right)))
    one_has = np.not_equal.outer(*([bool(item.frames) for item in side.items] for side in (left, right)))
    return np.where(native & one_has, 1.0, gap)


def _same_code(left: Space, right: Space) -> Flags:
    """Return where the innermost frames of both are of one code base."""
    both, same = _equal(*([_code_base(item) for item in side.items] for side in (left, right)))
    return np.asarray(both & same, dtype=np.bool_)


def _code_base(item: Item) -> str:
    """The first parts of the innermost frame's package, empty where it has too few to say."""
    parts = item.frames[0].rpartition(":")[0].split(".") if item.frames else []
    return ".".join(parts[:_CODE_BASE]) if len(parts) > _CODE_BASE else ""


def _equal(left: Sequence[str], right: Sequence[str]) -> tuple[Flags, Flags]:
    """Return where both have a value, and where it is the same."""
    number = {"": 0}  # whole numbers are compared much quicker than texts
    a, b = (np.array([number.setdefault(one, len(number)) for one in side], dtype=np.int64) for side in (left, right))
    return np.outer(a != 0, b != 0), np.equal.outer(a, b)
