"""Masks: what changes from run to run goes, what says which failure it is stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashpath.ingest.mask import MASKS, mask

YES = [(m.name, before, after) for m in MASKS for before, after in m.yes]
NO = [(m.name, text) for m in MASKS for text in m.no]


@pytest.mark.parametrize(("name", "before", "after"), YES)
def test_each_mask_does_what_its_examples_say(name: str, before: str, after: str) -> None:
    """Rule: every ``yes`` example of masks.toml becomes its second half."""
    assert mask(before) == after, name


@pytest.mark.parametrize(("name", "text"), NO)
def test_each_mask_leaves_what_its_examples_say(name: str, text: str) -> None:
    """Rule: every ``no`` example of masks.toml stays as it is."""
    assert mask(text) == text, name


def test_every_mask_has_an_example() -> None:
    """Rule: a mask without an example under test is not let in."""
    assert [m.name for m in MASKS if not m.yes and not m.no] == []


FRAGMENTS = [text for _, *pair in YES for text in pair] + [text for _, text in NO]


@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4), st.sampled_from([" ", ": ", "=", ", ", "\n", "/", ""])
)
def test_masking_twice_is_masking_once(parts: list[str], joint: str) -> None:
    """Rule: mask(mask(x)) == mask(x), for examples in any order and joined in any way."""
    once = mask(joint.join(parts))
    assert mask(once) == once


@given(st.text(alphabet="ab1 29.:/\\<>n{}[](),'=-_@xZ", max_size=40))
def test_masking_any_text_twice_is_masking_it_once(text: str) -> None:
    """Rule: mask is idempotent on anything, also on what is no log at all."""
    once = mask(text)
    assert mask(once) == once


@given(st.text(alphabet=st.characters(categories=["Lo", "Zs", "Po"], exclude_characters="@/\\"), max_size=60))
def test_other_scripts_stay(text: str) -> None:
    """Rule: text without digits, slashes and addresses is never touched, whatever its script."""
    assert mask(text) == text


@pytest.mark.parametrize("unit", ["a/", "/", "1.", "1:", "a@", "[1,", "a_1", "ab.", "\\x", "<n>/", "QUJD0"])
def test_a_long_token_is_masked_in_time(unit: str) -> None:
    """Rule: the time grows with the length, not with its square: 8,000 characters of one token take under 2 s."""
    started = time.process_time()
    mask(unit * (8000 // len(unit)))
    assert time.process_time() - started < 2
