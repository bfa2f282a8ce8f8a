"""The page Trends, first part: headline figures, and rates or counts by day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import cast

import pandas as pd
import streamlit as st

from crashpath.dashboard.page_frame import Look, kept
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.page_trends_behind import clicked, show_behind
from crashpath.dashboard.page_trends_figures import filters_of, rates_for
from crashpath.dashboard.page_trends_marks import mark_table, marks_for, show_marked
from crashpath.dashboard.page_trends_pick import Picked, pick, say_unknown
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.trends_counts import Counts, counts_of
from crashpath.dashboard.trends_marks import Mark
from crashpath.dashboard.trends_model import By, Rates, Told
from crashpath.dashboard.trends_pictures import (
    MARK_PREFIX,
    OTHERS,
    bars_by_day,
    mark_clusters,
    mark_releases,
    rate_lines,
)
from crashpath.dashboard.trends_rates import lots_of
from crashpath.dashboard.trends_view import (
    Known,
    read_began,
    read_crashes,
    read_crashes_behind,
    read_failed_behind,
)
from crashpath.dashboard.trends_words import (
    TITLES,
    gap_words,
    impossible_words,
    left_out_words,
    names_words,
    rate_caption,
    window_words,
)
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.trends import Dimension

CONFIG = {"displayModeBar": False}
PERCENT = {
    name: st.column_config.NumberColumn(format="%.4g %%", help=help)
    for name, help in (("rate", "Of 100"), ("lower", "Exact 95 % interval"), ("upper", "Exact 95 % interval"))
}
BY = tuple(By)
MOST_MARKS = 200
"""Marks in a table."""
MEASURES = (Measure.PRIMARY, Measure.UNANSWERED, Measure.CONTAINED)


@st.fragment
def lines_part(look: Look, known: Known, told: Told, picked: Picked) -> None:
    """Show rates by day, or counts where there are no rates, and what is behind a point."""
    with st.container(horizontal=True):
        by = By(pick("A line for each", "by", BY))
        measure = Measure.PRIMARY
        if by is not By.PATH and picked.unit is not None and picked.path is None:
            measure = Measure(pick("Show", "measure", MEASURES))
    say_unknown()
    rates = rates_for(look, told, picked, by, measure)
    if rates is None:
        _counts(look, known, picked, by)
    else:
        _rates(look, known, told, rates, picked)


def _rates(look: Look, known: Known, told: Told, rates: Rates, picked: Picked) -> None:
    asked = rates.asked
    title = "Rates of both paths" if asked.by is By.PATH else TITLES[asked.measure]
    several = "" if asked.by in (By.NOTHING, By.PATH) else f" and {asked.by}"
    st.subheader(f"{title} by day{several}")
    window = picked.window.drawn(rates.days)
    figure = rate_lines(rates.lines, window)
    no_room = mark_releases(figure, _began(look, known, picked), window)
    found = marks_for(look, known, picked, window)
    marks = found or ()
    mark_clusters(figure, marks, window)
    alt = f"{title} by UTC day with 95 % intervals, in {asked.unit}s, {window_words(picked.window)}, by {asked.by}"
    event = st.plotly_chart(
        figure, width="stretch", key="rate-lines", on_select="rerun", selection_mode="points", alt=alt,
        config=CONFIG,
    )  # fmt: skip
    st.caption(
        as_markdown(" ".join(filter(None, (rate_caption(rates), gap_words(rates), impossible_words(rates)))), 2000)
    )
    _drawn_words(no_room, found)
    point = clicked(event)
    if point is not None and point[1].startswith(MARK_PREFIX):
        show_marked(marks, point[0], point[1].removeprefix(MARK_PREFIX))
    elif point is not None:
        _behind_rate(look, told, rates, picked, *point)
    if left := left_out_words(rates):
        st.caption(as_markdown(f"Failed {asked.unit}s of these days that are in no rate: {'; '.join(left)}.", 2000))
    with st.expander("The same as a table"):
        st.dataframe(_rate_table(rates), hide_index=True, width="stretch", column_config=PERCENT)
        _marks_table(marks)


def _rate_table(rates: Rates) -> pd.DataFrame:
    rows = []
    for line in rates.lines:
        for point in line.points:
            one = point.rate
            shares = () if one is None else (one.rate, one.low, one.high)
            counted = () if one is None else (one.failures, one.attempts)
            cells = (*counted, *(None if share is None else 100 * share for share in shares))
            rows.append((point.day, line.name, *(cells or (None,) * 5)))
    return pd.DataFrame(rows, columns=["day", "line", "failures", "of", "rate", "lower", "upper"])


def _began(look: Look, known: Known, picked: Picked) -> dict[str, date]:
    names = tuple(name for name in known.releases if name != UNKNOWN and picked.release in (None, name))
    return dict(kept(look, read_began, names))


def _marks_table(marks: Sequence[Mark]) -> None:
    if marks:
        st.dataframe(mark_table(marks[:MOST_MARKS]), hide_index=True, width="stretch")
        if len(marks) > MOST_MARKS:
            st.caption(f"The first {MOST_MARKS:,} of {many(len(marks), 'mark')}.")


def _drawn_words(no_room: Sequence[str], marks: Sequence[Mark] | None) -> None:
    told = ["Clusters that are new, regressed or spiking are still looked for."] if marks is None else []
    if no_room:
        told.append(f"Dotted lines are first days of releases; without room for a line: {names_words(no_room)}.")
    if told:
        st.caption(as_markdown(" ".join(told)))


def _behind_rate(look: Look, told: Told, rates: Rates, picked: Picked, day: str, name: str) -> None:
    line = next((one for one in rates.lines if one.name == name), None)
    point = None if line is None else next((one for one in line.points if one.day.isoformat() == day), None)
    if point is None:  # of a picture that is no longer shown
        return
    by = rates.asked.by
    narrow = picked if by is By.PATH else picked.narrowed(by, name)
    one = rates if narrow == picked else rates_for(look, told, narrow, By.NOTHING, rates.asked.measure)
    lots = () if one is None else lots_of(one.counted, [point.day])
    rows = kept(look, read_failed_behind, lots, point.day, point.day, None)
    of = "" if narrow == picked else f" of {name}"
    title = f"Behind {day}{of}: {rates.asked.unit}s whose main path failed, by cluster"
    show_behind(title, rows, f"failed {rates.asked.unit}", narrow.address | {"since": day, "until": day}, "behind-rate")


def _counts(look: Look, known: Known, picked: Picked, by: By) -> None:
    dimension = cast("Dimension", "class" if by is By.NOTHING else by.value)
    window = picked.window
    counts = counts_of(
        kept(look, read_crashes, dimension, filters_of(picked)), window.since, named=by is not By.NOTHING
    )
    st.subheader("Crashes by day" + ("" if by is By.NOTHING else f" and {by}"))
    if not counts.crashes:
        st.info("No crash passes these filters.", icon=":material/filter_alt_off:")
        return
    drawn = window.drawn(day for day, _ in counts.counts)
    figure = bars_by_day(counts.counts, counts.names, drawn)
    no_room = mark_releases(figure, _began(look, known, picked), drawn)
    found = marks_for(look, known, picked, drawn)
    marks = found or ()
    mark_clusters(figure, marks, drawn)
    event = st.plotly_chart(
        figure, width="stretch", key="count-bars", on_select="rerun", selection_mode="points", config=CONFIG,
        alt=f"Crashes by UTC day, {window_words(window)}, by {by}",
    )  # fmt: skip
    others = f" Under {OTHERS}: {names_words(counts.others)}." if counts.others else ""
    st.caption(as_markdown(f"Counts of crashes, not rates; days are UTC days.{others}", 2000))
    _drawn_words(no_room, found)
    point = clicked(event)
    if point is not None and point[1].startswith(MARK_PREFIX):
        show_marked(marks, point[0], point[1].removeprefix(MARK_PREFIX))
    elif point is not None:
        _behind_count(look, counts, picked, by, *point)
    rows = [(day, name, crashes) for (day, name), crashes in sorted(counts.counts.items())]
    with st.expander("The same as a table"):
        st.dataframe(pd.DataFrame(rows, columns=["day", str(by), "crashes"]), hide_index=True, width="stretch")
        _marks_table(marks)


def _behind_count(look: Look, counts: Counts, picked: Picked, by: By, day: str, name: str) -> None:
    found = next((one for one, of in counts.counts if one.isoformat() == day and of == name), None)
    if found is None:
        return
    if name == OTHERS:
        st.caption(f"Several stand under {OTHERS}: choose one of them above.")
        return
    narrow = picked.narrowed(by, name)
    rows = kept(look, read_crashes_behind, filters_of(narrow, since=found, until=found), None)
    of = "" if by is By.NOTHING else f" of {name}"
    address = narrow.address | {"since": day, "until": day}
    show_behind(f"Behind {day}{of}: crashes by cluster", rows, "crash", address, "behind-count")
