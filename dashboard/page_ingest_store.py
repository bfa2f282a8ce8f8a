"""The store on the page Ingest health: its size, what it is tied to, what ran when, and what waits to be told."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from crashpath.dashboard import ingest_pictures as pictures
from crashpath.dashboard.ingest_view import NightLine, StoreState
from crashpath.dashboard.ingest_words import rows, size
from crashpath.dashboard.page_ingest import picture
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.table_words import WORDS
from crashpath.ingest.outbox import FILE

_MOST_CHANGES = 100


def store_part(state: StoreState, nights: Sequence[NightLine]) -> None:
    """Show the store."""
    _size(state, nights)
    _versions(state)
    _outbox(state)


def _size(state: StoreState, nights: Sequence[NightLine]) -> None:
    whole = state.size
    log = f", of it {size(whole.log)} in the log that is written back later (-wal)" if whole.log else ""
    st.subheader("Size on disk", anchor=False)
    st.markdown(f"**{size(whole.total)}**{log}")
    sized = [one for one in nights if one.bytes is not None]
    if len(sized) > 1:
        first, last = sized[-1], sized[0]
        grown = (last.bytes or 0) - (first.bytes or 0)
        spent = len(sized) - 1
        st.caption(f"{'+' if grown >= 0 else '−'}{size(abs(grown))} over the last {many(spent, 'night')}.")
        frame = pd.DataFrame([{"night": one.id, "size": size(one.bytes or 0), "bytes": one.bytes} for one in sized])
        picture(pictures.size_by_night(nights), "Size of the store by night", frame, "size")
    else:
        st.caption("How it grows is shown once two nights kept the size.")
    frame = pd.DataFrame(
        [
            (WORDS.get(one.name, one.name.replace("_", " ")), rows(one.rows, one.kind), one.bytes and size(one.bytes))
            for one in whole.tables
        ],
        columns=["what", "rows", "size"],
    )
    st.dataframe(frame if any(frame["size"]) else frame.drop(columns="size"), hide_index=True, width="stretch")
    if any(one.kind for one in whole.tables):
        st.caption("Large tables are not counted row by row here; `crashpath db check` counts them.")


def _versions(state: StoreState) -> None:
    st.subheader("Versions", anchor=False)
    encoder = one_line(state.encoder, 120) if state.encoder else "none yet"
    st.dataframe(
        pd.DataFrame(
            [("schema", state.schema), ("signatures are keyed by", state.keying), ("encoder", encoder)],
            columns=["the store is tied to", "now"],
        ),
        hide_index=True, width="stretch", alt="What the store is tied to",
    )  # fmt: skip
    frame = pd.DataFrame(
        [
            (
                one_line(one.what, 60),
                one_line(one.old or "", 60),
                one_line(one.new, 60),
                one.night,
                f"{one.at:%Y-%m-%d}",
            )
            for one in state.changes[:_MOST_CHANGES]
        ],
        columns=["what", "before", "from then on", "night", "day (UTC)"],
    )
    with st.expander(
        f"What nights ran with, and when it changed ({many(state.looked_through, 'night')} looked through)"
    ):
        st.dataframe(frame, hide_index=True, width="stretch", alt="Changes of versions, newest first")


def _outbox(state: StoreState) -> None:
    st.subheader("Digest and webhooks", anchor=False)
    if not state.places:
        st.caption(
            "Nothing was told yet: `crashpath nightly --digest FILE`, or a webhook in the settings, tells what is new."
        )
        return
    for one in state.places:
        name = "The digest's file" if one.place == FILE else f"Webhook {one.place[:8]}"
        last = f", the last {one.last:%Y-%m-%d %H:%M} UTC" if one.last else ""
        waits = f"{many(one.waiting, 'thing')} wait for the next night" if one.waiting else "nothing waits"
        lost = f"; {many(one.uncertain, 'thing')} may not have arrived and are not sent again" if one.uncertain else ""
        st.markdown(f"- {as_markdown(f'{name}: {waits}, {one.told:,} told{last}{lost}.')}")
