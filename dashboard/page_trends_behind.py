"""What is behind a point of the page Trends: its clusters, and the way to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from crashpath.dashboard.page_frame import go, link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.trends_model import Behind

MOST = 15
"""Clusters in the table; triage has all."""


def clicked(event: Any) -> tuple[str, str] | None:
    """Return day (or nothing) and name of the point that was clicked; ``None`` where none was."""
    points = event.selection.points if event is not None else ()
    data = points[0].get("customdata") if points else None
    if not isinstance(data, Sequence) or isinstance(data, str) or len(data) != 2:
        return None
    return str(data[0]), str(data[1])


def show_behind(title: str, rows: Sequence[Behind], noun: str, triage: Mapping[str, str], key: str) -> None:
    """Show the clusters behind a point. ``noun`` is what is counted; ``triage`` opens that page at the same."""
    st.markdown(f"**{as_markdown(title)}**")
    if not rows:
        st.caption("Nothing that is stored is behind this.")
        return
    shown = rows[:MOST]
    counted = f"{noun}{'es' if noun.endswith('sh') else 's'}"
    frame = pd.DataFrame(
        {
            counted: [row.count for row in shown],
            "cluster": [row.cluster or "–" for row in shown],
            "class": [row.failure_class for row in shown],
            "title": [one_line(row.title, 160) for row in shown],
        }
    )
    event = st.dataframe(
        frame, hide_index=True, width="stretch", key=key, on_select="rerun", selection_mode="single-row"
    )
    left = sum(row.count for row in rows[MOST:])
    rest = f" {many(len(rows) - MOST, 'more cluster')} with {many(left, noun)} are in triage." if left else ""
    st.caption(f"Choose a row to open its cluster.{rest}")
    link("triage", "These in triage", icon=":material/checklist:", **triage)
    chosen = [shown[place].cluster for place in event.selection.rows if place < len(shown)]
    if chosen and chosen[0] is not None:
        go("triage", cluster=chosen[0])
