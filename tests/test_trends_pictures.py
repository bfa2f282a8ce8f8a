"""Pictures of the page Trends: one colour for a name, gaps where nothing is known, and text that stays text."""

from __future__ import annotations

from datetime import date, timedelta

import pandas as pd
import pytest

from crashpath.dashboard.intervals import rate
from crashpath.dashboard.pictures import COHORT_COLOURS, HEADLINE_COLOURS, looks_of
from crashpath.dashboard.pictures import bars_by_day as by_day
from crashpath.dashboard.review_model import Rate
from crashpath.dashboard.trends_marks import Mark
from crashpath.dashboard.trends_model import ClassDay, ClassFigure, Line, Point, Window
from crashpath.dashboard.trends_pictures import (
    MARK_PREFIX,
    MOST_NAMED,
    MOST_RELEASES,
    OTHERS,
    bars_by_day,
    class_bars,
    class_days,
    mark_clusters,
    mark_releases,
    rate_lines,
)
from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED, headline_of

DAY = date(2026, 3, 2)
WEEK = Window(DAY, DAY + timedelta(days=6), None)
HOSTILE = "<script>alert(1)</script> <a href='x'>\u202e" + "x" * 1000


def line(name: str, *failures: int | None, attempts: int = 100) -> Line:
    """A line with so many failures on each day; ``None`` is a day without attempts."""
    points = [Point(DAY + timedelta(days=n), None if x is None else rate(x, attempts)) for n, x in enumerate(failures)]
    return Line(name, attempts, tuple(points))


def test_a_line_has_gaps_where_there_is_no_rate() -> None:
    """A day without attempts, and one with more failures than attempts, is no point and joins no two."""
    band, points = rate_lines([line("a", 1, None, 3, 101, 5, 6)], WEEK).data
    assert list(points.y) == [0.01, None, 0.03, None, 0.05, 0.06]
    assert points.connectgaps is False
    assert list(band.x).count(None) == 3
    assert list(band.y)[:3] == [rate(1, 100).low, rate(1, 100).high, None]


def test_a_day_alone_has_its_interval_as_a_bar() -> None:
    """A band of one day has no width: its interval is an error bar, and only there."""
    _, points = rate_lines([line("a", 1, None, 3, 4)], WEEK).data
    alone = rate(1, 100)
    assert points.error_y.array[0] == pytest.approx(alone.high - alone.rate)
    assert points.error_y.arrayminus[0] == pytest.approx(alone.rate - alone.low)
    assert set(points.error_y.array[1:]) == {0}


def test_lines_differ_in_colour_and_symbol() -> None:
    """Who cannot tell the colours apart can tell the symbols apart; a band has its line's colour."""
    figure = rate_lines([line(str(n), 1, 2) for n in range(6)], WEEK)
    lines = figure.data[1::2]
    assert len({one.line.color for one in lines}) == len({one.marker.symbol for one in lines}) == 6
    assert figure.data[0].fillcolor.startswith("rgba(68,119,170,")  # #4477AA
    assert {one.line.color for one in lines} == set(COHORT_COLOURS)


def test_points_know_their_day_and_line() -> None:
    """Whoever clicks on one gets its own name, whatever the picture calls it."""
    _, points = rate_lines([line(HOSTILE, 1, 2)], WEEK).data
    assert [list(one) for one in points.customdata] == [[DAY.isoformat(), HOSTILE], ["2026-03-03", HOSTILE]]


def test_names_are_text_in_every_picture() -> None:
    """Nothing of a name is markup, hides or is of any length, in legends, hovers, axes and annotations."""
    rates = rate_lines([line(HOSTILE, 1), line("b", 2)], WEEK)
    mark_releases(rates, {HOSTILE: DAY + timedelta(days=2)}, WEEK)
    mark_clusters(rates, [Mark(DAY, "new", "C-0001", 1, "hang", HOSTILE)], WEEK)
    counts = bars_by_day({(DAY, HOSTILE): 1, (DAY, "b"): 1}, [HOSTILE, "b"], WEEK)
    bars = class_bars([ClassFigure("other", HOSTILE, rate(1, 9))])
    days = class_days([ClassDay(DAY, HOSTILE, 1, 9)], [HOSTILE, "b"], WEEK)
    for figure in (rates, counts, bars, days):
        shown = figure.to_plotly_json()
        texts = [one.get("name") or "" for one in shown["data"]]
        texts += [text for one in shown["data"] for text in one.get("hovertext") or ()]
        texts += [text for one in bars.data for text in one.y]
        texts += [one["text"] for one in shown["layout"].get("annotations", ())]
        assert any("&lt;script" in text for text in texts)
        for text in texts:
            bare = text.replace("<br>", "").replace("<b>", "").replace("</b>", "")
            assert "<" not in bare
            assert "\u202e" not in bare
            assert len(bare) < 400


def test_a_class_has_one_colour_in_every_picture() -> None:
    """Bars, stacks and the bars of other pages draw a class and a headline alike."""
    names = [one.id for one in CLASSES] + [UNCLASSIFIED]
    figures = [ClassFigure(headline_of(name), name, rate(1, 9)) for name in names]
    (bars,) = class_bars(figures).data
    looks = looks_of(names)
    assert list(bars.marker.color) == [looks[name].colour for name in names]
    stack = class_days([ClassDay(DAY, name, 1, 9) for name in names], names, WEEK)
    assert [one.marker.color for one in stack.data] == list(bars.marker.color)
    assert [one.marker.pattern.shape for one in stack.data] == list(bars.marker.pattern.shape)
    assert len(set(zip(bars.marker.color, bars.marker.pattern.shape, strict=True))) == len(names)
    colours = {name: HEADLINE_COLOURS[headline_of(name)] for name in names if headline_of(name) != HEADLINES[-1]}
    assert {name: looks[name].colour for name in colours} == colours


