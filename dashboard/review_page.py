"""The page Review: may this release go out? The verdict, why, and every figure behind it."""

from __future__ import annotations

import streamlit as st

from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.page_frame import Look, framed, kept
from crashpath.dashboard.page_moment import moment
from crashpath.dashboard.page_review_evidence import evidence_part
from crashpath.dashboard.page_review_pick import counted, nothing_to_review, pick
from crashpath.dashboard.page_review_verdict import reasons_part, verdict_part
from crashpath.dashboard.page_review_word import act_part, words_part
from crashpath.dashboard.page_tables import table_part
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.policy import policy_in_force
from crashpath.dashboard.review_view import all_releases, offers, reviewed


def draw(look: Look) -> None:
    """Show the page."""
    offered = kept(look, offers)
    if not offered:
        nothing_to_review(look)
        return
    try:
        rules, source = policy_in_force(None, look.settings.policy)
    except UsageError as error:
        st.error(as_markdown(str(error), 1000), icon=":material/error:")
        return
    asked = pick(offered, rules.model_dump_json(), source)
    with st.spinner("Reviewing …"):
        now = counted(look)
        shown = kept(now, reviewed, asked, moment(now))
    verdict_part(shown, asked)
    act_part(now, shown.review, rules)
    reasons_part(shown.review)
    evidence_part(shown.review)
    words_part(now, shown.review)
    st.header("All releases", divider="gray")
    st.caption("Rates and verdicts are those of the newest look that was recorded; a release may have changed since.")
    table_part(kept(now, all_releases))


framed("Review", draw)
