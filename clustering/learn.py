"""Fits the classifier: model, temperature, trust in cues and their weight, all on faults that were held out.

Each fault weighs the same however many logs it left, and a log that repeats another of its fault counts once. Folds
never part the logs of one fault: what is asked is how well an unseen failure is classified.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from crashpath.clustering.classifier import WRONG_COST, Weights, combine
from crashpath.clustering.encoder import Vectors
from crashpath.clustering.features import Matrix, Subject, matrix
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED

FOLDS = 5
STRENGTH = 2.0
"""Inverse of the weight decay of the logistic regression."""
BALANCE = 0.5
"""Exponent of the weight by class: 0 takes classes as the corpus has them, 1 makes them equal."""
PRIOR = 4.0
"""Strength, in cues, of the mean precision of all cues in that of one class."""
EXAMPLES = 24
"""Faults of one class that the artefact keeps as examples: it must stay small."""
MODEL_WEIGHTS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
TRUST_LIMITS = (0.5, 0.995)
DECIMALS = 4
CLASS_IDS = (*(entry.id for entry in CLASSES if entry.id != UNCLASSIFIED), UNCLASSIFIED)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """A labelled failure. ``held_cue`` is its cue when no rule that was written from its own fault is known."""

    subject: Subject
    failure_class: str
    fault: str
    library: str
    held_cue: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Samples as arrays.

    Rotated features (n, n) and their basis (D, n), class rows, fold and weight of each; ``held`` are rows of the cues
    without the rules of a sample's own fault.
    """

    features: Matrix
    basis: Matrix
    classes: Ints
    folds: Ints
    weight: Floats
    held: Ints


def fit(samples: Sequence[Sample], vectors: Vectors, encoder: str) -> Weights:
    """Return weights trained on samples; ``vectors`` ``(n, dim)`` are the embeddings of their texts."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

    with threadpool_limits(1):  # small matrices: threads only cost, and they would move the last bits
        return _fit(*_distinct(samples), vectors, encoder)


def _fit(kept: Sequence[Sample], rows: Sequence[int], vectors: Vectors, encoder: str) -> Weights:
    vectors = vectors[list(rows)]
    data = _arrays(kept, vectors)
    solution = train(data.features, data.classes, data.weight)
    coef, intercept = solution[:, :-1] @ data.basis.T, solution[:, -1]
    example_rows = _examples(kept, vectors)
    rough = Weights(
        encoder=encoder,
        classes=CLASS_IDS,
        coef=np.round(coef, DECIMALS).astype(np.float32),
        intercept=np.round(intercept, DECIMALS).astype(np.float32),
        temperature=1.0,
        cue_trust=_trust(data),
        model_weight=1.0,
        threshold=1.0 - 1.0 / WRONG_COST,
        example_vectors=vectors[example_rows].astype(np.float16),
        example_faults=tuple(kept[i].fault for i in example_rows),
        example_classes=tuple(kept[i].failure_class for i in example_rows),
    )
    return calibrate(rough, held_out_scores(data, solution), data)


def train(features: Matrix, classes: Ints, weight: Floats, start: Floats | None = None) -> Floats:
    """Fit the logistic regression by L-BFGS; return ``(K, D + 1)``, the intercept last.

    ``start`` is a solution nearby to begin from. A class that no sample has ends with a low intercept.
    """
    inputs = np.hstack([features, np.ones((len(features), 1))])
    truth = np.zeros((len(features), len(CLASS_IDS)))
    truth[np.arange(len(features)), classes] = 1.0
    decay = np.full(inputs.shape[1], 1.0 / STRENGTH)
    decay[-1] = 1e-3

    def loss(flat: Floats) -> tuple[float, Floats]:
        coef = flat.reshape(len(CLASS_IDS), -1)
        logs = inputs @ coef.T
        logs -= logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        slope = (weight[:, None] * (np.exp(logs) - truth)).T @ inputs + decay * coef
        value = -(weight * logs[truth > 0]).sum() + 0.5 * (decay * coef**2).sum()
        return float(value), slope.ravel()

    first = np.zeros((len(CLASS_IDS), inputs.shape[1])) if start is None else start
    found = minimize(loss, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-8})
    return np.asarray(found.x, dtype=np.float64).reshape(len(CLASS_IDS), -1)


def rotated(features: Matrix) -> tuple[Matrix, Matrix]:
    """Return ``(n, n)`` features and the ``(D, n)`` rotation that made them: fewer columns, the same regression."""
    basis, triangle = np.linalg.qr(features.T)
    return np.asarray(triangle.T), np.asarray(basis)


def held_out_scores(data: Training, start: Floats) -> Matrix:
    """Return the score of every sample by a model that saw no log of its fault; ``start`` is the model of all."""
    scores = np.zeros((len(data.classes), len(CLASS_IDS)))
    for fold in sorted(set(data.folds.tolist())):
        out = data.folds == fold
        if not out.all():
            solution = train(data.features[~out], data.classes[~out], data.weight[~out], start)
            scores[out] = data.features[out] @ solution[:, :-1].T + solution[:, -1]
    return scores


def calibrate(weights: Weights, scores: Matrix, data: Training) -> Weights:
    """Fit the temperature without cues, then the model's weight beside them, by the likelihood of held-out faults."""

    def loss(candidate: Weights, cues: Ints) -> float:
        chances = combine(scores.copy(), cues, candidate)
        return float(-(data.weight * np.log(chances[np.arange(len(scores)), data.classes] + 1e-9)).sum())

    silent = np.full(len(scores), -1, dtype=np.int64)
    best = minimize_scalar(
        lambda log: loss(replace(weights, temperature=float(np.exp(log))), silent), bounds=(-2.0, 2.0), method="bounded"
    )
    cooled = replace(weights, temperature=round(float(np.exp(best.x)), 3))
    return min((replace(cooled, model_weight=w) for w in MODEL_WEIGHTS), key=lambda one: loss(one, data.held))


