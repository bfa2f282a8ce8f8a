"""What is picked on the page Trends: widgets whose values stand in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import streamlit as st

from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.trends_model import ALL, By, Told, Window
from crashpath.dashboard.trends_view import Known

DAYS = ("14", "30", "90", ALL)
USUAL = "30"
_WIDTH = 150


@dataclass(frozen=True, slots=True)
class Picked:
    """What the whole page is about; ``None`` lets all pass. ``unit`` is ``None`` where no attempts are told."""

    unit: str | None
    release: str | None
    platform: str | None
    path: str | None
    window: Window

    def narrowed(self, by: By, name: str) -> Picked:
        """Return the same of one release, platform or path, where lines are by that."""
        if by is By.RELEASE:
            return replace(self, release=name)
        if by is By.PLATFORM:
            return replace(self, platform=name)
        return replace(self, path=name) if by is By.PATH else self

    @property
    def address(self) -> dict[str, str]:
        """Parameters by which another page is opened at the same view, its days left out."""
        named = {"release": self.release, "platform": self.platform, "path": self.path}
        return {name: value for name, value in named.items() if value is not None}


def pick_page(known: Known, told: Told, today: date) -> Picked:
    """Show the pickers above the figures."""
    with st.container(horizontal=True):
        unit = pick("Unit", "unit", told.units, help="What was tried. Rates never mix units.") if told.units else None
        days = pick("Last days", "days", DAYS, usual=USUAL)
        release = pick("Release", "release", (ALL, *known.releases))
        platform = pick("Platform", "platform", (ALL, *sorted({*known.platforms, *told.platforms})))
        path = pick("Path", "path", (ALL, *known.paths), help="With a path chosen, crashes are counted, without rates.")
    return Picked(unit, _some(release), _some(platform), _some(path), window_of(known, told, days))


def pick(label: str, key: str, options: Sequence[str], *, usual: str | None = None, help: str | None = None) -> str:
    """Show one picker; a value in the address that is none of the options is said, and the usual one taken."""
    asked = st.query_params.get(key)
    if asked is not None and asked not in options:
        st.session_state.setdefault(_UNKNOWN, []).append((label, asked))
    place = 0 if usual is None else options.index(usual)
    chosen = st.selectbox(
        label, options, index=place, key=key, bind="query-params", help=help, width=_WIDTH, format_func=one_line
    )
    return chosen if chosen is not None else options[place]


def say_unknown() -> None:
    """Say which values of the address nobody knows here."""
    for label, asked in st.session_state.pop(_UNKNOWN, ()):
        st.warning(
            f"{label} {as_markdown(asked, 80)} in the address is not known here; it is left out.",
            icon=":material/link_off:",
        )


def _some(value: str) -> str | None:
    return None if value == ALL else value


_UNKNOWN = "unknown in the address"


def window_of(known: Known, told: Told, days: str) -> Window:
    """Return the last days of which anything is known. Before the first of these there is nothing to look at."""
    last = max(day for day in (known.last, told.last) if day is not None)
    first = min(day for day in (known.first, told.first) if day is not None)
    if days == ALL:
        return Window(first, last, None)
    length = timedelta(days=int(days))
    since = max(first, last - length + timedelta(days=1))
    return Window(since, last, max(first, since - length) if since > first else None)
