"""The encoder on the project's own runtime beside sentence-transformers, on the root texts of the corpus.

Told: how far their vectors are apart before rounding and after; seconds to the first vector of a new process, in turns,
the export being there; texts a second of the processor and of the clock, interleaved, with a second run of
sentence-transformers as the A/A line, in batches of its own former 32 and of 8.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
from results_file import write_results
from tables import ROOT, table

from crashpath.clustering import encoder as plain
from crashpath.clustering.corpus import read_corpus
from crashpath.clustering.encoder import Encoder, minilm
from crashpath.clustering.features import subject_of
from crashpath.clustering.runtime_encoder import open_encoder
from crashpath.clustering.train import analyse_text
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.rules import load_rules

ALLOWED = 1e-5
"""Further apart, and the encoder would need an id of its own."""
FIRST = {
    "runtime": "from crashpath.clustering.runtime_encoder import open_encoder; open_encoder().encode(['killed'])",
    "sentence-transformers": "from crashpath.clustering.encoder import minilm; minilm().encode(['killed'])",
}


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables and write the figures; 1 where the vectors are too far apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=300, help="of them in each timed run")
    options = parser.parse_args(arguments)
    texts = _root_texts()
    ours, theirs = open_encoder(), minilm()
    apart, steps = _apart(ours, theirs, texts)
    print(f"{len(texts)} root texts: {apart:.1e} apart at most before rounding; {steps:.2%} of entries differ after it")
    first = _first(options.rounds)
    table("Seconds to the first vector of a process", ("", "median"), [(n, f"{s:.1f}") for n, s in first.items()])
    speed = _speed({"runtime": (ours, 8), "batch 32": (theirs, 32), "A/A": (theirs, 32), "batch 8": (theirs, 8)},
                   texts[:: max(1, len(texts) // options.texts)][: options.texts], options.rounds)  # fmt: skip
    table(
        "Texts a second, medians",
        ("", "processor", "clock"),
        [(n, f"{c:.1f}", f"{w:.1f}") for n, (c, w) in speed.items()],
    )
    write_results("encoder", {
        "texts": len(texts), "apart": apart, "entries_that_differ": steps, "first_vector_s": first,
        "texts_per_second": {name: {"processor": c, "clock": w} for name, (c, w) in speed.items()},
    })  # fmt: skip
    return int(apart > ALLOWED)


def _root_texts() -> list[str]:
    rules = load_rules()
    analyser = Analyser(rules, redacting=False)
    subjects = [subject_of(analyse_text(log.text, log.file, analyser, rules)) for log in read_corpus(ROOT / "data")]
    return sorted({subject.text for subject in subjects})


def _apart(ours: Encoder, theirs: Encoder, texts: list[str]) -> tuple[float, float]:
    """Largest difference of any entry as the models give it, and the share of entries that differ when rounded."""
    rounded = float(np.mean(ours.encode(texts) != theirs.encode(texts)))
    decimals, plain.DECIMALS = plain.DECIMALS, 9
    try:
        return float(np.abs(ours.encode(texts) - theirs.encode(texts)).max()), rounded
    finally:
        plain.DECIMALS = decimals


def _first(rounds: int) -> dict[str, float]:
    told: dict[str, list[float]] = {name: [] for name in FIRST}
    for _ in range(rounds):
        for name, code in FIRST.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            told[name].append(time.perf_counter() - began)
    return {name: float(np.median(seconds)) for name, seconds in told.items()}


def _speed(arms: dict[str, tuple[Encoder, int]], texts: list[str], rounds: int) -> dict[str, tuple[float, float]]:
    told: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    usual = plain.BATCH
    try:
        for _ in range(rounds):
            for name, (encoder, batch) in arms.items():
                plain.BATCH = batch  # the runtime's is its own
                cpu, wall = time.process_time(), time.perf_counter()
                encoder.encode(texts)
                told[name].append((len(texts) / (time.process_time() - cpu), len(texts) / (time.perf_counter() - wall)))
    finally:
        plain.BATCH = usual
    medians = {name: np.median(np.array(pairs), axis=0) for name, pairs in told.items()}
    return {name: (float(pair[0]), float(pair[1])) for name, pair in medians.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
