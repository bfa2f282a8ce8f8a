"""Redaction: recall on planted secrets and personal data, false positives on clean logs, lines a second.

Planted are the made-up values of tests/planted.toml, each in a record with lines around it. Clean are the lines of
the corpus in data/crashlogs, which the project's own faults printed: what is redacted there is listed, to be judged.
"""

from __future__ import annotations

import time
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from results_file import write_results

from crashpath.ingest.redact import REDACTIONS, redact

ROOT = Path(__file__).parent.parent
AROUND = "Traceback (most recent call last):\n  model loaded in 3.2 s\n{line}\nRuntimeError: request 17 failed\n"


@dataclass(frozen=True, slots=True)
class Planted:
    """One made-up secret and the line of a log that it stands in."""

    kind: str
    value: str
    line: str


def load_planted() -> tuple[Planted, ...]:
    """Read tests/planted.toml."""
    raw = tomllib.loads((ROOT / "tests" / "planted.toml").read_text(encoding="utf-8"))
    return tuple(Planted(**entry) for entry in raw["planted"])


def clean_lines() -> list[str]:
    """Lines of the corpus; of the data file's own ``no`` examples where there is no corpus yet."""
    logs = sorted((ROOT / "data" / "crashlogs").rglob("*.log"))[:1000]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in logs]
    return "\n".join(texts).split("\n") if texts else [text for r in REDACTIONS for text in r.no] * 100


def recall(planted: tuple[Planted, ...]) -> tuple[dict[str, tuple[int, int]], list[Planted]]:
    """Return found and planted by kind, and what was missed."""
    by_kind: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    missed = []
    for item in planted:
        gone = item.value not in redact(AROUND.format(line=item.line)).text
        by_kind[item.kind][0] += gone
        by_kind[item.kind][1] += 1
        if not gone:
            missed.append(item)
    return {kind: (found, n) for kind, (found, n) in sorted(by_kind.items())}, missed


def false_positives(lines: list[str]) -> tuple[Counter[str], dict[str, str]]:
    """Return what was redacted in clean lines, by kind, with one example each."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for line in lines:
        for kind, n in redact(line).counts:
            counts[kind] += n
            examples.setdefault(kind, line.strip()[:110])
    return counts, examples


def speed(lines: list[str], record_lines: int = 40) -> float:
    """Return lines a second when records of ``record_lines`` lines are redacted."""
    texts = ["\n".join(lines[i : i + record_lines]) for i in range(0, len(lines), record_lines)]
    started = time.process_time()
    for text in texts:
        redact(text)
    return len(lines) / max(1e-9, time.process_time() - started)


def main() -> None:
    """Print the tables and write benchmarks/results/redaction.json."""
    planted = load_planted()
    by_kind, missed = recall(planted)
    lines = clean_lines()
    counts, examples = false_positives(lines)
    rate = max(speed(lines) for _ in range(3))
    found = sum(f for f, _ in by_kind.values())
    print(f"recall {found}/{len(planted)} = {found / len(planted):.3f}")
    for kind, (f, n) in by_kind.items():
        print(f"  {kind:<18} {f:>3} of {n}")
    for item in missed:
        print(f"  missed {item.kind}: {item.line}")
    print(f"redacted in {len(lines)} lines of the corpus: {sum(counts.values())}")
    for kind, n in counts.most_common():
        print(f"  {kind:<18} {n:>5}  e.g. {examples[kind]}")
    print(f"{rate:,.0f} lines/s")
    figures = {"planted": len(planted), "found": found, "by_kind": by_kind, "clean_lines": len(lines)}
    print(write_results("redaction", {**figures, "redacted_in_clean": dict(counts), "lines_per_second": round(rate)}))


if __name__ == "__main__":
    main()
