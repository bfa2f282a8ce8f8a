"""Drives the served dashboard in a real Chromium, for the tests that do: pages, waits, what a page may not do."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from crashpath.ingest.store import open_store

SECONDS = 60.0
"""For which a page may be drawn: the first one of a server imports what all of them need."""
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
NAMES = {
    "trends": "Trends", "triage": "Triage", "map": "Map", "coverage": "Coverage", "review": "Review",
    "ingest": "Ingest health",
}  # fmt: skip
"""Titles of the pages, by their names in an address."""
_DRAWN = """() => [...document.querySelectorAll("[data-testid=stPlotlyChart]")]
    .every(one => one.querySelector(".main-svg")) && !document.querySelector("[data-testid=stSkeleton]")"""
_HERE = Path(__file__).parent


def samples(name: str) -> dict[str, Any]:
    """Return what a module of samples defines."""
    return runpy.run_path(str(_HERE / f"{name}.py"))


def furnish(url: str, folder: Path) -> None:
    """Make a store in which each page finds what it is about: logs, events, attempts, places, runs, drills, pieces."""
    now, day = datetime.now(UTC), timedelta(days=1)
    with open_store(url) as store:
        for name in ("triage", "trends", "ingest"):
            (folder / name).mkdir()
            samples(f"{name}_samples")["fill"](store, folder / name)
        made = samples("coverage_stores")
        made["trace"](store, now - 9 * day, release="1.0", hits=5)
        made["trace"](store, now - 2 * day, release="1.1")
        made["drill"](store, now - day, release="1.1")
        made["drill"](store, now - day, False, release="1.1", phase="infer")
        made["beside"](store, now - day, red=True, release="1.1")
        samples("map_samples")["place"](store)


def address(url: str, page: str = "", **asked: str) -> str:
    """Return the address of a view."""
    return f"{url}/{page}?{urlencode(asked)}" if asked else f"{url}/{page}"


@contextmanager
def watched(browser: Browser, *, width: int = 1280, **context: Any) -> Iterator[Page]:
    """Open a window that may ask nobody but this machine, complain of nothing and be stopped by nothing."""
    opened = browser.new_context(viewport={"width": width, "height": 900}, **context)
    opened.set_default_timeout(SECONDS * 1000)
    page = opened.new_page()
    foreign: list[str] = []
    said: list[str] = []
    page.on("request", lambda one: None if _own(one.url) else foreign.append(one.url))
    page.on("websocket", lambda one: None if _own(one.url) else foreign.append(one.url))
    page.on("console", lambda one: said.extend(_complaints(one)))
    page.on("pageerror", lambda one: said.append(str(one)))
    page.on("dialog", lambda one: (said.append(f"dialog: {one.message}"), one.dismiss()))
    try:
        yield page
        assert not foreign, foreign
        assert not said, said
    finally:
        opened.close()


def _own(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


def _complaints(one: ConsoleMessage) -> list[str]:
    """Return an error; that Streamlit looks for its server below the page first is none."""
    url = str(one.location.get("url", ""))
    if one.type != "error" or re.search(r"/[a-z]+/_stcore/(health|host-config)$", url):
        return []
    return [f"{one.text} {url}"]


def visit(page: Page, url: str, name: str, **asked: str) -> None:
    """Open a view and wait until the page is all there, without an error of its own making."""
    page.goto(address(url, name, **asked))
    settled(page, name or "trends")


def settled(page: Page, name: str) -> None:
    """Wait until the page with this name was drawn to its end, pictures too, and see that nothing was raised in it."""
    expect(page.get_by_role("heading", level=1, name=NAMES[name], exact=True)).to_be_visible(timeout=SECONDS * 1000)
    idle(page)
    page.wait_for_function(_DRAWN)
    wrong = page.get_by_test_id("stException").all_inner_texts()
    assert not wrong, wrong


def idle(page: Page) -> None:
    """Wait until nothing runs on the server for this window."""
    page.locator(IDLE).wait_for(state="attached")


def main(page: Page) -> Locator:
    """Return the part of the page that is not the menu."""
    return page.get_by_test_id("stMain")


def crashpath(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    command = [sys.executable, "-m", "crashpath.dashboard.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ, timeout=120)
