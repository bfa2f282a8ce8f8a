"""The page Map: signatures in two dimensions, sized by crashes, coloured by class; what is selected goes to triage."""

from __future__ import annotations

from datetime import timedelta

import streamlit as st

from crashpath.dashboard.map_known import Known, find, read_known
from crashpath.dashboard.map_view import MapView, read_map
from crashpath.dashboard.page_frame import Look, framed, kept, nothing_yet
from crashpath.dashboard.page_map import counted, no_map, picture
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.page_trends_pick import pick, say_unknown
from crashpath.dashboard.pictures import ORDER
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.trends import Filters

ALL = "all"
WINDOWS = (ALL, "7", "14", "30", "90")


def draw(look: Look) -> None:
    """Show the page."""
    known = kept(look, read_known)
    if known.last is None:
        nothing_yet()
        return
    asked, filters = _pick(known)
    view = kept(look, read_map, filters)
    if not view.placed:
        no_map(view)
        return
    lit = _lit(look, view)
    counted(view)
    if view.points:
        picture(look, view, lit, asked)
    else:
        st.info("No signature on the map passes these filters.", icon=":material/filter_alt:")


def _pick(known: Known) -> tuple[dict[str, str], Filters]:
    with st.container(horizontal=True):
        classes = sorted(known.classes, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        chosen = {
            "class": pick("Class", "class", (ALL, *classes)),
            "release": pick("Release", "release", (ALL, *known.releases)),
            "platform": pick("Platform", "platform", (ALL, *known.platforms)),
        }
        days = pick("Last days", "days", WINDOWS, help="UTC days up to the last one with a crash.")
        st.text_input("Highlight", key="cluster", bind="query-params", placeholder="C-0042", width=150)
    say_unknown()
    asked = {name: value for name, value in chosen.items() if value != ALL}
    since = None if days == ALL or known.last is None else known.last - timedelta(days=int(days) - 1)
    if since is not None:
        asked["since"] = since.isoformat()
    filters = Filters(
        since=since, release=asked.get("release"), platform=asked.get("platform"), failure_class=asked.get("class")
    )
    return asked, filters


def _lit(look: Look, view: MapView) -> int | None:
    """Return the cluster that the address names; one that is not there is said."""
    wanted = str(st.session_state.get("cluster") or "").strip()
    if not wanted:
        return None
    try:
        number, went = kept(look, find, wanted)
    except NoSuchThing as error:
        st.warning(as_markdown(str(error)), icon=":material/link_off:")
        return None
    if went:
        st.info(as_markdown(went), icon=":material/call_merge:")
    if number not in view.clusters:
        st.warning(as_markdown(f"{cluster_id(number)} has no signature on the map that passes these filters."))
        return None
    return number


framed("Map", draw)