def test_no_name_has_a_colour_of_a_class() -> None:
    """Releases and platforms have colours of their own, and differ in colour or pattern."""
    classes = {look.colour for look in looks_of([*HEADLINES, *(one.id for one in CLASSES)]).values()}
    names = looks_of([f"2026.{n}" for n in range(20)])
    assert not {look.colour for look in names.values()} & classes
    assert len(set(names.values())) == len(names)


@pytest.mark.parametrize("ground", ["#FFFFFF", "#0E1117"])
def test_lines_can_be_seen_on_both_grounds(ground: str) -> None:
    """A contrast of 3 to 1 or hardly less (Web Content Accessibility Guidelines 2.2, 1.4.11)."""
    for colour in COHORT_COLOURS:
        high, low = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) > 2.8, colour


def luminance(colour: str) -> float:
    """Relative luminance of a colour."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_rates_of_classes_have_their_interval() -> None:
    """The lines of a bar reach from the lower limit to the upper one; counts have none."""
    (bars,) = class_bars([ClassFigure("OOM", None, rate(3, 100))]).data
    assert bars.x[0] + bars.error_x.array[0] == pytest.approx(rate(3, 100).high)
    assert bars.x[0] - bars.error_x.arrayminus[0] == pytest.approx(rate(3, 100).low)
    (counts,) = class_bars([ClassFigure("OOM", None, Rate(3, 0, None, None, None))]).data
    assert (counts.x[0], counts.error_x.array) == (3, None)


def test_a_stack_of_rates_leaves_out_days_without_attempts() -> None:
    """A day on which nothing tried has no share; where nothing is known of attempts at all, the stack counts."""
    days = [ClassDay(DAY, "hang", 2, 8), ClassDay(DAY + timedelta(days=1), "hang", 2, 0)]
    (one,) = class_days(days, ["hang"], WEEK).data
    assert (list(one.x), list(one.y)) == ([DAY], [0.25])
    (counts,) = class_days([ClassDay(DAY, "hang", 2, 0)], ["hang"], WEEK).data
    assert list(counts.y) == [2]


def test_the_rest_of_the_counts_is_grey() -> None:
    """What stands together has no release's colour."""
    figure = bars_by_day({(DAY, "a"): 1, (DAY, OTHERS): 2}, ["a", OTHERS], WEEK)
    assert [one.marker.color for one in figure.data] == [COHORT_COLOURS[0], "#999999"]


def test_many_releases_are_thinned_out() -> None:
    """Names that would stand on each other are left out and returned, the newest stay; an old release has none."""
    window = Window(DAY, DAY + timedelta(days=29), None)
    began = {f"r{n:02}": DAY + timedelta(days=n) for n in range(30)}
    figure = rate_lines([line("a", *([1] * 30))], window)
    left_out = mark_releases(figure, began | {"old": DAY - timedelta(days=3)}, window)
    shown = [one.text for one in figure.layout.annotations]
    assert len(shown) == len(figure.layout.shapes) == MOST_RELEASES
    assert shown[0] == "r29"
    assert {*shown, *left_out} == {f"r{n:02}" for n in range(1, 30)}


def test_marks_of_a_day_are_one_symbol_that_names_some() -> None:
    """A symbol for each day and kind, in a row for each kind; a hover names a few and counts the rest."""
    marks = [Mark(DAY, "new", f"C-{n:04}", n, "hang", f"title {n}") for n in range(MOST_NAMED + 2)]
    marks += [Mark(DAY, "spiking", "C-0001", 1, "hang", "one"), Mark(DAY, "spiking", "hang", None, "hang", "Hang")]
    figure = rate_lines([line("a", 1)], WEEK)
    before = figure.layout.height
    mark_clusters(figure, marks, WEEK)
    new, spiking = figure.data[-2:]
    assert (list(new.x), list(new.y), list(spiking.y)) == ([DAY], ["new"], ["spiking"])
    assert list(new.customdata[0]) == [DAY.isoformat(), f"{MARK_PREFIX}new"]
    assert f"{MOST_NAMED + 2} new" in new.hovertext[0]
    assert "and 2 more" in new.hovertext[0]
    assert new.marker.symbol != spiking.marker.symbol
    assert figure.layout.height > before
    assert figure.layout.yaxis.domain[1] < figure.layout.yaxis2.domain[0]


def test_without_marks_nothing_is_above_the_lines() -> None:
    """No row for what is not there."""
    figure = rate_lines([line("a", 1)], WEEK)
    mark_clusters(figure, [], WEEK)
    assert len(figure.data) == 2
    assert figure.layout.yaxis.domain is None


def test_days_of_other_pages_have_the_colours_too() -> None:
    """Bars of crashes by release have the colours that lines of releases have."""
    frame = pd.DataFrame([(DAY, "1.0", 1), (DAY, "1.1", 2)], columns=["day", "release", "crashes"])
    assert [one.marker.color for one in by_day(frame, "release").data] == list(COHORT_COLOURS[:2])
