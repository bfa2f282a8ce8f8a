"""Native stacks: the product's groups beside plain keys over the frames, on CASR's reports and ClusterFuzz's stacks.

A plain key is what crash reporters use: what kind of crash, with the functions of the first one or three frames of the
first stack. The truth is the line that crashed (CASR) or the crash's type with its state (ClusterFuzz), which nearly
every file there has alone: its groups of two and more are few.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from results_file import write_results
from tables import FileCache, evaluation, table
from tiers import Case, items, scores

from crashpath.clustering.encoder import minilm
from crashpath.clustering.group import group
from crashpath.ingest.rules import Rules, load_rules

_FRAME = re.compile(
    r"^\s*#(?P<number>\d+)\s+(?:0x[0-9a-fA-F]+\s+)?(?:in\s+)?(?P<function>[^\s(/][^(\n]*?)(?=\s*\(|\s+/|\s+at\s|\s*$)"
    r'|^\s*File "(?P<file>[^"]+)", line \d+, in (?P<name>\S+)',
    re.MULTILINE,
)
_KIND = re.compile(
    r"(?:ERROR|WARNING): \w*Sanitizer: ([\w-]+)|\b(SIG[A-Z]+)\b|^(\w+(?:Error|Exception))\b", re.MULTILINE
)
PLAIN = ("plain key, top frame", "plain key, top 3 frames")
MINE = "both (signature, cohesion)"


def casr(path: Path) -> list[Case]:
    """Read CASR's reports as the debugger or the interpreter printed them; the group is the line that crashed."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Case(f"{i:04}", _printed(row), row["crashline"]) for i, row in enumerate(rows)]


def _printed(row: dict[str, Any]) -> str:
    if row["report"]:
        return "\n".join(row["report"])
    if row["stack"] and row["stack"][0].startswith("File "):
        return "Traceback (most recent call last):\n" + "\n".join(f"  {frame}" for frame in reversed(row["stack"]))
    return "Program received signal SIGSEGV, Segmentation fault.\n" + "\n".join(row["stack"])


def clusterfuzz(labels: Path) -> list[Case]:
    """Read ClusterFuzz's stacks; a file that several of its tests use counts once, with its first label."""
    with labels.open(encoding="utf-8", newline="") as file:
        rows = {row["file"]: row for row in reversed(list(csv.DictReader(file)))}
    out = []
    for name, row in sorted(rows.items()):
        stack = labels.parent / "stacks" / name
        if stack.is_file() and (row["crash_type"] or row["crash_state"]):
            text = stack.read_text(encoding="utf-8", errors="replace")
            out.append(Case(name, text, f"{row['crash_type']}|{row['crash_state']}"))
    return out


def plain_key(text: str, frames: int) -> Hashable:
    """Return the kind of crash and the functions of so many frames of the first stack."""
    kind = _KIND.search(text)
    if text.startswith("Traceback"):
        found = [m["name"] for m in _FRAME.finditer(text) if m["name"]][::-1]
    else:
        found = []
        for match in _FRAME.finditer(text):
            if match["number"] is not None and int(match["number"]) == len(found):
                found.append(match["function"])
            elif found:
                break
    said = next((one for one in kind.groups() if one), "") if kind else ""
    return (said, *found[:frames]) if found else (said, text)


def compare(title: str, cases: Sequence[Case], rules: Rules) -> dict[str, Any]:
    """Print the table of one data set and return its figures."""
    subjects = items(cases, rules)
    both = group(subjects, minilm(), cache=FileCache())
    ways: dict[str, list[Hashable]] = {
        PLAIN[0]: [plain_key(case.text, 1) for case in cases],
        PLAIN[1]: [plain_key(case.text, 3) for case in cases],
        "signature alone": [item.signature for item in subjects],
        MINE: [record.cluster for record in both.records],
    }
    truth = [case.group for case in cases]
    figures = {name: scores(found, truth) for name, found in ways.items()}
    table(
        f"{title}, n = {len(cases)}, {len(set(truth))} groups",
        ("way", "groups", "BCubed", "P", "R", "≥ 2", "pair F1"),
        [(name, str(len(set(ways[name]))), *(f"{x:.3f}" for x in f.values())) for name, f in figures.items()],
    )
    best = max(PLAIN, key=lambda name: figures[name]["bcubed"])
    worse = [key for key in ("bcubed", "bcubed_multi", "pair_f1") if figures[MINE][key] < figures[best][key] - 1e-9]
    print(f"against the better plain key ({best}): {'worse on ' + ', '.join(worse) if worse else 'no worse'}")
    return {"n": len(cases), "ways": figures, "worse_than_plain_key_on": worse}


SETS: tuple[tuple[str, tuple[str, ...], Callable[[Path], list[Case]]], ...] = (
    ("CASR, gdb", ("casr", "test_clustering_gdb.jsonl"), casr),
    ("CASR, Python", ("casr", "test_clustering_python.jsonl"), casr),
    ("ClusterFuzz", ("clusterfuzz", "labels.csv"), clusterfuzz),
)


def main() -> int:
    """Print the tables and write the figures; 1 where a plain key groups better."""
    rules, figures = load_rules(), dict[str, Any]()
    for title, names, read in SETS:
        if path := evaluation(*names):
            figures[title] = compare(title, read(path), rules)
    write_results("keys", figures)
    return int(any(one["worse_than_plain_key_on"] for one in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
