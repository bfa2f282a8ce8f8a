"""The text of a crash as HTML: whatever it holds is text, each line has the sign and the colour of its role."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest

from crashpath.dashboard.crash_html import COLOURS, MOST_CHARACTERS, MOST_LINES, crash_html, cut_words, legend
from crashpath.dashboard.show_text import MARKS
from crashpath.ingest.model import Role

ROLES = (Role.CONTEXT, Role.ROOT, Role.CASCADE, Role.CONFIRMATION)


class Tags(HTMLParser):
    """Collects tags, attributes and text as a browser would."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "line",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '" onmouseover="alert(1)" style="position:fixed',
        "</div></div><style>*{display:none}</style>",
        "<a href='javascript:alert(1)'>x</a>",
        "&lt;b&gt; &#60;script&#62;",
        "**bold** [x](javascript:alert(1)) `code` $x$ :red[x]",
    ],
)
def test_markup_is_text(line: str) -> None:
    """Markup of a log makes no tag and no attribute that the frame does not have anyway, and is read as it stands."""
    plain, hostile = Tags(crash_html("a\nb", ROLES, 1)), Tags(crash_html(f"a\n{line}", ROLES, 1))
    assert hostile.tags == plain.tags == {"div", "span"}
    assert hostile.attributes == plain.attributes
    assert line in hostile.text


@pytest.mark.parametrize("character", ["\x1b", "\u202e", "\u2066", "\x00", "\r", "\x85", "\u2028", "\ufeff", "\u200b"])
def test_what_steers_or_hides_is_spelled_out(character: str) -> None:
    """Control, direction and invisible characters are shown as their codes."""
    shown = crash_html(f"a\nred{character}gnp.exe", ROLES, 1)
    assert character not in shown
    assert re.search(r"red\\(x|u|U)[0-9a-f]+gnp\.exe", html.unescape(shown))


def test_each_role_has_its_sign_and_colour() -> None:
    """A line has the colour of its role and the sign that ``crashpath show`` has; the legend names both."""
    shown = crash_html("zero\none\ntwo\nthree", ROLES, 1)
    lines = re.findall(r'<div style="border-left: 4px solid ([^;]+);.*?</div>', shown)
    assert lines == [COLOURS[role] for role in ROLES]
    assert len(set(COLOURS.values())) == len(Role)
    text = Tags(shown).text
    for role, line in zip(ROLES, ("zero", "one", "two", "three"), strict=True):
        assert f"{MARKS[role].strip() or chr(160)}{line}" in text
    for role in ROLES[1:]:
        assert COLOURS[role] in legend()
        assert MARKS[role].strip() in Tags(legend()).text


def test_lines_without_a_role_are_context() -> None:
    """A text with more lines than roles is shown whole."""
    shown = crash_html("a\nb\nc", (Role.ROOT,), 0)
    assert Tags(shown).text.count("\xa0") == 2
    assert shown.count(COLOURS[Role.ROOT]) == 1


def test_a_long_line_is_cut_and_that_is_said() -> None:
    """A line of megabytes costs no more than what is shown of it; how much is left out is said twice."""
    text = "x" * 5_000_000
    shown = crash_html(text, (Role.ROOT,), 0)
    assert len(shown) < 3 * MOST_CHARACTERS
    assert f"{5_000_000 - MOST_CHARACTERS:,} more characters" in shown
    assert cut_words(text, 0) == f"Not shown: what 1 line has beyond {MOST_CHARACTERS} characters."


def test_the_root_line_is_always_among_the_lines_that_are_shown() -> None:
    """Of many lines those around the root line are shown; those before and behind are counted."""
    lines = [f"line-{n}." for n in range(1000)]
    for root in (0, 1, 500, 998, 999):
        shown = crash_html("\n".join(lines), (), root)
        numbers = [int(n) for n in re.findall(r"line-(\d+)\.", shown)]
        assert root in numbers
        assert len(numbers) == MOST_LINES
        told = [int(n) for n in re.findall(r"… (\d+) lines? (?:before|behind)", shown)]
        assert sum(told) + len(numbers) == 1000
    assert "940 of 1,000 lines" in cut_words("\n".join(lines), 500)
    assert cut_words("a\nb", 0) == ""


def test_an_empty_text_is_an_empty_line() -> None:
    """A text without a character, and a root line that is not in it, are no error."""
    assert Tags(crash_html("", (), 7)).text.strip("\xa0") == ""
