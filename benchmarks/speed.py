"""Lines a second of the whole chain beside Drain3 with the same masks, on one core, in one run.

The chain is what a night does to a record: split, parse, root line, mask, signature. Drain3 gets the same
lines, and the plain masks of masks.toml as masking instructions (it has none that keep, or that need a word before
them); a second Drain3 without masks shows what its tree alone costs. Records are made from a seed:

- *distinct*: every record has values of its own (paths, sizes, addresses, process ids, node names);
- *night*: 90 % of the records repeat an earlier one of the night, word for word but for the time in front.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

os.environ.setdefault("OMP_NUM_THREADS", "1")

from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig
from results_file import write_results
from traces import distinct

from crashpath.ingest.analyse import Analyser
from crashpath.ingest.mask import MASKS
from crashpath.ingest.rules import load_rules
from crashpath.ingest.whole import SplitOptions, one_record

SEED = 20_240_501
RECORDS = 1_500
REPEATED = 0.9


def night(rng: random.Random, count: int = 4 * RECORDS) -> list[str]:
    """Records of which 90 % repeat one of the others."""
    fresh = distinct(rng, max(1, round(count * (1 - REPEATED))))
    records = fresh + [rng.choice(fresh) for _ in range(count - len(fresh))]
    rng.shuffle(records)
    return records


def chain() -> Callable[[Sequence[str]], None]:
    """The product's own way from text to signature, with a fresh memo; redaction off, as Drain3 has none."""
    rules = load_rules()
    analyser = Analyser(rules, redacting=False)
    options = SplitOptions(as_of=datetime(2024, 5, 1, tzinfo=UTC), is_failure=rules.is_failure)

    def run(records: Sequence[str]) -> None:
        for i, text in enumerate(records):
            analyser.analyse(one_record(text, source="bench", offset=i, options=options))

    return run


def drain(masked: bool) -> Callable[[Sequence[str]], None]:
    """Drain3 with defaults, a line at a time, with or without the masks."""
    config = TemplateMinerConfig()
    if masked:
        config.masking_instructions = masking_instructions()
    miner = TemplateMiner(config=config)

    def run(records: Sequence[str]) -> None:
        for text in records:
            for line in text.split("\n"):
                miner.add_log_message(line)

    return run


def masking_instructions() -> list[MaskingInstruction]:
    """The masks that Drain3 can use: those that need no word before them and replace the whole match."""
    return [
        MaskingInstruction(rf"(?<![A-Za-z0-9_])(?:{_unnamed(mask.pattern)})", mask.name.upper())
        for mask in MASKS
        if not mask.after and (mask.placeholder or mask.to) and not mask.inner
    ]


def _unnamed(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def lines_per_second(make: Callable[[], Callable[[Sequence[str]], None]], records: Sequence[str]) -> float:
    """Processor seconds, not wall clock: the machine may be shared."""
    run = make()
    lines = sum(text.count("\n") + 1 for text in records)
    started = time.process_time()
    run(records)
    return lines / (time.process_time() - started)


def main() -> None:
    """Print the table and write benchmarks/results/speed.json."""
    rng = random.Random(SEED)
    sets = {"distinct": distinct(rng, RECORDS), "night": night(rng)}
    ways = {"crashpath": chain, "drain3_same_masks": lambda: drain(True), "drain3_no_masks": lambda: drain(False)}
    chain()(distinct(rng, 50))  # patterns are compiled once a process
    figures: dict[str, dict[str, float]] = {}
    print(f"{'':<10}{'crashpath':>12}{'Drain3, masks':>15}{'ratio':>8}{'Drain3, bare':>14}{'ratio':>8}  lines/s")
    for name, records in sets.items():
        got = {way: round(lines_per_second(make, records)) for way, make in ways.items()}
        figures[name] = {
            **got,
            "ratio": round(got["crashpath"] / got["drain3_same_masks"], 2),
            "ratio_no_masks": round(got["crashpath"] / got["drain3_no_masks"], 2),
        }
        row = figures[name]
        print(
            f"{name:<10}{row['crashpath']:>12,}{row['drain3_same_masks']:>15,}{row['ratio']:>8}"
            f"{row['drain3_no_masks']:>14,}{row['ratio_no_masks']:>8}"
        )
    print(write_results("speed", {"seed": SEED, "records": {k: len(v) for k, v in sets.items()}, **figures}))


if __name__ == "__main__":
    main()
