"""How long pages and filters take, and what the server works for them: measured a few times, each in its own session.

*Fresh*: a server that nobody asked anything before, and a browser that was nowhere before. *Cold*: both were here
before, and the store has changed since, so that nothing which was kept counts any more. *Warm*: unchanged. A filter is
cold where nobody asked for it since the store changed; its page was there before.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pages_drive import Filter, Look, Took, ask, newcomer, tab, turn_to, visit, visitor
from pages_looks import FILTERS, LOOKS, PAGES, TRENDS, TRIAGE
from playwright.sync_api import Browser, BrowserContext, Page

from crashpath.dashboard.page_frame import PAGES as MENU
from crashpath.dashboard.served import Served, served
from crashpath.ingest import marking
from crashpath.ingest.decisions import By
from crashpath.ingest.store import open_store

NOTICED = 2.2
"""Seconds after which the server looks whether the store changed."""


@dataclass(frozen=True, slots=True)
class Take:
    """One take of a page or a filter: seconds in the browser, and seconds that the server's processors worked."""

    first: float
    whole: float
    server: float


@dataclass(frozen=True, slots=True)
class Takes:
    """Takes of one thing in one state."""

    page: str
    thing: str
    state: str
    takes: tuple[Take, ...]

    @property
    def first(self) -> float:
        """Median seconds until the first picture (of a filter: until the page is there again)."""
        return statistics.median(one.first for one in self.takes)

    @property
    def whole(self) -> float:
        """Median seconds until the whole page."""
        return statistics.median(one.whole for one in self.takes)

    @property
    def server(self) -> float:
        """Median seconds of the server's processors."""
        return statistics.median(one.server for one in self.takes)


@dataclass(slots=True)
class Watched:
    """A dashboard with its store, and the process of its server."""

    url: str
    db: str
    process: psutil.Process
    notes: int = 0

    def touch(self) -> None:
        """Change the store, as somebody does who writes a note, and wait until the server will notice it."""
        self.notes += 1
        with open_store(self.db, create=False) as store, store.write() as session:
            marking.note(session, 1, f"seen {self.notes} at {time.monotonic_ns()}", By("bench", datetime.now(UTC)))
        time.sleep(NOTICED)

    def take(self, act: Callable[[], Took]) -> Take:
        """Do it and measure."""
        before = sum(self.process.cpu_times()[:2])
        took = act()
        return Take(took.first, took.whole, sum(self.process.cpu_times()[:2]) - before)


@contextmanager
def watched(db: str, folder: Path) -> Iterator[Watched]:
    """Serve a store."""
    with served(db, folder / "server.log") as server:
        yield Watched(server.url, db, server_of(server))


def server_of(server: Served) -> psutil.Process:
    """Return Streamlit's server, the only child of the command."""
    return psutil.Process(server.pid).children()[0]


def fresh(browser: Browser, db: str, folder: Path, takes: int) -> list[Takes]:
    """Measure each page as the first visitor of a server sees it."""
    found = []
    for look in LOOKS:
        done = []
        for _ in range(takes):
            with watched(db, folder) as server, newcomer(browser) as page:
                done.append(server.take(lambda: visit(page, server.url, look)))  # noqa: B023  called here
        found.append(Takes(look.name, "address", "fresh", tuple(done)))
    return found


def opened(browser: Browser, server: Watched, takes: int, *, bare: bool = False) -> list[Takes]:
    """Measure each page by its address. ``bare``: of a store without crashes."""
    states = ("empty",) if bare else ("cold", "warm")
    found: dict[tuple[Look, str], list[Take]] = {(look, state): [] for look in LOOKS for state in states}
    with visitor(browser) as context:
        _been_there(context, server, bare=bare)
        for _ in range(takes):
            for look, state in found:
                if state == "cold":
                    server.touch()
                with tab(context) as page:
                    found[look, state].append(server.take(lambda: visit(page, server.url, look, bare=bare)))  # noqa: B023
    return [Takes(look.name, "address", state, tuple(done)) for (look, state), done in found.items()]


def from_menu(browser: Browser, server: Watched, takes: int) -> list[Takes]:
    """Measure each page by a press in the menu, in a window that shows another one and has shown pictures."""
    found: dict[tuple[Look, str], list[Take]] = {(look, state): [] for look in PAGES for state in ("cold", "warm")}
    with visitor(browser) as context:
        _been_there(context, server)
        for _ in range(takes):
            for look, state in found:
                with tab(context) as page:
                    visit(page, server.url, TRENDS)
                    if look is not TRIAGE:
                        turn_to(page, "Triage", TRIAGE)
                    if state == "cold":
                        server.touch()
                    title = MENU[look.address.partition("?")[0]][0]
                    found[look, state].append(server.take(lambda: turn_to(page, title, look)))  # noqa: B023
    return [Takes(look.name, "menu", state, tuple(done)) for (look, state), done in found.items()]


def filtered(browser: Browser, server: Watched, takes: int, wanted: Sequence[Filter] = FILTERS) -> list[Takes]:
    """Measure each filter, first as nobody asked for it before, then again in another session."""
    found: dict[tuple[int, str], list[Take]] = {
        (place, state): [] for place in range(len(wanted)) for state in ("cold", "warm")
    }
    with visitor(browser) as context:
        _been_there(context, server)
        for _ in range(takes):
            server.touch()
            for place, state in found:
                with tab(context) as page:
                    found[place, state].append(_asked(server, page, wanted[place]))
    return [
        Takes(wanted[place].look.name, wanted[place].name, state, tuple(done)) for (place, state), done in found.items()
    ]


def bare(browser: Browser, url: str, process: psutil.Process, wanted: Filter, takes: int) -> list[Takes]:
    """Measure a page that reads nothing: by its address with a new browser and with one that was here, and a filter."""
    server = Watched(url, "", process)
    new, again, asked = [], [], []
    visit_it = wanted.look
    for _ in range(takes):
        with newcomer(browser) as page:
            new.append(server.take(lambda: visit(page, url, visit_it)))
    with visitor(browser) as context:
        for _ in range(takes + 1):
            with tab(context) as page:
                again.append(server.take(lambda: visit(page, url, visit_it)))
                asked.append(server.take(lambda: _once(ask(page, wanted))))
    return [
        Takes("bare", "address", "fresh", tuple(new)),
        Takes("bare", "address", "warm", tuple(again[1:])),
        Takes("bare", wanted.name, "warm", tuple(asked[1:])),
    ]


def _been_there(context: BrowserContext, server: Watched, *, bare: bool = False) -> None:
    """Show every page once: the server has its code, the browser what pages are drawn with."""
    for look in LOOKS:
        with tab(context) as page:
            visit(page, server.url, look, bare=bare)


def _asked(server: Watched, page: Page, wanted: Filter) -> Take:
    visit(page, server.url, wanted.look)
    return server.take(lambda: _once(ask(page, wanted)))


def _once(seconds: float) -> Took:
    return Took(seconds, seconds)
