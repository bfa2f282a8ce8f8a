"""The list of the page Triage: the last night and what broke, the ranked clusters, the newest crashes behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from crashpath.dashboard.marks import Marks
from crashpath.dashboard.page_frame import link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.page_triage_pick import Picked
from crashpath.dashboard.plurals import many
from crashpath.dashboard.triage_html import row_html
from crashpath.dashboard.triage_view import Known, Listing, Muted, Row
from crashpath.dashboard.triage_words import MARKS, SIGNS, broke_words, night_words, title_of, total_words
from crashpath.ingest.crash_list import CrashRow

ICONS = {
    "new": ":material/fiber_new:",
    "regressed": ":material/undo:",
    "spiking": ":material/trending_up:",
    "back": ":material/replay:",
    "fixed": ":material/check_circle:",
}
_MOST_TITLE = 160
_NIGHT_ICONS = {"complete": ":material/check:", "partial": ":material/warning:", "failed": ":material/error:"}


def show_night(marks: Marks, now: datetime) -> None:
    """Say first of all when the last night was, how it ended, and what it found broken."""
    counts = Counter(thing.kind for thing in marks.things if thing.cluster is not None)
    if marks.night is not None:
        st.subheader(broke_words(counts))
    status = None if marks.last is None else marks.last.status
    words = as_markdown(night_words(marks, now), 1000)
    if status == "failed":
        st.error(words, icon=_NIGHT_ICONS["failed"])
    elif status == "partial":
        st.warning(words, icon=_NIGHT_ICONS["partial"])
    else:
        st.markdown(words)
    if any(counts.values()):
        with st.container(horizontal=True):
            for kind in MARKS:
                if counts[kind]:
                    link("triage", f"{counts[kind]:,} {kind}", icon=ICONS[kind], help=MARKS[kind], mark=kind)
        told = (f"{SIGNS[kind]} **{kind}**: {MARKS[kind]}" for kind in MARKS if counts[kind])
        st.caption(" · ".join(told))
    for thing in marks.things:
        if thing.cluster is None:
            label = f"{SIGNS[thing.kind]} class {thing.subject} is {thing.kind}: {thing.words}"
            link("triage", label, icon=ICONS[thing.kind], **{"class": thing.subject})
    if marks.muted:
        st.caption(f"Of {many(marks.muted, 'muted cluster')} more there would be something to say.")


def show_totals(listing: Listing, known: Known, picked: Picked) -> None:
    """Say what is listed, and of what."""
    st.caption(as_markdown(f"{' · '.join(picked.words)}: {total_words(listing, known.clusters)}", 1000))


def show_rows(listing: Listing, picked: Picked, now: datetime) -> None:
    """Show a page of the ranked clusters, and the muted ones folded away."""
    if not listing.rows and not listing.muted:
        st.info("No cluster passes these filters.", icon=":material/search_off:")
    broken = [row for row in listing.rows if row.broken]
    rest = [row for row in listing.rows if not row.broken]
    if broken:
        st.markdown(f"**{many(listing.broken, 'cluster')} that broke**, new and regressed ones first")
        _show(broken, picked, now)
    if rest:
        st.markdown("**Everything else**, most crashes first" if listing.broken else "**Most crashes first**")
        _show(rest, picked, now)
    if listing.pages > 1:
        st.pagination(listing.pages, key="page", bind="query-params")
        st.caption(f"Page {listing.page:,} of {listing.pages:,}.")
    if listing.muted_clusters:
        _show_muted(listing.muted, listing.muted_clusters, picked)


def _show(rows: Sequence[Row], picked: Picked, now: datetime) -> None:
    for row in rows:
        with st.container(border=True, gap="xxsmall"):
            icon = ICONS[row.mark.kind] if row.mark else ":material/chevron_right:"
            link(
                "triage", f"{row.id} · {one_line(title_of(row), _MOST_TITLE)}", icon=icon, cluster=row.id, **picked.back
            )
            st.html(row_html(row, now))


def _show_muted(muted: Sequence[Muted], every: int, picked: Picked) -> None:
    with st.expander(f"{many(every, 'muted cluster')}", icon=":material/volume_off:"):
        for one in muted:
            label = f"{one.id} · {one_line(one.title, _MOST_TITLE)} · {many(one.crashes, 'crash')}"
            link("triage", f"{label} · until {one.until:%Y-%m-%d %H:%M} UTC", cluster=one.id, **picked.back)
        if every > len(muted):
            st.caption(f"{every - len(muted):,} more are not listed; filter to see them.")


def show_crashes(crashes: Sequence[CrashRow], count: int, picked: Picked) -> None:
    """Show the newest crashes that pass, each with a way to it."""
    if not crashes:
        st.info("No crash passes these filters.", icon=":material/search_off:")
        return
    newest = f"The newest {len(crashes):,} of {many(count, 'crash')}" if count > len(crashes) else many(count, "crash")
    st.caption(as_markdown(f"{' · '.join(picked.words)}: {newest}. Times are UTC."))
    for one in crashes:
        label = f"{one.at:%Y-%m-%d %H:%M:%S} · {one_line(one.root_line, _MOST_TITLE)}"
        link("triage", label, icon=":material/chevron_right:", crash=str(one.id), **picked.back)
        st.caption(as_markdown(" · ".join(_facts(one)), 600))


def _facts(one: CrashRow) -> list[str]:
    facts = [
        f"crash {one.id}",
        one.cluster or "no cluster yet",
        one.release,
        one.platform,
        one.model,
        one.path,
        one.phase,
    ]
    return facts + ([one.outcome] if one.outcome else [])
