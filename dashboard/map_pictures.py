"""The picture of the map: signatures as points, their classes as colours, the largest clusters by their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from crashpath.dashboard.map_view import Box, MapView, OnMap, Point
from crashpath.dashboard.page_text import as_label
from crashpath.dashboard.pictures import ORDER, looks_of

HEIGHT = 620
LARGEST = 34
"""Pixels across of the point with most crashes."""
SMALLEST = 5
SYMBOLS = {"": "circle", "/": "diamond", ".": "square", "x": "x"}
"""Of the patterns that bars have: what else tells classes of one colour apart."""
RING = "#DC267F"
"""Of what is new; no class has it."""
MOST_RINGED = 0.4
"""Share of the points that may be new: where more are, as after a first night, rings would mark nothing."""
GROUNDS = {False: ("#262730", "rgba(255,255,255,0.78)"), True: ("#FAFAFA", "rgba(14,17,23,0.72)")}
"""Letters and ground of a label, by whether the page is dark."""
MOST_LABELS = 14
LABEL = 26
"""Characters of a label."""
_WIDTH, _TALL = 330, 470
"""Pixels that the points have on a telephone: labels that stand apart there do so anywhere."""
_LETTER, _LINE = 5.6, 15
_MARGIN = 0.06
_FADED = 0.15


class Label(NamedTuple):
    """A cluster's name on the map: ``side`` says where it stands of the point."""

    cluster: int
    x: float
    y: float
    text: str
    side: str


def the_map(view: MapView, lit: int | None = None, *, dark: bool = False) -> go.Figure:
    """Draw the map. ``lit`` is a cluster that stands out; the others are faded then. ``dark``: on a dark page.

    Each point carries its cluster's number as ``customdata``. Drawn by WebGL: thousands of points stay quick.
    """
    figure = go.Figure()
    largest = max((point.crashes for point in view.points), default=1)
    for name, points in _by_class(view):
        figure.add_trace(_points(view, name, points, largest, faded=lit is not None))
    if lit is not None:
        own = [point for point in view.points if point.cluster == lit]
        if own:
            figure.add_trace(_points(view, view.clusters[lit].failure_class, own, largest, faded=False, name=True))
    new = [point for point in view.points if point.new]
    if ringed(view):
        figure.add_trace(_rings(new, largest, f"new in night {view.night}"))
    _label(figure, labels(view, lit), *GROUNDS[dark])
    return _framed(figure, view.box)


def ringed(view: MapView) -> bool:
    """Whether what is new is marked."""
    return 0 < sum(point.new for point in view.points) <= MOST_RINGED * len(view.points)


def labels(view: MapView, lit: int | None = None, most: int = MOST_LABELS) -> tuple[Label, ...]:
    """Choose the names that are shown: of the largest clusters, as far as they do not stand in each other's way."""
    home: dict[int, Point] = {}
    for point in view.points:  # most crashes first
        home.setdefault(point.cluster, point)
    order = sorted(home, key=lambda number: (number != lit, -view.clusters[number].crashes, number))
    box, chosen = view.box or Box(0, 1, 0, 1), list[tuple[Label, _Area]]()
    for number in order[: 20 * most]:
        text = as_label(view.clusters[number].short, LABEL)
        label, area = _placed(number, home[number], text, min(len(view.clusters[number].short), LABEL), box)
        if not any(area.meets(other) for _, other in chosen):
            chosen.append((label, area))
        if len(chosen) == most:
            break
    return tuple(label for label, _ in chosen)


class _Area(NamedTuple):
    """Where a label stands, in pixels of a telephone."""

    left: float
    right: float
    bottom: float
    top: float

    def meets(self, other: _Area) -> bool:
        """Whether two areas overlap."""
        apart = self.right < other.left or other.right < self.left or self.top < other.bottom or other.top < self.bottom
        return not apart


