"""Pictures of the page Review, of the values that every form of the report draws (``review_drawn``)."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from crashpath.dashboard.figures import percent
from crashpath.dashboard.page_text import as_label
from crashpath.dashboard.pictures import DAY_MS, HEIGHT, MOST_TICKS
from crashpath.dashboard.review_drawn import Cohorts, Days, Shares
from crashpath.dashboard.svg import Point, Series, axis_top, runs

RELEASE, BASELINE = "#5566CC", "#CC6677"
"""Of the reviewed release and its baseline, as in the report; both can be told from white and from black."""
LIMIT = "#888888"
_BAND = 0.2
_ROW, _PAIR = 54, 68
"""Pixels of a row whose name stands above it, so that names have room on a telephone; with a second bar."""
_BELOW = 0.15
"""By so much of a row its marks stand below the middle: above them is the name."""
_MARGIN = {"l": 8, "r": 16, "t": 8, "b": 8}
_UNTOLD = -0.06
"""Where failures of days without a rate stand: this share of the axis below zero."""


def rates_by_day(days: Days) -> go.Figure:
    """Lines of rates with their intervals as bands, the limit, and below the axis the days without a rate."""
    figure = go.Figure()
    points = [point for series in days.series for point in series.points]
    values = [point.value or 0 for point in points]
    top = axis_top(values, [point.high or 0 for point in points], days.limit)
    for number, series in enumerate(days.series):
        _line(figure, series, number, top)
    if days.limit is not None:
        figure.add_hline(
            y=days.limit, line={"color": LIMIT, "dash": "dash", "width": 1.5},
            annotation_text=f"limit {percent(days.limit)}", annotation_position="top right",
        )  # fmt: skip
    bare = any(point.value is None for point in points)
    figure.update_yaxes(tickformat=",.4~%", range=[2 * _UNTOLD * top if bare else 0, top], zeroline=True)
    few = len({point.day for point in points}) <= MOST_TICKS
    figure.update_xaxes(tickformat="%d %b\n%Y", dtick=DAY_MS if few else None)
    legend = {"title": None, "orientation": "h", "yanchor": "bottom", "y": 1.0}
    figure.update_layout(height=HEIGHT, margin=_MARGIN, legend=legend, showlegend=True)
    return figure


def _line(figure: go.Figure, series: Series, number: int, top: float) -> None:
    colour, name = (RELEASE, BASELINE)[number], as_label(series.name)
    whole = list(runs(series.points))
    for run in whole:
        over, under = [point.high for point in run], [point.low for point in reversed(run)]
        figure.add_scatter(
            x=[point.day for point in (*run, *reversed(run))], y=[*over, *under],
            mode="lines", line={"width": 0 if run[1:] else 3, "color": _faint(colour, 2 * _BAND)}, fill="toself",
            fillcolor=_faint(colour, _BAND), hoverinfo="skip", legendgroup=name, showlegend=False,
        )  # fmt: skip
    shown: list[Point | None] = [point for run in whole for point in (*run, None)]  # nothing bridges days without rates
    figure.add_scatter(
        x=[None if point is None else point.day for point in shown],
        y=[None if point is None else point.value for point in shown],
        hovertext=["" if point is None else f"{name}<br>{as_label(point.words, 200)}" for point in shown],
        hoverinfo="text", mode="lines+markers", name=name, legendgroup=name, connectgaps=False,
        line={"color": colour, "width": 2, "dash": "dash" if number else "solid"},
        marker={"color": colour, "size": 7, "symbol": "circle-open" if number else "circle"},
    )  # fmt: skip
    bare = [point for point in series.points if point.value is None]
    figure.add_scatter(
        x=[point.day for point in bare], y=[_UNTOLD * top] * len(bare),
        hovertext=[f"{name}<br>{as_label(point.words, 200)}" for point in bare], hoverinfo="text",
        mode="markers", marker={"color": colour, "size": 8, "symbol": "x-thin", "line": {"color": colour, "width": 2}},
        legendgroup=name, showlegend=False,
    )  # fmt: skip


def whiskers(cohorts: Cohorts) -> go.Figure:
    """A dot with its interval for each cohort, the baseline's rate as a bar across it, the limit as a line."""
    rows = cohorts.rows
    values = [one for row in rows for one in (row.value, row.before) if one is not None]
    top = axis_top(values, [row.high or 0 for row in rows], cohorts.limit)
    figure = go.Figure()
    known = [(place, row) for place, row in enumerate(rows) if row.value is not None]
    before = [(place, row.before, row.name) for place, row in known if row.before is not None]
    figure.add_scatter(
        x=[one for _, one, _ in before], y=[place + _BELOW for place, _, _ in before], name="baseline", mode="markers",
        marker={"symbol": "line-ns", "size": 16, "line": {"width": 3, "color": BASELINE}},
        hovertext=[f"{as_label(name)}<br>baseline: {percent(one)}" for _, one, name in before], hoverinfo="text",
    )  # fmt: skip
    figure.add_scatter(
        x=[row.value for _, row in known], y=[place + _BELOW for place, _ in known], name="release", mode="markers",
        error_x={
            "type": "data", "symmetric": False, "color": RELEASE, "thickness": 2, "width": 4,
            "array": [(row.high or 0) - (row.value or 0) for _, row in known],
            "arrayminus": [(row.value or 0) - (row.low or 0) for _, row in known],
        },
        marker={"color": RELEASE, "size": 9},
        hovertext=[f"{as_label(row.name)}<br>{as_label(row.words, 200)}" for _, row in known], hoverinfo="text",
    )  # fmt: skip
    if cohorts.limit is not None:
        figure.add_vline(
            x=cohorts.limit, line={"color": LIMIT, "dash": "dash", "width": 1.5},
            annotation_text=f"limit {percent(cohorts.limit)}", annotation_position="top left",
        )  # fmt: skip
    named = [row.name if row.value is not None else f"{row.name}: {row.words}" for row in rows]
    _named_rows(figure, named, _ROW, bool(before))
    figure.update_xaxes(tickformat=",.4~%", range=[0, top])
    return figure


