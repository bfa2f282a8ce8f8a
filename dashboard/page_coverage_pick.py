"""What is picked on the page Coverage: model and release, which stand in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from crashpath.dashboard.coverage_view import Offer
from crashpath.dashboard.page_frame import Look, kept, nothing_yet
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.ingest.trends import days

UNNAMED = "(none)"
"""Evidence that names no release."""
_MOST_WIDTH = 260


@dataclass(frozen=True, slots=True)
class Picked:
    """One model in one release, and all releases of it, the ones traced last first."""

    model: str
    release: str
    releases: tuple[str, ...]


def pick(offered: Sequence[Offer]) -> Picked:
    """Show the pickers; a name in the address of which there is no evidence is said, and left out."""
    with st.container(horizontal=True):
        model = _picked("Model", "model", tuple(dict.fromkeys(one.model for one in offered)))
        releases = tuple(one.release for one in offered if one.model == model)
        shown = _picked("Release", "release", tuple(name or UNNAMED for name in releases))
    return Picked(model, "" if shown == UNNAMED and "" in releases else shown, releases)


def _picked(label: str, key: str, known: tuple[str, ...]) -> str:
    asked = st.query_params.get(key)
    if asked is not None and asked not in map(one_line, known):
        st.warning(
            f"The store has no coverage and no drill of the {label.lower()} {as_markdown(asked, 80)} in the address; "
            f"{as_markdown(known[0], 80)} is shown.",
            icon=":material/link_off:",
        )
    chosen = st.selectbox(
        label, known, key=key, bind="query-params", format_func=one_line, width=_MOST_WIDTH,
        help="The ones traced last come first.",
    )  # fmt: skip
    return known[0] if chosen is None else chosen


def no_evidence(look: Look) -> None:
    """Say which commands make evidence, in a store that has none."""
    if kept(look, days) is None:
        nothing_yet()
    st.info(
        "Nothing was traced and nothing was drilled yet, so nothing is proven of the two paths. "
        "DIR is a model folder: an ONNX file, its TorchScript twin, and a golden request.",
        icon=":material/info:",
    )
    st.markdown("Trace both paths of a model, and say which release it is:")
    st.code("crashpath coverage --trace DIR --release R", language=None, wrap_lines=True)
    st.markdown("Drive real faults through them:")
    st.code("crashpath drill --all --model DIR --release R", language=None, wrap_lines=True)
