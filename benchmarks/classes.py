"""How well failures are classed that were not there in training: held-out faults, held-out libraries, real cases.

With a fault held out, no log of it is trained on and the rules for which only held-out faults speak are off; a second
row switches off each rule that decides a held-out fault at all, which is a lower bound: what is left are rules that
miss it. With a library held out, no log of it is trained on and no rule in its words is on. Every figure is there with
rules and without any. Beside them, trained on the same logs in the same run: TF-IDF with logistic regression on the raw
log, and the class of the nearest raw log by MiniLM. Faults are held out in ``FOLDS`` folds, none of whose logs is
trained on. The authors of the rules knew the catalogue: with rules, these figures flatter. Half ``b`` of the field
cases was not looked at while rules were written for the other halves; for later ones it was, in part.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from costs import by_cost, diagram
from results_file import write_results
from tables import ROOT, FileCache, evaluation, table

from crashpath.clustering.classifier import WRONG_COST, Classifier, Verdict, Weights
from crashpath.clustering.corpus import Labelled, read_corpus
from crashpath.clustering.encoder import Vectors, minilm
from crashpath.clustering.features import subject_of
from crashpath.clustering.learn import Sample, fit
from crashpath.clustering.metrics import accuracy, calibration_error, confusion, macro_f1, reliability, wilson
from crashpath.clustering.train import analyse_text, samples_of
from crashpath.clustering.vectors import embed
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.rules import Rules, load_rules

FIELD_CASES = ROOT / "benchmarks" / "field_cases.jsonl"
HALVES = dict.fromkeys("abcd", "its kinds were mended") | {"b": "read in part since"}
FOLDS = 10
WITHOUT = "crashpath without rules"
FORCED = "  the same, no threshold"
STRICT = "  rules deciding a held-out fault off"
SMALL_FOLD = 3
"""A held-out library with fewer logs is counted, named and left out of the mean."""
RULE_NAMES = {
    "tensorflow-serving": {"tf-serving", "tensorflow"},
    "torchscript": {"torch"},
    "torch-distributed": {"torch"},
    "linux": {"os", "kernel"},
    "nvidia-driver": {"cuda"},
    "huggingface-hub": {"huggingface_hub"},
}
"""What rules call a library that the corpus calls otherwise."""


@dataclass(frozen=True, slots=True)
class Said:
    """Answers of one method about held-out logs, with the truth."""

    truth: tuple[str, ...]
    said: tuple[str, ...]
    chance: tuple[float, ...] = ()

    def row(self, name: str) -> tuple[str, ...]:
        hits, n = sum(s == t for s, t in zip(self.said, self.truth, strict=True)), len(self.truth)
        low, high = wilson(hits, n)
        catch_all = sum(s == UNCLASSIFIED for s in self.said) / n
        return (
            name,
            f"{accuracy(self.said, self.truth):.3f}",
            f"{low:.2f}–{high:.2f}",
            f"{macro_f1(self.said, self.truth):.3f}",
            f"{catch_all:.1%}",
        )

    def figures(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "n": len(self.truth),
            "accuracy": accuracy(self.said, self.truth),
            "macro_f1": macro_f1(self.said, self.truth),
            "unclassified": sum(s == UNCLASSIFIED for s in self.said) / len(self.said),
        }
        if self.chance:
            right = [s == t for s, t in zip(self.said, self.truth, strict=True)]
            out["ece"] = calibration_error(reliability(self.chance, right))
        return out


HEAD = ("", "accuracy", "95 %", "macro-F1", "unclassified")
Method = Callable[[Sequence[int], Sequence[int]], tuple[list[str], list[float]]]


class Bench:
    """The corpus analysed with and without rules, and the methods that are compared on it."""

    def __init__(self, logs: Sequence[Labelled], rules: Rules) -> None:
        self.logs, self.rules, self.none = logs, rules, Rules(())
        self.encoder, self.cache = minilm(), FileCache()
        self.with_rules = samples_of(logs, rules)
        self.without = samples_of(logs, self.none)
        self.raw = self.embed([log.text for log in logs])
        self._fits: dict[tuple[bool, tuple[int, ...]], Weights] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed(texts, self.encoder, self.cache)[0]

    def fitted(self, samples: Sequence[Sample], rows: Sequence[int], *, forced: bool = False) -> Classifier:
        """Return the classifier trained on some rows; ``forced`` gives the likeliest class however unlikely it is."""
        key = (samples is self.with_rules, tuple(rows))
        if key not in self._fits:
            part = [samples[i] for i in rows]
            self._fits[key] = fit(part, self.embed([s.subject.text for s in part]), self.encoder.id)
        return Classifier(replace(self._fits[key], threshold=0.0) if forced else self._fits[key])

    def ours(self, samples: Sequence[Sample], *, forced: bool = False) -> Method:
        def method(train: Sequence[int], test: Sequence[int]) -> tuple[list[str], list[float]]:
            judged = self.judged(self.fitted(samples, train, forced=forced), [samples[i] for i in test])
            return [v.failure_class for v in judged], [v.probability for v in judged]

        return method

    def judged(self, classifier: Classifier, samples: Sequence[Sample]) -> tuple[Verdict, ...]:
        subjects = [replace(s.subject, cue=s.held_cue) for s in samples]
        return classifier.judge_all(subjects, self.embed([subject.text for subject in subjects]))

    def tfidf(self, train: Sequence[int], test: Sequence[int]) -> tuple[list[str], list[float]]:
        return tfidf_says(
            [self.logs[i].text for i in train],
            [self.logs[i].failure_class for i in train],
            [self.logs[i].text for i in test],
        ), []

    def nearest(self, train: Sequence[int], test: Sequence[int]) -> tuple[list[str], list[float]]:
        known = list(train)
        best = (self.raw[list(test)] @ self.raw[known].T).argmax(axis=1)
        return [self.logs[known[int(j)]].failure_class for j in best], []

    def held_out(self, folds: Sequence[Sequence[int]], method: Method) -> Said:
        truth: list[str] = []
        said: list[str] = []
        chance: list[float] = []
        for test in folds:
            out = set(test)
            names, chances = method([i for i in range(len(self.logs)) if i not in out], test)
            truth += [self.logs[i].failure_class for i in test]
            said += names
            chance += chances
        return Said(tuple(truth), tuple(said), tuple(chance))

    def library_samples(self, rows: Sequence[int], library: str) -> list[Sample]:
        """Analyse a library's logs with no rule in its words."""
        return self.analysed(rows, self.rules.without_libraries(RULE_NAMES.get(library, {library})))

    def analysed(self, rows: Sequence[int], fewer: Rules) -> list[Sample]:
        """Analyse logs anew with fewer rules, from the root line on."""
        analyser = Analyser(fewer, redacting=False)
        out = []
        for i in rows:
            subject = subject_of(analyse_text(self.logs[i].text, self.logs[i].file, analyser, fewer))
            out.append(replace(self.with_rules[i], subject=subject, held_cue=subject.cue))
        return out


