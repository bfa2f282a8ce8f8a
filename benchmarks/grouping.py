"""Scores of a grouping against the truth, as the literature defines them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupScore:
    """BCubed F1, and F1, precision and recall over pairs of records."""

    bcubed: float
    pair_f1: float
    pair_precision: float
    pair_recall: float


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score_groups(said: Sequence[Hashable], truth: Sequence[Hashable]) -> GroupScore:
    """BCubed (Bagga and Baldwin 1998) and pairs; record ``i`` is in group ``said[i]`` and belongs to ``truth[i]``."""
    groups, classes, both = Counter(said), Counter(truth), Counter(zip(said, truth, strict=True))
    precision = sum(n * n / groups[group] for (group, _), n in both.items()) / len(said)
    recall = sum(n * n / classes[name] for (_, name), n in both.items()) / len(said)
    together, grouped, related = (sum(n * (n - 1) // 2 for n in c.values()) for c in (both, groups, classes))
    pair_precision, pair_recall = together / max(1, grouped), together / max(1, related)
    return GroupScore(_f1(precision, recall), _f1(pair_precision, pair_recall), pair_precision, pair_recall)


def grouping_accuracy(said: Sequence[Hashable], truth: Sequence[Hashable]) -> tuple[float, float]:
    """GA and FGA of log parsing: share of lines, and F1 over groups, whose group is exactly one of the truth."""
    members: dict[Hashable, set[int]] = defaultdict(set)
    wanted: dict[Hashable, set[int]] = defaultdict(set)
    for i, (group, name) in enumerate(zip(said, truth, strict=True)):
        members[group].add(i)
        wanted[name].add(i)
    right = [group for group in members.values() if wanted[truth[next(iter(group))]] == group]
    return sum(map(len, right)) / len(said), _f1(len(right) / len(members), len(right) / len(wanted))
