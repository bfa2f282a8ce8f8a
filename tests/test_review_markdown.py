"""The comment of a pull request: the same figures, never too long, and nobody else's markup."""

from __future__ import annotations

import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from crashpath.dashboard.review_markdown import MOST, markdown, safe, span
from crashpath.dashboard.review_model import Review
from crashpath.dashboard.review_words import rate_lines, verdict_words

SAMPLES = runpy.run_path(str(Path(__file__).with_name("review_samples.py")))["SAMPLES"]
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OWN_HTML = re.compile(r"</?details>(<summary>[^<]*</summary>)?|<details><summary>[^<>]*</summary>")


@pytest.fixture(params=sorted(SAMPLES))
def review(request: pytest.FixtureRequest) -> Review:
    """Each sample in turn."""
    sample: Review = SAMPLES[request.param]()
    return sample


def tokens(text: str) -> list[Token]:
    """Return all that a parser sees, inner pieces included."""
    return [one for outer in PARSER.parse(text) for one in (outer, *(outer.children or ()))]


def shown(text: str) -> str:
    """Return what a reader sees, without what has no width."""
    seen = [one.content for one in tokens(text) if one.type in {"text", "code_inline", "text_special"}]
    return "".join(seen).replace("\u200b", "")


def test_verdict_first(review: Review) -> None:
    """The first heading is the verdict, with who overrode it and why."""
    first = markdown(review).partition("\n")[0]
    assert first.startswith(f"## {review.verdict}")
    assert shown(first).startswith(" ".join(verdict_words(review).split())[:60])


def test_the_same_figures(review: Review) -> None:
    """Every figure of the rates stands in the comment, in rows of the table."""
    seen = shown(markdown(review))
    for unit in review.units:
        for compared in unit.rates.values():
            for line in rate_lines(compared):
                assert all(cell in seen for cell in line[1:])


def test_tables_keep_their_shape(review: Review) -> None:
    """Each row has as many cells as its head, whatever is in them."""
    rows: list[int] = []
    for one in tokens(markdown(review)):
        if one.type == "tr_open":
            rows.append(0)
        elif one.type in {"th_open", "td_open"}:
            rows[-1] += 1
        elif one.type == "table_close":
            assert len(set(rows)) == 1
            rows = []


def test_hostile_text_is_text() -> None:
    """Of a name nothing is a link, a picture, HTML or a heading, and nobody and no issue is called by it."""
    text = markdown(SAMPLES["hostile"]())
    kinds = {one.type for one in tokens(text)}
    assert kinds.isdisjoint({"link_open", "image", "html_inline", "fence", "code_block", "blockquote_open", "hr"})
    for one in tokens(text):
        if one.type == "html_block":
            assert OWN_HTML.sub("", one.content).strip() == ""
        if one.type == "text":
            assert not re.search(r"@\w|#\d|://|www\.\w", one.content)
    assert "<script>alert(1)</script>" in shown(text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", text)
    headings = [one for one in PARSER.parse(text) if one.type == "heading_open"]
    assert len(headings) == 4


@given(st.text(max_size=80))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    """Whatever a name is, a reader sees it in one paragraph, one line, and nothing is made of it."""
    words = safe(text)
    if not words:
        return
    seen = tokens(f"- {words}")
    assert {one.type for one in seen} <= {
        "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "paragraph_open",
        "paragraph_close", "inline", "text", "text_special",
    }  # fmt: skip
    assert "\n" not in words


@given(st.text("`a |<@", max_size=30))
def test_a_code_span_cannot_be_left(text: str) -> None:
    """Backticks in a name do not end its span."""
    words = span(text)
    if words:
        assert [
            one.type for one in tokens(words) if one.type not in {"inline", "paragraph_open", "paragraph_close"}
        ] == ["code_inline"]


def test_never_too_long(review: Review) -> None:
    """A comment stays under 60,000 characters, of the longest and most hostile review, and says what it left out."""
    assert len(markdown(review)) < 60_000
    bad = "@#1|" * 500
    huge = replace(
        SAMPLES["long"](),
        reasons=tuple(replace(one, sentence=bad, subject=bad, command=bad) for one in review.reasons) * 50,
        movements=tuple(replace(one, title=bad, key=bad, sentence=bad) for one in review.movements) * 100,
        thresholds=tuple(replace(one, limit=bad, measured=bad) for one in review.thresholds) * 50,
        notes=(bad,) * 500,
    )
    text = markdown(huge)
    assert len(text) <= MOST
    assert len(text) < 60_000
    if review.movements:
        assert "did not fit" in text
    assert text.count("<details>") == text.count("</details>")


def test_nothing_leaks(review: Review) -> None:
    """Values that are not known are said in words, never as Python's."""
    if "None" not in review.release:  # one sample is called that on purpose
        assert not re.search(r"\b(None|nan|inf|NaN|True|False)\b", markdown(review))
