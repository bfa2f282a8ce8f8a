"""The page of a review: it needs nothing else, says what the other forms say, and can be read on any screen."""

from __future__ import annotations

import re
import runpy
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from crashpath.coverage.wholefile import write_whole
from crashpath.dashboard.review_drawn import limit_of
from crashpath.dashboard.review_files import html_bytes
from crashpath.dashboard.review_html import page
from crashpath.dashboard.review_model import Review
from crashpath.dashboard.review_text import lines
from crashpath.dashboard.review_words import rate_lines

HERE = Path(__file__).parent
SAMPLES = runpy.run_path(str(HERE / "review_samples.py"))["SAMPLES"]
EMPTY = {"meta", "br", "hr", "img", "input", "link"}


class _Reader(HTMLParser):
    """Collects tags, attributes and text; complains of tags that are not closed in their order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)


def read(text: str) -> _Reader:
    """Return what is in a page, which has to be well-formed."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(params=sorted(SAMPLES))
def review(request: pytest.FixtureRequest) -> Review:
    """Each sample in turn."""
    sample: Review = SAMPLES[request.param]()
    return sample


def test_it_needs_nothing_else(review: Review) -> None:
    """There is no script, no picture and no address; links lead to places on the page that are there."""
    text = page(review)
    reader = read(text)
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "img", "link", "iframe", "object", "image", "use"})
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in reader.tags:
        assert not any(name.startswith("on") or name == "src" for name in attrs)
        assert (attrs.get("href") or "#method").removeprefix("#") in ids
    assert not re.search(r"@import|url\((?!#)", text)


def test_pictures_are_xml_with_words(review: Review) -> None:
    """Each picture is well-formed, and each is followed by its figures as a table."""
    text = page(review)
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        ElementTree.fromstring(svg)
    assert text.count("The same figures as a table") == text.count("<figure>") == text.count("<svg") / 2


def test_the_verdict_comes_first(review: Review) -> None:
    """The verdict stands before every figure, and an override beside it."""
    words = [one.strip() for one in read(page(review)).words if one.strip()]
    words = words[words.index(next(one for one in words if one.startswith("Release "))) :]
    assert words[1] == review.verdict
    if review.outcome is not review.verdict:
        assert words[2].startswith(f"overridden to {review.outcome} by ")


def test_the_same_figures_as_in_the_terminal(review: Review) -> None:
    """Every rate, interval, difference, ratio and reduction of the terminal stands on the page."""
    words = " ".join(" ".join(read(page(review)).words).split())
    printed = "\n".join(line for line, _ in lines(review))
    for unit in review.units:
        for compared in unit.rates.values():
            for line in rate_lines(compared):
                for cell in line[1:]:
                    assert cell in words
                    assert cell in printed


def test_hostile_text_is_text() -> None:
    """Markup in a name is shown as it is, what could hide or turn text is spelled out, and nothing is computed."""
    text = page(SAMPLES["hostile"]())
    words = " ".join(read(text).words)
    assert "<script>alert(1)</script>" in words
    assert "{{ 7 * 7 }}" in words
    assert "\\u202e" in words
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", text)


def test_nothing_leaks(review: Review) -> None:
    """Values that are not known are said in words, never as Python's."""
    if "None" not in review.release:  # one sample is called that on purpose
        assert not re.search(r"\b(None|nan|inf|NaN|True|False|Undefined)\b", " ".join(read(page(review)).words))


def test_limits_are_those_of_the_unit() -> None:
    """A limit is drawn where the policy has one as a rate for that unit, and nowhere else."""
    review = SAMPLES["go"]()
    assert limit_of(review, "limits.unanswered", "deployment") == 0.0109
    assert limit_of(review, "limits.unanswered", "request") is None
    assert limit_of(review, "baseline.unanswered", "deployment") is None
    assert "limit 1.09 %" in page(review)
    assert "limit 8.00 %" in page(review)


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    """The page is there with all of it, half a character of a name included, and nothing beside it."""
    target = tmp_path / "review.html"
    write_whole(target, html_bytes(SAMPLES["overridden"]("half \ud83d of one")))
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert "half \\ud83d of one" in target.read_text(encoding="utf-8")
    assert [one.name for one in tmp_path.iterdir()] == ["review.html"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
@pytest.mark.parametrize("name", ["no_go", "small", "hostile"])
def test_on_a_screen(browser: Browser, contrast: str, tmp_path: Path, name: str, scheme: str, width: int) -> None:
    """It loads nothing, fits the window, its words can be told from their ground, and one of each picture is shown."""
    target = tmp_path / "review.html"
    target.write_bytes(html_bytes(SAMPLES[name]()))
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]  # a literal of its own
    opened, asked, said = context.new_page(), [], []
    opened.on("request", lambda one: asked.append(one.url))
    opened.on("console", lambda one: said.append(one.text))
    opened.on("dialog", lambda one: (said.append(one.message), one.dismiss()))
    opened.goto(target.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert opened.evaluate(contrast) == []
    pictures = opened.locator("figure svg")
    shown = [one for one in pictures.all() if one.is_visible()]
    assert len(shown) == pictures.count() / 2
    assert all(one.bounding_box()["width"] <= width for one in shown)  # type: ignore[index]  # it is visible
    letters = opened.evaluate(
        "[...document.querySelectorAll('figure svg')].filter(one => one.clientWidth)"
        ".map(one => one.clientWidth / one.viewBox.baseVal.width)"
    )
    assert min(letters, default=1) > 0.9
    assert asked == [target.as_uri()]
    assert said == []
    context.close()
