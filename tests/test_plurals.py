"""Numbers with their noun."""

from __future__ import annotations

import pytest

from crashpath.dashboard.plurals import many


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "crash", "0 crashes"),
        (1, "crash", "1 crash"),
        (2, "new crash", "2 new crashes"),
        (1500, "day", "1,500 days"),
    ],
)
def test_the_noun_goes_with_the_number(number: int, noun: str, words: str) -> None:
    """One thing is singular, none and several are plural, and thousands are parted."""
    assert many(number, noun) == words
