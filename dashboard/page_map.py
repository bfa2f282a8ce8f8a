"""The pieces of the page Map: the picture, what is selected in it, and what is said where there is no map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from crashpath.clustering.places import FEWEST
from crashpath.dashboard.map_pictures import ringed, the_map
from crashpath.dashboard.map_view import MapView, OnMap
from crashpath.dashboard.page_frame import READ_FIRST, Look, link
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.plurals import many

MOST_LINKED = 100
"""Clusters in the address of a link."""
MOST_ROWS = 200
"""Rows of a table."""
_BAR = {"displaylogo": False, "modeBarButtonsToRemove": ["toImage", "autoScale2d"]}


@st.fragment
def picture(look: Look, view: MapView, lit: int | None, asked: Mapping[str, str]) -> None:
    """Show the map, and below it the clusters that are selected in it; only this runs anew when others are."""
    st.caption(
        "Each point is a signature, its area goes with its crashes, and what is alike lies together; directions and "
        "distances mean nothing more, and nothing is decided by them. Draw around points, or click on one, to list "
        "their clusters."
    )
    figure = _drawn(look.settings.db, look.version, tuple(sorted(asked.items())), lit, _dark(), view)
    chosen: Any = st.plotly_chart(
        figure, width="stretch", key="points", on_select="rerun", config=_BAR, alt=described(view),
        selection_mode=("points", "box", "lasso"),
    )  # fmt: skip
    numbers = selected(chosen.selection.points if chosen else (), view)
    if numbers:
        st.subheader(f"Selected: {many(len(numbers), 'cluster')}")
        listed([view.clusters[number] for number in numbers], asked)
    else:
        with st.expander("The same as a table"):
            listed(sorted(view.clusters.values(), key=lambda one: (-one.crashes, one.number)), asked)


@st.cache_resource(show_spinner=False, max_entries=16)
def _drawn(
    url: str, version: str, asked: tuple[tuple[str, str], ...], lit: int | None, dark: bool, _view: MapView
) -> go.Figure:
    """Draw a view once for all who look at it, not at each selection again."""
    return the_map(_view, lit, dark=dark)


def _dark() -> bool:
    return bool(st.context.theme.type == "dark")


def selected(points: Iterable[Mapping[str, Any]], view: MapView) -> tuple[int, ...]:
    """Return the clusters of selected points, most crashes first; points that are no longer shown are left out."""
    numbers = set()
    for point in points:
        data = point.get("customdata")
        data = data[0] if isinstance(data, list) and data else data
        if isinstance(data, int | float) and int(data) in view.clusters:
            numbers.add(int(data))
    return tuple(sorted(numbers, key=lambda number: (-view.clusters[number].crashes, number)))


def described(view: MapView) -> str:
    """Say what is seen, for those who do not see it."""
    largest = sorted(view.clusters.values(), key=lambda one: (-one.crashes, one.number))[:3]
    named = ", ".join(f"{one.id} ({one.failure_class}, {many(one.crashes, 'crash')})" for one in largest)
    return (
        f"Map of {many(len(view.points), 'signature')} of {many(len(view.clusters), 'cluster')}; the largest: {named}."
    )


def listed(clusters: Sequence[OnMap], asked: Mapping[str, str]) -> None:
    """Show clusters as a table, with a link to them in triage. ``asked``: what else is looked at, for its address."""
    frame = pd.DataFrame(
        [
            (one.id, one.title, one.failure_class, one.crashes, one.signatures, one.first, one.last, one.new)
            for one in clusters[:MOST_ROWS]
        ],
        columns=["cluster", "name or root line", "class", "crashes", "signatures", "first seen", "last seen", "new"],
    )
    some = [one.id for one in clusters[:MOST_LINKED]]
    label = f"Open {'these' if len(some) > 1 else 'it'} in triage"
    if len(some) < len(clusters):
        label = f"Open the {len(some)} largest in triage"
    link("triage", label, icon=":material/checklist:", clusters=",".join(some), **asked)
    st.dataframe(frame, hide_index=True, width="stretch", alt="Clusters on the map")
    if len(frame) < len(clusters):
        st.caption(f"The {len(frame):,} with most crashes of {many(len(clusters), 'cluster')}.")


def counted(view: MapView) -> None:
    """Say how much is on the map, and what is not."""
    parts = [f"{many(len(view.points), 'signature')} of {many(len(view.clusters), 'cluster')}"]
    if view.left_out:
        parts.append(f"{view.left_out:,} more, with the fewest crashes, are not drawn")
    new = sum(point.new for point in view.points)
    if view.night is not None:
        if new == len(view.points):
            parts.append(f"all found by night {view.night}")
        else:
            parts.append(f"{new or 'none'} new in night {view.night}{', with a ring' if ringed(view) else ''}")
    if view.unplaced:
        parts.append(f"{many(view.unplaced, 'signature')} without a place yet: the next night gives them one")
    st.caption(as_markdown(" · ".join(parts)))


def no_map(view: MapView) -> None:
    """Say why there is no map, and what makes one."""
    if view.stored < FEWEST:
        st.info(
            f"Too few for a map: it needs {FEWEST} signatures with different texts, and this store has "
            f"{view.stored:,}. Nights make it as soon as there are enough: `{READ_FIRST}`",
            icon=":material/info:",
        )
    else:
        st.info(
            f"{many(view.stored, 'signature')} and none has a place on the map yet. The next night makes the map "
            f"(at least {FEWEST} different texts are needed): `{READ_FIRST}`",
            icon=":material/info:",
        )
    link("triage", "See the clusters as a list", icon=":material/checklist:")
