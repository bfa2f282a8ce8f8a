"""The prefilter: words that a match cannot do without, and never a pattern lost to it."""

import pytest
import re2

from crashpath.ingest.literals import PatternError, Sieve, alternatives
from crashpath.ingest.rules import load_rules


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("out of memory", [["out of memory"]]),
        (r"disk (?:full|quota)\b", [["disk ", "full|quota"]]),
        ("abcd?", [["abc"]]),
        ("abcd+e", [["abcd"]]),
        ("x{0,3}yy", [["yy"]]),
        (r"\d+ [a-z]+", [[" "]]),
        (r"[|)]\(", [["("]]),
        ("alpha|beta", [["alpha"], ["beta"]]),
        ("(?:alpha|[0-9]+)", [[]]),
    ],
)
def test_words_of_each_alternative(pattern: str, needs: list[list[str]]) -> None:
    """Rule: each alternative needs at most two sets of words; optional and repeated parts lend none that may miss."""
    found = [["|".join(sorted(words)) for words in branch.needs] for branch in alternatives(pattern)]
    assert [sorted(branch) for branch in found] == [sorted(branch) for branch in needs]
    assert "|".join(branch.pattern for branch in alternatives(pattern)) == pattern


def test_the_sieve_finds_what_each_pattern_alone_finds() -> None:
    """Rule: over all rules and all their examples, the sieve agrees with RE2 on every pair."""
    rules = load_rules().rules
    options = re2.Options()
    options.case_sensitive = False
    alone = [re2.compile(rule.pattern, options) for rule in rules]
    sieve = Sieve([rule.pattern for rule in rules])
    for line in {line for rule in rules for line in (*rule.yes, *rule.no)}:
        assert sieve.match(line) == [i for i, pattern in enumerate(alone) if pattern.search(line)], line


@pytest.mark.parametrize("pattern", ["a(b", "a)b", "a(?=b)", "[a"])
def test_a_broken_pattern_is_refused_with_its_index(pattern: str) -> None:
    """Rule: what RE2 cannot read is refused when the sieve is made, and the index says which it was."""
    with pytest.raises(PatternError) as refused:
        Sieve(["fine", pattern])
    assert refused.value.index == 1


def test_nothing_matches_nothing() -> None:
    """Rule: no patterns, or no characters that RE2 knows, are no error."""
    assert Sieve([]).match("text") == []
    assert Sieve(["text"]).match("te\udcffxt text") == [0]
