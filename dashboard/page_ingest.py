"""The pieces of the page Ingest health: how the last night went, the nights, what they cost and what they found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from crashpath.dashboard import ingest_pictures as pictures
from crashpath.dashboard.ingest_view import MOST_NIGHTS, CatchAll, NightLine, Nights
from crashpath.dashboard.ingest_words import Said, length, of_night, size
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.plurals import many

_BARE = {"displayModeBar": False}
_SHOWN: dict[str, tuple[Any, str]] = {
    "good": (st.success, ":material/check_circle:"),
    "running": (st.info, ":material/progress_activity:"),
    "warning": (st.warning, ":material/warning:"),
    "bad": (st.error, ":material/error:"),
}
_LONG = 1000
"""Characters of a reason."""


def say(said: Said) -> None:
    """Show a sentence with its reason, which is text, and its advice."""
    box, icon = _SHOWN[said.tone]
    parts = [as_markdown(said.sentence, _LONG)]
    parts += [as_markdown(said.reason, _LONG)] if said.reason else []
    parts += [said.advice] if said.advice else []
    box("  \n".join(parts), icon=icon)


def picture(figure: go.Figure, text: str, frame: pd.DataFrame, key: str) -> None:
    """Show a picture, and its figures as a table."""
    st.plotly_chart(figure, width="stretch", config=_BARE, alt=text, key=key)
    with st.expander("The same as a table"):
        st.dataframe(frame, hide_index=True, width="stretch", alt=text)


def nights_table(found: Nights) -> None:
    """List the nights, newest first."""
    reasons = any(one.reason for one in found.nights)
    st.dataframe(
        pd.DataFrame([_row(one, reasons) for one in found.nights]),
        hide_index=True, width="stretch", alt="Nights, newest first", column_config=_COLUMNS,
        placeholder="–",
    )  # fmt: skip
    if found.total > len(found.nights):
        st.caption(f"The last {len(found.nights):,} of {many(found.total, 'night')}.")


_COLUMNS = {
    "night": st.column_config.NumberColumn(pinned=True),
    "why": st.column_config.TextColumn(width="medium"),
    "unclassified": st.column_config.NumberColumn(
        format="percent", help="Share of all crashes of the store that was in no class after the night."
    ),
}


def _row(one: NightLine, reasons: bool) -> dict[str, Any]:
    return {
        "night": one.id,
        "status": one.status,
        **({"why": one_line(one.reason, 200) if one.reason else None} if reasons else {}),
        "began (UTC)": f"{one.started:%Y-%m-%d %H:%M}",
        "took": None if one.seconds is None else length(one.seconds),
        "new crashes": one.new_crashes,
        "new clusters": one.new_clusters,
        "quarantined": one.quarantined,
        "redactions": one.redactions,
        "files read": one.read,
        "not readable": one.unreadable,
        "unclassified": one.unclassified,
    }


def seconds_part(nights: Sequence[NightLine]) -> None:
    """Show what nights cost, by stage."""
    timed = [one for one in nights if one.stages]
    if not timed:
        st.caption("No night here kept how long its stages took.")
        return
    st.subheader("Seconds by stage", anchor=False)
    frame = pd.DataFrame(
        [{"night": one.id, **{name: round(spent, 2) for name, spent in one.stages}} for one in timed[:MOST_NIGHTS]]
    )
    text = f"Seconds by stage of the last {many(min(len(timed), pictures.MOST_BARS), 'night')}"
    picture(pictures.seconds_by_stage(nights), text, frame, "seconds")


def found_part(nights: Sequence[NightLine]) -> None:
    """Show how many crashes nights found new."""
    told = [one for one in nights if one.new_crashes is not None]
    if len(told) > 1:
        st.subheader("New crashes", anchor=False)
        frame = pd.DataFrame([{"night": one.id, "new crashes": one.new_crashes} for one in told])
        picture(pictures.found_by_night(nights), "New crashes by night", frame, "found")


def catch_all_part(nights: Sequence[NightLine], days: Sequence[CatchAll]) -> None:
    """Show the catch-all share over time: as nights kept it, else by the days of crashes."""
    st.subheader("Unclassified", anchor=False)
    told = [one for one in nights if one.unclassified is not None]
    if len(told) > 1:
        st.caption("The share of all crashes in the store that was `unclassified` after each night.")
        frame = pd.DataFrame([
            {"night": one.id, "unclassified": one.unclassified, "of crashes": one.crashes} for one in told
        ])  # fmt: skip
        picture(pictures.catch_all_by_night(nights), "Unclassified share by night", frame, "catch-all")
    elif days:
        st.caption("The share of each UTC day's crashes that is `unclassified` today; too few nights kept a figure.")
        frame = pd.DataFrame(days, columns=["day", "crashes", "unclassified"])
        picture(pictures.catch_all_by_day(days), "Unclassified share by day", frame, "catch-all")


def one_night(night: NightLine) -> None:
    """Show all that was kept of one night."""
    st.subheader(f"Night {night.id}", anchor=False)
    say(of_night(night))
    for problem in (one for one in night.problems if one != night.reason):
        st.markdown(f"- {as_markdown(problem, _LONG)}")
    for advice in night.advice:
        st.caption(as_markdown(advice, _LONG))
    if night.stages:
        st.plotly_chart(
            pictures.seconds_by_stage([night]), width="stretch", config=_BARE, key="night-seconds",
            alt=f"Seconds by stage of night {night.id}",
        )  # fmt: skip
    left, right = st.columns(2)
    left.dataframe(_pairs(night.counts, "figure", "number"), hide_index=True, width="stretch", alt="Figures")
    right.dataframe(_pairs(night.versions, "ran with", "version"), hide_index=True, width="stretch", alt="Versions")
    if night.bytes is not None:
        st.caption(f"The store was {size(night.bytes)} large after it.")


def _pairs(pairs: Sequence[tuple[str, str]], *names: str) -> pd.DataFrame:
    return pd.DataFrame([(one_line(a, 80), one_line(b, 200)) for a, b in pairs], columns=list(names))
