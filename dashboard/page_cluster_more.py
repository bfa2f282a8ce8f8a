"""What lies behind a cluster: its members and why they are in it, its neighbours, its class, what happened to it.

Only the part that is open is read.
"""

from __future__ import annotations

import streamlit as st

from crashpath.dashboard.cluster_view import MEMBERS, Cluster, read_members, read_near
from crashpath.dashboard.decide_text import entry
from crashpath.dashboard.joined_text import joined, terms_words
from crashpath.dashboard.lineage_text import happened
from crashpath.dashboard.page_frame import Look, kept, link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.show_text import class_words
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.details import SignatureDetail

PARTS = ("Why grouped", "Nearest clusters", "Class", "What happened")
_MOST = 600
_MOST_EVENTS = 40


def show_more(look: Look, cluster: Cluster) -> None:
    """Show the parts, one of them open."""
    parts = st.tabs(PARTS, key="part", bind="query-params", on_change="rerun")
    for part, show in zip(parts, (_members, _near, _class, _happened), strict=True):
        if part.open:
            with part:
                show(look, cluster)


def _members(look: Look, cluster: Cluster) -> None:
    row = cluster.found.row
    if not row.signatures:
        st.caption("It has no members.")
        return
    pages = -(-row.signatures // MEMBERS)
    page = st.pagination(pages, key="members", bind="query-params") if pages > 1 else 1
    st.caption(f"{many(row.signatures, 'signature')}, those with the most crashes first.")
    for one in kept(look, read_members, row.number, page):
        _member(one)


def _member(one: SignatureDetail) -> None:
    with st.container(border=True, gap="xxsmall"):
        stands = " · stands for the cluster" if one.is_exemplar else ""
        days = f"{one.first_seen:%Y-%m-%d} to {one.last_seen:%Y-%m-%d}"
        st.markdown(f"**{as_markdown(one.id)}** · {many(one.crashes, 'crash')} · {days}{stands}")
        st.text(one_line(f"{one.root_type}: {one.root_message}", _MOST))
        told = joined(one)
        st.caption(as_markdown(told.how[:1].upper() + told.how[1:], _MOST))
        for words in (told.why, *told.terms):
            if words:
                st.caption(as_markdown(words[:1].upper() + words[1:], _MOST))


def _near(look: Look, cluster: Cluster) -> None:
    found = cluster.found
    near = kept(look, read_near, found.row.number)
    if not near:
        st.caption("There are no vectors to compare: no other cluster, or none that was embedded.")
        return
    st.caption("By the stored vectors, words and frames of their exemplars; 0 is the same, nothing is encoded here.")
    for one in near:
        with st.container(border=True, gap="xxsmall"):
            label = f"{one.cluster} at distance {one.distance:.2f} · {one.label}"
            link("triage", label, icon=":material/chevron_right:", cluster=one.cluster)
            if one.contradicts:
                st.markdown(as_markdown(f"Never one with it: {'; '.join(one.contradicts)}", _MOST))
            for words in terms_words(one.shared, one.differing):
                st.caption(as_markdown(words[:1].upper() + words[1:], _MOST))
    if not look.read_only and found.row.status == "active":
        st.caption("Are two of them one failure? Merge them under *Decide* above.")


def _class(look: Look, cluster: Cluster) -> None:
    said = class_words(cluster.found)
    st.markdown(as_markdown(said[:1].upper() + said[1:], _MOST))
    for reason in cluster.found.evidence[:_MOST_EVENTS]:
        st.caption(as_markdown(f"because {reason}", _MOST))
    known = next((one for one in CLASSES if one.id == cluster.found.row.failure_class), None)
    if known is not None:
        st.markdown(as_markdown(f"{known.title}: {known.meaning}", _MOST))
        st.markdown("\n".join(f"- {as_markdown(step, _MOST)}" for step in known.next_steps))


def _happened(look: Look, cluster: Cluster) -> None:
    events = cluster.found.events[-_MOST_EVENTS:]
    if len(cluster.found.events) > len(events):
        st.caption(f"The last {len(events)} events; `crashpath show {cluster.found.row.id} --json` lists all.")
    for event in reversed(events):
        st.markdown(as_markdown(f"{event.at:%Y-%m-%d} {happened(event)}", _MOST))
    if not events:
        st.caption("Nothing happened to it.")
    if cluster.decisions:
        st.markdown("**What people decided**")
    for decision in reversed(cluster.decisions[-_MOST_EVENTS:]):
        st.markdown(as_markdown(entry(decision), _MOST))
