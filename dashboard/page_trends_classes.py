"""The page Trends, second part: failures by headline, opening into classes, over the window and by day."""

from __future__ import annotations

from datetime import date
from functools import partial

import pandas as pd
import streamlit as st

from crashpath.dashboard.page_frame import Look, kept
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.page_trends_behind import clicked, show_behind
from crashpath.dashboard.page_trends_figures import filters_of
from crashpath.dashboard.page_trends_lines import CONFIG, PERCENT
from crashpath.dashboard.page_trends_pick import Picked, pick, say_unknown
from crashpath.dashboard.trends_classes import class_counts, class_rates, level
from crashpath.dashboard.trends_model import ALL, Classes, Rates, Window
from crashpath.dashboard.trends_pictures import class_bars, class_days
from crashpath.dashboard.trends_rates import lots_of
from crashpath.dashboard.trends_view import read_classes, read_crashes, read_crashes_behind, read_failed_behind
from crashpath.dashboard.trends_words import window_words
from crashpath.ingest.classes import HEADLINES

_BARS, _DAYS, _LAST = "class-bars", "class-days", "class-last"


def _last(chart: str) -> None:
    """Remember which of the two pictures was clicked: each keeps its point."""
    st.session_state[_LAST] = chart


@st.fragment
def classes_part(look: Look, rates: Rates | None, picked: Picked) -> None:
    """Show what the failures of the window are, and what is behind a bar."""
    st.subheader("Failures by headline")
    headline = pick("Open", "headline", (ALL, *HEADLINES))
    say_unknown()
    classes = _classes(look, rates, picked)
    opened = None if headline == ALL else headline
    shown = level(classes, opened)
    if not shown.figures:
        st.info("No failure of these days is in it.", icon=":material/info:")
        return
    counted = "crashes" if rates is None else f"failed {rates.asked.unit}s"
    of = "headline" if opened is None else f"class of {opened}"
    alt = f"{counted} by {of}, {window_words(picked.window)}"
    names = [one.name for one in shown.figures]
    left, right = st.columns(2)
    with left:
        bars = st.plotly_chart(
            class_bars(shown.figures), width="stretch", key=_BARS, on_select=partial(_last, _BARS),
            selection_mode="points", config=CONFIG, alt=alt,
        )  # fmt: skip
    with right:
        days = st.plotly_chart(
            class_days(shown.days, names, _drawn(rates, classes, picked)), width="stretch", key=_DAYS,
            on_select=partial(_last, _DAYS), selection_mode="points", config=CONFIG, alt=f"{alt}, by UTC day",
        )  # fmt: skip
    st.caption(as_markdown(_caption(classes, rates), 2000))
    point = clicked(days if st.session_state.get(_LAST) == _DAYS else bars)
    if point is not None:
        _behind(look, classes, rates, picked, *point)
    with st.expander("The same as tables"):
        st.dataframe(_table(classes, rates), hide_index=True, width="stretch", column_config=PERCENT)
        rows = [(one.day, one.failure_class, one.failures, one.tried or None) for one in classes.days]
        frame = pd.DataFrame(rows, columns=["day", "class", counted, "of"]).dropna(axis="columns", how="all")
        st.dataframe(frame, hide_index=True, width="stretch")


def _classes(look: Look, rates: Rates | None, picked: Picked) -> Classes:
    window = picked.window
    if rates is None:
        return class_counts(kept(look, read_crashes, "class", filters_of(picked)))
    lots = [one.lot for one in rates.counted]
    platforms = None
    if picked.platform is not None:
        platforms = tuple(sorted({name for lot in lots for name in lot.platforms or ()}))
    names = tuple(sorted(name for lot in lots for name in lot.releases))
    units = tuple(sorted({unit for lot in lots for unit in lot.units}))
    return class_rates(rates, kept(look, read_classes, names, units, window.since, window.until, platforms))


def _drawn(rates: Rates | None, classes: Classes, picked: Picked) -> Window:
    """Return the days of the picture: the same as of the one above."""
    return picked.window.drawn(rates.days if rates is not None else (one.day for one in classes.days))


def _caption(classes: Classes, rates: Rates | None) -> str:
    if rates is None:
        return "Counts of crashes, not rates; days are UTC days."
    unit = rates.asked.unit
    told = f"Failed {unit}s of a class, of all {unit}s that tried the main path; the lines are exact 95 % intervals."
    if classes.unlogged:
        told += f" {classes.unlogged:,} more are told by counts of attempts alone, and have no class."
    return told


def _table(classes: Classes, rates: Rates | None) -> pd.DataFrame:
    rows = [
        (
            one.headline,
            one.failure_class or "all of it",
            one.rate.failures,
            one.rate.attempts,
            *(None if value is None else 100 * value for value in (one.rate.rate, one.rate.low, one.rate.high)),
        )
        for one in classes.figures
    ]
    frame = pd.DataFrame(rows, columns=["headline", "class", "failures", "of", "rate", "lower", "upper"])
    return frame if rates is not None else frame[["headline", "class", "failures"]]


def _behind(look: Look, known: Classes, rates: Rates | None, picked: Picked, day: str, name: str) -> None:
    whole = name in HEADLINES
    inside = (one.failure_class for one in known.figures if name in (one.failure_class, one.headline))
    classes = tuple(one for one in inside if one is not None)
    since, until = picked.window.since, picked.window.until
    if day:
        try:
            since = until = date.fromisoformat(day)
        except ValueError:
            return
    if rates is None:
        rows = kept(look, read_crashes_behind, filters_of(picked, since=since, until=until), classes)
    else:
        lots = lots_of(rates.counted, [since] if day else None)
        rows = kept(look, read_failed_behind, lots, since, until, classes)
    noun = "crash" if rates is None else f"failed {rates.asked.unit}"
    address = picked.address | {"since": since.isoformat(), "until": until.isoformat()}
    address |= {"headline" if whole else "class": name}
    when = day or window_words(picked.window)
    show_behind(f"Behind {name}, {when}: clusters", rows, noun, address, "behind-class")
