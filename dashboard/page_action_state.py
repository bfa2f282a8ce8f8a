"""What the panel of decisions keeps between runs of the page, and how each of its decisions is taken and said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from crashpath.dashboard.acting import Done
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.page_frame import Look, changed, go
from crashpath.dashboard.page_text import as_markdown
from crashpath.ingest.details import ClusterDetail
from crashpath.ingest.store_errors import StoreError

DONE = "what was decided"
"""Where a session keeps what it decided last."""
FRESH = "what was decided is new"
MOST = 1500
"""Characters of a message: a note is long."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """A cluster that somebody decides on: who it is, and why."""

    look: Look
    found: ClusterDetail
    who: str
    why: str

    @property
    def id(self) -> str:
        """The id that people see."""
        return self.found.row.id

    @property
    def number(self) -> int:
        """The number of the cluster."""
        return self.found.row.number

    def key(self, name: str) -> str:
        """Return the key of a field, which is another one for each cluster."""
        return f"{name}-{self.id}"


def field(key: str, stored: Any) -> str:
    """Return the key of a widget that shows ``stored`` until somebody types, and anew when that is another one."""
    if key not in st.session_state or _shadow(key) not in st.session_state or st.session_state[_shadow(key)] != stored:
        st.session_state[key] = st.session_state[_shadow(key)] = stored
    return key


def typed(key: str, text: str) -> None:
    """Keep what was typed as what is stored, so that a field comes back with it from another page."""
    st.session_state[_shadow(key)] = text


def attempt(deciding: Deciding, act: Callable[[], Done], used: Sequence[str] = ()) -> None:
    """Do it and draw the page anew with what was done, and with the fields ``used`` as they are stored.

    What is refused is said where this is called, and so is what was so already; then nothing that was typed changes.
    """
    try:
        done = act()
    except (UsageError, StoreError) as error:
        st.error(as_markdown(str(error), MOST), icon=":material/error:")
        return
    if not done.decisions:
        st.info(as_markdown(" ".join(done.said), MOST), icon=":material/info:")
        return
    changed()
    st.session_state[DONE], st.session_state[FRESH] = done, True
    for key in (*used, deciding.key("decide-why")):
        st.session_state.pop(_shadow(key), None)
    if done.cluster != deciding.id:  # what was shown went into another cluster: on with that one, as it was looked at
        go("triage", **{**st.query_params.to_dict(), "cluster": done.cluster})
    st.rerun()


def _shadow(key: str) -> str:
    return f"{key} as stored"
