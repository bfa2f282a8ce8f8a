"""The map as values and as a picture: what is on it, what is counted beside it, which names are shown."""

from __future__ import annotations

import runpy
from datetime import date
from itertools import combinations
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
from sqlalchemy import func, select, update

from crashpath.dashboard.map_pictures import (
    GROUNDS,
    LABEL,
    LARGEST,
    MOST_LABELS,
    SMALLEST,
    Label,
    labels,
    ringed,
    size,
    the_map,
)
from crashpath.dashboard.map_view import Box, MapView, OnMap, Point, read_map
from crashpath.dashboard.page_map import described, selected
from crashpath.dashboard.pictures import looks_of
from crashpath.dashboard.testing import a_night
from crashpath.ingest.nights import start_night
from crashpath.ingest.places import placed_signatures, put_places
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster, Night
from crashpath.ingest.testing import EPOCH
from crashpath.ingest.trends import Filters

SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("map_samples.py"))))
DAY = date(2026, 3, 1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(SAMPLE.make(tmp_path_factory.mktemp("map")))


def read(url: str, filters: Filters | None = None) -> MapView:
    with open_store(url, create=False, read_only=True) as store, store.read() as session:
        return read_map(session, filters or Filters())


def crowd(number: int, *, new: int = 0, title: str = "failure {}") -> MapView:
    """A made-up map of ``number`` clusters of one point each, on a grid, the first with most crashes."""
    side = max(1, round(number**0.5))
    points = tuple(
        Point(n, float(n % side), float(n // side), 10 * (number - n), DAY, DAY, n < new) for n in range(number)
    )
    clusters = {
        n: OnMap(n, title.format(n), False, ("hang", "tokenizer")[n % 2], point.crashes, 1, DAY, DAY, point.new)
        for n, point in enumerate(points)
    }
    box = Box(0.0, float(side), 0.0, float(number // side))
    return MapView(points, MappingProxyType(clusters), box, number, number, 0, 0, 3)


def test_the_map_has_what_has_a_place_and_counts_what_has_none(url: str) -> None:
    """Rule: signatures with a place are points, those without are counted, none is lost."""
    view = read(url)
    assert (view.stored, view.placed, len(view.points), view.unplaced, view.night) == (8, 7, 7, 1, 2)
    assert [point.crashes for point in view.points] == [5, 3, 2, 1, 1, 1, 1]
    assert view.box == Box(0.0, 6.0, 0.0, 2.0)


def test_what_the_last_night_found_is_new(url: str) -> None:
    """Rule: new are the signatures that the last night stored first, and clusters of such alone."""
    view = read(url)
    assert [point.first for point in view.points if point.new] == [date(2026, 3, 9)]
    assert [one.title.startswith("RuntimeError: <img") for one in view.clusters.values() if one.new] == [True]


def test_a_night_that_still_runs_makes_nothing_old(any_store: Store, tmp_path: Path) -> None:
    """Rule: what is new is told of the last night that is over."""
    SAMPLE.fill(any_store, tmp_path)
    with any_store.write() as session:
        start_night(session, versions={}, now=EPOCH)
    with any_store.read() as session:
        view = read_map(session, Filters())
    assert (view.night, sum(point.new for point in view.points)) == (2, 1)


def test_a_night_that_found_nothing_makes_nothing_old(any_store: Store, tmp_path: Path) -> None:
    """Rule: what is new is told of the last night that found something; one that is run again hides nothing."""
    SAMPLE.fill(any_store, tmp_path)
    a_night(any_store, [tmp_path / "a"])
    with any_store.read() as session:
        assert session.scalar(select(func.max(Night.id))) == 3
        view = read_map(session, Filters())
    assert (view.night, sum(point.new for point in view.points)) == (2, 1)


@pytest.mark.parametrize(
    ("filters", "points", "unplaced"),
    [
        (Filters(release="2.0"), 3, 0),
        (Filters(release="2.1"), 4, 1),
        (Filters(platform="p1"), 3, 1),
        (Filters(since=date(2026, 3, 2)), 1, 1),
        (Filters(release="9.9"), 0, 0),
    ],
)
def test_filters_leave_what_passes_and_the_edges_stay(url: str, filters: Filters, points: int, unplaced: int) -> None:
    """Rule: a filter takes points away and moves none; what it lets pass without a place is counted."""
    view = read(url, filters)
    assert (len(view.points), view.unplaced, view.box) == (points, unplaced, Box(0.0, 6.0, 0.0, 2.0))
    assert sum(one.crashes for one in view.clusters.values()) == sum(point.crashes for point in view.points)


def test_a_class_leaves_its_clusters(url: str) -> None:
    """Rule: of one class, all clusters are of it."""
    classes = {one.failure_class for one in read(url).clusters.values()}
    for name in classes:
        assert {one.failure_class for one in read(url, Filters(failure_class=name)).clusters.values()} == {name}


def test_a_name_that_people_gave_is_the_title(any_store: Store, tmp_path: Path) -> None:
    """Rule: a person's name stands for a cluster; a root line does without the kind of what was raised."""
    SAMPLE.fill(any_store, tmp_path)
    with any_store.write() as session:
        session.execute(update(Cluster).where(Cluster.id == 1).values(name="KeyError: our own"))
    with any_store.read() as session:
        view = read_map(session, Filters())
    assert view.clusters[1].short == "KeyError: our own"
    assert all(not one.short.startswith("RuntimeError: ") for one in view.clusters.values())


def test_a_line_of_megabytes_is_cut(store: Store, tmp_path: Path) -> None:
    """Rule: whatever the length of a root line, what goes to a browser is short."""
    SAMPLE.fill(store, tmp_path)
    with store.write() as session:
        session.execute(update(Cluster).where(Cluster.id == 1).values(label="x" * 5_000_000))
    with store.read() as session:
        view = read_map(session, Filters())
    assert len(view.clusters[1].title) <= 100
    assert len(the_map(view).to_json()) < 50_000


def test_without_a_store_of_any_place_there_is_no_box(store: Store) -> None:
    """Rule: an empty store has an empty view."""
    with store.read() as session:
        assert read_map(session, Filters()) == MapView((), MappingProxyType({}), None, 0, 0, 0, 0, None)


def test_too_many_points_are_cut_and_counted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a browser gets so many points, those with most crashes; the rest is counted."""
    monkeypatch.setattr("crashpath.dashboard.map_view.MOST_POINTS", 2)
    view = read(url)
    assert ([point.crashes for point in view.points], view.left_out) == ([5, 3], 5)


def test_area_goes_with_crashes() -> None:
    """Rule: four times the crashes, twice as wide; the smallest can be seen still."""
    assert size(100, 100) == LARGEST
    assert size(25, 100) == LARGEST / 2
    assert size(1, 10_000_000) == SMALLEST


def test_a_class_has_its_colour_and_the_new_a_ring() -> None:
    """Rule: one trace a class with the colour that it has everywhere, one more for what is new."""
    figure = the_map(crowd(9, new=2))
    assert [trace.name for trace in figure.data] == ["tokenizer", "hang", "new in night 3"]
    assert [trace.type for trace in figure.data] == ["scattergl"] * 3
    assert figure.data[1].marker.color == looks_of(["hang"])["hang"].colour
    assert figure.data[2].marker.symbol == "circle-open"
    assert list(figure.data[2].customdata) == [0, 1]


def test_where_all_is_new_nothing_is_ringed() -> None:
    """Rule: after a first night a ring would mark nothing."""
    assert not ringed(crowd(9, new=9))
    assert not ringed(crowd(9))
    assert "new in night 3" not in [trace.name for trace in the_map(crowd(9, new=9)).data]


def test_the_one_that_is_asked_for_stands_out() -> None:
    """Rule: a cluster that is highlighted is drawn once more in full, named, and its label is shown."""
    figure = the_map(crowd(16), lit=15)
    assert figure.data[-1].name == "C-0015"
    assert figure.data[0].marker.opacity < figure.data[-1].marker.opacity
    assert labels(crowd(16), lit=15)[0].cluster == 15


def area(label: Label, view: MapView) -> tuple[float, float, float, float]:
    """Where a label stands on a telephone, 330 × 470 pixels: letters of 5.6, lines of 15."""
    assert view.box is not None
    wide, tall = view.box.right - view.box.left, view.box.top - view.box.bottom
    x = (label.x - view.box.left + 0.06 * wide) / (1.12 * wide) * 330
    y = (label.y - view.box.bottom + 0.06 * tall) / (1.12 * tall) * 470
    width = len(label.text) * 5.6
    left = {"right": x, "left": x - width, "center": x - width / 2}[label.side]
    return left, left + width, y, y + 15


@pytest.mark.parametrize("number", [1, 4, 60, 3000])
def test_names_are_those_of_the_largest_and_do_not_overlap(number: int) -> None:
    """Rule: the largest cluster is always named, no two names overlap on a telephone, none is cut off at an edge."""
    view = crowd(number, title="a failure with many words {}")
    chosen = labels(view)
    assert chosen[0].cluster == 0
    assert len(chosen) <= MOST_LABELS
    areas = [area(one, view) for one in chosen]
    for a, b in combinations(areas, 2):
        assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
    assert all(left >= -1 and right <= 331 for left, right, _, _ in areas)


def test_labels_are_short() -> None:
    """Rule: a label has so many letters."""
    assert all(len(one.text) <= LABEL for one in labels(crowd(4, title="word " * 50)))


def test_letters_fit_the_ground() -> None:
    """Rule: on a dark page labels are light."""
    for dark in (False, True):
        drawn = the_map(crowd(4), dark=dark).layout.annotations[0]
        assert (drawn.font.color, drawn.bgcolor) == GROUNDS[dark]


def test_hostile_text_is_text(url: str) -> None:
    """Rule: what a log says is never markup, nor does it steer or hide: not in a hover, a label, a name."""
    figure = the_map(read(url))
    said = " ".join(text for trace in figure.data for text in trace.hovertext or ())
    said += " ".join(one.text for one in figure.layout.annotations)
    assert "&lt;img" in said
    assert "<img" not in said
    assert "\u202e" not in said
    assert "\x1b" not in said
    assert SAMPLE.HOSTILE.split()[0] not in said


def test_a_map_without_extent_is_drawn(store: Store, tmp_path: Path) -> None:
    """Rule: all at one place, or one alone, is a picture, too."""
    SAMPLE.fill(store, tmp_path)
    with store.write() as session:
        put_places(session, [(one.id, 1.0, 1.0) for one in placed_signatures(session)])
    with store.read() as session:
        view = read_map(session, Filters())
    low, high = the_map(view).layout.xaxis.range
    assert low < 1.0 < high


def test_what_is_selected_are_the_clusters_that_are_still_shown() -> None:
    """Rule: each once, most crashes first; of an older picture, or of nothing, nothing."""
    view = crowd(5)
    points = [{"customdata": one} for one in (3, [1], 3.0, 77, None, "x", [])]
    assert selected([*points, {}], view) == (1, 3)
    assert selected((), view) == ()


def test_the_picture_is_told_to_those_who_do_not_see_it() -> None:
    """Rule: its alternative text has the numbers and the largest."""
    said = described(crowd(5))
    assert said.startswith("Map of 5 signatures of 5 clusters; the largest: C-0000 (hang, 50 crashes)")
    assert described(crowd(1))
