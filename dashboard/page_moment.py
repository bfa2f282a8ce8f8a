"""Now, as pages take it: the same for all sessions for some minutes, so that what was read once can be kept."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from crashpath.dashboard.page_frame import Look

_SECONDS = 300.0


def moment(look: Look) -> datetime:
    """Return when somebody first looked at the store as it is, or a moment not more than five minutes ago."""
    return _moment(look.settings.db, look.version)


@st.cache_data(show_spinner=False, ttl=_SECONDS, max_entries=64)
def _moment(url: str, version: str) -> datetime:
    return datetime.now(UTC)
