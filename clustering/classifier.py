"""The failure class of a root: what a rule knows and what a model learnt, weighed into one calibrated probability.

Two experts. The *cue* is the class that the root rule names; it is trusted as far as cues were right on the corpus,
with the rules of each held-out fault switched off. The *model* is a multinomial logistic regression over the embedding
of the root text, its hashed words and the parsed facts, with a temperature fitted on held-out faults. Where both speak
their odds are multiplied; where no rule speaks the model stands alone. Below the threshold, chosen for the stated cost
of a wrong class against none, the answer is ``unclassified``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crashpath.clustering.encoder import Encoder, Vectors
from crashpath.clustering.features import CELLS, Matrix, Subject, facts_told, matrix
from crashpath.clustering.vectors import MemoryCache, VectorCache, embed
from crashpath.ingest.classes import UNCLASSIFIED, headline_of

ALGORITHM = "class1"
WRONG_COST = 2.0
"""What a wrong class costs, where ``unclassified`` costs 1: the threshold is 1 − 1 / WRONG_COST."""
EXAMPLES_SHOWN = 2


class ClassifierError(Exception):
    """The artefact cannot be used: missing, of another algorithm, or trained with another encoder."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A class with its probability (0 … 1) and the evidence for it, strongest first."""

    failure_class: str
    headline: str
    probability: float
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A trained classifier: K classes, D features, E examples (one a fault).

    ``coef`` (K, D) and ``intercept`` (K,) are the model's; ``temperature`` divides its scores; ``cue_trust`` (K,) is
    the precision of a cue for each class; ``model_weight`` is the exponent of the model where a cue speaks too.
    """

    encoder: str
    classes: tuple[str, ...]
    coef: NDArray[np.float32]
    intercept: NDArray[np.float32]
    temperature: float
    cue_trust: NDArray[np.float32]
    model_weight: float
    threshold: float
    example_vectors: NDArray[np.float16]
    example_faults: tuple[str, ...]
    example_classes: tuple[str, ...]


class Classifier:
    """Judges subjects with trained weights. Pure: the same subject and vector give the same verdict."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._row = {name: k for k, name in enumerate(weights.classes)}

    def judge(self, subject: Subject, vector: Vectors) -> Verdict:
        """Return the verdict on one subject; ``vector`` is the embedding ``(dim,)`` of its text."""
        return self.judge_all([subject], vector[None, :])[0]

    def judge_all(self, subjects: Sequence[Subject], vectors: Vectors) -> tuple[Verdict, ...]:
        """Return verdicts in the order of ``subjects``; ``vectors`` is ``(n, dim)``."""
        if not subjects:
            return ()
        chances = self.probabilities(subjects, vectors)
        return tuple(self._verdict(s, v, row) for s, v, row in zip(subjects, vectors, chances, strict=True))

    def classify(
        self, subjects: Sequence[Subject], encoder: Encoder, cache: VectorCache | None = None
    ) -> tuple[Verdict, ...]:
        """Embed and judge. Raises ``ClassifierError`` for an encoder that the weights were not trained with."""
        if encoder.id != self.weights.encoder:
            raise ClassifierError(
                f"the classifier was trained with the encoder {self.weights.encoder}, not {encoder.id}; run: make train"
            )
        vectors, _ = embed([subject.text for subject in subjects], encoder, cache or MemoryCache())
        return self.judge_all(subjects, vectors)

    def probabilities(self, subjects: Sequence[Subject], vectors: Vectors) -> Matrix:
        """Return calibrated probabilities ``(n, K)`` of all classes, ``unclassified`` among them."""
        scores = scores_of(self.weights, matrix(subjects, vectors))
        return combine(scores, self._cues(subjects), self.weights)

    def _cues(self, subjects: Sequence[Subject]) -> NDArray[np.int64]:
        return np.array([self._row.get(s.cue or "", -1) for s in subjects], dtype=np.int64)

    def _verdict(self, subject: Subject, vector: Vectors, chances: NDArray[np.float64]) -> Verdict:
        k = int(chances.argmax())
        name, chance = self.weights.classes[k], float(chances[k])
        if name != UNCLASSIFIED and chance < self.weights.threshold:
            name = UNCLASSIFIED
            evidence = (f"the likeliest class {self.weights.classes[k]} has only {chance:.0%}",)
            return Verdict(name, headline_of(name), round(chance, 4), evidence + self._evidence(subject, vector))
        return Verdict(name, headline_of(name), round(chance, 4), self._evidence(subject, vector))

    def _evidence(self, subject: Subject, vector: Vectors) -> tuple[str, ...]:
        out: list[str] = []
        if subject.cue is not None:
            trust = float(self.weights.cue_trust[self._row[subject.cue]]) if subject.cue in self._row else 0.0
            rule = f"rule {subject.rule}" if subject.rule else "a root rule"
            out.append(f"{rule} names {subject.cue} (such cues are right in {trust:.0%})")
        out.extend(facts_told(subject))
        nearness = self.weights.example_vectors.astype(np.float64) @ np.asarray(vector, dtype=np.float64)
        for i in np.argsort(-nearness, kind="stable")[:EXAMPLES_SHOWN].tolist():
            fault, name = self.weights.example_faults[i], self.weights.example_classes[i]
            out.append(f"like fault {fault} ({name}), similarity {nearness[i]:.2f}")
        return tuple(out)


def scores_of(weights: Weights, features: Matrix) -> Matrix:
    """Return the model's scores ``(n, K)`` before the temperature."""
    return np.asarray(features @ weights.coef.astype(np.float64).T + weights.intercept, dtype=np.float64)


def combine(scores: Matrix, cues: NDArray[np.int64], weights: Weights) -> Matrix:
    """Multiply the odds of both experts; ``cues`` has a class's row, or −1 where no rule spoke."""
    logs = scores / weights.temperature
    logs -= logs.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    spoken = np.flatnonzero(cues >= 0)
    if len(spoken):
        trust = weights.cue_trust[cues[spoken]].astype(np.float64)
        logs[spoken] *= weights.model_weight
        logs[spoken] += np.log((1 - trust) / (scores.shape[1] - 1))[:, None]
        logs[spoken, cues[spoken]] += np.log(trust) - np.log((1 - trust) / (scores.shape[1] - 1))
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True), dtype=np.float64)


def load_classifier(path: Path | None = None) -> Classifier:
    """Read the artefact that comes with the program, or another one. Raises ``ClassifierError``."""
    if path is None:
        with as_file(files("crashpath.clustering").joinpath("classifier.npz")) as own:
            return load_classifier(own)
    try:
        with np.load(path, allow_pickle=False) as data:
            read = {name: data[name] for name in data.files}
    except (OSError, ValueError) as problem:
        raise ClassifierError(f"the classifier {path} cannot be read; run: make train") from problem
    if str(read.get("algorithm")) != ALGORITHM or read["coef"].shape[1] <= CELLS:
        raise ClassifierError(f"the classifier {path} was made by another version; run: make train")
    return Classifier(
        Weights(
            encoder=str(read["encoder"]),
            classes=tuple(str(name) for name in read["classes"]),
            coef=read["coef"],
            intercept=read["intercept"],
            temperature=float(read["temperature"]),
            cue_trust=read["cue_trust"],
            model_weight=float(read["model_weight"]),
            threshold=float(read["threshold"]),
            example_vectors=read["example_vectors"],
            example_faults=tuple(str(name) for name in read["example_faults"]),
            example_classes=tuple(str(name) for name in read["example_classes"]),
        )
    )
