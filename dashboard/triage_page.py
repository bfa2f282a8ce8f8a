"""The page Triage."""

from __future__ import annotations

import streamlit as st

from crashpath.dashboard.page_frame import Look, framed


def draw(look: Look) -> None:
    """Show the page."""
    st.write(look.version)


framed("Triage", draw)
