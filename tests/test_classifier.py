"""The classifier: trained without pickle, deterministic, calibrated, and honest where it does not know."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crashpath.clustering.classifier import Classifier, ClassifierError, Verdict, combine, load_classifier
from crashpath.clustering.corpus import CorpusError, read_corpus
from crashpath.clustering.encoder import FakeEncoder, minilm
from crashpath.clustering.features import Subject, matrix, subject_of
from crashpath.clustering.learn import CLASS_IDS, Sample, fit, rotated, train
from crashpath.clustering.terms import terms_of
from crashpath.clustering.train import analyse_text, samples_of, write_weights
from crashpath.clustering.vectors import MemoryCache
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.rules import Rule, Rules

ENCODER = FakeEncoder()
MESSAGES = {
    "oom_host": (
        "Cannot allocate memory for the buffer",
        "out of memory while buffers are allocated",
        "bad_alloc memory",
    ),
    "network_auth": (
        "Connection refused by the hub",
        "hub answered 403 refused",
        "refused: token not authorised at hub",
    ),
    "tokenizer": ("vocab of the tokenizer is missing", "tokenizer merges cannot be read", "bad tokenizer vocab entry"),
}


def subject(message: str, cue: str | None = None) -> Subject:
    return Subject(text=message, terms=terms_of(message), cue=cue)


def samples() -> list[Sample]:
    return [
        Sample(subject(message), name, f"{name}-{i}", "lib", None)
        for name, messages in MESSAGES.items()
        for i, message in enumerate(messages)
    ]


def trained(found: list[Sample] | None = None) -> Classifier:
    rows = found or samples()
    return Classifier(fit(rows, ENCODER.encode([s.subject.text for s in rows]), ENCODER.id))


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return trained()


def judge(classifier: Classifier, *subjects: Subject) -> tuple[Verdict, ...]:
    return classifier.classify(subjects, ENCODER)


def test_learns_from_words(classifier: Classifier) -> None:
    """Without any cue, words that a class had in training lead to it, with evidence of what it resembles."""
    question = subject("cannot allocate memory for a larger buffer")
    (verdict,) = judge(classifier, question)
    chances = classifier.probabilities([question], ENCODER.encode([question.text]))
    assert CLASS_IDS[int(chances.argmax())] == "oom_host"
    assert any("like fault oom_host-" in line for line in verdict.evidence)


def test_probabilities_add_up(classifier: Classifier) -> None:
    """A row of probabilities sums to one, with a cue and without."""
    subjects = [subject("anything at all"), subject("anything at all", cue="hang")]
    chances = classifier.probabilities(subjects, ENCODER.encode([s.text for s in subjects]))
    assert chances.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_a_cue_raises_its_class(classifier: Classifier) -> None:
    """A cue's class gains by the cue, and the evidence names the rule."""
    plain, cued = subject("worker stopped"), replace(subject("worker stopped", cue="hang"), rule="watchdog")
    before, after = classifier.probabilities([plain, cued], ENCODER.encode(["worker stopped"] * 2))
    hang = CLASS_IDS.index("hang")
    assert after[hang] > before[hang]
    assert any(line.startswith("rule watchdog names hang") for line in judge(classifier, cued)[0].evidence)


def test_under_the_threshold_is_unclassified(classifier: Classifier) -> None:
    """A best class under the threshold gives ``unclassified``, and the evidence says how likely that class was."""
    strict = Classifier(replace(classifier.weights, threshold=0.999))
    (verdict,) = judge(strict, subject("qwerty zxcvb"))
    assert verdict.failure_class == "unclassified"
    assert verdict.headline == "other"
    assert "has only" in verdict.evidence[0]


def test_same_input_same_verdict_in_any_company(classifier: Classifier) -> None:
    """A verdict depends on its subject alone."""
    one, two = subject("tokenizer vocab broken"), subject("hub refused")
    assert judge(classifier, one, two)[0] == judge(classifier, one)[0]
    assert judge(classifier) == ()


def test_another_encoder_is_refused(classifier: Classifier) -> None:
    """Vectors of another encoder mean nothing to the weights: one sentence, with what to do."""
    with pytest.raises(ClassifierError, match="make train"):
        classifier.classify([subject("x")], FakeEncoder(32))


