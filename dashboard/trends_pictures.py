"""Pictures of the page Trends, from its values. Each point carries its day and its line, for whoever clicks on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import plotly.graph_objects as go

from crashpath.dashboard.page_text import as_label
from crashpath.dashboard.pictures import DAY_MS, GREY, HEIGHT, MOST_TICKS, looks_of
from crashpath.dashboard.review_model import Rate
from crashpath.dashboard.review_words import counts_words, interval_words, rate_words
from crashpath.dashboard.trends_marks import Mark
from crashpath.dashboard.trends_model import ALL, ClassDay, ClassFigure, Line, Point, Window

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star")
MOST_RELEASES = 10
"""Release markers in one picture: their names need room, also on a telephone."""
OTHERS = "others"
MARKS = {"new": "star", "regressed": "x", "spiking": "triangle-up"}
MARK_PREFIX = "mark:"
"""What the name of a symbol begins with for whoever clicks on it."""
MARK_COLOUR = "#808080"
MOST_NAMED = 6
"""Clusters that a hover names; a click shows all."""
_BAND = 0.18
_BAND_OF_MANY = 0.1
_MANY_DAYS = 31
_ROW = 30
"""Height of a bar, in pixels."""


def rate_lines(lines: Sequence[Line], window: Window, names: Mapping[str, str] | None = None) -> go.Figure:
    """Lines of rates with their intervals as bands. ``names`` are what lines are called where it is not their name."""
    figure = go.Figure()
    looks = looks_of([line.name for line in lines])
    alpha = _BAND if len(lines) < 4 else _BAND_OF_MANY
    for number, line in enumerate(lines):
        colour = looks[line.name].colour
        label = as_label((names or {}).get(line.name, line.name))
        runs = _runs(line.points)
        figure.add_scatter(
            x=[day for run in runs for day in _around(run)],
            y=[limit for run in runs for limit in _limits(run)],
            mode="lines", line_width=0, fill="toself", fillcolor=_faint(colour, alpha), hoverinfo="skip",
            legendgroup=str(number), showlegend=False,
        )  # fmt: skip
        lonely = {run[0].day for run in runs if len(run) == 1}  # a band of one day has no width
        figure.add_scatter(
            x=[point.day for point in line.points],
            y=[None if point.rate is None else point.rate.rate for point in line.points],
            error_y={
                "type": "data", "symmetric": False, "width": 0, "thickness": 3, "color": _faint(colour, 2 * _BAND),
                "array": [_above(point) if point.day in lonely else 0 for point in line.points],
                "arrayminus": [_below(point) if point.day in lonely else 0 for point in line.points],
            },
            mode="lines+markers", connectgaps=False, name=label, legendgroup=str(number),
            showlegend=len(lines) > 1, line={"color": colour, "width": 2},
            marker={"color": colour, "size": _size(7, window), "symbol": SYMBOLS[number % len(SYMBOLS)]},
            customdata=[[point.day.isoformat(), line.name] for point in line.points],
            hovertext=[_told(point, label, len(lines)) for point in line.points], hoverinfo="text",
        )  # fmt: skip
    figure.update_yaxes(tickformat=",.4~%", rangemode="tozero")
    return dressed(figure, window)


def bars_by_day(counts: Mapping[tuple[date, str], float], names: Sequence[str], window: Window) -> go.Figure:
    """Stacked bars of crashes a day, by name, in the order given."""
    figure = go.Figure()
    looks = looks_of([name for name in names if name != OTHERS])
    for name in names:
        days = sorted(day for day, one in counts if one == name)
        look = looks.get(name)
        label = as_label(name)
        figure.add_bar(
            x=days, y=[counts[day, name] for day in days], name=label, showlegend=len(names) > 1,
            marker={"color": look.colour if look else GREY, "pattern_shape": look.pattern if look else ""},
            customdata=[[day.isoformat(), name] for day in days],
            hovertext=[f"{day} · {label}<br>{counts[day, name]:,}" for day in days], hoverinfo="text",
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    return dressed(figure, window)


def class_bars(figures: Sequence[ClassFigure]) -> go.Figure:
    """Bars of failures by headline or class, from top to bottom: rates with their intervals, or counts."""
    looks = looks_of([one.name for one in figures])
    rates = any(one.rate.attempts for one in figures)
    values = [(one.rate.rate or 0) if rates else one.rate.failures for one in figures]
    figure = go.Figure()
    figure.add_bar(
        y=[as_label(one.name) for one in figures], x=values, orientation="h", showlegend=False,
        marker={
            "color": [looks[one.name].colour for one in figures],
            "pattern_shape": [looks[one.name].pattern for one in figures],
        },
        customdata=[["", one.name] for one in figures],
        hovertext=[f"{as_label(one.name)}<br>{_figure(one.rate)}" for one in figures], hoverinfo="text",
    )  # fmt: skip
    if rates:
        figure.update_traces(
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.5, "width": 5, "color": GREY,
                "array": [(one.rate.high or 0) - (one.rate.rate or 0) for one in figures],
                "arrayminus": [(one.rate.rate or 0) - (one.rate.low or 0) for one in figures],
            }
        )  # fmt: skip
        figure.update_xaxes(tickformat=",.4~%")
    figure.update_xaxes(rangemode="tozero", nticks=6)
    figure.update_yaxes(autorange="reversed", type="category", automargin=True)
    return _plain(figure, height=70 + _ROW * max(3, len(figures)))


def class_days(days: Sequence[ClassDay], names: Sequence[str], window: Window) -> go.Figure:
    """Stacked bars by day of these classes: rates where attempts are known, else counts."""
    rates = any(one.tried for one in days)
    looks = looks_of(names)
    figure = go.Figure()
    for name in names:
        mine = [one for one in days if one.failure_class == name and (one.tried or not rates)]
        figure.add_bar(
            x=[one.day for one in mine], name=as_label(name), showlegend=len(names) > 1,
            y=[one.failures / one.tried if rates else one.failures for one in mine],
            marker={"color": looks[name].colour, "pattern_shape": looks[name].pattern},
            customdata=[[one.day.isoformat(), name] for one in mine],
            hovertext=[f"{one.day} · {as_label(name)}<br>{_of(one)}" for one in mine], hoverinfo="text",
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    if rates:
        figure.update_yaxes(tickformat=",.4~%")
    return dressed(figure, window)


def mark_releases(figure: go.Figure, began: Mapping[str, date], window: Window) -> tuple[str, ...]:
    """Draw a line on the first day of each release that began in the window; return the names that have no room."""
    fresh = sorted((day, name) for name, day in began.items() if window.since < day <= window.until)
    room = timedelta(days=max(1, -(-window.days // MOST_RELEASES)))
    last: date | None = None
    left_out = []
    for day, name in reversed(fresh):  # the newest are those that people ask for
        if last is not None and last - day < room:
            left_out.append(name)
            continue
        last = day
        figure.add_vline(x=day, line={"color": GREY, "width": 1, "dash": "dot"})
        figure.add_annotation(
            x=day, y=1, yref="y domain", text=as_label(name, 18), textangle=-90, showarrow=False, xanchor="right",
            yanchor="top", font_size=11,
        )  # fmt: skip
    return tuple(reversed(left_out))


def mark_clusters(figure: go.Figure, marks: Sequence[Mark], window: Window) -> None:
    """Draw symbols above a picture, one for each day and kind: hover names the clusters."""
    if not marks:
        return
    days: dict[tuple[str, date], list[Mark]] = {}
    for mark in marks:
        days.setdefault((mark.kind, mark.day), []).append(mark)
    kinds = [kind for kind in MARKS if any(key[0] == kind for key in days)]
    for kind in kinds:
        mine = sorted(day for one, day in days if one == kind)
        figure.add_scatter(
            x=mine, y=[kind] * len(mine), yaxis="y2", mode="markers", showlegend=False,
            marker={"symbol": MARKS[kind], "size": _size(11, window), "color": MARK_COLOUR},
            customdata=[[day.isoformat(), MARK_PREFIX + kind] for day in mine],
            hovertext=[_named(kind, day, days[kind, day]) for day in mine], hoverinfo="text",
        )  # fmt: skip
    strip = 16 * len(kinds) + 14
    height = figure.layout.height + strip
    top = 1 - strip / (height - 60)
    figure.update_layout(
        height=height,
        yaxis={"domain": [0, top - 0.02]},
        yaxis2={
            "domain": [top, 1], "type": "category", "categoryorder": "array", "categoryarray": kinds[::-1],
            "range": [-0.6, len(kinds) - 0.4], "showgrid": False, "anchor": "x", "zeroline": False,
        },
    )  # fmt: skip


def _size(most: int, window: Window) -> int:
    """Return the size of a symbol: smaller where many days stand side by side."""
    return most if window.days <= _MANY_DAYS else most - 3


def _named(kind: str, day: date, marks: Sequence[Mark]) -> str:
    lines = [f"{as_label(one.subject)} · {as_label(one.title)}" for one in marks[:MOST_NAMED]]
    more = [f"and {len(marks) - MOST_NAMED:,} more"] if len(marks) > MOST_NAMED else []
    return "<br>".join([f"<b>{len(marks):,} {kind}</b> on {day}", *lines, *more])


def dressed(figure: go.Figure, window: Window) -> go.Figure:
    """Give a picture over days its axis: the same for each picture of a window."""
    figure.update_xaxes(
        range=[_midnight(window.since, -1), _midnight(window.until, 1)],
        tickformat="%d %b\n%Y",
        dtick=DAY_MS if window.days <= MOST_TICKS else None,
        nticks=8 if window.days > MOST_TICKS else None,
    )
    figure.update_layout(hovermode="closest", bargap=0.15)
    return _plain(figure, HEIGHT)


def _plain(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={
            "title": None,
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.02,
            "xanchor": "left",
            "x": 0,
            "traceorder": "normal",
        },
        xaxis_title=None,
        dragmode=False,
    )
    return figure


def _midnight(day: date, half_days: int) -> str:
    return f"{day + timedelta(days=half_days - 1) if half_days > 0 else day - timedelta(days=1)} 12:00"


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Return the stretches of days that have a rate."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.rate is None or point.rate.rate is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _around(run: Sequence[Point]) -> list[date | None]:
    days: list[date | None] = [point.day for point in run]
    return [*days, *reversed(days), None]


def _limits(run: Sequence[Point]) -> list[float | None]:
    low = [None if point.rate is None else point.rate.low for point in run]
    high = [None if point.rate is None else point.rate.high for point in run]
    return [*low, *reversed(high), None]


def _above(point: Point) -> float:
    return 0.0 if point.rate is None else (point.rate.high or 0) - (point.rate.rate or 0)


def _below(point: Point) -> float:
    return 0.0 if point.rate is None else (point.rate.rate or 0) - (point.rate.low or 0)


def _told(point: Point, label: str, lines: int) -> str:
    named = f"{point.day} · {label}" if lines > 1 or label != ALL else str(point.day)
    return f"{named}<br>{_figure(point.rate)}" if point.rate is not None else ""


def _figure(rate: Rate) -> str:
    if not rate.attempts:
        return f"{rate.failures:,}"
    between = interval_words(rate)
    return f"<b>{rate_words(rate)}</b>{f' ({between})' if between else ''}<br>{counts_words(rate)}"


def _of(one: ClassDay) -> str:
    return f"{one.failures:,} of {one.tried:,}" if one.tried else f"{one.failures:,}"


def _faint(colour: str, alpha: float = _BAND) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
