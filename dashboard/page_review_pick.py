"""What is picked on the page Review: release, baseline and unit, which stand in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from crashpath.dashboard.fingerprint import fingerprint
from crashpath.dashboard.page_frame import Look, changed, kept, nothing_yet
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.review_view import Asked, Offer, before
from crashpath.ingest.attempts import UNITS
from crashpath.ingest.failed_daily import refresh_failures
from crashpath.ingest.queries import store_totals
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.storable import clean, fact
from crashpath.ingest.store_errors import StoreError

NONE, USUAL = "(none)", "(usual)"
"""No release and no unit is called so."""


def pick(offered: Sequence[Offer], rules: str, source: str) -> Asked:
    """Show the pickers and return what is asked for. A name in the address that nobody knows is reviewed as it is."""
    known = [one.release for one in offered]
    with st.container(horizontal=True):
        release = _picked("Release", "release", known, 0, "The ones tried last come first.")
        others = [name for name in known if name != release]
        usual = before(offered, release)
        baseline = _picked(
            "Baseline", "baseline", [*others, NONE], others.index(usual) if usual is not None else len(others),
            "The release that it is set against: unless you choose, the one that was tried before it.",
            never=release,
        )  # fmt: skip
        unit = _unit()
    return Asked(release, None if baseline == NONE else baseline, unit, rules, source)


def _picked(label: str, key: str, known: list[str], usual: int, help: str, never: str = "") -> str:
    asked, options = st.query_params.get(key), known
    if asked is not None and asked not in map(one_line, known):
        if asked == never:
            st.warning(
                f"Release and baseline are both {as_markdown(asked, 80)}: another one is taken to set it against."
            )
        elif _may_be(asked):
            options = [*known, asked]
        else:
            st.warning(f"{label} {as_markdown(asked, 80)} in the address can be no release; it is left out.")
    chosen = st.selectbox(
        label, options, index=usual, key=key, bind="query-params", help=help, format_func=one_line, width=165
    )
    return options[usual] if chosen is None else chosen


def _may_be(name: str) -> bool:
    """Whether a release can have this name as it is: the store would keep it so, and it can be read."""
    return bool(name.strip()) and name != UNKNOWN and fact(name, clean) == name == one_line(name)


def _unit() -> str | None:
    asked = st.query_params.get("unit")
    if asked not in (None, *UNITS, USUAL):
        st.warning(f"The unit {as_markdown(asked or '', 80)} in the address is none of {', '.join(UNITS)}.")
    unit = st.selectbox(
        "Unit", (USUAL, *UNITS), key="unit", bind="query-params", width=150,
        help="Whose figures come first. Usual: the policy's, else the first of which attempts are told.",
    )  # fmt: skip
    return None if unit in (None, USUAL) else unit


def counted(look: Look) -> Look:
    """Count failures that came in since somebody counted them, where that may be written; return a look at them."""
    if look.read_only:
        return look
    try:
        done = refresh_failures(look.store)
    except StoreError:  # it is busy, or cannot be written to: the review says what is not counted
        return look
    if not done.days:
        return look
    changed()
    return replace(look, version=fingerprint(look.store))


def nothing_to_review(look: Look) -> None:
    """Say which command tells of a release, in a store that knows of none."""
    if not kept(look, store_totals).crashes:
        nothing_yet()
    st.info(
        "No release is known, so there is nothing to review. Name the release of what is read with "
        "`crashpath nightly LOGS… --release R`, and tell how often it was tried with `crashpath attempts FILE`.",
        icon=":material/info:",
    )
