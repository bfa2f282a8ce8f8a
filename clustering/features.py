"""What the classifier sees of a failure: words and codes of its root, and the facts that were parsed.

The features of a failure are hashed into a fixed number of cells, so the artefact needs no vocabulary and words that
the training never saw cost nothing. The class that a root rule knows (the *cue*) is no feature: it is weighed apart,
so that the classifier also stands alone where no rule speaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crashpath.clustering.encoder import Vectors
from crashpath.clustering.terms import Terms, terms_of
from crashpath.ingest.model import Analysis
from crashpath.ingest.signature import masked_message

if TYPE_CHECKING:
    from crashpath.ingest.clusters import SignatureFacts

CELLS = 2048
EMBEDDING_SCALE = 1.2
FACT_SCALE = 0.7
"""Weights of the embedding and of a fact beside the words (length 1), chosen on held-out faults of the corpus."""
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Subject:
    """A failure to be classified. ``text`` is what is embedded; ``types`` are exception types, root first."""

    text: str
    terms: Terms
    types: tuple[str, ...] = ()
    signal: str | None = None
    exit_code: int | None = None
    phase: str = "unknown"
    format: str = "plain"
    cue: str | None = None
    rule: str = ""


def subject_of(analysis: Analysis) -> Subject:
    """Return the subject of one analysed record."""
    variant, parsed, root = analysis.variant, analysis.parsed, analysis.root
    return Subject(
        text=analysis.signature.text,
        terms=terms_of(masked_message(variant.root_message), raw=variant.root_message),
        types=(variant.root_type, *variant.chain),
        signal=parsed.signal,
        exit_code=parsed.exit_code,
        phase=root.phase or parsed.facts.phase or "unknown",
        format=parsed.format,
        cue=root.failure_class,
        rule=root.rule,
    )


def subject_of_signature(facts: SignatureFacts) -> Subject:
    """Return the subject of a signature as the store has it."""
    return Subject(
        text=facts.text,
        terms=terms_of(masked_message(facts.root_message), raw=facts.root_message),
        types=(facts.root_type, *facts.chain),
        signal=facts.signal,
        exit_code=facts.exit_code,
        phase=facts.phase,
        format=facts.format,
        cue=facts.cue_class,
    )


def facts_told(subject: Subject) -> tuple[str, ...]:
    """Return the parsed facts as words, for features and for evidence."""
    out = [f"type {name}" for name in dict.fromkeys(_last(name) for name in subject.types) if name]
    if subject.signal:
        out.append(f"signal {subject.signal}")
    if subject.exit_code is not None:
        out.append(f"exit code {subject.exit_code}")
    if subject.phase != "unknown":
        out.append(f"phase {subject.phase}")
    return (*out, f"format {subject.format}")


def matrix(subjects: Sequence[Subject], vectors: Vectors) -> Matrix:
    """Return features ``(n, dim + CELLS)``: the embedding, then hashed terms of length 1 and facts."""
    hashed = np.zeros((len(subjects), CELLS))
    for i, subject in enumerate(subjects):
        terms = [*_words(subject), *(f"code {code}" for code in subject.terms.codes)]
        for term in terms:
            hashed[i, _cell(term)] += 1.0
        length = np.linalg.norm(hashed[i])
        hashed[i] /= length if length else 1.0
        for fact in facts_told(subject):
            hashed[i, _cell(fact)] += FACT_SCALE
    return np.hstack([EMBEDDING_SCALE * np.asarray(vectors, dtype=np.float64), hashed])


def _words(subject: Subject) -> list[str]:
    """Words and names of the root message; a name counts whole and by its parts, as ``cudaMalloc`` by ``malloc``."""
    parts = {part for name in subject.terms.names for part in re.split(r"[_\d]+", name) if len(part) > 2}
    return sorted(subject.terms.words | subject.terms.names | parts)


@lru_cache(maxsize=65_536)
def _cell(term: str) -> int:
    return int.from_bytes(blake2b(term.encode(), digest_size=4).digest(), "big") % CELLS


def _last(name: str) -> str:
    return re.split(r"[.:$/]", name)[-1].lower()
