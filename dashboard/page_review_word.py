"""The page Review, what can be done: download files, record a look, put a word in the verdict's place, take it back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import streamlit as st

from crashpath.dashboard import review_words as words
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.page_frame import Look, changed
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.review_decide import record, take_back
from crashpath.dashboard.review_files import html_bytes, json_bytes, markdown_bytes
from crashpath.dashboard.review_model import Override, Review, Verdict
from crashpath.dashboard.review_word import word_of
from crashpath.ingest.store_errors import StoreError

_FILES = (
    ("HTML", "html", "text/html", html_bytes),
    ("JSON", "json", "application/json", json_bytes),
    ("Markdown", "md", "text/markdown", markdown_bytes),
)
_SAID = "said of the review"
_LONGEST = 200


def act_part(look: Look, review: Review, policy: Policy) -> None:
    """Show the files that can be downloaded, and where writing is allowed what can be recorded."""
    if said := st.session_state.pop(_SAID, ""):
        st.success(as_markdown(said, 1000), icon=":material/check:")
    with st.container(horizontal=True, key="files"):
        for label, ending, mime, in_bytes in _FILES:
            st.download_button(
                label, _file(in_bytes, review), file_name=f"review.{ending}", mime=mime, key=f"file-{ending}",
                icon=":material/download:", on_click="ignore",
                help="The very file that `crashpath review` writes.",
            )  # fmt: skip
    if look.read_only:
        st.caption("Nothing can be recorded here: this dashboard only shows.")
    else:
        _record_part(look, review, policy)


def _file(in_bytes: Callable[[Review], bytes], review: Review) -> Callable[[], bytes]:
    """Return what makes a file when somebody wants it: long reviews take a while to draw."""
    return lambda: in_bytes(review)


@st.fragment
def _record_part(look: Look, review: Review, policy: Policy) -> None:
    with st.container(horizontal=True, key="record"):
        if st.button(
            "Record this look", icon=":material/visibility:", key="record-look",
            help="Keep what is shown here in the store, as `crashpath review` does. Looking alone records nothing.",
        ):  # fmt: skip
            _do(lambda: _recorded(look, review, policy))
        with st.popover("Record an override", icon=":material/gavel:"):
            _override_form(look, review, policy)


def _override_form(look: Look, review: Review, policy: Policy) -> None:
    st.markdown(
        "Put your verdict in the place of this one. It holds as long as it covers the reasons that there are, "
        "and it is shown with your name and your reason for ever."
    )
    others = [one for one in Verdict if one is not review.verdict]
    with st.form("override", border=False):
        verdict = st.selectbox("Verdict", others, key="override-verdict", format_func=str)
        who = st.text_input("Who decides", key="override-who", max_chars=_LONGEST)
        why = st.text_area("Why", key="override-why", max_chars=_LONGEST)
        if st.form_submit_button("Override", type="primary", icon=":material/gavel:"):
            _do(lambda: _overridden(look, review, policy, verdict or others[0], who, why))


def _recorded(look: Look, review: Review, policy: Policy) -> str:
    made = record(look.store, review, policy, None, datetime.now(UTC))
    return f"Look {made.looks:,} at release {words.clean(made.release, 80)} is recorded: {made.verdict}."


def _overridden(look: Look, review: Review, policy: Policy, verdict: Verdict, who: str | None, why: str | None) -> str:
    made = record(look.store, review, policy, word_of(verdict, who, why), datetime.now(UTC))
    return f"Recorded: release {words.clean(made.release, 80)}, {words.verdict_words(made)}."


def words_part(look: Look, review: Review) -> None:
    """Show every override that ever was, and let those that stand be taken back where writing is allowed."""
    if not review.overrides:
        return
    st.header("Overrides", divider="gray")
    for one in sorted(review.overrides, key=lambda one: -one.decision):
        with st.container(border=True):
            st.markdown(as_markdown(words.override_words(one), 1200))
            if not one.undone and not look.read_only:
                _undo_part(look, one)


@st.fragment
def _undo_part(look: Look, one: Override) -> None:
    with st.popover("Take it back", icon=":material/undo:"), st.form(f"undo-{one.decision}", border=False):
        who = st.text_input("Who decides", key=f"undo-who-{one.decision}", max_chars=_LONGEST)
        why = st.text_input("Why (may be left out)", key=f"undo-why-{one.decision}", max_chars=_LONGEST)
        if st.form_submit_button("Undo", icon=":material/undo:"):
            _do(lambda: _taken_back(look, one, who or "", why or ""))


def _taken_back(look: Look, one: Override, who: str, why: str) -> str:
    from crashpath.dashboard.who import one_line, who_decides

    if not who.strip():
        raise UsageError("An undo needs the name of who decides.")
    return take_back(look.store, one.decision, who_decides(who), one_line(why, "Why") or None, datetime.now(UTC))


def _do(act: Callable[[], str]) -> None:
    """Do it and draw the page anew with what was done; what cannot be done is said beside the button."""
    try:
        st.session_state[_SAID] = act()
    except (UsageError, StoreError) as error:
        st.error(as_markdown(str(error), 1000), icon=":material/error:")
        return
    changed()
    st.rerun()
