"""The page Trends, its beginning: the headline figures of the window beside the window before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import streamlit as st

from crashpath.dashboard.page_frame import Look, kept
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.page_trends_pick import Picked
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.trends_model import Asked, By, Rates, Told
from crashpath.dashboard.trends_rates import rates_of
from crashpath.dashboard.trends_view import read_crashes, read_failed
from crashpath.dashboard.trends_words import (
    TELL,
    Figure,
    count_figures,
    figures_of,
    no_rate_words,
    window_line,
)
from crashpath.ingest.trends import Dimension, Filters

MOST_IN_ROW = 4
"""Figures beside each other; more of them would be cut."""


def filters_of(picked: Picked, **more: object) -> Filters:
    """Return what is picked as filters of crashes, days of the window included; ``more`` takes the place of some."""
    window = picked.window
    whole = Filters(window.since, window.until, picked.release, picked.platform, path=picked.path)
    return replace(whole, **more)  # type: ignore[arg-type]


def rates_for(look: Look, told: Told, picked: Picked, by: By, measure: Measure) -> Rates | None:
    """Return the rates of what is picked; ``None`` where there are only counts."""
    if picked.unit is None or picked.path is not None:
        return None
    window = picked.window
    failed = kept(look, read_failed, window.first, window.until)
    rates = rates_of(told, failed, Asked(picked.unit, by, measure, picked.release, picked.platform, window))
    return rates if rates.tally.attempts else None


def figures_part(look: Look, told: Told, picked: Picked, rates: Rates | None) -> None:
    """Show the headline figures; where there are no rates, why, and what would tell them."""
    window = picked.window
    by: Dimension = "release" if rates is not None else "class"  # without rates, classes are asked for anyway
    counts = kept(look, read_crashes, by, filters_of(picked))
    crashes, before = sum(row.crashes for row in counts), None
    if window.days == window.days_before:  # counts of fewer days are no comparison
        earlier = filters_of(picked, since=window.before, until=window.since - timedelta(days=1))
        before = sum(row.crashes for row in kept(look, read_crashes, "release", earlier))
    if rates is not None:
        _show(figures_of(rates, crashes, before))
    else:
        st.info(_no_rate(told, picked), icon=":material/info:")
        _show(count_figures(counts, crashes, before))
    st.caption(as_markdown(window_line(window)))


def _no_rate(told: Told, picked: Picked) -> str:
    reason, helps = no_rate_words(told.units, picked.unit, picked.path)
    commands = f" {' or '.join(f'`{command}`' for command in TELL)}." if helps else ""
    return f"{as_markdown(reason)}{commands}"


def _show(figures: Sequence[Figure]) -> None:
    wide = len(figures) if len(figures) <= MOST_IN_ROW else -(-len(figures) // 2)
    places = [column for _ in range(0, len(figures), wide) for column in st.columns(wide)]
    for column, one in zip(places, figures, strict=False):
        with column:
            st.metric(
                one.label,
                one.value,
                one.change or None,
                delta_color="gray" if one.worse is None else "red" if one.worse else "green",
                delta_arrow="up" if one.up else "down",
                help=f"{as_markdown(one.meaning)}." if one.meaning else None,
            )
            st.caption("  \n".join(as_markdown(line) for line in one.lines))
