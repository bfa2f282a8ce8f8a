"""The page Triage: what broke, the ranked clusters, and one cluster or crash with what can be decided of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import streamlit as st

from crashpath.dashboard.marks import Marks, marks_key, read_marks, rules_of
from crashpath.dashboard.page_cluster import draw_cluster
from crashpath.dashboard.page_crash import draw_crash
from crashpath.dashboard.page_frame import Look, framed, kept, nothing_yet
from crashpath.dashboard.page_triage_list import show_crashes, show_night, show_rows, show_totals
from crashpath.dashboard.page_triage_pick import Options, Picked, pick
from crashpath.dashboard.triage_view import Known, Mark, read_known, read_list
from crashpath.ingest.crash_list import count_crashes, newest_crashes
from crashpath.ingest.trends import Dimension, values

LISTS = ("Clusters", "Crashes")
_PICKED: tuple[Dimension, ...] = ("release", "platform", "model", "path", "phase")


def draw(look: Look) -> None:
    """Show the page."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)  # what is kept is kept for a minute
    known = kept(look, read_known)
    if known is None:
        nothing_yet()
        return
    marks = marks_of(look)
    if crash := st.query_params.get("crash"):
        draw_crash(look, crash)
    elif cluster := st.query_params.get("cluster"):
        draw_cluster(look, cluster, marks, now)
    else:
        _lists(look, known, marks, now)


def _lists(look: Look, known: Known, marks: Marks, now: datetime) -> None:
    show_night(marks, now)
    last = min(known.last_day, now.date())
    picked = pick(Options(known, tuple((name, kept(look, values, name)) for name in _PICKED)), last)
    clusters, crashes = st.tabs(LISTS, key="show", bind="query-params", on_change="rerun")
    if crashes.open:
        with crashes:
            asked = picked.asked
            count = kept(look, count_crashes, asked.filters, asked.of)
            show_crashes(kept(look, newest_crashes, asked.filters, asked.of), count, picked)
    else:
        with clusters:
            _list(look, known, marks, picked, now)


def _list(look: Look, known: Known, marks: Marks, picked: Picked, now: datetime) -> None:
    marked = tuple(Mark(thing.cluster, thing.kind, thing.words) for thing in marks.things if thing.cluster is not None)
    last = min(known.last_day, now.date())
    listing = kept(look, read_list, picked.asked, marked, last, now, _page(picked))
    show_totals(listing, known, picked)
    show_rows(listing, picked, now)


def marks_of(look: Look) -> Marks:
    """Return the marks, from memory while nothing happened that they depend on."""
    return kept(replace(look, version=kept(look, marks_key)), read_marks, rules_of(look.settings))


def _page(picked: Picked) -> int:
    """Return the page of the list that is asked for: the first one where the filters are others than before."""
    before = st.session_state.get("listed")
    st.session_state["listed"] = picked.asked  # what the widgets say: the address follows them a moment later
    if before is not None and before != picked.asked:
        st.session_state["page"] = 1
    asked = st.session_state.get("page", st.query_params.get("page", 1))
    return int(asked) if str(asked).isdigit() else 1


framed("Triage", draw)
