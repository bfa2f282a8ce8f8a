"""The page Ingest health: how nights went, what they could not read, what it cost, and what the store is made of."""

from __future__ import annotations

import streamlit as st

from crashpath.dashboard.ingest_view import (
    Nights,
    read_catch_all,
    read_night,
    read_nights,
    read_pieces,
    read_sources,
    read_store,
)
from crashpath.dashboard.ingest_words import standing
from crashpath.dashboard.page_frame import Look, framed, kept, nothing_yet
from crashpath.dashboard.page_ingest import catch_all_part, found_part, nights_table, one_night, say, seconds_part
from crashpath.dashboard.page_ingest_pieces import quarantine_part, sources_part
from crashpath.dashboard.page_ingest_store import store_part
from crashpath.dashboard.page_text import as_markdown
from crashpath.ingest.lease import held, utc_now

SECTIONS = ("Nights", "Quarantine", "Sources", "Store")


def draw(look: Look) -> None:
    """Show the page."""
    found = kept(look, read_nights)
    if found.last is None:
        nothing_yet()
        return
    with look.store.read() as session:  # not kept: whether a night is alive is a matter of seconds
        lease = held(session, utc_now())
    say(standing(found.last, lease, utc_now()))
    section, night = _pick(look, found)
    if section == "Nights":
        _nights(look, found, night)
    elif section == "Quarantine":
        if night is not None:
            st.caption(f"What night {night} put there.")
        quarantine_part(look, kept(look, read_pieces, night))
    elif section == "Sources":
        sources_part(kept(look, read_sources), found.last)
    else:
        store_part(kept(look, read_store), found.nights)


def _nights(look: Look, found: Nights, night: int | None) -> None:
    if night is not None:
        one = kept(look, read_night, night)
        if one is not None:
            one_night(one)
        return
    nights_table(found)
    seconds_part(found.nights)
    found_part(found.nights)
    catch_all_part(found.nights, kept(look, read_catch_all))


def _pick(look: Look, found: Nights) -> tuple[str, int | None]:
    asked = st.query_params.get("show")
    if asked is not None and asked not in SECTIONS:
        st.warning(f"{as_markdown(asked, 80)} in the address is none of {', '.join(SECTIONS)}.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        section = st.segmented_control(
            "Show", SECTIONS, default=SECTIONS[0], required=True, key="show", bind="query-params"
        )
        st.text_input(
            "Night", key="night", bind="query-params", width=120, placeholder="all",
            help="The number of a night: only its figures, or what it put into quarantine.",
        )  # fmt: skip
    return section or SECTIONS[0], _night(look)


def _night(look: Look) -> int | None:
    wanted = str(st.session_state.get("night") or "").strip()
    if not wanted:
        return None
    number = int(wanted) if wanted.isascii() and wanted.isdigit() else 0
    if kept(look, read_night, number) is None:
        st.warning(f"There is no night {as_markdown(wanted, 40)}; all are shown.", icon=":material/link_off:")
        return None
    return number


framed("Ingest health", draw)
