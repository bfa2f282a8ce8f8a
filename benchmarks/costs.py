"""How far chances can be believed, and what a threshold on them costs: below it the likeliest class is called
unclassified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tables import table

from crashpath.clustering.classifier import WRONG_COST
from crashpath.clustering.metrics import Bin, calibration_error
from crashpath.ingest.classes import UNCLASSIFIED

COSTS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
"""What a wrong class costs, where ``unclassified`` costs 1; the threshold of each is 1 − 1 / cost."""


def diagram(title: str, bars: Sequence[Bin]) -> None:
    """Print a reliability diagram: what was said, and how often it was right."""
    print(f"\n{title} (ECE {calibration_error(bars):.3f})")
    for bar in bars:
        print(f"  said {bar.said:.2f}  right {bar.right:.2f}  n {bar.n:4}  {'█' * round(30 * bar.right)}")


def by_cost(
    title: str, truth: Sequence[str], likeliest: Sequence[str], chance: Sequence[float]
) -> list[dict[str, Any]]:
    """Print and return what each threshold gives. A log whose truth is ``unclassified`` costs nothing if called so."""
    found = []
    for cost in COSTS:
        threshold = 1 - 1 / cost
        said = [name if p >= threshold else UNCLASSIFIED for name, p in zip(likeliest, chance, strict=True)]
        pairs = list(zip(said, truth, strict=True))
        right = sum(s == t for s, t in pairs) / len(pairs)
        wrong = sum(s not in (t, UNCLASSIFIED) for s, t in pairs) / len(pairs)
        found.append({"wrong_cost": cost, "threshold": threshold, "right": right, "wrong": wrong})
    rows = [
        (
            f"{one['wrong_cost']:g}{' (ours)' if one['wrong_cost'] == WRONG_COST else ''}",
            f"{one['threshold']:.2f}",
            f"{one['right']:.3f}",
            f"{one['wrong']:.3f}",
            f"{1 - one['right'] - one['wrong']:.3f}",
            *(f"{100 * (cost * one['wrong'] + 1 - one['right'] - one['wrong']):.1f}" for cost in COSTS),
        )
        for one in found
    ]
    costs = tuple(f"at {cost:g}" for cost in COSTS)
    head = ("for", "threshold", "right", "wrong", "none", *costs)
    table(f"{title}: what a threshold costs per 100 logs", head, rows)
    return found