def tfidf_says(train: Sequence[str], classes: Sequence[str], test: Sequence[str]) -> list[str]:
    """Class raw logs by TF-IDF of words and pairs of words, and logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, max_features=20_000)
    model = LogisticRegression(C=10.0, max_iter=300, class_weight="balanced", tol=1e-3)
    model.fit(words.fit_transform(train), list(classes))
    return [str(name) for name in model.predict(words.transform(test))]


def fault_folds(logs: Sequence[Labelled]) -> list[list[int]]:
    """Spread the faults of each class over the folds; the logs of a fault stay together."""
    faults = defaultdict(list)
    for fault, name in sorted({(log.fault, log.failure_class) for log in logs}):
        faults[name].append(fault)
    fold = {fault: i % FOLDS for names in faults.values() for i, fault in enumerate(names)}
    return [[i for i, log in enumerate(logs) if fold[log.fault] == k] for k in range(FOLDS)]


def library_folds(logs: Sequence[Labelled]) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Return the rows of each library, and the libraries that are too small with their counts."""
    rows = defaultdict(list)
    for i, log in enumerate(logs):
        rows[log.library].append(i)
    large = {name: found for name, found in sorted(rows.items()) if len(found) >= SMALL_FOLD}
    return large, {name: len(found) for name, found in sorted(rows.items()) if name not in large}


