"""How well groups and classes agree with the truth. All functions take parallel sequences and return plain numbers.

BCubed: Bagga and Baldwin 1998. Wilson's interval: Wilson 1927. Expected calibration error: Naeini et al. 2015.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """Precision, recall and their harmonic mean, in 0 … 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def bcubed(found: Sequence[Hashable], truth: Sequence[Hashable]) -> Agreement:
    """Return BCubed precision and recall, each item weighing the same."""
    if not found:
        return Agreement(0.0, 0.0)
    both = Counter(zip(found, truth, strict=True))
    in_found, in_truth = Counter(found), Counter(truth)
    precision = math.fsum(n * n / in_found[f] for (f, _), n in both.items())
    recall = math.fsum(n * n / in_truth[t] for (_, t), n in both.items())
    return Agreement(precision / len(found), recall / len(found))


def pairs(found: Sequence[Hashable], truth: Sequence[Hashable]) -> Agreement:
    """Return precision and recall over pairs of items that share a group."""
    shared = _pair_count(Counter(zip(found, truth, strict=True)))
    said, real = _pair_count(Counter(found)), _pair_count(Counter(truth))
    return Agreement(shared / said if said else 1.0, shared / real if real else 1.0)


def multi(found: Sequence[Hashable], truth: Sequence[Hashable]) -> tuple[list[Hashable], list[Hashable]]:
    """Return both sequences cut down to items whose true group has two or more: singletons flatter every score."""
    size = Counter(truth)
    kept = [(f, t) for f, t in zip(found, truth, strict=True) if size[t] > 1]
    return [f for f, _ in kept], [t for _, t in kept]


def rr_at_1(nearest: Mapping[str, str | None], duplicates: Mapping[str, frozenset[str]]) -> float:
    """Return the share of items that have duplicates whose nearest other item is one of them."""
    asked = [item for item, others in duplicates.items() if others]
    return sum(nearest.get(item) in duplicates[item] for item in asked) / len(asked) if asked else math.nan


def accuracy(said: Sequence[str], truth: Sequence[str]) -> float:
    """Return the share of equal entries; NaN for none."""
    return sum(s == t for s, t in zip(said, truth, strict=True)) / len(said) if said else math.nan


def macro_f1(said: Sequence[str], truth: Sequence[str]) -> float:
    """Return the mean F1 over the classes that the truth has."""
    hits = Counter(s for s, t in zip(said, truth, strict=True) if s == t)
    in_said, in_truth = Counter(said), Counter(truth)
    scores = [2 * hits[c] / (in_said[c] + n) for c, n in sorted(in_truth.items())]
    return math.fsum(scores) / len(scores) if scores else math.nan


def confusion(said: Sequence[str], truth: Sequence[str]) -> dict[str, Counter[str]]:
    """Return, for each true class, how often each class was said."""
    out: dict[str, Counter[str]] = defaultdict(Counter)
    for s, t in zip(said, truth, strict=True):
        out[t][s] += 1
    return dict(sorted(out.items()))


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a share; (0, 1) for no data."""
    if n == 0:
        return 0.0, 1.0
    p = hits / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a reliability diagram: ``n`` predictions, their mean probability, and the share that was right."""

    low: float
    high: float
    n: int
    said: float
    right: float


def reliability(probabilities: Sequence[float], right: Sequence[bool], bins: int = 10) -> tuple[Bin, ...]:
    """Return the non-empty bars of a reliability diagram over equal widths of 0 … 1."""
    members: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for p, ok in zip(probabilities, right, strict=True):
        members[min(bins - 1, int(p * bins))].append((p, ok))
    return tuple(
        Bin(i / bins, (i + 1) / bins, len(m), math.fsum(p for p, _ in m) / len(m), sum(ok for _, ok in m) / len(m))
        for i, m in sorted(members.items())
    )


def calibration_error(bars: Sequence[Bin]) -> float:
    """Return the expected calibration error: mean gap between said and right, weighted by count."""
    n = sum(bar.n for bar in bars)
    return math.fsum(bar.n * abs(bar.said - bar.right) for bar in bars) / n if n else math.nan


def _pair_count(counts: Counter[tuple[Hashable, Hashable]] | Counter[Hashable]) -> int:
    return sum(n * (n - 1) // 2 for n in counts.values())
