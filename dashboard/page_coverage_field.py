"""The page Coverage: failure class × phase by the last drills, and what stands against the failures of the field."""

from __future__ import annotations

import streamlit as st

from crashpath.coverage.field import FieldRow, Standing, shares
from crashpath.dashboard.coverage_grid import SIGNS, Grid, State, grid
from crashpath.dashboard.coverage_pictures import squares, standings
from crashpath.dashboard.coverage_view import View, crashes_by_cell
from crashpath.dashboard.drill_text import percent, standing_words
from crashpath.dashboard.page_frame import PAGES, link
from crashpath.dashboard.page_tables import picture_part
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_tables import Column, Table
from crashpath.dashboard.review_words import NONE, clean

MEANING = {
    Standing.CONTAINED: "drills of class and phase passed, and none of them is red",
    Standing.CHECKED: "a check of `crashpath diagnose` looks for the cause before anything is served: "
    "it could have been prevented",
    Standing.UNPROVEN: "no check and no passing drill",
}
_LABELS = {one: str(one) for one in Standing} | {Standing.CHECKED: "preventable"}
_MORE = {Standing.CHECKED: f"; {Standing.CHECKED}"}
_SIGNS = {Standing.CONTAINED: "check_circle", Standing.CHECKED: "fact_check", Standing.UNPROVEN: "error"}


def squares_part(shown: View) -> None:
    """Show the heat map; the number in a square is its weight, the crashes of the field."""
    st.header("Drills: failure class × phase", divider="gray")
    found = grid(shown.report.drills, crashes_by_cell(shown.field))
    legend = " · ".join(f"{SIGNS[state]} {state}" for state in reversed(State))
    st.caption(f"{legend}. The number is the weight of the square: its crashes in the field.")
    counts = {state: sum(one.state is state for one in found.all) for state in State}
    told = ", ".join(f"{counts[state]} {state}" for state in State if counts[state])
    picture_part(squares(found), f"A square for each class and phase: {told}.", _squares_table(found), key="squares")


def _squares_table(found: Grid) -> Table:
    columns = (
        Column("class"), Column("phase"), Column("drills"), Column("passed", True), Column("red", True),
        Column("faults", True), Column("crashes", True), Column("last"), Column("why not"),
    )  # fmt: skip
    rows = tuple(
        (
            clean(one.failure_class, 80), one.phase, f"{SIGNS[one.state]} {one.state}", f"{one.passed}", f"{one.red}",
            f"{one.faults}", f"{one.crashes:,}", NONE if one.newest is None else f"{one.newest:%Y-%m-%d}",
            clean(one.reason),
        )
        for one in found.all
    )  # fmt: skip
    return Table("Drills by class and phase", columns, rows)


def field_part(shown: View) -> None:
    """Show which share of the field's crashes is contained, could have been prevented, or has no proof."""
    st.header("The field against the proof", divider="gray")
    rows = shown.field
    release = shown.report.release
    whose = f"of release {as_markdown(release, 80)}" if release else "of all releases"
    if not rows:
        st.caption(f"The store has no crash {whose}.")
        return
    found = shares(rows)
    with st.container(horizontal=True):
        for standing in Standing:
            crashes = sum(part.crashes for row in rows for part in row.parts if part.standing is standing)
            with st.container(border=True, width=165):
                st.metric(
                    _LABELS[standing],
                    percent(found[standing]),
                    help=MEANING[standing],
                    icon=f":material/{_SIGNS[standing]}:",
                )
                st.caption(f"{many(crashes, 'crash')}{_MORE.get(standing, '')}")
    st.caption(f"Shares of the crashes {whose}; drills of this release that are not too old.")
    _uncovered(rows, release)
    text = "A bar for each class of the field, the most crashes first: how many stand under what. " + "; ".join(
        f"{clean(row.failure_class, 80)}: {row.standing}, {many(row.crashes, 'crash')}" for row in rows
    )
    picture_part(standings(rows), text, _field_table(rows), key="standings")


def _uncovered(rows: tuple[FieldRow, ...], release: str) -> None:
    """Name the classes that no drill shows contained: what is most worth a drill."""
    names = [row.failure_class for row in rows if row.standing is not Standing.CONTAINED]
    if not names:
        st.success("Drills show every class of the field contained.", icon=":material/check_circle:")
        return
    told = as_markdown(", ".join(clean(one, 80) for one in names), 1000)
    st.markdown(f"**In the field, and no drill that counts shows them contained:** {told}")
    if "triage" in PAGES:
        asked = {"class": names[0]} | ({"release": release} if release else {})
        link("triage", f"Crashes of {clean(names[0], 80)}", icon=PAGES["triage"][1], **asked)


def _field_table(rows: tuple[FieldRow, ...]) -> Table:
    columns = (Column("class"), Column("phase"), Column("crashes", True), Column("share", True), Column("standing"))
    return Table("What stands against the field's classes", columns, tuple(
        (
            clean(row.failure_class, 80), clean(part.phase, 40), f"{part.crashes:,}", percent(part.share),
            standing_words(part, row.checks),
        )
        for row in rows for part in row.parts
    ))  # fmt: skip