def faults_out(bench: Bench) -> dict[str, Any]:
    """Print and return the figures with faults held out."""
    folds = fault_folds(bench.logs)

    def with_fewer(fewer: Callable[[set[str]], Rules]) -> Callable[..., tuple[list[str], list[float]]]:
        def said(train: Sequence[int], test: Sequence[int]) -> tuple[list[str], list[float]]:
            rules = fewer({bench.logs[i].fault for i in test})
            judged = bench.judged(bench.fitted(bench.with_rules, train, forced=True), bench.analysed(test, rules))
            return [v.failure_class for v in judged], [v.probability for v in judged]

        return said

    likeliest = bench.held_out(folds, with_fewer(bench.rules.without_faults))
    found = {
        "crashpath": at_threshold(likeliest),
        STRICT: at_threshold(bench.held_out(folds, with_fewer(bench.rules.deciding_none_of))),
        WITHOUT: bench.held_out(folds, bench.ours(bench.without)),
        FORCED: bench.held_out(folds, bench.ours(bench.without, forced=True)),
        "TF-IDF + logistic regression": bench.held_out(folds, bench.tfidf),
        "MiniLM nearest neighbour": bench.held_out(folds, bench.nearest),
    }
    named = sum(bool(rule.faults) for rule in bench.rules)
    print(f"{named} of {len(bench.rules)} rules name faults that they decide; the others stay on.")
    faults = len({log.fault for log in bench.logs})
    table(f"Faults held out: {len(bench.logs)} logs of {faults} faults", HEAD, [s.row(n) for n, s in found.items()])
    return {name: said.figures() for name, said in found.items()} | chances("Faults held out", likeliest)


def libraries_out(bench: Bench) -> dict[str, Any]:
    """Print and return the figures with libraries held out."""
    large, small = library_folds(bench.logs)

    def with_rules(train: Sequence[int], test: Sequence[int]) -> tuple[list[str], list[float]]:
        samples = bench.library_samples(test, bench.logs[test[0]].library)
        judged = bench.judged(bench.fitted(bench.with_rules, train, forced=True), samples)
        return [v.failure_class for v in judged], [v.probability for v in judged]

    folds = list(large.values())
    likeliest = bench.held_out(folds, with_rules)
    found = {
        "crashpath": at_threshold(likeliest),
        WITHOUT: bench.held_out(folds, bench.ours(bench.without)),
        FORCED: bench.held_out(folds, bench.ours(bench.without, forced=True)),
        "TF-IDF + logistic regression": bench.held_out(folds, bench.tfidf),
        "MiniLM nearest neighbour": bench.held_out(folds, bench.nearest),
    }
    table(f"Libraries held out: {len(folds)} of {len(large) + len(small)}", HEAD, [s.row(n) for n, s in found.items()])
    if small:
        print(f"{len(small)} libraries with fewer than {SMALL_FOLD} logs are left out: {', '.join(small)}")
    by_library = {}
    start = 0
    for name, rows in large.items():
        part = slice(start, start + len(rows))
        by_library[name] = accuracy(found["crashpath"].said[part], found["crashpath"].truth[part])
        start += len(rows)
    worst = sorted(by_library.items(), key=lambda one: one[1])[:6]
    print("hardest: " + ", ".join(f"{name} {share:.2f}" for name, share in worst))
    figures = {name: said.figures() for name, said in found.items()} | chances("Libraries held out", likeliest)
    return figures | {"left_out": small, "by_library": by_library}


def at_threshold(likeliest: Said) -> Said:
    """Return what the classifier says: below its threshold nothing."""
    least = 1 - 1 / WRONG_COST
    said = (name if p >= least else UNCLASSIFIED for name, p in zip(likeliest.said, likeliest.chance, strict=True))
    return replace(likeliest, said=tuple(said))


