"""Drive the dashboard's pages in a real Chromium, and measure in the browser when each is there.

The *first picture* is there when the browser has drawn what the page promises. The *whole page* is there when its
script no longer runs either, nothing on it is stale, and it no longer changes; the time is that of the last change.
Both are counted since the navigation began, or since the press that asked for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

MOST_MS = 120_000
_WATCH = """
(() => {
  const watch = {changed: 0, asked: 0, ran: false};
  const quiet = 250;
  const app = () => document.querySelector('[data-testid="stApp"]');
  const state = () => app()?.getAttribute("data-test-script-state");
  const start = () => new MutationObserver(changes => {
    if (!changes.some(one => !one.target.closest?.('[data-testid="stStatusWidget"], header'))) return;
    watch.changed = performance.now();
    if (state() !== "notRunning") watch.ran = true;
  }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const asked = () => { watch.asked = performance.now(); watch.ran = false; };
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, asked, true);
  watch.first = drawn => document.querySelector(drawn) ? (performance.now() - watch.asked) / 1000 : null;
  watch.there = drawn => {
    if (!app() || state() !== "notRunning" || watch.changed < watch.asked) return null;
    if (document.querySelector('[data-stale="true"], [data-testid=stSkeleton], [data-testid=stSpinner]')) return null;
    if (drawn && !document.querySelector(drawn)) return null;
    // A run that is over at once is not seen to run.
    if (performance.now() - watch.changed < (watch.ran ? 1 : 6) * quiet) return null;
    return (watch.changed - watch.asked) / 1000;
  };
  window.pageWatch = watch;
  start();
})();
"""
SENTENCE = '[data-testid="stAlert"]'
"""What a page of an empty store says."""
PICTURE = ".js-plotly-plot .main-svg .plot, .js-plotly-plot .gl-container"
_WRONG = '[data-testid="stException"], [data-testid="stAlertContentError"]'


class Took(NamedTuple):
    """Seconds until the first picture, and until the whole page."""

    first: float
    whole: float


@dataclass(frozen=True, slots=True)
class Look:
    """A page by the name that tables have, its address, and the selector of what has to be on it."""

    name: str
    address: str
    drawn: str


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a page. ``act`` does all up to the last press, which asks for it."""

    look: Look
    name: str
    act: Callable[[Page], None]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a Chromium that has already shown an empty page; ``RuntimeError`` where none is installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise RuntimeError("No Chromium is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto("about:blank")
        page.close()
        yield browser
        browser.close()


@contextmanager
def newcomer(browser: Browser) -> Iterator[Page]:
    """Open a page in a browser that was nowhere before: no file of the server is in its cache."""
    with visitor(browser) as context, tab(context) as page:
        yield page


@contextmanager
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """Be one person's browser, whose pages share a cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(_WATCH)
    yield context
    context.close()


@contextmanager
def tab(context: BrowserContext) -> Iterator[Page]:
    """Open a page of its own in such a browser: a session of the server."""
    page = context.new_page()
    yield page
    page.close()


def visit(page: Page, url: str, look: Look, *, bare: bool = False) -> Took:
    """Go to a page and return how long it takes. ``bare``: one of a store without crashes, which has a sentence."""
    page.goto(f"{url}/{look.address}", wait_until="commit")
    return _took(page, SENTENCE if bare else look.drawn)


def turn_to(page: Page, title: str, look: Look) -> Took:
    """Go to a page by the menu, from another one that is there and shows nothing alike."""
    page.locator('[data-testid="stSidebarNavLink"]', has_text=title).click()
    return _took(page, look.drawn)


def ask(page: Page, wanted: Filter) -> float:
    """Ask for a filter on its page, which is there, and return the seconds until the whole page is there again."""
    wanted.act(page)
    return _there(page, "")


def choose(key: str, option: str) -> Callable[[Page], None]:
    """Choose from the picker of this key."""

    def act(page: Page) -> None:
        box = page.locator(f".st-key-{key} input")
        box.click()
        box.fill(option)
        page.get_by_role("option", name=option, exact=True).click()

    return act


def choose_any(key: str, place: int = 0) -> Callable[[Page], None]:
    """Choose what stands at a place of the picker of this key, behind what is chosen."""

    def act(page: Page) -> None:
        page.locator(f".st-key-{key} input").click()
        page.locator('[role="option"][aria-selected="false"]').nth(place).click()

    return act


def write(key: str, text: str) -> Callable[[Page], None]:
    """Write into the field of this key."""

    def act(page: Page) -> None:
        field = page.locator(f".st-key-{key} input").first
        field.click()
        field.fill(text)
        field.press("Enter")

    return act


def press(role: str, name: str) -> Callable[[Page], None]:
    """Press a thing of this role and name."""
    return lambda page: page.locator(f'role={role}[name="{name}"]').first.click()


def folded(button: str, act: Callable[[Page], None]) -> Callable[[Page], None]:
    """Do so after what stands behind a button was opened."""

    def both(page: Page) -> None:
        page.get_by_role("button", name=button).first.click()
        act(page)

    return both


def _took(page: Page, drawn: str) -> Took:
    found = page.wait_for_function("drawn => window.pageWatch?.first(drawn)", arg=drawn, timeout=MOST_MS)
    return Took(float(found.json_value()), _there(page, drawn))


def _there(page: Page, drawn: str) -> float:
    found = page.wait_for_function("drawn => window.pageWatch?.there(drawn)", arg=drawn, timeout=MOST_MS)
    seconds = float(found.json_value())
    if page.locator(_WRONG).count():
        raise RuntimeError(f"{page.url}: {page.locator(_WRONG).first.inner_text()}")
    return seconds
