"""What drills printed, as labelled logs: a file a drill, and ``labels.csv`` that says what each is."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

from crashpath.coverage.drillcells import DrillResult

HEADER = ("file", "class", "fault", "phase", "path", "isolation")


def write_logs(folder: Path, results: Iterable[DrillResult]) -> int:
    """Write the logs of the drills that printed something; return how many. Each file is written whole."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for result in results:
        if not result.printed.strip():
            continue
        name = f"{result.fault}-{result.phase}-{result.isolation}.log"
        _replace(folder / name, result.printed)
        rows.append((name, result.failure_class, result.fault, result.phase, result.path, result.isolation))
    partial = folder / ".labels.part"
    with partial.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(sorted(rows))
    os.replace(partial, folder / "labels.csv")
    return len(rows)


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8", errors="backslashreplace")
    os.replace(partial, path)
