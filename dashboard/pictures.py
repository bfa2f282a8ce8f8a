"""Pictures of the pages, from frames; colours that the colour-blind can tell apart (Okabe and Ito, 2008)."""

from __future__ import annotations

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
ORDER = (*HEADLINES, *(one.id for one in CLASSES), UNCLASSIFIED)
"""Names in the order in which they are always shown, so that a colour means the same on every look."""
HEIGHT = 360
DAY_MS = 86_400_000
MOST_TICKS = 14


def bars_by_day(frame: pd.DataFrame, by: str) -> go.Figure:
    """Stacked bars of crashes a day. ``frame`` has the columns day, ``by`` and crashes."""
    names = _ordered(frame[by])
    figure = px.bar(
        frame,
        x="day",
        y="crashes",
        color=by,
        category_orders={by: names},
        color_discrete_sequence=OKABE_ITO,
        pattern_shape=by if len(names) > len(OKABE_ITO) else None,
    )
    figure.update_xaxes(tickformat="%d %b\n%Y", dtick=DAY_MS if frame["day"].nunique() <= MOST_TICKS else None)
    return _plain(figure)


def bars_by_cohort(frame: pd.DataFrame, cohort: str) -> go.Figure:
    """Grouped bars of crashes by headline. ``frame`` has the columns ``cohort``, headline and crashes."""
    figure = px.bar(frame, x="headline", y="crashes", color=cohort, barmode="group", color_discrete_sequence=OKABE_ITO)
    return _plain(figure)


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
