"""What the dashboard's server holds in memory, with nobody there and with some people who looked at every page."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
from pages_drive import tab, visit, visitor
from pages_looks import PAGES
from pages_takes import watched
from playwright.sync_api import Browser

SESSIONS = (1, 5)


@dataclass(frozen=True, slots=True)
class Held:
    """Memory of the server in MB (10^6 bytes): its own (USS), and all that is mapped (RSS)."""

    when: str
    own_mb: float
    resident_mb: float


def held(when: str, process: psutil.Process) -> Held:
    """Measure it now."""
    found = process.memory_full_info()
    return Held(when, found.uss / 1e6, found.rss / 1e6)


def sessions(browser: Browser, db: str, folder: Path) -> list[Held]:
    """Measure a server before anybody came, and while people are there who have each been on the six pages."""
    found = []
    with watched(db, folder) as server:
        found.append(held("0 sessions", server.process))
        with ExitStack() as people:
            for number in range(1, max(SESSIONS) + 1):
                context = people.enter_context(visitor(browser))
                page = people.enter_context(tab(context))
                for look in PAGES:
                    visit(page, server.url, look)
                if number in SESSIONS:
                    found.append(held(f"{number} session{'s' if number > 1 else ''}", server.process))
        found.append(held("all gone", server.process))
    return found
