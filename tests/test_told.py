"""What a record remembers of itself while it grows."""

from __future__ import annotations

from crashpath.ingest.assemble import Kept
from crashpath.ingest.lines import Line
from crashpath.ingest.model import Facts
from crashpath.ingest.told import MOST_WORDS, Told


def test_a_record_that_never_ends_remembers_a_bounded_number_of_lines() -> None:
    """Rule: of error lines without end the last ones are remembered, so that memory is bounded."""
    told = Told()
    for number in range(3 * MOST_WORDS):
        words = f"words {number}"
        told.say(words, Kept(number, number + 1, Line(words, "ERROR", None, None, Facts()), None))
        told.see(words, None, number)
    for remembered in (told._said, told._seen):
        assert list(remembered) == [f"words {number}" for number in range(2 * MOST_WORDS, 3 * MOST_WORDS)]
