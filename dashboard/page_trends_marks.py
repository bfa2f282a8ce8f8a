"""The page Trends: marks of clusters that were new, regressed or spiking on a day, and what is behind a mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from crashpath.dashboard.marks import marks_key, read_marks, rules_of
from crashpath.dashboard.page_frame import Look, go, kept, link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.page_trends_figures import filters_of
from crashpath.dashboard.page_trends_pick import Picked
from crashpath.dashboard.plurals import many
from crashpath.dashboard.trends_marks import Mark, read_days, read_passing
from crashpath.dashboard.trends_model import Window
from crashpath.dashboard.trends_view import Known

MOST = 15
MOST_IN_LINK = 100
"""Clusters that the address of a link names."""


LARGE = 200_000
"""Crashes from which on marks come after the pictures: they are looked for in every cluster's days."""
_found: set[tuple[str, str]] = set()
"""Stores, with their states, of which the marks were found since the server started: they are at hand."""


def marks_for(look: Look, known: Known, picked: Picked, window: Window) -> tuple[Mark, ...] | None:
    """Return the marks of a window, of clusters with crashes of what is picked; ``None`` where they come later."""
    steady = _steady(look)
    if known.stored > LARGE and _name(steady) not in _found:
        return None
    last = kept(steady, read_marks, rules_of(look.settings))
    if last.night is None:
        return ()
    things = tuple(one for one in last.things if one.kind in ("regressed", "spiking"))
    marks = kept(steady, read_days, things, last.night.id, last.night.finished_at)
    found = tuple(one for one in marks if window.since <= one.day <= window.until)
    if found and picked.address:
        passing = kept(look, read_passing, filters_of(picked))
        found = tuple(one for one in found if one.cluster is None or one.cluster in passing)
    return found


def find_marks(look: Look, known: Known) -> None:
    """Look for the marks that the pictures were shown without, and show the page with them."""
    steady = _steady(look)
    if known.stored > LARGE and _name(steady) not in _found:
        kept(steady, read_marks, rules_of(look.settings))
        _found.add(_name(steady))
        st.rerun()


def _steady(look: Look) -> Look:
    """Return a look that is another one only where marks may be: a night that only reads on changes none."""
    return replace(look, version=kept(look, marks_key))


def _name(look: Look) -> tuple[str, str]:
    return look.settings.db, look.version


def show_marked(marks: Sequence[Mark], day: str, kind: str) -> None:
    """Show what has a mark of a kind on a day."""
    mine = [one for one in marks if one.kind == kind and one.day.isoformat() == day]
    if not mine:  # of a picture that is no longer shown
        return
    st.markdown(f"**{kind.capitalize()} on {as_markdown(day)}: {many(len(mine), 'mark')}**")
    shown = mine[:MOST]
    event = st.dataframe(
        mark_table(shown), hide_index=True, width="stretch", key="marked", on_select="rerun",
        selection_mode="single-row",
    )  # fmt: skip
    more = f" {len(mine) - MOST:,} more are in triage." if len(mine) > MOST else ""
    st.caption(f"Choose a row to open its cluster.{more}")
    ids = [one.subject for one in mine if one.cluster is not None][:MOST_IN_LINK]
    if ids:
        first = f"The first {MOST_IN_LINK} of these in triage" if len(mine) > MOST_IN_LINK else "These in triage"
        link("triage", first, icon=":material/checklist:", clusters=",".join(ids))
    chosen = [shown[place] for place in event.selection.rows if place < len(shown)]
    if chosen:
        of_class = {"class": chosen[0].subject, "since": day, "until": day}
        go("triage", **({"cluster": chosen[0].subject} if chosen[0].cluster is not None else of_class))


def mark_table(marks: Sequence[Mark]) -> pd.DataFrame:
    """Return marks as a table."""
    rows = [(one.day, one.kind, one.subject, one.failure_class, one_line(one.title, 160)) for one in marks]
    return pd.DataFrame(rows, columns=["day", "mark", "cluster", "class", "title"])
