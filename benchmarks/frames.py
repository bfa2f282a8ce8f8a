"""How many in-project frames, and whether the message, belong into a signature: Java traces whose bug is known.

Reads defects4j from CRASHPATH_EVAL_DATA; traces whose head is an assertion are left out, because there the test and
not the program names the failure. ``sig2`` is what the product does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable
from dataclasses import asdict
from pathlib import Path

from grouping import score_groups
from results_file import write_results

from crashpath.ingest.model import Variant
from crashpath.ingest.parse import parse
from crashpath.ingest.root import find_root
from crashpath.ingest.rules import load_rules
from crashpath.ingest.signature import make_variant, masked_message, sign, type_name

DATA = Path(os.environ.get("CRASHPATH_EVAL_DATA", "../shared/data"))


def load() -> tuple[list[str], list[str]]:
    """Return the traces and their bugs."""
    lines = (DATA / "defects4j" / "trigger_traces.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    kept = [
        case for case in cases if not any(word in case["head"].split(":")[0] for word in ("Assertion", "Comparison"))
    ]
    return [case["text"] for case in kept], [case["bug"] for case in kept]


def key(frames: int, with_message: bool) -> Callable[[Variant], Hashable]:
    """A signature of another make: root type, ``frames`` own frames, and the masked message or not."""

    def of(variant: Variant) -> Hashable:
        own = tuple((frame.function, frame.module) for frame in variant.frames[:frames])
        return type_name(variant.root_type), own, masked_message(variant.root_message) if with_message else ""

    return of


def main() -> None:
    """Print the table and write benchmarks/results/frames.json."""
    if not (DATA / "defects4j").is_dir():
        print(f"frames: skipped, no defects4j in {DATA}")
        return
    texts, bugs = load()
    rules = load_rules()
    variants = []
    for text in texts:
        parsed = parse(text)
        variants.append(make_variant(parsed, find_root(text, parsed, rules)))
    makes: dict[str, Callable[[Variant], Hashable]] = {"sig2": lambda variant: sign(variant).id}
    for frames in (0, 1, 2, 3):
        for with_message in (False, True):
            makes[f"frames {frames}, message {'yes' if with_message else 'no'}"] = key(frames, with_message)
    figures = {name: asdict(score_groups([make(v) for v in variants], bugs)) for name, make in makes.items()}
    print(f"{len(texts)} traces of {len(set(bugs))} bugs")
    print(f"{'':<24}{'BCubed':>8}{'pair F1':>9}{'pair P':>8}{'pair R':>8}")
    for name, score in figures.items():
        print(f"{name:<24}" + "".join(f"{value:>8.3f}" for value in score.values()))
    print(write_results("frames", {"n": len(texts), **figures}))


if __name__ == "__main__":
    main()
