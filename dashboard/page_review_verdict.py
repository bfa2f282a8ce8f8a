"""The page Review, its beginning: the verdict, what a person put in its place, and the reasons."""

from __future__ import annotations

import re

import streamlit as st

from crashpath.dashboard import review_words as words
from crashpath.dashboard.page_frame import PAGES, link
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import Reason, Review, Verdict
from crashpath.dashboard.review_view import Asked, Shown

SIGNS = {Verdict.GO: "check_circle", Verdict.NO_GO: "cancel", Verdict.HOLD: "pause_circle"}
"""A sign besides the colour: icons of Material Symbols."""
COLOURS = {Verdict.GO: "green", Verdict.NO_GO: "red", Verdict.HOLD: "orange"}
OPEN, MOST_REASONS, _MOST_IDS = 5, 30, 10
"""Reasons that stand open, reasons that are shown at all, ids of one reason."""
_LONG = 1200
_CLUSTER = re.compile(r"C-\d+")


def verdict_part(shown: Shown, asked: Asked) -> None:
    """Show the verdict first and big, why in a sentence, and the word of a person where one holds."""
    review = shown.review
    verdict, _, decided = words.verdict_words(review).partition(", ")
    with st.container(border=True, key="verdict"):
        st.header(signed(Verdict(verdict)), anchor=False)
        if decided:
            st.subheader(f":{COLOURS[review.outcome]}[:material/person: {as_markdown(decided, _LONG)}]", anchor=False)
        st.markdown(f"**{as_markdown(why(review), _LONG)}**")
        if review.attempts_needed and review.outcome is Verdict.HOLD:
            st.markdown(f"A verdict is likely with {words.needed_words(review.attempts_needed, review.unit)}.")
        kept = "recorded" if shown.kept else "not recorded: whoever opens this page has not looked yet"
        st.caption(f"{as_markdown(words.subject_line(review))}  \n{as_markdown(words.look_line(review))} ({kept})")
        with st.expander("The same on the command line, where it counts as a look"):
            st.code(asked.command, language=None, wrap_lines=True)


def signed(verdict: Verdict) -> str:
    """Return a verdict with its sign and its colour."""
    return f":{COLOURS[verdict]}[:material/{SIGNS[verdict]}: {verdict}]"


def why(review: Review) -> str:
    """Return one sentence: the first reason, or that there is none."""
    if not review.reasons:
        return words.no_reason(review)
    more = len(review.reasons) - 1
    others = f" And {many(more, 'more reason')}, below." if more else ""
    return words.clean(review.reasons[0].sentence) + others


def reasons_part(review: Review) -> None:
    """Show each reason with its weight, what can be looked up, and the command that would settle it."""
    st.header("Reasons", divider="gray")
    if not review.reasons:
        st.markdown(words.no_reason(review))
    for number, reason in enumerate(review.reasons[:OPEN], 1):
        _reason(number, reason)
    if len(review.reasons) > OPEN:
        with st.expander(many(len(review.reasons) - OPEN, "more reason")):
            for number, reason in enumerate(review.reasons[OPEN:MOST_REASONS], OPEN + 1):
                _reason(number, reason)
            if len(review.reasons) > MOST_REASONS:
                st.caption(f"… and {len(review.reasons) - MOST_REASONS:,} more: the files above have all.")


def _reason(number: int, reason: Reason) -> None:
    with st.container(border=True):
        title = as_markdown(words.reason_title(reason))
        weight = words.reason_weight(reason)
        told = f"{words.clean(reason.sentence)} ({weight})" if weight else words.clean(reason.sentence)
        st.markdown(f"**{signed(reason.verdict)} · {title}**  \n{as_markdown(told, _LONG)}")
        if reason.evidence:
            _evidence(number, reason)
        if reason.command:
            st.code(words.clean(reason.command), language=None, wrap_lines=True)


def _evidence(number: int, reason: Reason) -> None:
    with st.container(horizontal=True, key=f"evidence-{number}"):
        for one in reason.evidence[:_MOST_IDS]:
            name = words.clean(one, 60)
            if _CLUSTER.fullmatch(one) and "triage" in PAGES:
                link("triage", name, icon=":material/bug_report:", cluster=one)
            else:
                st.badge(as_markdown(name), color="gray")
        if len(reason.evidence) > _MOST_IDS:
            st.caption(f"and {len(reason.evidence) - _MOST_IDS:,} more")
