"""The picture of a cluster's page: its crashes over days, by release. Values in, a figure and its table out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

import pandas as pd
import plotly.graph_objects as go

from crashpath.dashboard.page_text import as_label
from crashpath.dashboard.pictures import bars_by_day
from crashpath.ingest.trends import DayCount

MOST_RELEASES = 6
"""Releases that are told apart; the others are one."""
OTHERS = "other releases"
_MOST_DAYS = 120
"""Days that are shown one by one; more are summed by week."""


def trend_frame(by_day: Sequence[DayCount]) -> pd.DataFrame:
    """Return day, release and crashes: of many releases the largest, of many days the Mondays of their weeks."""
    sums = Counter[str]()
    for one in by_day:
        sums[one.key] += one.crashes
    largest = {name for name, _ in sums.most_common(MOST_RELEASES)}
    weeks = is_weekly(by_day)
    cells = Counter[tuple[date, str]]()
    for one in by_day:
        day = one.day - timedelta(one.day.weekday()) if weeks else one.day
        cells[day, one.key if one.key in largest else OTHERS] += one.crashes
    rows = [(day, name, crashes) for (day, name), crashes in sorted(cells.items())]
    return pd.DataFrame(rows, columns=["day", "release", "crashes"])


def is_weekly(by_day: Sequence[DayCount]) -> bool:
    """Whether there are so many days that they are summed by week."""
    return bool(by_day) and (by_day[-1].day - by_day[0].day).days > _MOST_DAYS


def trend_picture(frame: pd.DataFrame) -> go.Figure:
    """Return stacked bars of a cluster's crashes."""
    shown = frame.assign(release=frame["release"].map(as_label))
    figure = bars_by_day(shown, "release")
    figure.update_layout(height=260, dragmode=False)
    return figure


def trend_words(frame: pd.DataFrame) -> str:
    """Say what is seen in the picture, for who does not see it."""
    totals = frame.groupby("day")["crashes"].sum()
    return (
        f"Crashes from {totals.index.min()} to {totals.index.max()} by release: {totals.sum():,} in all, at most "
        f"{totals.max():,} on {totals.idxmax()}."
    )
