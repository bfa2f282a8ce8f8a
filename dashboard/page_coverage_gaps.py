"""The page Coverage: what is not covered with the command that would, placement, problems, and what stands apart."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crashpath.coverage.report import Gap, Report
from crashpath.coverage.units import Kind
from crashpath.dashboard.coverage_text import (
    GapGroup,
    apart_words,
    evidence_words,
    gap_groups,
    gap_words,
    placed_words,
    shipped_words,
)
from crashpath.dashboard.page_tables import table_part
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_tables import Column, Table
from crashpath.dashboard.review_words import clean

_NAMED = 3
"""Gaps of a group that stand open; the others are folded."""
_MOST_LINES = 40


def gaps_part(report: Report) -> None:
    """Show what is not covered, by kind, each kind with the command that would cover it."""
    st.header("Not covered", divider="gray")
    groups = gap_groups(report)
    if not groups:
        st.success("Everything that is declared is covered.", icon=":material/check_circle:")
        return
    st.caption(
        f"{many(len(report.gaps), 'unit')}, each kind with the command that would cover it. DIR is the model folder."
    )
    for number, group in enumerate(groups):
        _group(number, group)


def _group(number: int, group: GapGroup) -> None:
    with st.container(border=True):
        st.markdown(f"**{as_markdown(group.title)}: {len(group.gaps):,}**")
        st.code(clean(group.command, 2000), language=None, wrap_lines=True)
        if group.with_what:
            st.caption(as_markdown(group.with_what))
        if len(group.gaps) <= _NAMED:
            st.markdown("\n".join(f"- {as_markdown(_named(gap))}" for gap in group.gaps))
            return
        first = as_markdown(", ".join(clean(gap.unit, 60) for gap in group.gaps[:_NAMED]))
        with st.expander(f"{first} and {len(group.gaps) - _NAMED:,} more"):
            table_part(_table(group), key=f"gaps-{number}")


def _named(gap: Gap) -> str:
    words = gap_words(gap)
    path = f"{gap.path}: " if gap.kind == Kind.EXPERT else ""
    return clean(f"{path}{gap.unit}: {words}" if words else f"{path}{gap.unit}")


def _table(group: GapGroup) -> Table:
    """Return the gaps; with their own commands where these are not all the same."""
    own = len({gap.command for gap in group.gaps}) > 1
    columns = (Column("unit"), Column("what"), *((Column("command"),) if own else ()))
    rows = tuple(
        (clean(gap.unit, 200), clean(gap_words(gap), 200), *((clean(gap.command, 2000),) if own else ()))
        for gap in group.gaps
    )
    return Table(group.title, columns, rows)


def more_part(report: Report) -> None:
    """Show where nodes ran, what went wrong, what is in no denominator, and which runs count."""
    st.header("Placement and problems", divider="gray")
    problems = report.problems()
    for told in problems[:_MOST_LINES]:
        st.warning(as_markdown(clean(told, 600), 1200), icon=":material/warning:")
    if len(problems) > _MOST_LINES:
        st.caption(f"… and {len(problems) - _MOST_LINES:,} more problems.")
    _lines([*placed_words(report), *shipped_words(report)] or ["No run told where nodes are."])
    apart = list(apart_words(report))
    if apart:
        with st.expander("Apart: in no denominator, each with its reason"):
            _lines(apart)
    with st.expander("Which runs count, and which do not"):
        _lines(list(evidence_words(report)))


def _lines(sentences: Sequence[str]) -> None:
    shown = [f"- {as_markdown(clean(one, 600), 1200)}" for one in sentences[:_MOST_LINES]]
    if len(sentences) > _MOST_LINES:
        shown.append(f"- … and {len(sentences) - _MOST_LINES:,} more")
    st.markdown("\n".join(shown))