def _placed(number: int, point: Point, text: str, letters: int, box: Box) -> tuple[Label, _Area]:
    """Put a label above its point, to the side of it where the edge is near."""
    edges = _edges(box)
    x = (point.x - edges.left) / (edges.right - edges.left) * _WIDTH
    y = (point.y - edges.bottom) / (edges.top - edges.bottom) * _TALL
    wide = letters * _LETTER
    if x < wide / 2:
        side, left = "right", x
    elif x > _WIDTH - wide / 2:
        side, left = "left", x - wide
    else:
        side, left = "center", x - wide / 2
    label = Label(number, point.x, point.y, text, side)
    return label, _Area(left, left + wide, y, y + _LINE)


def _by_class(view: MapView) -> list[tuple[str, list[Point]]]:
    members: dict[str, list[Point]] = {}
    for point in view.points:
        members.setdefault(view.clusters[point.cluster].failure_class, []).append(point)
    place = {name: i for i, name in enumerate(ORDER)}
    return sorted(members.items(), key=lambda one: (place.get(one[0], len(place)), one[0]))


def _points(
    view: MapView, failure_class: str, points: Sequence[Point], largest: int, *, faded: bool, name: bool = False
) -> go.Scattergl:
    look = looks_of([failure_class])[failure_class]
    shown = view.clusters[points[0].cluster].id if name else failure_class
    return go.Scattergl(
        x=[point.x for point in points],
        y=[point.y for point in points],
        mode="markers",
        name=as_label(shown),
        customdata=[point.cluster for point in points],
        hovertext=[hover(view.clusters[point.cluster], point) for point in points],
        hoverinfo="text",
        marker={
            "size": [size(point.crashes, largest) for point in points],
            "color": look.colour,
            "symbol": SYMBOLS[look.pattern],
            "opacity": _FADED if faded else 0.75,
            "line": {"width": 0},
        },
    )


def _rings(points: Sequence[Point], largest: int, name: str) -> go.Scattergl:
    return go.Scattergl(
        x=[point.x for point in points],
        y=[point.y for point in points],
        mode="markers",
        name=name,
        customdata=[point.cluster for point in points],
        hoverinfo="skip",
        marker={
            "size": [size(point.crashes, largest) + 7 for point in points],
            "color": RING,
            "symbol": "circle-open",
            "line": {"width": 2},
        },
    )


def size(crashes: int, largest: int) -> float:
    """Return the pixels across of a point: its area goes with its crashes; the smallest can still be pointed at."""
    return round(max(SMALLEST, LARGEST * math.sqrt(crashes / largest)), 1)


def hover(cluster: OnMap, point: Point) -> str:
    """Return what is told of a point; all of it plain text."""
    days = f"{point.first}" if point.first == point.last else f"{point.first} to {point.last}"
    new = "<br>new" if point.new else ""
    return (
        f"<b>{cluster.id}</b> {as_label(cluster.title, 70)}<br>{as_label(cluster.failure_class)} · "
        f"{point.crashes:,} of {cluster.crashes:,} crashes of the cluster<br>seen {days}{new}"
    )


def _label(figure: go.Figure, chosen: Sequence[Label], letters: str, ground: str) -> None:
    anchors = {"right": "left", "left": "right", "center": "center"}
    for one in chosen:
        figure.add_annotation(
            x=one.x, y=one.y, text=one.text, showarrow=False, xanchor=anchors[one.side], yanchor="bottom", yshift=5,
            font={"size": 11, "color": letters}, bgcolor=ground, borderpad=1,
        )  # fmt: skip


def _edges(box: Box) -> Box:
    """The whole map with a margin; never without extent."""
    wide, tall = (box.right - box.left) or 1.0, (box.top - box.bottom) or 1.0
    return Box(
        box.left - _MARGIN * wide, box.right + _MARGIN * wide, box.bottom - _MARGIN * tall, box.top + _MARGIN * tall
    )


def _framed(figure: go.Figure, box: Box | None) -> go.Figure:
    edges = _edges(box or Box(0, 1, 0, 1))
    bare = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "title": None}
    figure.update_xaxes(range=[edges.left, edges.right], **bare)
    figure.update_yaxes(range=[edges.bottom, edges.top], **bare)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        legend={"title": None, "orientation": "h", "yanchor": "top", "y": -0.02, "x": 0, "itemsizing": "constant"},
        dragmode="lasso",
        hovermode="closest",
        uirevision="map",
    )
    return figure
