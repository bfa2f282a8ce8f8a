"""Pictures of the page Ingest health: seconds by stage, the catch-all share, what nights found, the store's size."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from crashpath.dashboard.ingest_view import CatchAll, NightLine
from crashpath.dashboard.ingest_words import length, size
from crashpath.dashboard.page_text import as_label
from crashpath.dashboard.pictures import GREY, looks_of

HEIGHT = 300
MOST_BARS = 40
"""Nights in one picture of bars, the last ones."""
NEW = "#56B4E9"
STAGES = ("read", "store", "count", "embed", "cluster", "classify", "store clusters", "re-cluster", "map")
"""Stages of a night in the order of their work; a stage has the same colour in every picture."""


def seconds_by_stage(nights: Sequence[NightLine]) -> go.Figure:
    """Stacked bars of the seconds that nights took, by stage; the last ``MOST_BARS`` nights that kept them."""
    some = _last([one for one in nights if one.stages])
    names = [name for name in STAGES if any(name in dict(one.stages) for one in some)]
    names += sorted({name for one in some for name, _ in one.stages} - set(names))
    looks = looks_of([*STAGES, *(name for name in names if name not in STAGES)])
    figure = go.Figure()
    for name in names:
        spent = [dict(one.stages).get(name, 0.0) for one in some]
        figure.add_bar(
            x=_numbers(some), y=spent, name=as_label(name),
            marker={"color": looks[name].colour, "pattern_shape": looks[name].pattern},
            hovertext=[
                f"night {one.id} · {as_label(name)}<br>{length(seconds)} of {length(one.seconds or 0.0)}"
                for one, seconds in zip(some, spent, strict=True)
            ],
            hoverinfo="text",
        )  # fmt: skip
    figure.update_layout(barmode="stack", yaxis_title="seconds")
    if len(some) == 1:
        figure.update_traces(width=0.3)
    return _by_night(figure)


def catch_all_by_night(nights: Sequence[NightLine]) -> go.Figure:
    """A line of the share that was in no class after each night, of all crashes of the store."""
    some = _last([one for one in nights if one.unclassified is not None])
    figure = go.Figure(
        go.Scatter(
            x=_numbers(some), y=[one.unclassified for one in some], mode="lines+markers",
            line={"color": GREY, "width": 2}, marker={"size": 7, "color": GREY},
            hovertext=[f"night {one.id}<br>{one.unclassified:.2%} of {one.crashes or 0:,} crashes" for one in some],
            hoverinfo="text",
        )
    )  # fmt: skip
    figure.update_yaxes(tickformat=".1%", rangemode="tozero")
    return _by_night(figure)


def catch_all_by_day(days: Sequence[CatchAll]) -> go.Figure:
    """A line of the share of each UTC day's crashes that is in no class today."""
    figure = go.Figure(
        go.Scatter(
            x=[one.day for one in days], y=[one.unclassified / max(1, one.crashes) for one in days],
            mode="lines+markers", line={"color": GREY, "width": 2}, marker={"size": 5, "color": GREY},
            hovertext=[f"{one.day}<br>{one.unclassified:,} of {one.crashes:,} crashes" for one in days],
            hoverinfo="text",
        )
    )  # fmt: skip
    figure.update_yaxes(tickformat=".1%", rangemode="tozero")
    return _plain(figure)


def found_by_night(nights: Sequence[NightLine]) -> go.Figure:
    """Bars of the crashes that each night found new."""
    some = _last([one for one in nights if one.new_crashes is not None])
    figure = go.Figure(
        go.Bar(
            x=_numbers(some), y=[one.new_crashes for one in some], marker_color=NEW,
            hovertext=[f"night {one.id}<br>{one.new_crashes or 0:,} new crashes" for one in some], hoverinfo="text",
        )
    )  # fmt: skip
    figure.update_yaxes(tickformat=",d", rangemode="tozero")
    return _by_night(figure)


def size_by_night(nights: Sequence[NightLine]) -> go.Figure:
    """A line of the store's size on disk after each night that kept it, in MiB."""
    some = _last([one for one in nights if one.bytes is not None])
    figure = go.Figure(
        go.Scatter(
            x=_numbers(some), y=[(one.bytes or 0) / 2**20 for one in some], mode="lines+markers",
            line={"color": NEW, "width": 2}, marker={"size": 7, "color": NEW},
            hovertext=[f"night {one.id}<br>{size(one.bytes or 0)}" for one in some], hoverinfo="text",
        )
    )  # fmt: skip
    figure.update_yaxes(ticksuffix=" MiB", tickformat=",.3~f", rangemode="tozero")
    return _by_night(figure)


def _last(nights: Sequence[NightLine]) -> list[NightLine]:
    """The last ones, oldest first."""
    return sorted(nights, key=lambda one: one.id)[-MOST_BARS:]


def _numbers(nights: Sequence[NightLine]) -> list[str]:
    return [str(one.id) for one in nights]


def _by_night(figure: go.Figure) -> go.Figure:
    figure.update_xaxes(type="category", nticks=12, title="night")
    return _plain(figure)


def _plain(figure: go.Figure) -> go.Figure:
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"title": None, "orientation": "h", "yanchor": "top", "y": -0.28, "x": 0, "traceorder": "normal"},
        dragmode=False,
        bargap=0.25,
    )
    return figure