def chances(title: str, likeliest: Said) -> dict[str, Any]:
    """Print how far the chances can be believed, and what each threshold costs."""
    right = [s == t for s, t in zip(likeliest.said, likeliest.truth, strict=True)]
    bars = reliability(likeliest.chance, right)
    diagram(f"Reliability, {title[0].lower()}{title[1:]}", bars)
    costs = by_cost(title, likeliest.truth, likeliest.said, likeliest.chance)
    return {"likeliest_ece": calibration_error(bars), "thresholds": costs}


def real_cases(bench: Bench) -> dict[str, Any]:
    """Print and return the figures on the real cases: nothing is trained on them, but their kinds are known to us."""
    path = evaluation("real-cases", "cases.jsonl")
    if path is None:
        return {}
    return on_cases(bench, "Real cases (read while the rules were written)", read_cases(path))


def field_cases(bench: Bench, half: str) -> dict[str, Any]:
    """Print and return the figures on one half of our own field cases."""
    cases = [case for case in read_cases(FIELD_CASES) if case["id"].startswith(half)]
    return on_cases(bench, f"Field cases, half {half} ({HALVES[half]})", cases)


def read_cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def on_cases(bench: Bench, title: str, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Print and return the figures on labelled cases, with the whole corpus as training."""
    truth = tuple(case["label"] for case in cases)
    everything = range(len(bench.logs))
    found: dict[str, Said] = {}
    for name, rules, samples in (
        ("crashpath", bench.rules, bench.with_rules),
        (WITHOUT, bench.none, bench.without),
        (FORCED, bench.none, bench.without),
    ):
        analyser = Analyser(rules, redacting=False)
        subjects = [subject_of(analyse_text(case["log"], case["id"], analyser, rules)) for case in cases]
        classifier = bench.fitted(samples, everything, forced=name == FORCED)
        judged = classifier.judge_all(subjects, bench.embed([s.text for s in subjects]))
        found[name] = Said(truth, tuple(v.failure_class for v in judged), tuple(v.probability for v in judged))
    texts, classes = [log.text for log in bench.logs], [log.failure_class for log in bench.logs]
    found["TF-IDF + logistic regression"] = Said(truth, tuple(tfidf_says(texts, classes, [c["log"] for c in cases])))
    best = (bench.embed([case["log"] for case in cases]) @ bench.raw.T).argmax(axis=1)
    found["MiniLM nearest neighbour"] = Said(truth, tuple(classes[int(j)] for j in best))
    table(f"{title}, n = {len(cases)}", HEAD, [s.row(n) for n, s in found.items()])
    said = found["crashpath"].said
    lenient = np.mean([s in (c["label"], c.get("secondary")) for s, c in zip(said, cases, strict=True)])
    print(f"with the secondary label accepted: {lenient:.3f}")
    show_confusion(found["crashpath"])
    return {name: one.figures() for name, one in found.items()} | {"lenient": float(lenient)}


def show_confusion(found: Said) -> None:
    """Print, a true class a line, what was said of it."""
    print("\nConfusion (true class: said × n)")
    for name, counts in confusion(found.said, found.truth).items():
        others = ", ".join(f"{said} × {n}" for said, n in sorted(counts.items()) if said != name)
        print(f"  {name:16} {counts[name]:3} right{'; ' + others if others else ''}")
    right = [s == t for s, t in zip(found.said, found.truth, strict=True)]
    diagram("Reliability", reliability(found.chance, right))


def main() -> None:
    """Print the tables and write the figures."""
    logs = read_corpus(ROOT / "data")
    bench = Bench(logs, load_rules())
    counts = Counter(log.failure_class for log in logs)
    print(f"corpus: {len(logs)} logs; " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    figures = {
        "real_cases": real_cases(bench),
        "field_cases": {half: field_cases(bench, half) for half in HALVES},
        "faults": faults_out(bench),
        "libraries": libraries_out(bench),
    }
    write_results("classes", figures)


if __name__ == "__main__":
    main()
