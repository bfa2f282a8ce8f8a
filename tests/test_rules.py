"""Root rules: every example holds, held-out knowledge is really off."""

import pickle
import re
from collections import Counter
from pathlib import Path

import pytest

from crashpath.clustering.corpus import read_corpus
from crashpath.clustering.train import analyse_text
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.model import Role
from crashpath.ingest.rules import Rule, RuleError, Rules, load_rules

RULES = load_rules()


@pytest.mark.parametrize("rule", RULES.rules, ids=[r.id for r in RULES])
def test_examples(rule: Rule) -> None:
    """Rule: a rule matches each of its yes lines and none of its no lines (near misses), and it has both."""
    assert rule.yes, "no line that it must match"
    assert rule.no, "no near miss"
    for line in rule.yes:
        assert rule in RULES.match(line), line
    for line in rule.no:
        assert rule not in RULES.match(line), line


def test_every_class_has_rules_from_several_places() -> None:
    """Rule: no class hangs on one library: at least three rules a class, and rules for at least fifty libraries."""
    counts = Counter(r.failure_class for r in RULES)
    assert all(counts[c.id] >= 3 for c in CLASSES), counts
    assert len({library for r in RULES for library in r.libraries}) >= 50


def test_ids_are_plain_and_ranks_are_on_the_ladder() -> None:
    """Rule: ids are lower-case words with dashes; ranks are 1 to 4; a cascade or context rule names no class."""
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id), rule.id
        assert 1 <= rule.rank <= 4, rule.id
        if rule.role in (Role.CASCADE, Role.CONTEXT):
            assert rule.failure_class is None, rule.id


def test_held_out_library_is_off() -> None:
    """Rule: without a library, no rule in its words is left, the others stay, and its sentences are unknown."""
    line = "gguf_init_from_file_impl: invalid magic characters: 'abcd', expected 'GGUF'"
    assert any(r.id == "gguf-broken" for r in RULES.match(line))
    rest = RULES.without_libraries({"llama.cpp"})
    assert not any("llama.cpp" in r.libraries for r in rest)
    assert not any(r.id == "gguf-broken" for r in rest.match(line))
    assert len(rest) == sum("llama.cpp" not in r.libraries for r in RULES)


def test_held_out_fault_is_off() -> None:
    """Rule: a rule that only held-out faults speak for is off; one that another fault or none speaks for stays."""
    one = Rule("a", Role.ROOT, 4, "alpha", "hang", None, (), ("f1",), ("alpha",), ("b",))
    two = Rule("b", Role.ROOT, 4, "alpha", "hang", None, (), (), ("alpha",), ("b",))
    three = Rule("c", Role.ROOT, 4, "alpha", "hang", None, (), ("f1", "f2"), ("alpha",), ("b",))
    rules = Rules((one, two, three))
    assert [r.id for r in rules.without_faults({"f1"}).match("alpha")] == ["b", "c"]
    assert [r.id for r in rules.without_faults({"f1", "f2"}).match("alpha")] == ["b"]
    assert "a" not in [r.id for r in rules.deciding_none_of({"f1"}).match("alpha")]


def test_rules_name_the_faults_that_they_decide() -> None:
    """Rule: every log of the corpus whose class a rule decides is of a fault that the rule names, so that holding a
    fault out also holds out what only it speaks for; no rule names a fault that the corpus does not have."""
    logs = read_corpus(Path(__file__).parents[1] / "data")
    known = {rule.id: set(rule.faults) for rule in RULES}
    assert set().union(*known.values()) <= {log.fault for log in logs}
    analyser = Analyser(RULES, redacting=False)
    missing = set()
    for log in logs:
        rule = analyse_text(log.text, log.file, analyser, RULES).root.rule
        if log.fault not in known.get(rule, {log.fault}):
            missing.add((rule, log.fault))
    assert missing == set(), "name these faults in these rules"


def test_a_failure_is_a_root_or_confirmation_and_no_look_alike() -> None:
    """Rule: lines that state a cause open a record; advice, settings, wrappers and healthy lines do not."""
    for line in (
        "CUDA error: out of memory",
        "Killed",
        "Out of memory: Killed process 77 (server) total-vm:1kB, anon-rss:1kB",
        "svc.service: start operation timed out. Terminating.",
    ):
        assert RULES.is_failure(line), line
    for line in (
        "A batch of 64 may lead to an out of memory error on small cards.",
        "request_timeout: 30s",
        "Engine core initialization failed. See root cause above.",
        "model loaded in 31 s",
        '10.0.0.1:55 - "GET /permission-denied HTTP/1.1" 200 OK',
        "",
    ):
        assert not RULES.is_failure(line), line


def test_no_rules_match_nothing() -> None:
    """Rule: an empty set of rules is a set of rules."""
    assert Rules(()).match("Killed") == ()
    assert not Rules(()).is_failure("Killed")


def test_a_pattern_that_cannot_be_read_names_its_rule() -> None:
    """Rule: a broken pattern is refused with the id of its rule, not later and not silently."""
    broken = Rule("looks-ahead", Role.ROOT, 4, "a(?=b)", "hang", None, (), (), ("ab",), ("b",))
    with pytest.raises(RuleError, match="looks-ahead"):
        Rules((broken,))


def test_rules_travel_to_other_processes() -> None:
    """Rule: a set of rules survives pickling between worker processes and still matches."""
    assert pickle.loads(pickle.dumps(RULES)).is_failure("Killed")
