"""Quarantine on the page Ingest health: why, where, how it begins, and a retry; and the sources of the ledger."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from crashpath.dashboard import quarantine_text as words
from crashpath.dashboard.acting import by, who_by_default
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.ingest_view import NightLine, Pieces, Sources
from crashpath.dashboard.ingest_words import size
from crashpath.dashboard.page_frame import Look, changed
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.who import LONGEST
from crashpath.ingest import again
from crashpath.ingest.queries import QuarantineRow, SourceRow
from crashpath.ingest.store_errors import StoreError

WHO = "who decides"
"""Where a session keeps who decides, on whatever page it is."""
_SAID = "said of the quarantine"


def quarantine_part(look: Look, found: Pieces) -> None:
    """Show what is in quarantine, and where writing is allowed a way to have it read again."""
    st.caption(words.MEANING)
    if said := st.session_state.pop(_SAID, ""):
        st.success(as_markdown(said, 1000), icon=":material/check:")
    if not found.held.pieces:
        st.success("Nothing is in quarantine.", icon=":material/check_circle:")
    else:
        st.markdown(as_markdown(words.summed(found.held), 1000))
        _pieces(look, found)
    if found.asked:
        st.subheader("Asked to be read again", anchor=False)
        for one in found.asked[:10]:
            st.markdown(f"- {as_markdown(words.asked_sentence(one), 600)}")


def _pieces(look: Look, found: Pieces) -> None:
    frame = pd.DataFrame(
        [
            (
                one.id,
                one.source_id,
                one.night_id,
                one_line(one.reason, 200),
                one_line(one.path, 200),
                one.offset,
                one.end,
            )
            for one in found.rows
        ],
        columns=["piece", "source", "night", "reason", "file", "from byte", "to byte"],
    )
    st.dataframe(frame, hide_index=True, width="stretch", alt="Pieces in quarantine, newest first")
    if len(found.rows) < found.held.pieces:
        st.caption(f"The newest {len(found.rows):,} of {many(found.held.pieces, 'piece')}.")
    rows = {str(one.id): one for one in found.rows}
    asked = st.query_params.get("piece")
    if asked is not None and asked not in rows:
        st.warning(f"Piece {as_markdown(asked, 40)} in the address is not among these.", icon=":material/link_off:")
    chosen = st.selectbox(
        "Piece", tuple(rows), index=None, key="piece", bind="query-params", width=420,
        placeholder="See how a piece begins" + ("" if look.read_only else ", or have its file read again"),
    )  # fmt: skip
    if chosen in rows:
        _piece(look, rows[chosen], found.asked)


def _piece(look: Look, one: QuarantineRow, asked: Sequence[again.Asked]) -> None:
    st.markdown(f"**Piece {one.id}** of source {one.source_id}, found {one.at:%Y-%m-%d %H:%M} UTC; it begins")
    st.code(
        "\n".join(one_line(line) for line in one.preview.splitlines()) or "(nothing)", language=None, wrap_lines=True
    )
    st.caption(f"{size(one.end - one.offset)}, sha256 {one.sha256}")
    if look.read_only:
        st.caption("Nothing can be asked for here: this dashboard only shows.")
        return
    if waits := [it for it in asked if it.source_id == one.source_id and it.night is None]:
        st.info(as_markdown(words.asked_sentence(waits[0]), 600), icon=":material/hourglass_empty:")
        return
    with st.form(f"retry-{one.id}"):
        st.markdown(words.RETRY)
        who = st.text_input(
            "Who asks", value=st.session_state.get(WHO) or who_by_default(), key="retry-who", max_chars=LONGEST
        )
        why = st.text_input("Why (may be left out)", key="retry-why", max_chars=LONGEST)
        if st.form_submit_button(f"Read source {one.source_id} again", icon=":material/replay:"):
            _ask(look, one.source_id, who or "", why or "")


def _ask(look: Look, source: int, who: str, why: str) -> None:
    try:
        asker = by(who, why)
        with look.store.write() as session:
            one, first = again.ask(session, source, asker)
    except (UsageError, StoreError) as error:
        st.error(as_markdown(str(error), 1000), icon=":material/error:")
        return
    st.session_state[_SAID] = words.asked_now(one, first)
    changed()
    st.rerun()


_COLUMNS = {
    "read": st.column_config.NumberColumn(
        format="percent",
        help="How far a plain file was read. Of a packed one only the bytes that came out of it are known.",
    ),
    "checkpoint": st.column_config.NumberColumn(help="Where reading goes on: every record before it is stored."),
    "rewritten": st.column_config.NumberColumn(help="How often the file was written anew under its name."),
}


def sources_part(found: Sources, last: NightLine) -> None:
    """Show the ledger: what was read, how far, and what stands in the way, in the ``last`` night too."""
    if last.problems:
        st.markdown(f"**What stood in the way of night {last.id}**")
        for problem in last.problems:
            st.markdown(f"- {as_markdown(problem, 1000)}")
    parts = [many(found.total, "source")]
    parts += [f"{found.problems:,} with a problem, listed first"] if found.problems else ["none with a problem"]
    parts += [f"{found.superseded:,} overwritten since"] if found.superseded else []
    st.caption(" · ".join(parts))
    if not found.rows:
        return
    frame = pd.DataFrame([_source(one) for one in found.rows])
    st.dataframe(frame, hide_index=True, width="stretch", alt="Sources", column_config=_COLUMNS, placeholder="–")
    if len(found.rows) < found.total:
        st.caption(f"{len(found.rows):,} of {many(found.total, 'source')}: with a problem first, then the last read.")


def _source(one: SourceRow) -> dict[str, object]:
    plain = not one.compressed and one.size
    return {
        "source": one.id,
        "file": one_line(one.path, 200),
        "problem": one_line(one.problem, 300) if one.problem else None,
        "read": min(1.0, one.seen / one.size) if plain and one.size else None,
        "read to byte": one.seen,
        "checkpoint": one.offset,
        "size": size(one.size) if one.size is not None else None,
        "packed": one.compressed,
        "rewritten": one.generation or None,
        "last night": one.last_night_id,
        "first night": one.first_night_id,
    }
