"""What a simulation of nights came to, and the table of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tables import table


@dataclass(slots=True)
class Figures:
    """What one policy came to. ``kept`` and ``resolved`` have one share a night: same id, or an id that leads there.

    ``hidden`` names planted new failures that were not born on their first night, ``lost`` decisions that did not hold,
    ``mixed`` failures under the cluster of another. ``alerts`` counts clusters that a night called new although all
    their signatures were there before it.
    """

    policy: str
    kept: list[float] = field(default_factory=list)
    resolved: list[float] = field(default_factory=list)
    moved: int = 0
    merged: int = 0
    split: int = 0
    reclusterings: int = 0
    wrong_births: int = 0
    alerts: int = 0
    planted: int = 0
    born: int = 0
    hidden: list[str] = field(default_factory=list)
    decisions: int = 0
    lost: list[str] = field(default_factory=list)
    crashes: int = 0
    false_joins: float = 0.0
    mixed: list[str] = field(default_factory=list)
    missed_joins: int = 0
    clusters: int = 0
    signatures: int = 0
    precision: float = 0.0
    recall: float = 0.0
    stories: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    recluster_seconds: float = 0.0

    @property
    def f1(self) -> float:
        """BCubed F1 at the end."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def least(self) -> float:
        """The share that kept its id in the worst night."""
        return min(self.kept)

    @property
    def mean(self) -> float:
        """The share that kept its id, over all nights."""
        return sum(self.kept) / len(self.kept)

    def document(self) -> dict[str, Any]:
        """These figures, without those of each night."""
        told = {name: value for name, value in asdict(self).items() if name not in ("kept", "resolved")}
        return told | {"kept_least": self.least, "kept_mean": self.mean, "led_least": min(self.resolved), "f1": self.f1}


def report(figures: Sequence[Figures]) -> None:
    """Print the table, and what went wrong by name."""
    head = ("clusters formed anew", *(one.policy for one in figures))
    rows = [
        ("mass that keeps its id, worst night", *(f"{one.least:.4f}" for one in figures)),
        ("mass that keeps its id, mean", *(f"{one.mean:.5f}" for one in figures)),
        ("mass whose old id leads to it, worst", *(f"{min(one.resolved):.4f}" for one in figures)),
        ("planted new failures born", *(f"{one.born}/{one.planted}" for one in figures)),
        ("decisions lost", *(f"{len(one.lost)}/{one.decisions}" for one in figures)),
        ("alerts for what was there before", *(str(one.alerts) for one in figures)),
        ("false joins, of all crashes", *(f"{one.false_joins:.2%}" for one in figures)),
        ("missed joins: clusters too many", *(str(one.missed_joins) for one in figures)),
        ("wrong births: of what was known", *(str(one.wrong_births) for one in figures)),
        ("BCubed precision", *(f"{one.precision:.4f}" for one in figures)),
        ("BCubed recall", *(f"{one.recall:.4f}" for one in figures)),
        ("BCubed F1", *(f"{one.f1:.4f}" for one in figures)),
        ("clusters / signatures", *(f"{one.clusters}/{one.signatures}" for one in figures)),
        ("times formed anew", *(str(one.reclusterings) for one in figures)),
        ("merged / split / signatures moved", *(f"{one.merged}/{one.split}/{one.moved}" for one in figures)),
        ("seconds (forming anew)", *(f"{one.seconds:.0f} ({one.recluster_seconds:.0f})" for one in figures)),
    ]
    table(f"Nights of drifting logs, {figures[0].crashes:,} crashes", head, rows)
    for story in figures[0].stories:
        print(f"  {story}: " + ", ".join(f"{one.policy}: {one.stories[story]}" for one in figures))
    for one in figures:
        for what in (*(f"not born, {name}" for name in one.hidden), *(f"lost, {name}" for name in one.lost)):
            print(f"  {one.policy}: {what}")
        print(f"  {one.policy}, false joins: {'; '.join(one.mixed) or 'none'}")
