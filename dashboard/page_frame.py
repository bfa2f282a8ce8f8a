"""The frame of every page: the store, what is read from it and kept, links between pages, and what goes wrong.

A page is a file that ends with ``framed(title, draw)``: Streamlit runs it anew at each click. What it shows is read by
functions of modules without Streamlit and kept by ``kept`` until the store changes; nothing else is kept on the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from crashpath.dashboard.fingerprint import fingerprint
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.settings import Settings, SettingsError, load_settings
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import StoreError, StoreMissing

HERE = Path(__file__).parent
PAGES = {
    "trends": ("Trends", ":material/show_chart:"),
    "triage": ("Triage", ":material/checklist:"),
    "map": ("Map", ":material/scatter_plot:"),
    "coverage": ("Coverage", ":material/shield:"),
    "review": ("Review", ":material/gavel:"),
    "ingest": ("Ingest health", ":material/monitor_heart:"),
}
"""Pages by the name in their address, in the order of the menu; each is in the file ``NAME_page.py``."""
_BARE = "start"
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#a82c3a"/>'
    '<path d="M2 9h3l2-5 3 8 2-3h2" fill="none" stroke="#fff" stroke-width="1.5"/></svg>'
)
"""Of the window: one that Streamlit knows by its name would be fetched from elsewhere."""
READ_FIRST = "crashpath nightly LOGS…"
_FRESH = 2.0
"""Seconds for which a store is taken as unchanged."""
_KEPT = 256
"""Most answers that are kept for all sessions together."""

_SHOWN = "page that is shown"
_ARRIVED = "came by a link of this page"
_PARAMETER = re.compile("[a-z]+")
"""Keys of pickers that stand in the address; all other keys have a dash or a blank."""
_HERE = "here"
"""Parameter of links to the page that they stand on."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Look:
    """What one run of a page looks at. ``version`` differs whenever the store may hold something else."""

    store: Store
    settings: Settings
    version: str

    @property
    def read_only(self) -> bool:
        """Whether nothing may be decided here."""
        return self.settings.read_only


def navigation(first: str = "trends") -> None:
    """Show the menu and run the page that the address names, ``first`` where it names none."""
    st.set_page_config(page_title="crashpath", page_icon=_ICON, layout="wide")
    pages = [st.Page(_file(name), title=title, icon=icon, url_path=name) for name, (title, icon) in PAGES.items()]
    title, icon = PAGES[first]  # again for the bare address, as a page that is taken there has none of its own
    pages.append(st.Page(_file(first), title=title, icon=icon, url_path=_BARE, default=True, visibility="hidden"))
    shown = st.navigation(pages)
    name = shown.url_path or first
    if st.session_state.get(_SHOWN, name) != name:
        _leave()
    st.session_state[_SHOWN] = name
    shown.run()


def _leave() -> None:
    """Forget what the pickers of the page before say: others of these names would write it into their address."""
    for key in [str(key) for key in st.session_state if _PARAMETER.fullmatch(str(key))]:
        if key not in st.query_params:
            del st.session_state[key]


def framed(title: str, draw: Callable[[Look], None]) -> None:
    """Show a page; a store that is empty, missing or broken is explained in a sentence with what to do."""
    st.session_state[_ARRIVED] = bool(st.query_params.get(_HERE))
    if arrived():
        del st.query_params[_HERE]  # which writes the address anew, in the browser too
    st.title(title)
    try:
        settings = load_settings()
        draw(Look(_store(settings.db, settings.read_only), settings, _version(settings.db, settings.read_only)))
    except StoreMissing:
        nothing_yet()
    except (StoreError, SettingsError) as error:
        _forget()
        st.error(as_markdown(str(error)), icon=":material/error:")


def arrived() -> bool:
    """Whether a link on this page led to this view of it: what its address does not name is not asked for any more."""
    return bool(st.session_state.get(_ARRIVED))


def nothing_yet() -> None:
    """Say that there is no crash to show, and which command reads some."""
    st.info(f"This store has no crashes yet. Read some logs first: `{READ_FIRST}`", icon=":material/info:")


def kept(look: Look, read: Callable[..., _T], *asked: Any) -> _T:
    """Return ``read(session, *asked)``, from memory where the store is unchanged and somebody asked the same.

    ``read`` is a function of a module that returns a frozen value, which all sessions share; ``asked`` can be hashed.
    """
    name = f"{read.__module__}.{read.__qualname__}"  # (a function itself cannot be hashed)
    value: _T = _read(name, look.settings.db, look.version, asked, read, look.store)
    return value


def link(page: str, label: str, *, icon: str | None = None, help: str | None = None, **asked: str) -> None:
    """Show a link to a page, opened at a view: ``asked`` are the parameters of its address. ``label`` is plain text.

    A link to the page that it stands on would leave the address as it was: a parameter makes the page write it.
    """
    if st.session_state.get(_SHOWN) == page:
        asked[_HERE] = "1"
    st.page_link(_file(page), label=as_markdown(label), icon=icon, help=help, query_params=asked)


def go(page: str, **asked: str) -> None:
    """Leave for a page, opened at a view."""
    st.switch_page(_file(page), query_params=asked)


def changed() -> None:
    """Tell that this session wrote to the store: the next look reads it anew."""
    _version.clear()


def _file(page: str) -> str:
    return str(HERE / f"{page}_page.py")


def _store(url: str, read_only: bool) -> Store:
    """Return the open store, which all sessions share; a file that is another one since is opened anew."""
    return _opened(url, read_only, _identity(url))


@st.cache_resource(show_spinner=False, max_entries=4)
def _opened(url: str, read_only: bool, identity: tuple[int, int] | None) -> Store:
    return open_store(url, create=False, read_only=read_only)


def _identity(url: str) -> tuple[int, int] | None:
    """Say which file a store is in; ``None`` for one that is not there, or on a server."""
    try:
        found = Path(url.partition("sqlite:///")[2]).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@st.cache_data(show_spinner=False, ttl=_FRESH, max_entries=8)
def _version(url: str, read_only: bool) -> str:
    return fingerprint(_store(url, read_only))


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def _read(
    name: str, url: str, version: str, asked: tuple[Any, ...], _read_it: Callable[..., Any], _store: Store
) -> Any:
    with _store.read() as session:
        return _read_it(session, *asked)


def _forget() -> None:
    """Open the store anew the next time: it may be mended by then."""
    _opened.clear()
    _version.clear()
