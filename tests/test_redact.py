"""Redaction: no secret and nothing personal gets past, and what tells of the failure is not touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.ingest.redact import REDACTIONS, cohort_key, redact

YES = [(r.kind, before, after) for r in REDACTIONS for before, after in r.yes]
NO = [(r.kind, text) for r in REDACTIONS for text in r.no]


@pytest.mark.parametrize(("kind", "before", "after"), YES)
def test_each_kind_does_what_its_examples_say(kind: str, before: str, after: str) -> None:
    """Rule: every ``yes`` example of redactions.toml becomes its second half, and its kind is counted."""
    redacted = redact(before)
    assert redacted.text == after
    assert kind in dict(redacted.counts)


@pytest.mark.parametrize(("kind", "text"), NO)
def test_each_kind_leaves_what_its_examples_say(kind: str, text: str) -> None:
    """Rule: every ``no`` example of redactions.toml stays as it is."""
    assert redact(text).text == text, kind


def test_every_kind_has_an_example() -> None:
    """Rule: a kind without an example under test is not let in."""
    assert [r.kind for r in REDACTIONS if not r.yes] == []


FRAGMENTS = [text for _, *pair in YES for text in pair] + [text for _, text in NO]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4), st.sampled_from([" ", ": ", "=", ", ", "\n", "/"]))
def test_redacting_twice_is_redacting_once(parts: list[str], joint: str) -> None:
    """Rule: redact(redact(x)) == redact(x), for examples in any order and joined in any way."""
    once = redact(joint.join(parts)).text
    assert redact(once).text == once


def test_cohort_keys_are_stable_for_a_key_and_differ_between_keys() -> None:
    """Rule: the same host has the same hash under one key, another under another, and the name is not in it."""
    first, again, other = cohort_key("edge-7", b"a"), cohort_key("edge-7", b"a"), cohort_key("edge-7", b"b")
    assert first == again != other
    assert "edge" not in first
