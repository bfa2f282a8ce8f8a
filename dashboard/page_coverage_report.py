"""The page Coverage: the headline, releases beside each other, how old the evidence is, and what operators take."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from crashpath.coverage.latency import heat
from crashpath.coverage.report import Report
from crashpath.coverage.units import Ratio
from crashpath.dashboard.coverage_pictures import WHAT, by_release, latency, milliseconds
from crashpath.dashboard.coverage_text import percent, rows
from crashpath.dashboard.coverage_view import Age, Figures
from crashpath.dashboard.page_frame import PAGES, link
from crashpath.dashboard.page_tables import picture_part, table_part
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.review_tables import Column, Table
from crashpath.dashboard.review_words import NONE, stamp
from crashpath.runtime.values import Path as Which

PATHS = {Which.MAIN.value: "main", Which.FALLBACK.value: "fallback"}
"""Paths as the address names them."""
_FRESH, _OLD, _NOTHING = "✓ counts", "✗ too old: does not count", "– none"


def headline_part(report: Report) -> None:
    """Show what is covered of each denominator of the headline, and all of them as a table."""
    ratios = (report.main(), report.fallback(), report.taken(), report.drilled())
    with st.container(horizontal=True):
        for name, ratio in zip(WHAT.values(), ratios, strict=True):
            with st.container(border=True, width=165):
                st.metric(name, percent(ratio))
                st.caption(f"{ratio.covered:,} of {ratio.total:,}")
    release = f"release {as_markdown(report.release, 80)}" if report.release else "no release named"
    st.caption(f"{as_markdown(report.model, 80)} {as_markdown(report.model_hash, 20)}, {release}")
    if report.release and "review" in PAGES:
        link(
            "review", f"Review release {one_line(report.release, 60)}", icon=PAGES["review"][1], release=report.release
        )
    with st.expander("Every denominator"):
        table_part(
            Table(
                "Covered of what is declared",
                (Column("what"), Column("covered", True), Column("of", True), Column("share", True), Column("units")),
                tuple((name, f"{r.covered:,}", f"{r.total:,}", percent(r), what) for name, r, what in rows(report)),
            )
        )


def releases_part(figures: Sequence[Figures], known: int) -> None:
    """Show both paths, routes and drills release by release, the oldest first."""
    st.header("By release", divider="gray")
    ordered = tuple(reversed(figures))
    if known > len(ordered):
        st.caption(f"The {len(ordered)} releases traced last, of {known:,}.")
    text = "Grouped bars by release, the one traced last on the right: " + "; ".join(_in_words(one) for one in ordered)
    columns = (Column("release"), *(Column(name, True) for name in WHAT.values()), Column("newest trace"))
    table = Table("Covered by release", columns, tuple(_row(one) for one in figures))
    picture_part(by_release(ordered), text, table, key="by-release")


def _in_words(one: Figures) -> str:
    return f"{one_line(one.release, 60) or 'no release'}: main {percent(one.main)}, fallback {percent(one.fallback)}"


def _row(one: Figures) -> tuple[str, ...]:
    newest = NONE if one.newest is None else stamp(one.newest)
    ratios = (one.main, one.fallback, one.routes, one.drills)
    return one_line(one.release, 120) or "(none)", *map(_counted, ratios), newest


def _counted(ratio: Ratio) -> str:
    return f"{percent(ratio)}, {ratio.covered:,} of {ratio.total:,}" if ratio.total else percent(ratio)


def ages_part(ages: Sequence[Age], max_age: float, now: datetime) -> None:
    """Show how old the evidence of each kind is, against what the policy allows."""
    st.header("Age of the evidence", divider="gray")
    st.caption(f"What is older than {max_age:g} days does not count (coverage.max_age_days of the policy).")
    old = [one for one in ages if one.there and not one.counted]
    if old:
        told = ", ".join(f"{one.kind} ({one.days(now):.1f} days)" for one in old)
        st.warning(f"Too old to count: {as_markdown(told)}.", icon=":material/history:")
    columns = (
        Column("evidence"),
        Column("state"),
        Column("age", True),
        Column("newest"),
        Column("counted", True),
        Column("known", True),
    )
    table_part(Table("Age of the evidence", columns, tuple(_aged(one, now) for one in ages)))


def _aged(one: Age, now: datetime) -> tuple[str, ...]:
    days = one.days(now)
    state = _NOTHING if not one.there else _FRESH if one.counted else _OLD
    age = NONE if days is None else f"{days:.1f} days"
    newest = NONE if one.newest is None else stamp(one.newest)
    return one.kind, state, age, newest, f"{one.counted:,}", f"{one.there:,}"


def latency_part(report: Report) -> None:
    """Show what a call of each operator takes, by batch, of one path."""
    timings = [one for path in report.covered.paths for one in path.timings]
    known = [path for path in Which if any(one.path == path and one.calls for one in timings)]
    st.header("Operator latency", divider="gray")
    if not known:
        st.caption("No traced run that counts told what operators take.")
        return
    _latency(report, tuple(path.value for path in known))


@st.fragment
def _latency(report: Report, known: tuple[str, ...]) -> None:
    names = {PATHS[path]: path for path in known}
    chosen = st.segmented_control(
        "Path", tuple(names), default=next(iter(names)), key="latency", bind="query-params", required=True
    )
    timings = [one for path in report.covered.paths for one in path.timings]
    shown = heat(timings, names.get(chosen or "", known[0]))
    text = (
        "Milliseconds a call, as the traced runs measured them without optimisation: operators in rows, those that "
        "took the most time first, batches in columns; the darker, the slower, on a log scale."
    )
    st.caption(text)
    columns = (
        Column("operator"),
        *(Column(f"batch {one}", True) for one in shown.batches),
        Column("of all time", True),
    )
    table = Table("Milliseconds a call", columns, tuple(
        (one_line(name, 120), *(NONE if cell is None else milliseconds(cell) for cell in cells), f"{total:.1%}")
        for name, cells, total in zip(shown.operators, shown.cells, shown.total, strict=True)
    ))  # fmt: skip
    picture_part(latency(shown), text, table, key="latency-map")
