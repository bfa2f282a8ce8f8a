"""The terminal's report: the verdict first, 80 columns, whole numbers, inert text, and the figures of every form."""

from __future__ import annotations

import io
import math
import re
import runpy
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from crashpath.dashboard.figures import percent
from crashpath.dashboard.intervals import compared, rate
from crashpath.dashboard.review_model import Estimate, Measure, Review, Verdict
from crashpath.dashboard.review_text import WIDTH, command_lines, lines, print_review, wrapped
from crashpath.dashboard.review_words import (
    clean,
    counts_words,
    difference_interval,
    difference_words,
    interval_words,
    p_words,
    rate_words,
    ratio_interval,
    ratio_words,
    reduction_words,
)

SAMPLES = runpy.run_path(str(Path(__file__).with_name("review_samples.py")))["SAMPLES"]
counts = st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.fixture(params=sorted(SAMPLES))
def review(request: pytest.FixtureRequest) -> Review:
    """Each sample in turn."""
    sample: Review = SAMPLES[request.param]()
    return sample


def text_of(review: Review) -> str:
    """Return what is printed where there is no terminal."""
    out = io.StringIO()
    print_review(review, Console(file=out, width=80, highlight=False))
    return out.getvalue()


def test_fits_80_columns(review: Review) -> None:
    """No line is wider than 80 columns, whatever is in it, and none is cut by the console."""
    printed = text_of(review).splitlines()
    assert max(cell_len(line) for line in printed) <= WIDTH
    assert printed == [line for line, _ in lines(review)]


def test_verdict_first() -> None:
    """The first line is the verdict alone; an override is in it, with who and why."""
    assert [text_of(SAMPLES[name]()).splitlines()[0] for name in ("go", "no_go", "no_data", "small")] == [
        "GO", "NO-GO", "HOLD", "HOLD",
    ]  # fmt: skip
    whole = " ".join(text_of(SAMPLES["overridden"]()).split())
    assert whole.startswith(
        "NO-GO, overridden to GO by kim: Only the fleet of the laboratory fails; it is left out of this release release"
    )


def test_an_override_that_is_void_is_shown_and_not_followed() -> None:
    """An override that was undone, or that does not cover the reasons, is listed, and the verdict stands alone."""
    review = SAMPLES["overridden"]()
    void = replace(review, outcome=Verdict.NO_GO, overrides=tuple(replace(o, holds=False) for o in review.overrides))
    printed = text_of(void)
    assert printed.splitlines()[0] == "NO-GO"
    assert "(undone)" in printed
    assert "does not cover the reasons that there are now" in " ".join(printed.split())


def test_hostile_text_is_inert() -> None:
    """Nothing in a name steers the terminal, hides itself or is taken as markup; it cannot forge a first line."""
    printed = text_of(SAMPLES["hostile"]())
    bad = {c for c in printed if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}}
    assert bad == set()
    assert "[bold]" in printed
    assert "\\u202e" in printed
    assert printed.startswith("NO-GO, overridden to GO by \\x1b[31mred")


def test_nothing_leaks(review: Review) -> None:
    """Values that are not known are said in words, never as Python's."""
    if "None" not in review.release:  # one sample is called that on purpose
        assert not re.search(r"\b(None|nan|inf|NaN|True|False)\b", text_of(review))


def test_the_figures_are_those_of_the_review(review: Review) -> None:
    """Rate, interval, counts, difference and ratio of each measure are read back as the values they were made of."""
    printed = text_of(review)
    if review.main is None:
        assert "no unit is told" in printed
        return
    block = printed[printed.index(f"Rates by {review.unit}") :]
    for measure, one in review.main.rates.items():
        found = re.search(rf"^{measure}: [^\n]*\n  release +(.*) %  +(.*) to (.*) %  (\S+) of (\S+)$", block, re.M)
        assert found is not None
        value, low, high = (float(found[i].replace(",", "")) / 100 for i in (1, 2, 3))
        assert one.release.rate == pytest.approx(value, rel=0.03, abs=1e-9)
        assert one.release.low == pytest.approx(low, rel=0.06, abs=1e-3)
        assert one.release.high == pytest.approx(high, rel=0.06, abs=1e-3)
        assert [int(found[i].replace(",", "")) for i in (4, 5)] == [one.release.failures, one.release.attempts]