def bars(shares: Shares, colour: str | None = None) -> go.Figure:
    """Bars of shares from 0 to 100 %, each with its figure; those of the baseline hatched above them."""
    rows, pairs = shares.rows, any(row.words_before for row in shares.rows)
    figure = go.Figure()
    for then in (True, False) if pairs else (False,):
        figure.add_bar(
            y=[place + (_BELOW if not pairs else 0.02 if then else 0.28) for place in range(len(rows))],
            x=[(row.before if then else row.share) or 0 for row in rows],
            text=[as_label(row.words_before if then else row.words) for row in rows],
            orientation="h", textposition="outside", cliponaxis=False, width=0.25 if pairs else 0.36,
            name="baseline" if then else "release",
            marker={
                "color": [colour or row.colour for row in rows],
                "pattern": {"shape": "/" if then else "", "size": 5, "fillmode": "replace"},
            },
            hovertext=[
                f"{as_label(row.name)}<br>{'baseline: ' if then else ''}"
                f"{as_label(row.words_before if then else row.words)}"
                for row in rows
            ],
            hoverinfo="text",
        )  # fmt: skip
    figure.update_layout(barmode="overlay")
    _named_rows(figure, [row.name for row in rows], _PAIR if pairs else _ROW, pairs)
    figure.update_xaxes(tickformat=".0%", range=[0, 1.3], tickvals=[0, 0.25, 0.5, 0.75, 1])
    return figure


def _named_rows(figure: go.Figure, names: Sequence[str], row: int, legend: bool) -> None:
    """Put each name above its row, from top to bottom."""
    for place, name in enumerate(names):
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=place - 0.5, yanchor="top", yref="y", text=as_label(name, 48),
            showarrow=False, font_size=13,
        )  # fmt: skip
    figure.update_yaxes(range=[len(names) - 0.4, -0.6], showticklabels=False, showgrid=False, zeroline=False)
    where = {"title": None, "orientation": "h", "yanchor": "top", "y": -0.05 if len(names) > 8 else -0.15}
    height = row * len(names) + (90 if legend else 60)
    margin = _MARGIN | {"t": 24}
    figure.update_layout(height=height, margin=margin, legend=where, showlegend=legend, hoverlabel_align="left")


def _faint(colour: str, share: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"
