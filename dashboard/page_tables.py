"""Tables of reports on a page, and pictures with the same figures below them as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_tables import Column, Table

MOST_ROWS = 500
"""Rows of a table that are sent to the browser; the files that can be downloaded have all."""
_WHOLE = 20
"""Rows of a table that is shown without scrolling."""
_BARE = {"displayModeBar": False}


def table_part(table: Table, *, key: str | None = None) -> None:
    """Show a table; cells are plain text. One without rows says so."""
    if not table.rows:
        st.caption(as_markdown(f"{table.caption}: none."))
        return
    names = unique([column.name for column in table.columns])
    frame = pd.DataFrame(list(table.rows[:MOST_ROWS]), columns=names)
    sides = zip(names, table.columns, strict=True)
    config = {name: _column(column, first=not place) for place, (name, column) in enumerate(sides)}
    st.dataframe(
        frame, hide_index=True, width="stretch", column_config=config, key=key, alt=table.caption,
        height="content" if len(frame) <= _WHOLE else "auto",
    )  # fmt: skip
    if len(table.rows) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {many(len(table.rows), 'row')}.")


def picture_part(figure: go.Figure, text: str, table: Table, *, key: str) -> None:
    """Show a picture, what is seen in it for those who do not see it, and its figures as a table."""
    figure.update_layout(dragmode=False)  # who scrolls a telephone does not mean to zoom
    st.plotly_chart(figure, width="stretch", key=key, config=_BARE, alt=text)
    with st.expander("The same figures as a table"):
        table_part(table, key=f"{key}-table")


def repeated(table: Table) -> Table:
    """Return a table whose first cells are never empty: on a page rows can be sorted, and stand alone."""
    rows, name = [], ""
    for first, *rest in table.rows:
        name = first or name
        rows.append((name, *rest))
    return replace(table, rows=tuple(rows))


def unique(names: list[str]) -> list[str]:
    """Return names of columns of which no two are alike: of those that are, each is named after the one before it."""
    return [
        f"{names[place - 1]} {name}" if place and names.count(name) > 1 else name for place, name in enumerate(names)
    ]


def _column(column: Column, *, first: bool) -> Any:
    return st.column_config.TextColumn(alignment="right" if column.number else "left", pinned=first or None)
