"""Pictures are well-formed, say what they show, and their marks stand where the numbers say."""

from __future__ import annotations

import re
from datetime import date, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashpath.dashboard.pictures import HEADLINE_COLOURS as SHOWN_COLOURS
from crashpath.dashboard.svg import HEADLINE_COLOURS, Bar, Point, Series, Whisker, bars, rates_over_days, whiskers
from crashpath.dashboard.svg_axes import Scale, nice_step, nice_top, slots
from crashpath.dashboard.svg_parts import Words

NS = "{http://www.w3.org/2000/svg}"
WORDS = Words("p", "Rates <by> day", "What is shown")
START = date(2026, 11, 1)
Element = ElementTree.Element


def parsed(svg: str) -> Element:
    """Return the picture; it has to be XML."""
    return ElementTree.fromstring(svg)


def series(name: str, values: list[float | None], start: date = START) -> Series:
    """Days in a row; ``None`` has no rate and 7 failures."""
    points = tuple(
        Point(start + timedelta(days=i), v, None if v is None else v / 2, None if v is None else v * 2, 7, f"day {i}")
        for i, v in enumerate(values)
    )
    return Series(name, "red", points)


def axis(root: Element, kind: str, along: str) -> tuple[float, float]:
    """Return pixels of 0 % and pixels a share, from two marks of an axis."""
    found = [one for one in root.iter(f"{NS}text") if one.attrib.get("class") == kind and "%" in (one.text or "")]
    marks = [(float((one.text or "").removesuffix(" %")) / 100, float(one.attrib[along])) for one in found]
    (low, at), (high, end) = marks[0], marks[-1]
    per = (end - at) / (high - low)
    return at - low * per, per


@pytest.mark.parametrize("width", [340, 800])
def test_rates_stand_where_they_are(width: int) -> None:
    """Points, bands and the limit read back from the marks of the axis are the values; days go from left to right."""
    values = [0.01, 0.02, None, 0.015, 0.03]
    root = parsed(rates_over_days([series("a", list(values)), series("b", [0.1, 0.11])], 0.05, WORDS, width))
    zero, per = axis(root, "tick-y", "y")
    zero -= 4  # letters stand 4 pixels below their line
    drawn = {
        (one.attrib["data-series"], one.attrib["data-day"]): one for one in root.iter(f"{NS}circle")
    }  # fmt: skip
    assert len(drawn) == 6
    for i, value in enumerate(values):
        if value is not None:
            mark = drawn["0", (START + timedelta(days=i)).isoformat()]
            assert (float(mark.attrib["cy"]) - zero) / per == pytest.approx(value, abs=0.0005)
    places = [float(drawn["0", (START + timedelta(days=i)).isoformat()].attrib["cx"]) for i in (0, 1, 3, 4)]
    assert places[1] - places[0] == pytest.approx((places[2] - places[1]) / 2, abs=0.2)
    band = next(one for one in root.iter(f"{NS}polygon"))
    corners = [tuple(map(float, pair.split(","))) for pair in band.attrib["points"].split()]
    assert [(y - zero) / per for _, y in corners] == pytest.approx([0.02, 0.04, 0.01, 0.005], abs=0.0005)
    limit = next(one for one in root.iter(f"{NS}line") if one.attrib.get("class") == "limit")
    assert (float(limit.attrib["y1"]) - zero) / per == pytest.approx(0.05, abs=0.0005)


def test_a_day_without_a_rate_is_a_count() -> None:
    """It is a number below the axis, never a point at zero, and no line bridges it."""
    root = parsed(rates_over_days([series("a", [0.01, 0.01, None, 0.01, 0.01])], None, WORDS, 800))
    assert [one.attrib["data-day"] for one in root.iter(f"{NS}text") if "data-day" in one.attrib] == ["2026-11-03"]
    assert next(one for one in root.iter(f"{NS}text") if one.attrib.get("class") == "untold")[0].tail == "×7"
    assert len(list(root.iter(f"{NS}polyline"))) == 2
    assert len(list(root.iter(f"{NS}circle"))) == 4
    alone = parsed(rates_over_days([series("a", [None, None])], None, WORDS, 340))
    assert list(alone.iter(f"{NS}circle")) == []


def test_a_long_time_between_is_left_out_and_marked() -> None:
    """Months between baseline and release take no room, and a sign says that something is left out."""
    early, late = series("b", [0.1, 0.1]), series("a", [0.1, 0.1], START + timedelta(days=90))
    root = parsed(rates_over_days([late, early], None, WORDS, 800))
    assert [one.text for one in root.iter(f"{NS}text")].count("⋯") == 1
    place, gaps = slots([START, START + timedelta(days=2), START + timedelta(days=92)])
    assert list(place.values()) == [0, 2, 6]
    assert gaps == [4]


