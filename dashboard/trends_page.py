"""The page Trends: how often deployments, loads or requests fail, by day, and with what."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from crashpath.dashboard.page_frame import Look, framed, kept, nothing_yet
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.page_trends_classes import classes_part
from crashpath.dashboard.page_trends_figures import figures_part, rates_for
from crashpath.dashboard.page_trends_lines import lines_part
from crashpath.dashboard.page_trends_marks import find_marks
from crashpath.dashboard.page_trends_pick import pick_page, say_unknown
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.trends_model import By
from crashpath.dashboard.trends_view import read_known, read_stale, read_told
from crashpath.dashboard.trends_words import later_words, stale_words


def draw(look: Look) -> None:
    """Show the page."""
    today = datetime.now(UTC).date()
    known, told = kept(look, read_known, today), kept(look, read_told, today)
    later = later_words(known.later, told.ahead, today)
    if known.last is None and told.last is None:
        if later:
            st.info(as_markdown(later), icon=":material/info:")
        else:
            nothing_yet()
        return
    picked = pick_page(known, told, today)
    say_unknown()
    rates = rates_for(look, told, picked, By.NOTHING, Measure.PRIMARY)
    figures_part(look, told, picked, rates)
    lines_part(look, known, told, picked)
    classes_part(look, rates, picked)
    window = picked.window
    stale = stale_words(kept(look, read_stale, window.since, window.until))
    for sentence in filter(None, (stale, later)):
        st.caption(as_markdown(sentence))
    find_marks(look, known)


framed("Trends", draw)
