"""Pictures of the page Coverage, from its values."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from crashpath.coverage.field import FieldRow, Standing
from crashpath.coverage.latency import Heat
from crashpath.coverage.units import Ratio
from crashpath.dashboard.coverage_grid import SIGNS, Grid, Square, State
from crashpath.dashboard.coverage_text import percent
from crashpath.dashboard.coverage_view import Figures
from crashpath.dashboard.page_text import as_label
from crashpath.dashboard.pictures import HEIGHT

WHAT = {"main": "main path, nodes", "fallback": "fallback, operators", "routes": "routes", "drills": "drills"}
"""What is covered of a release, in the order in which it is shown."""
COLOURS = {"main": "#5566CC", "fallback": "#CC6677", "routes": "#AA8833", "drills": "#449988"}
PATTERNS = {"main": "", "fallback": "/", "routes": ".", "drills": "x"}
STATES = {
    State.PASSED: "#1b7f5c",
    State.RED: "#b3261e",
    State.NEVER: "#8a6d1f",
    State.CANNOT: "#6f6f76",
    State.NO_FAULT: "#5a5a8c",
}
"""White can be read on each of them, on any ground."""
STANDINGS = {Standing.CONTAINED: "#2a9d76", Standing.CHECKED: "#b8902c", Standing.UNPROVEN: "#d1443b"}
STANDING_PATTERNS = {Standing.CONTAINED: "", Standing.CHECKED: "/", Standing.UNPROVEN: "x"}
MAGMA = ("#fcfdbf", "#feca8d", "#fd9668", "#f1605d", "#cd4071", "#9e2f7f", "#721f81", "#440f76", "#180f3d")
"""Steps of the magma scale (Smith, van der Walt and Firing, 2015), light to dark: told apart without colour, too."""
_ROW = 34
_MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}


def by_release(figures: Sequence[Figures]) -> go.Figure:
    """Grouped bars of what is covered, by release."""
    picture = go.Figure()
    names = [as_label(one.release or "(none)", 24) for one in figures]
    for key, name in WHAT.items():
        ratios: list[Ratio] = [getattr(one, key) for one in figures]
        picture.add_bar(
            x=names, y=[ratio.share or 0 for ratio in ratios], name=name,
            marker={"color": COLOURS[key], "pattern": _hatched(PATTERNS[key])},
            hovertext=[f"{label}<br>{name}: {_of(ratio)}" for label, ratio in zip(names, ratios, strict=True)],
            hoverinfo="text",
        )  # fmt: skip
    picture.update_layout(barmode="group", bargap=0.25, height=HEIGHT, margin=_MARGIN, legend=_LEGEND)
    picture.update_yaxes(tickformat=".0%", range=[0, 1.02])
    picture.update_xaxes(type="category", title=None)  # a release such as 2026.10 is a name, not a number
    return picture


def _hatched(shape: str) -> dict[str, object]:
    """Return a pattern over a whole colour, which is seen on any ground."""
    return {"shape": shape, "size": 7, "solidity": 0.25, "fillmode": "overlay", "fgcolor": "#ffffff"}


def _of(ratio: Ratio) -> str:
    return f"{percent(ratio)}, {ratio.covered:,} of {ratio.total:,}"


_LEGEND = {"title": None, "orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0}


def squares(grid: Grid) -> go.Figure:
    """A square for each class and phase: colour and sign say how its drills ended, the number its crashes."""
    order = list(STATES)
    picture = go.Figure(
        go.Heatmap(
            z=[[None if one is None else order.index(one.state) for one in row] for row in grid.squares],
            text=[["" if one is None else _in_square(one) for one in row] for row in grid.squares],
            hovertext=[["" if one is None else as_label(one.words, 300) for one in row] for row in grid.squares],
            x=[as_label(one, 12) for one in grid.phases], y=list(range(len(grid.classes))),
            zmin=-0.5, zmax=len(order) - 0.5,
            colorscale=[
                step for place, one in enumerate(order)
                for step in ([place / len(order), STATES[one]], [(place + 1) / len(order), STATES[one]])
            ],
            texttemplate="%{text}", textfont={"color": "#ffffff", "size": 13}, hoverinfo="text", showscale=False,
            xgap=3, ygap=3,
        )
    )  # fmt: skip
    picture.update_xaxes(side="top", type="category", showgrid=False, title=None, fixedrange=True)
    _classes(picture, grid.classes)
    return picture


def _in_square(one: Square) -> str:
    return f"{SIGNS[one.state]} {short(one.crashes)}" if one.crashes else SIGNS[one.state]


def short(count: int) -> str:
    """Return a count in at most four characters: ``987``, ``12k``, ``1.2M``."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= size:
            whole = count / size
            return f"{whole:.1f}{letter}" if whole < 9.95 else f"{whole:.0f}{letter}"
    return str(count)


def standings(rows: Sequence[FieldRow]) -> go.Figure:
    """A bar for each class of the field: how many of its crashes stand under what."""
    picture = go.Figure()
    for standing in Standing:
        crashes = [sum(part.crashes for part in row.parts if part.standing is standing) for row in rows]
        picture.add_bar(
            y=list(range(len(rows))), x=crashes, orientation="h", name=str(standing),
            marker={"color": STANDINGS[standing], "pattern": _hatched(STANDING_PATTERNS[standing])},
            hovertext=[
                f"{as_label(row.failure_class)}<br>{count:,} of {row.crashes:,} crashes {standing}"
                for row, count in zip(rows, crashes, strict=True)
            ],
            hoverinfo="text",
        )  # fmt: skip
    picture.update_layout(barmode="stack", legend=_LEGEND)
    _classes(picture, [row.failure_class for row in rows])
    picture.update_xaxes(title=None, nticks=6, rangemode="tozero")
    picture.update_layout(height=_ROW * max(3, len(rows)) + 90)
    return picture


def latency(heat: Heat) -> go.Figure:
    """Operators of a path, the dearest first, by batch: milliseconds a call on a log scale."""
    step = 1 / (len(MAGMA) - 1)
    picture = go.Figure(
        go.Heatmap(
            z=[list(row) for row in heat.shares],
            text=[["" if cell is None else milliseconds(cell) for cell in row] for row in heat.cells],
            hovertext=[
                [
                    "" if cell is None else f"{as_label(name)}, batch {batch}<br>{milliseconds(cell)} ms a call"
                    for batch, cell in zip(heat.batches, row, strict=True)
                ]
                for name, row in zip(heat.operators, heat.cells, strict=True)
            ],
            x=[str(batch) for batch in heat.batches], y=list(range(len(heat.operators))), zmin=0, zmax=1,
            colorscale=[[place * step, colour] for place, colour in enumerate(MAGMA)], texttemplate="%{text}",
            hoverinfo="text", showscale=False, xgap=2, ygap=2,
        )
    )  # fmt: skip
    picture.update_xaxes(side="top", type="category", showgrid=False, title="batch", fixedrange=True)
    _classes(picture, heat.operators)
    return picture


def milliseconds(microseconds: float) -> str:
    """Return a time as milliseconds with three digits that count."""
    value = microseconds / 1000
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def _classes(picture: go.Figure, names: Sequence[str]) -> None:
    """Name the rows from top to bottom. Rows are numbers: two names that are cut alike stay two."""
    picture.update_yaxes(
        tickvals=list(range(len(names))), ticktext=[as_label(name, 20) for name in names],
        range=[len(names) - 0.5, -0.5], showgrid=False, zeroline=False, automargin=True, fixedrange=True,
    )  # fmt: skip
    picture.update_layout(height=_ROW * max(3, len(names)) + 50, margin=_MARGIN)
