"""One crash on the page Triage, and the text of a crash wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import streamlit as st

from crashpath.dashboard.cluster_words import when_words
from crashpath.dashboard.crash_html import MOST_LINES, crash_html, cut_words, legend
from crashpath.dashboard.page_frame import Look, kept, link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.page_triage_pick import way_back
from crashpath.dashboard.rule_text import rule_words
from crashpath.dashboard.triage_html import facts_html
from crashpath.ingest.details import CrashDetail, show_crash
from crashpath.ingest.store_errors import NoSuchThing

ALL_LINES = 1000
"""Lines of a crash on its own page, at most."""
_MOST_FRAMES = 200
_MOST_FACT = 300


def draw_crash(look: Look, asked: str) -> None:
    """Show the crash that the address names."""
    link("triage", "Back to the list", icon=":material/arrow_back:", **way_back())
    number = asked.strip()
    try:
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            raise NoSuchThing(f"{one_line(asked, 60)!r} is no crash.", "A crash has a number.")
        crash = kept(look, show_crash, int(number))
    except NoSuchThing as missing:
        st.error(as_markdown(str(missing)), icon=":material/search_off:")
        return
    st.subheader(as_markdown(f"Crash {crash.id}: {crash.root_type}", 200), anchor=False)
    st.html(facts_html(list(_facts(crash))))
    if crash.cluster is not None:
        link("triage", f"To its cluster {crash.cluster}", icon=":material/arrow_forward:", cluster=crash.cluster)
    show_root(crash)
    st.markdown("**What it printed**")
    st.html(legend())
    show_text(crash, ALL_LINES)
    show_frames(crash)


def show_root(crash: CrashDetail) -> None:
    """Show the root line, and why it is the one."""
    st.markdown("**Root line**")
    st.text(one_line(f"{crash.root_type}: {crash.root_message}", 2000))
    for words in rule_words(crash.root_rule):
        st.caption(as_markdown(words[:1].upper() + words[1:], 1000))


def show_text(crash: CrashDetail, most: int = MOST_LINES) -> None:
    """Show a crash's text with its lines marked, and say what of it is not shown."""
    if crash.example is None:
        st.caption("No text is kept of this crash: only the first ones of a signature and release are.")
        return
    st.html(crash_html(crash.example.text, crash.example.roles, crash.example.root_line, most))
    if left := cut_words(crash.example.text, crash.example.root_line, most):
        st.caption(as_markdown(left))
    if crash.truncated:
        st.caption("The record was longer than a record may be: only its beginning and its end were kept.")


def show_frames(crash: CrashDetail) -> None:
    """Show the frames, innermost last as they are stored, and which are the project's own."""
    with st.expander(f"Frames ({len(crash.frames):,})", icon=":material/layers:"):
        if not crash.frames:
            st.caption("Nothing in the text names a frame.")
            return
        rows = [(one_line(f.function, 200), one_line(f.module, 200), f.in_project) for f in crash.frames[:_MOST_FRAMES]]
        frame = pd.DataFrame(rows, columns=["function", "module", "own code"])
        st.dataframe(frame, hide_index=True, width="stretch", alt="Frames of the crash")
        if len(crash.frames) > _MOST_FRAMES:
            st.caption(f"{len(crash.frames) - _MOST_FRAMES:,} more are not shown.")


def _facts(crash: CrashDetail) -> Iterator[tuple[str, str]]:
    yield "When", when_words(crash)
    for name in ("release", "platform", "model", "path", "phase"):
        yield name.capitalize(), getattr(crash, name)
    yield "Source", f"{crash.source} at byte {crash.offset:,}"
    yield "Signature", crash.signature_id
    yield "Format", crash.format
    yield "Night", str(crash.night_id)
    yield from _known(("Signal", crash.signal), ("Exit code", crash.exit_code), ("Attempt", crash.attempt_id))
    if len(crash.chain) > 1:
        yield "Exceptions", " ← ".join(crash.chain[:20])


def _known(*facts: tuple[str, object]) -> Iterable[tuple[str, str]]:
    return ((name, str(value)) for name, value in facts if value is not None)