def test_order_of_samples_does_not_matter() -> None:
    """The same samples in another order give the same weights, to the bit."""
    forwards, backwards = trained().weights, trained(samples()[::-1]).weights
    assert np.array_equal(forwards.coef, backwards.coef)
    assert forwards.temperature == backwards.temperature


def test_artefact_has_the_same_bytes_and_no_pickle(tmp_path: Path, classifier: Classifier) -> None:
    """Written twice it is the same file; read back it gives the same verdicts; no object array is in it."""
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    write_weights(classifier.weights, one)
    write_weights(classifier.weights, two)
    assert one.read_bytes() == two.read_bytes()
    question = subject("tokenizer vocab broken")
    assert judge(load_classifier(one), question) == judge(classifier, question)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.npz", "two.npz"]


def test_broken_artefact_is_one_sentence(tmp_path: Path) -> None:
    """A file that is no artefact is refused with advice."""
    (tmp_path / "x.npz").write_bytes(b"not an archive")
    with pytest.raises(ClassifierError, match="make train"):
        load_classifier(tmp_path / "x.npz")


def test_rotation_changes_no_score() -> None:
    """The regression in the span of the samples is the regression: same scores on its samples."""
    subjects = [s.subject for s in samples()]
    features = matrix(subjects, ENCODER.encode([s.text for s in subjects]))
    small, basis = rotated(features)
    classes, weight = np.repeat(np.arange(3), 3), np.ones(9)
    full, rotation = train(features, classes, weight), train(small, classes, weight)
    assert np.allclose(features @ (rotation[:, :-1] @ basis.T).T, features @ full[:, :-1].T, atol=2e-2)


def test_combine_multiplies_odds(classifier: Classifier) -> None:
    """With a flat model the cue's class has just the trust in the cue."""
    weights = classifier.weights
    chances = combine(np.zeros((1, len(CLASS_IDS))), np.array([3]), weights)
    assert chances[0, 3] == pytest.approx(float(weights.cue_trust[3]), abs=1e-6)


def test_shipped_artefact_is_small_and_of_the_pinned_encoder() -> None:
    """The artefact that ships loads, knows every class, is of the shipped encoder, and is under 500 kB."""
    shipped = load_classifier()
    assert shipped.weights.classes == CLASS_IDS
    assert shipped.weights.encoder == minilm().id
    path = Path(__file__).parents[1] / "clustering" / "classifier.npz"
    assert path.stat().st_size < 500_000


def test_held_out_cue_knows_no_rule_of_its_fault(tmp_path: Path) -> None:
    """The cue that training sees of a fault comes from rules that were not written from it."""
    log = tmp_path / "a.log"
    log.write_text("engine gave up: flux gone\n")
    table = tmp_path / "labels.csv"
    with table.open("w", newline="") as file:
        rows = csv.DictWriter(file, ["file", "class", "fault", "library", "origin"])
        rows.writeheader()
        rows.writerow({"file": "a.log", "class": "hang", "fault": "flux", "library": "x", "origin": "ran"})
    rule = {
        "id": "flux", "role": "root", "rank": 4, "pattern": "flux gone", "failure_class": "hang", "phase": None,
        "libraries": (), "yes": (), "no": (),
    }  # fmt: skip
    for faults, cue in (((), "hang"), (("flux",), None)):
        (sample,) = samples_of(read_corpus(tmp_path), Rules((Rule(**rule, faults=faults),)))
        assert sample.subject.cue == "hang"
        assert sample.held_cue == cue


def test_missing_corpus_is_one_sentence(tmp_path: Path) -> None:
    """Without a corpus there is one sentence that says how to make it."""
    with pytest.raises(CorpusError, match="make corpus"):
        read_corpus(tmp_path)


def test_works_with_all_rules_off() -> None:
    """Without a single rule a root is found, there is no cue, and a verdict is given."""
    none = Rules(())
    analysis = analyse_text("RuntimeError: CUDA out of memory", "x", Analyser(none, redacting=False), none)
    found = subject_of(analysis)
    assert found.cue is None
    (verdict,) = trained().classify([found], ENCODER, MemoryCache())
    assert 0.0 <= verdict.probability <= 1.0