def _distinct(samples: Sequence[Sample]) -> tuple[list[Sample], list[int]]:
    """Keep one sample a fault, text and cue, in an order that is not the input's; return their rows too."""
    first: dict[tuple[str, str, str, str], int] = {}
    for i, sample in enumerate(samples):
        key = (sample.fault, sample.subject.text, sample.subject.cue or "", sample.held_cue or "")
        first.setdefault(key, i)
    rows = [first[key] for key in sorted(first)]
    return [samples[i] for i in rows], rows


def _arrays(samples: Sequence[Sample], vectors: Vectors) -> Training:
    row = {name: k for k, name in enumerate(CLASS_IDS)}
    classes = np.array([row[s.failure_class] for s in samples], dtype=np.int64)
    of_fault = Counter(s.fault for s in samples)
    faults_of_class = Counter(c for _, c in {(s.fault, s.failure_class) for s in samples})
    weight = np.array([faults_of_class[s.failure_class] ** -BALANCE / of_fault[s.fault] for s in samples])
    features, basis = rotated(matrix([s.subject for s in samples], vectors))
    return Training(
        features=features,
        basis=basis,
        classes=classes,
        folds=_folds(samples),
        weight=weight * len({s.fault for s in samples}) / weight.sum(),
        held=np.array([row.get(s.held_cue or "", -1) for s in samples], dtype=np.int64),
    )


def _folds(samples: Sequence[Sample]) -> Ints:
    """Spread the faults of each class over the folds."""
    faults: dict[str, list[str]] = defaultdict(list)
    for fault, name in sorted({(s.fault, s.failure_class) for s in samples}):
        faults[name].append(fault)
    fold = {fault: i % FOLDS for names in faults.values() for i, fault in enumerate(names)}
    return np.array([fold[s.fault] for s in samples], dtype=np.int64)


def _trust(data: Training) -> NDArray[np.float32]:
    """Precision of held-out cues for each class, drawn towards the mean of all; within ``TRUST_LIMITS``."""
    spoken = data.held >= 0
    right = spoken & (data.held == data.classes)
    total = float(data.weight[spoken].sum())
    mean = (float(data.weight[right].sum()) + 1.0) / (total + 2.0)
    out = np.zeros(len(CLASS_IDS))
    for k in range(len(CLASS_IDS)):
        said, hit = (float(data.weight[mask & (data.held == k)].sum()) for mask in (spoken, right))
        out[k] = (hit + PRIOR * mean) / (said + PRIOR)
    return np.round(np.clip(out, *TRUST_LIMITS), DECIMALS).astype(np.float32)


def _examples(samples: Sequence[Sample], vectors: Vectors) -> list[int]:
    """Choose one sample a fault, the one nearest to all of its fault, and at most ``EXAMPLES`` faults a class."""
    members: dict[str, list[int]] = defaultdict(list)
    for i, sample in enumerate(samples):
        members[sample.fault].append(i)
    by_class: dict[str, list[int]] = defaultdict(list)
    for fault in sorted(members):
        part = vectors[members[fault]].astype(np.float64)
        row = members[fault][int((part @ part.T).sum(axis=1).argmax())]
        by_class[samples[row].failure_class].append(row)
    kept = [rows[i] for rows in by_class.values() for i in _spaced(len(rows))]
    return sorted(kept, key=lambda i: samples[i].fault)


def _spaced(count: int) -> list[int]:
    """Return at most ``EXAMPLES`` of ``count`` positions, evenly spaced."""
    return sorted({int(i) for i in np.linspace(0, count - 1, min(count, EXAMPLES))})
