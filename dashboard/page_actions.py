"""The panel of the triage page that decides on a cluster: who, the forms, and what was decided, to be taken back.

Each form is one short transaction. What came of it is said at the top with a button that takes it back, also after the
page was drawn anew; what is refused is said in its form, where all that was typed stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crashpath.dashboard import page_action_forms as forms
from crashpath.dashboard.acting import Done, by, take_back, who_by_default
from crashpath.dashboard.decide_text import entry
from crashpath.dashboard.page_action_state import DONE, FRESH, MOST, Deciding, attempt, field, typed
from crashpath.dashboard.page_frame import Look, link
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.plurals import many
from crashpath.dashboard.who import LONGEST
from crashpath.ingest.decisions import Taken
from crashpath.ingest.details import ClusterDetail

WHO = "who decides"
"""Where a session keeps who decides, on whatever page it is."""
_LISTED = 10
"""Decisions that are shown at first."""
_NOTES = 3
"""Notes that are shown above the forms."""


def actions(look: Look, found: ClusterDetail, decisions: Sequence[Taken]) -> None:
    """Show the panel; nothing of it where nothing may be decided. ``decisions`` are those on the cluster."""
    if not look.read_only:
        _panel(look, found, tuple(decisions))


@st.fragment
def _panel(look: Look, found: ClusterDetail, decisions: tuple[Taken, ...]) -> None:
    said = st.container()
    st.subheader("Decide", anchor=False)
    who, why = _who(found.row.id)
    deciding = Deciding(look, found, who, why)
    with said:
        _said(deciding)
    _notes(decisions)
    if found.row.status == "active":
        names = ("What it is", "How it stands", "Merge and split", f"Decisions ({len(decisions):,})")
        parts = (forms.what_it_is, forms.how_it_stands, forms.sides, lambda one: _decisions(one, decisions))
        for tab, show in zip(st.tabs(names, key="decide-tabs"), parts, strict=True):
            with tab:
                show(deciding)
    else:
        st.caption(f"{found.row.id} is {found.row.status}: all that can be done is to take decisions back.")
        _decisions(deciding, decisions)


def _who(cluster: str) -> tuple[str, str]:
    """Ask who decides, which is kept for the session, and why, which is asked for each decision."""
    if WHO not in st.session_state:
        st.session_state[WHO] = who_by_default()
    left, right = st.columns(2)
    key = field("decide-who", st.session_state[WHO])
    who = left.text_input("Who decides", key=key, max_chars=LONGEST, help="Stands beside each decision for ever.")
    st.session_state[WHO] = who or ""
    typed(key, who or "")
    why = right.text_input(
        "Why (may be left out)", key=field(f"decide-why-{cluster}", ""), max_chars=LONGEST,
        help="Kept with the next decision that is taken here.",
    )  # fmt: skip
    return who or "", why or ""


def _said(deciding: Deciding) -> None:
    """Say what was just done on this cluster, with the way back."""
    done = st.session_state.get(DONE)
    if not isinstance(done, Done) or done.cluster != deciding.found.row.id:
        return
    if st.session_state.pop(FRESH, False):
        st.toast(as_markdown(done.said[0]), icon=":material/check:")
    with st.container(border=True, key="decided"):
        st.success(as_markdown(" ".join(done.said), MOST), icon=":material/check:")
        with st.container(horizontal=True, vertical_alignment="center"):
            if done.made is not None:
                link("triage", f"Go to {done.made}", icon=":material/arrow_forward:", cluster=done.made)
            for number in done.decisions:
                _undo_button(deciding, number, f"Undo decision {number}", f"undo-just-{number}")


def _notes(decisions: tuple[Taken, ...]) -> None:
    """Show the last notes: they are what the next one should know."""
    notes = [row for row in decisions if row.kind == "note" and row.undone_by is None]
    for row in notes[-_NOTES:]:
        st.markdown(f":material/sticky_note_2: {as_markdown(f'{row.value} ({row.who}, {row.at:%Y-%m-%d})', MOST)}")
    if len(notes) > _NOTES:
        st.caption(f"and {many(len(notes) - _NOTES, 'note')} before, among the decisions")


def _decisions(deciding: Deciding, decisions: tuple[Taken, ...]) -> None:
    """List what was decided on this cluster, the last first, each with a button that takes it back."""
    if not decisions:
        st.caption("Nobody decided anything on this cluster yet.")
        return
    shown = decisions[::-1]
    if len(shown) > _LISTED and not st.toggle(f"Show all {len(shown):,}", key=f"all-decisions-{deciding.id}"):
        shown = shown[:_LISTED]
    for row in shown:
        with st.container(horizontal=True, vertical_alignment="center", key=f"decision-{row.number}"):
            st.markdown(as_markdown(entry(row), MOST), width="stretch")
            if row.undone_by is None:
                _undo_button(deciding, row.number, "Undo", f"undo-{row.number}")


def _undo_button(deciding: Deciding, number: int, label: str, key: str) -> None:
    if st.button(label, key=key, icon=":material/undo:", help=f"All is as it was before decision {number}."):
        attempt(
            deciding,
            lambda: take_back(deciding.look.store, deciding.number, by(deciding.who, deciding.why), number),
        )