def test_known_words() -> None:
    """The account's own reduction is written as it is read: 92.7 % lower, with its interval."""
    one = compared(rate(1560, 150_000), rate(21_450, 150_000))
    assert (rate_words(one.release), interval_words(one.release)) == ("1.04 %", "0.99 to 1.09 %")
    assert counts_words(one.baseline) == "21,450 of 150,000"
    assert (difference_words(one.difference), difference_interval(one.difference)) == ("−13.3 points", "−13.4 to −13.1")
    assert (ratio_words(one.ratio), ratio_interval(one.ratio)) == ("0.0727 times", "0.0690 to 0.0766")
    assert reduction_words(one.ratio) == "92.7 % lower (92.3 to 93.1)"
    assert rate_words(rate(18, 150_000)) == "0.0120 %"
    assert (rate_words(rate(0, 0)), interval_words(rate(5, 2))) == ("no rate", "")
    assert reduction_words(Estimate(1.5, 1.2, 1.9)) == ""
    assert [p_words(p) for p in (None, 1e-300, 0.0123, 0.999)] == ["", "p < 0.0001", "p = 0.012", "p = 1"]


@given(counts, counts)
def test_a_value_stands_between_its_limits(here: tuple[int, int], there: tuple[int, int]) -> None:
    """As written, a rate lies within its interval, and so do a difference and a ratio; two limits are two numbers."""
    one = compared(rate(*here), rate(*there))
    pairs = [(rate_words(one.release), interval_words(one.release))]
    pairs.append((difference_words(one.difference), difference_interval(one.difference)))
    pairs += [(ratio_words(one.ratio), ratio_interval(one.ratio))] if one.ratio else []
    for value, between in pairs:
        low, high = (_number(part) for part in between.split(" to "))
        assert low <= _number(value) + 1e-12
        assert _number(value) <= high + 1e-12
        assert low < high


def _number(words: str) -> float:
    return float(re.sub(r" (%|points|times)$", "", words).replace("−", "-").replace(",", ""))


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_rates_are_written_as_in_sentences(failures: int, more: int) -> None:
    """A rate has the digits that sentences give it, and more only where its limits would else be one number."""
    one = rate(failures, failures + more)
    assert one.rate is not None
    words, told = rate_words(one), percent(one.rate)
    assert words == told or (
        _digits(words) > _digits(told) and math.isclose(_number(words), _number(told), rel_tol=0.06)
    )


def _digits(words: str) -> int:
    return len(words.partition(".")[2])


def test_wrapping_keeps_a_figure_whole() -> None:
    """A line does not end between a number and its sign, nor inside a number or a date; a long word is cut."""
    text = " ".join(["1,234,567 of 9,876,543 (12.4 %) on 2026-11-01 were NO-GO,"] * 9)
    out = [line for line, _ in wrapped(text, "    ")]
    assert " ".join(" ".join(out).split()) == text
    assert not any(line.lstrip().startswith(("%", "-", ",")) for line in out)
    assert [cell_len(line) for line, _ in wrapped("字" * 100)] == [79]
    assert clean("x " * 20 + "123,456 y", 44).endswith("x…")


def test_a_long_command_can_be_copied() -> None:
    """A command goes on after a backslash, never inside quotes."""
    command = "crashpath trends --by class --platform 'linux  gpu of a long name' --release '2026.12 rc 1' --json --x y"
    out = [line for line, _ in command_lines(command)]
    assert len(out) > 1
    assert all(line.endswith(" \\") for line in out[:-1])
    joined = " ".join(line.removesuffix("\\").strip() for line in out).removeprefix("→ ")
    assert re.sub(" +", " ", joined) == re.sub(" +", " ", command)


def test_what_is_missing_is_said() -> None:
    """Without data there is a sentence and what to do; with three attempts the number that is still needed."""
    empty, small = text_of(SAMPLES["no_data"]()), text_of(SAMPLES["small"]())
    assert "No attempts are told of release 2027.01." in empty
    assert "→ crashpath attempts load FILE" in empty
    assert "Nothing was proven of this release" in empty
    assert "about 271 more deployments" in small
    assert "macos / minilm: no log source of it was looked at" in small


def test_long_lists_end_with_how_many_are_left() -> None:
    """Of many reasons, cohorts and looks the first are shown, and how many there are besides."""
    printed = text_of(SAMPLES["long"]())
    for rest in (200 - 20, 40 - 8, 59 - 5, 400 - 20, 600 - 40):
        assert f"… and {rest:,} more" in printed
    assert Measure.CONTAINED in printed
    assert len(printed.splitlines()) < 400
