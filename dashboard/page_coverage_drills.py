"""The page Coverage: the last drills with their eight cells, route drills and mixes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from crashpath.coverage.claims import lower_bound, shown
from crashpath.coverage.drillcells import CELLS
from crashpath.dashboard.coverage_view import Beside, DrillRow
from crashpath.dashboard.page_tables import MOST_ROWS, table_part
from crashpath.dashboard.page_text import one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_tables import Column, Table
from crashpath.dashboard.review_words import clean, stamp

MARKS = {True: "✓", False: "✗", None: "–"}
_VERDICTS = {"green": "✓ green", "red": "✗ red", "null": "– not driven"}
_RED = "✗ red"


def drills_part(drills: Sequence[DrillRow]) -> None:
    """Show a row for the last drill of each fault in each phase, isolation and policy."""
    st.header("Last drills", divider="gray")
    if not drills:
        st.caption("No fault was driven through these artefacts in this release.")
        return
    counted = [one for one in drills if one.counts]
    red = sum(not one.passed for one in counted)
    bound = shown(lower_bound(len(counted), red)).replace("%", " %")
    claim = f": at least {bound} of such drills pass (95 % confidence, Clopper-Pearson)" if counted else ""
    st.caption(
        f"{many(len(counted), 'drill')} that counts, {red:,} red{claim}. "
        if len(counted) == 1
        else f"{many(len(counted), 'drill')} that count, {red:,} red{claim}. "
    )
    frame = pd.DataFrame([_row(one) for one in drills[:MOST_ROWS]])
    config = {
        "fault": st.column_config.TextColumn(pinned=True),
        **{cell.id: st.column_config.TextColumn(help=f"{cell.question}?", width="small") for cell in CELLS},
    }
    st.dataframe(
        frame, hide_index=True, width="stretch", column_config=config, key="drills",
        alt=f"{many(len(drills), 'drill')}, each with its eight cells",
    )  # fmt: skip
    st.caption("✓ holds · ✗ does not hold · – cannot apply. What each cell asks stands at its heading.")
    if len(drills) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {len(drills):,}, the red ones before the others.")


def _row(one: DrillRow) -> dict[str, str]:
    return {
        "fault": one_line(one.fault, 80),
        "class": one_line(one.failure_class, 80),
        "phase": one.phase,
        "result": "✓ green" if one.passed else _RED,
        **{cell.id: MARKS[value] for cell, value in zip(CELLS, one.cells, strict=True)},
        "isolation": one.isolation,
        "policy": one_line(one.policy, 40),
        "path": one.path,
        "requests": f"{one.requests:,}",
        "unanswered": f"{one.unanswered:,}",
        "wrong": f"{one.wrong:,}",
        "driven": stamp(one.at),
        "counts": "yes" if one.counts else "no",
        "why": clean(one.why, 300),
    }


def beside_part(beside: Sequence[Beside]) -> None:
    """Show how the last route drills and mixes ended."""
    if not beside:
        return
    columns = (
        Column("what"), Column("result"), Column("isolation"), Column("policy"), Column("driven"), Column("why"),
    )  # fmt: skip
    rows = tuple(
        (
            clean(one.what, 120), _VERDICTS.get(one.verdict, one.verdict), one.isolation, clean(one.policy, 80),
            stamp(one.at), clean(one.why, 300),
        )
        for one in beside
    )  # fmt: skip
    red = sum(one.verdict == "red" for one in beside)
    with st.expander(f"Route drills and mixes: {len(beside):,}, {red:,} red", expanded=bool(red)):
        table_part(Table("Route drills and mixes, as they ended last", columns, rows), key="beside")