@pytest.mark.parametrize("width", [340, 800])
def test_cohorts_stand_where_they_are(width: int) -> None:
    """Dot, interval, baseline and limit are on one scale; an interval beyond the axis has no end, and says so."""
    rows = [
        Whisker("a", 0.02, 0.01, 0.04, 0.03, "2 %"),
        Whisker("b", 0.001, 0.0, 0.9, None, "0.1 %"),
        Whisker("c", None, None, None, None, "no rate"),
    ]
    root = parsed(whiskers(rows, 0.08, WORDS, width))
    zero, per = axis(root, "tick-x", "x")
    kinds = {kind: [float(one.attrib["x1"]) for one in root.iter(f"{NS}line") if one.attrib.get("class") == kind]
             for kind in ("limit", "before", "band")}  # fmt: skip
    assert [(at - zero) / per for at in kinds["limit"] + kinds["before"]] == pytest.approx([0.08, 0.03], abs=0.0005)
    assert [(at - zero) / per for at in kinds["band"]] == pytest.approx([0.01, 0.0], abs=0.0005)
    dots = [float(one.attrib["cx"]) for one in root.iter(f"{NS}circle")]
    assert [(at - zero) / per for at in dots] == pytest.approx([0.02, 0.001], abs=0.0005)
    words = [one.text for one in root.iter(f"{NS}text")]
    assert words.count("›") == 1
    assert "no rate" in words


def test_bars_are_as_long_as_their_share() -> None:
    """Lengths are in the ratio of the shares, before and now on one scale; a share of nothing has no length."""
    rows = [Bar("a", "red", 0.25, "25 %", 0.5, "50 %"), Bar("b", "blue", None, "–", 1.0, "100 %")]
    root = parsed(bars(rows, WORDS, 800))
    long = {kind: [float(one.attrib["width"]) for one in root.iter(f"{NS}rect") if one.attrib.get("class") == kind
                   and "url" not in one.attrib["fill"]] for kind in ("now", "before")}  # fmt: skip
    assert long["now"][1] == 0
    assert long["before"] == pytest.approx([2 * long["now"][0], 4 * long["now"][0]], abs=0.2)


def test_words_for_those_who_do_not_see_it() -> None:
    """Each picture has a title and a description that its root names, each mark a title; markup in them is text."""
    nasty = "</text><script>alert(1)</script>\u202e\x1b&"
    pictures = [
        rates_over_days([series(nasty, [0.1, None])], 0.1, WORDS, 340),
        whiskers([Whisker(nasty, 0.1, 0.0, 0.2, None, nasty)], None, WORDS, 340),
        bars([Bar(nasty, "red", 0.1, nasty)], WORDS, 340),
    ]
    for svg in pictures:
        root = parsed(svg)
        assert root.attrib["role"] == "img"
        named = [one for one in root.iter() if one.attrib.get("id") in root.attrib["aria-labelledby"].split()]
        assert [one.text for one in named] == ["Rates <by> day", "What is shown"]
        assert list(root.iter(f"{NS}script")) == []
        assert not re.search("[\u202e\x1b]", svg)


def test_nothing_to_draw() -> None:
    """There is no picture of nothing."""
    assert rates_over_days([], None, WORDS, 800) == ""
    assert whiskers([], None, WORDS, 800) == ""
    assert bars([], WORDS, 800) == ""


@given(st.lists(st.one_of(st.none(), st.floats(0, 0.5)), min_size=1, max_size=70), st.integers(300, 1000))
def test_any_days(values: list[float | None], width: int) -> None:
    """Whatever the rates are, all marks lie in the picture, and no number is not one."""
    svg = rates_over_days([series("a", values)], None, WORDS, width)
    root = parsed(svg)
    assert "nan" not in svg
    assert "None" not in svg
    high = float(root.attrib["height"])
    for one in root.iter(f"{NS}circle"):
        assert 0 <= float(one.attrib["cx"]) <= width
        assert 0 <= float(one.attrib["cy"]) <= high


@given(st.floats(1e-9, 1))
def test_axes_end_at_round_numbers(value: float) -> None:
    """An axis ends at or a little above the largest value, never above 100 %, and its steps are round."""
    top = nice_top(value)
    assert value * (1 - 1e-9) <= top <= min(1, 1.3 * value) + 1e-12
    ticks = Scale(0, top, 0, 100).ticks(5)
    assert 2 <= len(ticks) <= 6
    assert re.fullmatch(r"(1|2|2\.5|5)(e[-+]?\d+)?", f"{nice_step(value) / 10 ** _power(nice_step(value)):g}")


def _power(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def test_headlines_have_the_colours_of_all_pages() -> None:
    """A headline has one colour everywhere."""
    assert HEADLINE_COLOURS == SHOWN_COLOURS
