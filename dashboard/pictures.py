"""Pictures of the pages, from frames; colours that the colour-blind can tell apart (Okabe and Ito, 2008)."""

from __future__ import annotations

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
HEIGHT = 360


def bars_by_day(frame: pd.DataFrame, by: str) -> go.Figure:
    """Stacked bars of crashes a day. ``frame`` has the columns day, ``by`` and crashes."""
    figure = px.bar(
        frame,
        x="day",
        y="crashes",
        color=by,
        color_discrete_sequence=OKABE_ITO,
        labels={"day": "day (UTC)"},
        pattern_shape=by if frame[by].nunique() > len(OKABE_ITO) else None,
    )
    return _plain(figure)


def bars_by_cohort(frame: pd.DataFrame, cohort: str) -> go.Figure:
    """Grouped bars of crashes by headline. ``frame`` has the columns ``cohort``, headline and crashes."""
    figure = px.bar(frame, x="headline", y="crashes", color=cohort, barmode="group", color_discrete_sequence=OKABE_ITO)
    return _plain(figure)


def _plain(figure: go.Figure) -> go.Figure:
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"title": None, "orientation": "h", "yanchor": "bottom", "y": 1.0},
        xaxis_title=None,
    )
    return figure
