"""Masked lines as templates: GA and FGA on Loghub-2k, beside Drain3 with its defaults and with the same masks.

Not crash logs, so reported and not tuned for. Reads loghub-2k from CRASHPATH_EVAL_DATA.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig
from grouping import grouping_accuracy
from results_file import write_results

from crashpath.ingest.mask import mask

DATA = Path(os.environ.get("CRASHPATH_EVAL_DATA", "../shared/data"))


def by_mask(lines: Sequence[str]) -> list[str]:
    """Group by the masked line."""
    return [mask(line) for line in lines]


def by_drain(lines: Sequence[str], *, masked: bool) -> list[int]:
    """Group by Drain3's cluster, after all lines were learnt.

    The lines are masked before it sees them: as Drain3's own instructions some masks would do less, and it group worse.
    """
    if masked:
        lines = by_mask(lines)
    miner = TemplateMiner(config=TemplateMinerConfig())
    return [int(miner.add_log_message(line)["cluster_id"]) for line in lines]


WAYS: dict[str, Callable[[Sequence[str]], Sequence[str] | Sequence[int]]] = {
    "mask": by_mask,
    "drain3": lambda lines: by_drain(lines, masked=False),
    "drain3_same_masks": lambda lines: by_drain(lines, masked=True),
}


def main() -> None:
    """Print the table and write benchmarks/results/loghub.json."""
    files = sorted((DATA / "loghub-2k").glob("*/*_2k.log_structured_corrected.csv"))
    if not files:
        print(f"loghub: skipped, no loghub-2k in {DATA}")
        return
    figures: dict[str, dict[str, tuple[float, float]]] = {}
    print(f"{'GA / FGA':<14}" + "".join(f"{way:>22}" for way in WAYS))
    for path in files:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        lines, truth = [row["Content"] for row in rows], [row["EventTemplate"] for row in rows]
        figures[path.parent.name] = {way: grouping_accuracy(group(lines), truth) for way, group in WAYS.items()}
        print(_row(path.parent.name, figures[path.parent.name]))
    averages = {
        way: (mean(f[way][0] for f in figures.values()), mean(f[way][1] for f in figures.values())) for way in WAYS
    }
    print(_row("mean", averages))
    print(write_results("loghub", {"mean": averages, **figures}))


def _row(name: str, scores: dict[str, tuple[float, float]]) -> str:
    return f"{name:<14}" + "".join(f"{f'{ga:.3f} / {fga:.3f}':>22}" for ga, fga in scores.values())


if __name__ == "__main__":
    main()
