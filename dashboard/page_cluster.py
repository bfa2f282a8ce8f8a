"""One cluster on the page Triage: what it is and since when, two of its texts, where it happens, why it is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pandas as pd
import streamlit as st

from crashpath.dashboard.cluster_view import Cluster, Pair, read_cluster, read_containment, read_pair
from crashpath.dashboard.cluster_words import (
    contained_line,
    containment_words,
    counts_words,
    first_words,
    last_words,
    members_words,
    proof_words,
)
from crashpath.dashboard.crash_html import legend
from crashpath.dashboard.decide_text import muted, resolved
from crashpath.dashboard.marks import Marks
from crashpath.dashboard.page_actions import actions
from crashpath.dashboard.page_cluster_more import show_more
from crashpath.dashboard.page_crash import show_frames, show_root, show_text
from crashpath.dashboard.page_frame import Look, kept, link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.page_triage_pick import way_back
from crashpath.dashboard.plurals import many
from crashpath.dashboard.triage_html import facts_html
from crashpath.dashboard.triage_pictures import is_weekly, trend_frame, trend_picture, trend_words
from crashpath.dashboard.triage_words import MARKS, SIGNS
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.trends import Count
from crashpath.ingest.web_address import is_link

_MOST_ID = 40
"""Characters of what an address may call a cluster."""
_MOST_TITLE = 120
_MOST_LINES = 40
"""Lines of each of two texts; the crash's own page has more."""
_MOST_SPREAD = 12
"""Values of a dimension that are shown."""
_BARE = {"displayModeBar": False}
_TITLES = {one.id: one.title for one in CLASSES}


def draw_cluster(look: Look, asked: str, marks: Marks, now: datetime) -> None:
    """Show the cluster that the address names."""
    link("triage", "Back to the list", icon=":material/arrow_back:", **way_back())
    try:
        cluster = kept(look, read_cluster, asked[:_MOST_ID])
    except NoSuchThing as missing:
        st.error(as_markdown(str(missing)), icon=":material/search_off:")
        return
    _title(cluster)
    _where_it_went(cluster)
    found = cluster.found
    contained = kept(look, read_containment, found.row.number, found.row.failure_class)
    _facts(cluster, contained_line(contained.units), marks, now)
    pair = kept(look, read_pair, found.row.number)
    if pair is not None:
        show_root(pair.shown)
        _texts(pair)
    actions(look, found, cluster.decisions)
    if found.by_day:
        _trend(cluster)
        _spread(cluster)
        st.subheader("Is it contained?", anchor=False)
        told = (*containment_words(contained.units), *proof_words(contained.standing))
        st.markdown("\n".join(f"- {as_markdown(words, 600)}" for words in told))
    show_more(look, cluster)


def _title(cluster: Cluster) -> None:
    row = cluster.found.row
    st.subheader(as_markdown(f"{row.id} · {row.name or row.root_line}", _MOST_TITLE), anchor=False)
    if row.name:
        st.caption(as_markdown(row.root_line, 300))


def _where_it_went(cluster: Cluster) -> None:
    row = cluster.found.row
    if cluster.moved:
        st.warning(as_markdown(cluster.moved), icon=":material/merge:")
    if cluster.found.merged_into:
        into = cluster.moved.rstrip(".").rpartition(" ")[2] if cluster.moved else cluster.found.merged_into
        link("triage", f"Go to {into}", icon=":material/arrow_forward:", cluster=into)
    if row.status == "retired":
        st.info(f"{row.id} is retired: it has no members any more.", icon=":material/inventory_2:")


def _facts(cluster: Cluster, contained: str, marks: Marks, now: datetime) -> None:
    """Answer first of all since when, in which release, where, and whether it is contained."""
    row = cluster.found.row
    mark = next((thing for thing in marks.things if thing.cluster == row.number), None)
    if mark is not None:
        told = f"{SIGNS[mark.kind]} {mark.kind}: {MARKS[mark.kind]}. {mark.words}"
        st.markdown(f"**{as_markdown(told, 600)}**")
    facts = [
        ("Class", f"{_TITLES.get(row.failure_class, row.failure_class)} ({row.failure_class})"),
        ("First seen", first_words(cluster.seen)),
        ("Last seen", last_words(cluster.seen)),
        ("Crashes", members_words(cluster.found)),
        ("Platforms", counts_words(cluster.found.by_platform)),
        ("Contained?", contained),
        *_said(cluster, now),
    ]
    st.html(facts_html([(name, value) for name, value in facts if value]))
    if row.ticket and is_link(row.ticket):
        st.link_button("Open its ticket", row.ticket, icon=":material/open_in_new:")


def _said(cluster: Cluster, now: datetime) -> Iterator[tuple[str, str]]:
    row = cluster.found.row
    if row.assignee:
        yield "Owner", row.assignee
    if row.resolved_in:
        yield "Resolved", resolved(row.resolved_in)
    if row.muted_until is not None and row.muted_until > now:
        yield "Muted", muted(row.muted_until)
    if row.ticket:
        yield "Ticket", row.ticket


def _texts(pair: Pair) -> None:
    """Show two of its texts beside each other."""
    st.markdown("**What it prints**")
    st.html(legend())
    both = [("The one that stands for it", pair.shown)]
    both += [("The most different one", pair.other)] if pair.other is not None else []
    for column, (title, crash) in zip(st.columns(len(both)), both, strict=True):
        with column:
            link("triage", f"{title}: crash {crash.id}", icon=":material/bug_report:", crash=str(crash.id))
            st.caption(as_markdown(f"{crash.at:%Y-%m-%d %H:%M:%S} UTC · {crash.release} · {crash.platform}"))
            show_text(crash, _MOST_LINES)
            show_frames(crash)
    st.caption(as_markdown(pair.compared))


def _trend(cluster: Cluster) -> None:
    by_day = cluster.found.by_day
    st.subheader(f"Crashes by {'week' if is_weekly(by_day) else 'day'} and release", anchor=False)
    frame = trend_frame(by_day)
    st.plotly_chart(trend_picture(frame), width="stretch", key="trend", config=_BARE, alt=trend_words(frame))
    with st.expander("The same figures as a table"):
        shown = frame.assign(release=frame["release"].map(one_line))
        st.dataframe(shown, hide_index=True, width="stretch", alt="Crashes by day and release")


def _spread(cluster: Cluster) -> None:
    """Show where it happens, one small table a dimension."""
    found = cluster.found
    st.subheader("Where it happens", anchor=False)
    dimensions = (
        ("platform", found.by_platform), ("release", found.by_release), ("model", cluster.by_model),
        ("path", found.by_path), ("phase", cluster.by_phase),
    )  # fmt: skip
    with st.container(horizontal=True):
        for name, counts in dimensions:
            with st.container(width=230):
                _counts(name, counts)


def _counts(name: str, counts: Sequence[Count]) -> None:
    shown = counts[:_MOST_SPREAD]
    frame = pd.DataFrame([(one_line(one.key, 80), one.crashes) for one in shown], columns=[name, "crashes"])
    most = max(one.crashes for one in shown)
    bar = st.column_config.ProgressColumn("crashes", format="localized", min_value=0, max_value=most)
    st.dataframe(
        frame, hide_index=True, width="stretch", height="content", column_config={"crashes": bar},
        alt=f"Crashes by {name}", key=f"spread-{name}",
    )  # fmt: skip
    if len(counts) > len(shown):
        st.caption(f"and {many(len(counts) - len(shown), name)} more")
