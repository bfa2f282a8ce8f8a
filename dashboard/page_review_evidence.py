"""The page Review, its middle: rates, days, cohorts, classes, what moved, every rule, proof, looks and method."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crashpath.dashboard import review_drawn as drawn
from crashpath.dashboard import review_words as words
from crashpath.dashboard.page_frame import PAGES, link
from crashpath.dashboard.page_tables import picture_part, repeated, table_part
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.review_model import Compared, Measure, Review, UnitReport
from crashpath.dashboard.review_pictures import RELEASE, bars, rates_by_day, whiskers
from crashpath.dashboard.review_tables import (
    apart_lines,
    classes_table,
    cohort_problems,
    cohorts_table,
    days_table,
    looks_table,
    movements_table,
    ordered,
    proof_lines,
    rates_table,
    shares_table,
    thresholds_table,
)

_MOST_LINES = 40
_LONG = 1200


def evidence_part(review: Review) -> None:
    """Show all that the verdict stands on, the headline unit first."""
    if review.main is not None:
        _main(review, review.main)
    for unit in review.units:
        if unit is not review.main:
            _other(unit)
    if review.movements:
        st.header("What moved", divider="gray")
        table_part(movements_table(review))
    st.header("Every rule of the policy", divider="gray")
    table_part(thresholds_table(review))
    _proof(review)
    _looks(review)
    _listed("Apart: on no denominator; it counts against a GO and for no NO-GO", apart_lines(review))
    _listed("Notes", review.notes)
    _listed("Method", words.method_lines(review))


def _main(review: Review, unit: UnitReport) -> None:
    name = words.clean(unit.unit, 40)
    st.header(f"Rates by {as_markdown(name)}", divider="gray")
    with st.container(horizontal=True):
        for measure, compared in ordered(unit):
            _figure(measure, compared, name)
    with st.expander("Release beside baseline, with differences and their 95 % intervals", expanded=True):
        table_part(repeated(rates_table(unit)))
    for measure in (Measure.UNANSWERED, Measure.PRIMARY):
        days = drawn.days(review, unit, measure)
        if days.series:
            st.subheader(days.title)
            picture_part(rates_by_day(days), days.text, days_table(unit), key=f"days-{measure}")
    cohorts = drawn.cohorts(review, unit)
    if cohorts.rows:
        st.subheader("Worst cohorts")
        picture_part(whiskers(cohorts), cohorts.text, cohorts_table(unit), key="cohorts")
        _lines(cohort_problems(unit))
    classes = drawn.classes(review, unit)
    if classes.rows:
        st.subheader(classes.title)
        picture_part(bars(classes), classes.text, classes_table(unit), key="classes")


def _figure(measure: Measure, compared: Compared, unit: str) -> None:
    difference = compared.difference
    with st.container(border=True, width=245):
        st.metric(
            str(measure),
            words.rate_words(compared.release),
            None if difference is None else f"{words.difference_words(difference)} against the baseline",
            delta_color="off",
            delta_arrow="off",
            help=f"{words.MEANING[measure]}; below it the exact 95 % interval.",
        )
        told = (
            words.interval_words(compared.release),
            f"{words.counts_words(compared.release)} {unit}s",
            words.reduction_words(compared.ratio),
        )
        st.caption(as_markdown(" · ".join(filter(None, told))))


def _other(unit: UnitReport) -> None:
    name = words.clean(unit.unit, 40)
    with st.expander(f"Rates by {as_markdown(name)}"):
        if unit.attempts_needed:
            st.markdown(f"A verdict is likely with {words.needed_words(unit.attempts_needed, unit.unit)}.")
        for table in (rates_table(unit), cohorts_table(unit), classes_table(unit), days_table(unit)):
            st.markdown(f"**{as_markdown(table.caption)}**")
            table_part(table)
        _lines(cohort_problems(unit))


def _proof(review: Review) -> None:
    st.header("Proof: coverage and drills", divider="gray")
    covered = drawn.covered(review)
    if covered.rows:
        picture_part(bars(covered, RELEASE), covered.text, shares_table(review.proof), key="covered")
    _lines(proof_lines(review.proof))
    if "coverage" in PAGES:
        link("coverage", "What of both paths was exercised", icon=PAGES["coverage"][1], release=review.release)


def _looks(review: Review) -> None:
    table = looks_table(review)
    if table.rows:
        st.header("Earlier looks", divider="gray")
        st.caption("Verdicts are valid at any look: looking often does no harm.")
        table_part(table)


def _listed(title: str, sentences: Sequence[str]) -> None:
    if sentences:
        with st.expander(as_markdown(title)):
            _lines(sentences)


def _lines(sentences: Sequence[str]) -> None:
    shown = [f"- {as_markdown(words.clean(one), _LONG)}" for one in sentences[:_MOST_LINES]]
    if len(sentences) > _MOST_LINES:
        shown.append(f"- … and {len(sentences) - _MOST_LINES:,} more: the files above have all")
    if shown:
        st.markdown("\n".join(shown))
