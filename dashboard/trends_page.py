"""The page Trends: crashes by day, headline first, and by release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pandas as pd
import streamlit as st

from crashpath.dashboard.page_frame import Look, framed, nothing_yet
from crashpath.dashboard.pictures import bars_by_cohort, bars_by_day
from crashpath.dashboard.plurals import many
from crashpath.ingest.queries import Totals, store_totals
from crashpath.ingest.store import Store
from crashpath.ingest.trends import (
    Count,
    DayCount,
    Dimension,
    Filters,
    counts_by_day,
    days,
    headline,
    values,
)

ANY = "all"
BY: tuple[Dimension, ...] = ("headline", "class", "release", "platform", "path")
WINDOWS = {"last 14 days": 14, "last 30 days": 30, "last 90 days": 90, "all days": None}


@dataclass(frozen=True, slots=True)
class View:
    """Everything that one look at the page shows."""

    totals: Totals
    headline: tuple[Count, ...]
    days: tuple[DayCount, ...]
    outside: int
    releases: dict[str, tuple[Count, ...]]


def draw(look: Look) -> None:
    """Show the page."""
    store = look.store
    by, filters = _pick(store)
    view = _look(store, by, filters)
    if not view.totals.crashes:
        nothing_yet()
        return
    _headline(view)
    st.subheader(f"Crashes by day and {by}")
    outside = f" Outside these days: {many(view.outside, 'crash')}." if view.outside else ""
    st.caption(f"Days are UTC days of the crash. Counts, not rates: no attempts are set against them.{outside}")
    if not view.days:
        st.info("No crash passes these filters.")
        return
    frame = pd.DataFrame(view.days, columns=["day", by, "crashes"])
    st.plotly_chart(bars_by_day(frame, by), width="stretch")
    with st.expander("The same as a table"):
        st.dataframe(frame, hide_index=True, width="stretch")
    _releases(view)


def _pick(store: Store) -> tuple[Dimension, Filters]:
    with store.read() as session:
        releases, platforms = values(session, "release"), values(session, "platform")
        last = days(session)
    columns = st.columns(4)
    by = columns[0].selectbox("Count by", BY, key="by", bind="query-params")
    release = columns[1].selectbox("Release", (ANY, *releases), key="release", bind="query-params")
    platform = columns[2].selectbox("Platform", (ANY, *platforms), key="platform", bind="query-params")
    window = WINDOWS[columns[3].selectbox("Days", tuple(WINDOWS), key="days", bind="query-params")]
    since = last[1] - timedelta(days=window - 1) if window and last else None
    return by, Filters(
        since=since,
        release=None if release == ANY else release,
        platform=None if platform == ANY else platform,
    )


def _look(store: Store, by: Dimension, filters: Filters) -> View:
    with store.read() as session:
        releases = {name: headline(session, replace(filters, release=name)) for name in values(session, "release")}
        shown = headline(session, filters)
        ever = headline(session, replace(filters, since=None))
        return View(
            totals=store_totals(session),
            headline=shown,
            days=counts_by_day(session, by, filters),
            outside=sum(count.crashes for count in ever) - sum(count.crashes for count in shown),
            releases=releases,
        )


def _headline(view: View) -> None:
    total = sum(count.crashes for count in view.headline)
    for column, count in zip(st.columns(len(view.headline)), view.headline, strict=True):
        share = f"{count.crashes / total:.1%} of crashes" if total else "no crashes"
        column.metric(count.key, f"{count.crashes:,}", share, delta_color="off", delta_arrow="off")
    totals = view.totals
    st.caption(
        f"{many(totals.crashes, 'crash')} · {many(totals.signatures, 'signature')} · "
        f"{many(totals.clusters, 'cluster')} · "
        f"{totals.unclassified / totals.crashes:.1%} unclassified · {totals.quarantined:,} in quarantine"
    )


def _releases(view: View) -> None:
    rows = [(name, count.key, count.crashes) for name, counts_ in view.releases.items() for count in counts_]
    frame = pd.DataFrame(rows, columns=["release", "headline", "crashes"])
    st.subheader("Headline by release")
    st.plotly_chart(bars_by_cohort(frame, "release"), width="stretch")
    with st.expander("The same as a table"):
        st.dataframe(frame.pivot(index="release", columns="headline", values="crashes"), width="stretch")


framed("Trends", draw)
