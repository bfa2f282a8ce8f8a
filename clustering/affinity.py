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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from crashpath.clustering.encoder import Vectors
from crashpath.clustering.items import Item
from crashpath.clustering.terms import WEAK, Terms, family

Distances = NDArray[np.float64]
Flags = NDArray[np.bool_]

CONFLICT = 2.0
DECIMALS = 5
STRIP = 512
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

    @property
    def terms(self) -> tuple[Terms, ...]:
        return tuple(item.terms for item in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Sequence[int]) -> Space:
        """Return the space of some rows."""
        return Space([self.items[i] for i in rows], self.vectors[list(rows)], self.weights)


def cosine(left: Vectors, right: Vectors) -> Distances:
    """Return cosine distances ``(len(left), len(right))``, rounded so that thread counts do not show."""
    product = left.astype(np.float64) @ right.astype(np.float64).T
    return np.clip(np.round(1.0 - product, DECIMALS), 0.0, 2.0)


def distances(left: Space, right: Space) -> Distances:
    """Return distances ``(len(left), len(right))`` in 0 … 1, and ``CONFLICT`` where two may never be one."""
    return np.where(conflicts(left, right), CONFLICT, softer(left, right))


def square(space: Space) -> Distances:
    """Return the distances of all pairs, symmetric with zeros on the diagonal, worked out in strips to bound memory."""
    out = np.empty((len(space), len(space)), dtype=np.float64)
    for start in range(0, len(space), STRIP):
        rows = range(start, min(start + STRIP, len(space)))
        out[start : rows.stop] = distances(space.take(rows), space)
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
        (_gap(_text_terms(left), _text_terms(right)), np.full(near.shape, w.words)),
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
    both, same = _equal([item.cue or "" for item in left.items], [item.cue or "" for item in right.items])
    out = both & ~same
    both, same = _equal([item.kind for item in left.items], [item.kind for item in right.items])
    out |= both & ~same
    for more in (code_conflict, word_conflict, cause_conflict, kind_conflict):
        out |= more(left, right)
    return np.asarray(out, dtype=np.bool_)


def code_conflict(left: Space, right: Space) -> Flags:
    """Return where both texts have codes of one family (HTTP status, errno, signal …) and share none of them."""
    out = np.zeros((len(left), len(right)), dtype=np.bool_)
    mine, theirs = [t.codes for t in left.terms], [t.codes for t in right.terms]
    for name in sorted({family(code) for codes in (*mine, *theirs) for code in codes}):
        a, b = (
            [frozenset(code for code in codes if family(code) == name) for codes in side] for side in (mine, theirs)
        )
        shared = _shared(a, b)
        has = np.outer([bool(codes) for codes in a], [bool(codes) for codes in b])
        out |= has & (shared == 0)
    return out


def word_conflict(left: Space, right: Space) -> Flags:
    """Return where each side states a cause in plain words that the other lacks.

    Both must have at least ``own_words`` such words, and they must be ``own_share`` of its plain words: a wrapper's
    sentence on one side alone is no contradiction, and neither are other names or values.
    """
    w = left.weights
    a, b = [t.words for t in left.terms], [t.words for t in right.terms]
    shared = _shared(a, b)
    size_a, size_b = (np.array([len(words) for words in side], dtype=np.float64) for side in (a, b))
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
    words, causes, all = [t.words for t in left.terms], [t.cause for t in right.terms], [t.words for t in right.terms]
    size, own = (np.array([len(one) for one in side], dtype=np.float64) for side in (words, causes))
    new = own[None, :] - _shared(words, causes)
    said = _shared(words, all) >= np.maximum(1.0, w.said * size)[:, None]
    whole = np.maximum(np.array([len(one) for one in all], dtype=np.float64), 1.0)[None, :]
    return np.asarray(said & (new >= w.own_words) & (new / whole >= w.own_share), dtype=np.bool_)


