"""Pictures of the pages, from frames; colours that the colour-blind can tell apart (Okabe and Ito, 2008).

Each reads on a bright ground and on a dark one, so that black, the last one of theirs, is a purple here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED

GREY = "#999999"
HEADLINE_COLOURS = dict(zip(HEADLINES, ("#0072B2", "#E69F00", "#009E73", "#CC79A7", GREY), strict=True))
"""A headline has one colour in every picture; *other* is grey, whatever is in it has a colour of its own."""
OWN = ("#56B4E9", "#D55E00", "#F0E442", "#8A63B5")
COHORT_COLOURS = ("#4477AA", "#EE6677", "#228833", "#998800", "#AA3377", "#2299BB")
"""Releases and platforms: none of the colours that stand for a headline or a class (Tol, 2021, the light ones darker:
a line has a contrast of about 3 to 1 on either ground)."""
PATTERNS = ("", "/", ".", "x")
ORDER = (*HEADLINES, *(one.id for one in CLASSES), UNCLASSIFIED)
"""Names in the order in which they are always shown."""
HEIGHT = 360
DAY_MS = 86_400_000
MOST_TICKS = 14


def bars_by_day(frame: pd.DataFrame, by: str) -> go.Figure:
    """Stacked bars of crashes a day. ``frame`` has the columns day, ``by`` and crashes."""
    names = _ordered(frame[by])
    looks = looks_of(names)
    figure = px.bar(
        frame,
        x="day",
        y="crashes",
        color=by,
        category_orders={by: names},
        color_discrete_map={name: look.colour for name, look in looks.items()},
        pattern_shape=by,
        pattern_shape_map={name: look.pattern for name, look in looks.items()},
    )
    figure.update_xaxes(tickformat="%d %b\n%Y", dtick=DAY_MS if frame["day"].nunique() <= MOST_TICKS else None)
    return _plain(figure)


class Look(NamedTuple):
    """How one name is drawn."""

    colour: str
    pattern: str


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """Return how names are drawn: headlines and classes alike on every page, others in the order given.

    The classes of a headline have its colour and differ by pattern; those of *other* have colours of no headline.
    """
    rest = [name for name in names if name not in _LOOKS]
    many = len(COHORT_COLOURS)
    return {name: _LOOKS[name] for name in names if name in _LOOKS} | {
        name: Look(COHORT_COLOURS[i % many], PATTERNS[i // many % len(PATTERNS)]) for i, name in enumerate(rest)
    }


def _fixed() -> dict[str, Look]:
    looks = {name: Look(colour, "") for name, colour in HEADLINE_COLOURS.items()}
    for name in HEADLINES[:-1]:
        inside = [one.id for one in CLASSES if one.headline == name]
        looks |= {id: Look(HEADLINE_COLOURS[name], PATTERNS[i]) for i, id in enumerate(inside)}
    others = [one.id for one in CLASSES if one.headline == HEADLINES[-1]]
    looks |= {id: Look(OWN[i % len(OWN)], PATTERNS[i // len(OWN)]) for i, id in enumerate(others)}
    return looks | {UNCLASSIFIED: Look(GREY, "/")}


_LOOKS = _fixed()


def _ordered(names: pd.Series[str]) -> list[str]:
    place = {name: i for i, name in enumerate(ORDER)}
    return sorted(names.unique(), key=lambda name: (place.get(name, len(ORDER)), name))


def _plain(figure: go.Figure) -> go.Figure:
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"title": None, "orientation": "h", "yanchor": "bottom", "y": 1.0},
        xaxis_title=None,
    )
    return figure
