"""``python -m crashpath.clustering.train``: train the classifier on the corpus and write its artefact.

Reads ``data/labels.csv`` and the logs that it names, analyses each as one record, once with all rules and once without
those written from its own fault, and writes ``clustering/classifier.npz`` beside this module.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crashpath.clustering.classifier import ALGORITHM, Weights
from crashpath.clustering.corpus import CorpusError, Labelled, read_corpus
from crashpath.clustering.encoder import EncoderError, open_encoder
from crashpath.clustering.features import subject_of
from crashpath.clustering.learn import Sample, fit
from crashpath.clustering.vectors import MemoryCache, embed
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.model import Analysis
from crashpath.ingest.rules import Rules, load_rules
from crashpath.ingest.split import SplitOptions, one_record

DATA = Path("data")
ARTEFACT = Path(__file__).with_name("classifier.npz")


def analyse_text(text: str, source: str, analyser: Analyser, rules: Rules) -> Analysis:
    """Analyse a whole text as one record."""
    options = SplitOptions(is_failure=rules.is_failure)
    return analyser.analyse(one_record(text, source=source, options=options))


def samples_of(logs: Sequence[Labelled], rules: Rules) -> list[Sample]:
    """Analyse the corpus with all rules, and for ``held_cue`` without those of each log's own fault."""
    known = Analyser(rules, redacting=False)
    analyses = [analyse_text(log.text, log.file, known, rules) for log in logs]
    held = held_cues(logs, analyses, rules)
    return [
        Sample(subject_of(analysis), log.failure_class, log.fault, log.library, cue)
        for log, analysis, cue in zip(logs, analyses, held, strict=True)
    ]


def held_cues(logs: Sequence[Labelled], analyses: Sequence[Analysis], rules: Rules) -> list[str | None]:
    """Return each log's cue with the rules of its own fault off: another one only where such a rule chose the root."""
    cues = [analysis.root.failure_class for analysis in analyses]
    only_of = {rule.id: set(rule.faults) for rule in rules}
    touched = [i for i, a in enumerate(analyses) if only_of.get(a.root.rule) == {logs[i].fault}]
    for fault in sorted({logs[i].fault for i in touched}):
        fewer = rules.without_faults({fault})
        analyser = Analyser(fewer, redacting=False)
        for i in touched:
            if logs[i].fault == fault:
                cues[i] = analyse_text(logs[i].text, logs[i].file, analyser, fewer).root.failure_class
    return cues


def write_weights(weights: Weights, path: Path) -> int:
    """Write the artefact by a temporary name; return its bytes. The same weights give the same bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        algorithm=np.array(ALGORITHM),
        encoder=np.array(weights.encoder),
        classes=np.array(weights.classes),
        coef=weights.coef,
        intercept=weights.intercept,
        temperature=np.array(weights.temperature),
        cue_trust=weights.cue_trust,
        model_weight=np.array(weights.model_weight),
        threshold=np.array(weights.threshold),
        example_vectors=weights.example_vectors,
        example_faults=np.array(weights.example_faults),
        example_classes=np.array(weights.example_classes),
    )
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(buffer.getvalue())
    os.replace(temporary, path)
    return len(buffer.getvalue())


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, write, print figures. Returns 0, or 4 with a sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m crashpath.clustering.train", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with labels.csv (default: data)")
    parser.add_argument("--encoder", default="minilm", help="minilm, or a sentence-transformers model's folder")
    parser.add_argument("--out", type=Path, default=ARTEFACT)
    options = parser.parse_args(arguments)
    try:
        logs = read_corpus(options.data)
        encoder = open_encoder(options.encoder)
        samples = samples_of(logs, load_rules())
        vectors, _ = embed([sample.subject.text for sample in samples], encoder, MemoryCache())
    except (CorpusError, EncoderError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 4
    weights = fit(samples, vectors, encoder.id)
    size = write_weights(weights, options.out)
    sys.stdout.write(_summary(samples, weights) + f"\nwrote {options.out} ({size / 1000:.0f} kB)\n")
    return 0


def _summary(samples: Sequence[Sample], weights: Weights) -> str:
    faults = Counter(name for _, name in {(s.fault, s.failure_class) for s in samples})
    spoken = [s for s in samples if s.held_cue is not None]
    right = sum(s.held_cue == s.failure_class for s in spoken)
    lines = [f"{len(samples)} logs of {sum(faults.values())} faults in {len(faults)} classes"]
    lines += [f"  {name:16} {n:3} faults" for name, n in sorted(faults.items())]
    lines.append(
        f"cues with the rules of each fault held out: {len(spoken)} logs, {right / max(1, len(spoken)):.1%} right"
    )
    lines.append(f"temperature {weights.temperature:.2f}, weight of the model beside a cue {weights.model_weight:.2f}")
    lines.append(f"threshold {weights.threshold:.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