def kind_conflict(left: Space, right: Space) -> Flags:
    """Return where one has an exception kind of its own, the other says enough in words, and they share no term.

    Their frames alone would make them one: the same line that loads a model meets many failures.
    """
    a, b = ([item.kind for item in side.items] for side in (left, right))
    _, same = _equal(a, b)
    telling = np.logical_or.outer([kind != "" for kind in a], [kind != "" for kind in b])
    enough = np.logical_or.outer(~_weak(left), ~_weak(right))
    shared = _product(_text_terms(left), _text_terms(right))
    return np.asarray(telling & ~same & enough & (shared == 0), dtype=np.bool_)


def shared_and_differing(left: Terms, right: Terms, limit: int = 8) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return terms that two texts share and terms that one has alone, codes first, at most ``limit``."""

    def listed(pick: Callable[[frozenset[str], frozenset[str]], frozenset[str]]) -> tuple[str, ...]:
        parts = ((left.codes, right.codes), (left.words, right.words), (left.names, right.names))
        return tuple(term for a, b in parts for term in sorted(pick(a, b)))[:limit]

    return listed(lambda a, b: a & b), listed(lambda a, b: a ^ b)


Weighted = list[dict[str, float]]


def _weak(space: Space) -> NDArray[np.bool_]:
    return np.array([item.native or item.terms.strength < WEAK for item in space.items], dtype=np.bool_)


def _text_terms(space: Space) -> Weighted:
    return [dict.fromkeys(terms.words | terms.names | terms.codes, 1.0) for terms in space.terms]


def _frame_terms(space: Space) -> Weighted:
    """The innermost frame weighs most: 1, 1/2, 1/3 …; its package and class count apart, by ``module`` as much."""
    out: Weighted = []
    for item in space.items:
        weights: dict[str, float] = {}
        for place, frame in enumerate(dict.fromkeys(item.frames), start=1):
            weights[frame] = 1.0 / place
            module = frame.rpartition(":")[0]
            if "." in module:  # a bare file name is anybody's
                weights.setdefault(module, space.weights.module / place)
        out.append(weights)
    return out


def _frame_gap(left: Space, right: Space) -> Distances:
    """Return how far the frames are apart, NaN where that cannot be said.

    Of two native ends of which one has no frames, nothing says that they are one: 1.
    """
    gap = _gap(_frame_terms(left), _frame_terms(right))
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


def _gap(left: Weighted, right: Weighted) -> Distances:
    """Return 1 − cosine of weighted sets, NaN where a side has none."""
    norm = [np.sqrt([sum(value**2 for value in terms.values()) for terms in side]) for side in (left, right)]
    size = np.outer(*norm)
    return np.where(size > 0, np.clip(1.0 - _product(left, right) / np.maximum(size, 1e-9), 0.0, 1.0), np.nan)


def _shared(left: Sequence[frozenset[str]], right: Sequence[frozenset[str]]) -> Distances:
    """Return how many terms each pair shares."""
    return _product([dict.fromkeys(terms, 1.0) for terms in left], [dict.fromkeys(terms, 1.0) for terms in right])


def _product(left: Weighted, right: Weighted) -> Distances:
    vocabulary = {term: i for i, term in enumerate(sorted(set().union(*left, *right)))}
    return np.asarray((_matrix(left, vocabulary) @ _matrix(right, vocabulary).T).todense(), dtype=np.float64)


def _matrix(rows: Weighted, vocabulary: dict[str, int]) -> Any:
    columns = [vocabulary[term] for row in rows for term in sorted(row)]
    values = [row[term] for row in rows for term in sorted(row)]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return csr_matrix(
        (np.array(values), np.array(columns, dtype=np.int64), starts), shape=(len(rows), max(1, len(vocabulary)))
    )


def _equal(left: Sequence[str], right: Sequence[str]) -> tuple[Flags, Flags]:
    a, b = np.array(left, dtype=np.str_), np.array(right, dtype=np.str_)
    both = np.outer(a != "", b != "")
    return np.asarray(both, dtype=np.bool_), np.asarray(a[:, None] == b[None, :], dtype=np.bool_)
