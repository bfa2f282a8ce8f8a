"""The pages of the dashboard in a real Chromium: bright, dark and narrow; linked, clicked and gone back from."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from crashpath.dashboard.served import Served, served

DRIVE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("dashboard_driver.py"))))
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "narrow": {"color_scheme": "dark", "width": 390},
}
VIEWS: dict[str, tuple[str, dict[str, str], str]] = {
    "trends": ("trends", {}, "Failures by headline"),
    "triage": ("triage", {}, "clusters that broke"),
    "crashes": ("triage", {"show": "Crashes"}, "Times are UTC"),
    "cluster": ("triage", {"cluster": "C-0003"}, "Is it contained?"),
    "crash": ("triage", {"crash": "77"}, "What it printed"),
    "map": ("map", {}, "Each point is a signature"),
    "coverage": ("coverage", {}, "Main path"),
    "review": ("review", {}, "All releases"),
    "ingest": ("ingest", {}, "Seconds by stage"),
    "quarantine": ("ingest", {"show": "Quarantine"}, "A piece in quarantine"),
}
"""Page, parameters and something that is shown, by view."""
WIDE = """() => [document.documentElement, document.querySelector("[data-testid=stMain]")]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => `${one.tagName} ${one.scrollWidth}`)"""

GROUND_AND_WORDS = (("[data-testid=stApp]", "backgroundColor"), ("[data-testid=stPlotlyChart] .xtick text", "fill"))
LIGHT = """([selector, name]) => {
    const colour = getComputedStyle(document.querySelector(selector))[name];
    return colour.match(/\\d+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0) / 3;
}"""
UNUSABLE = """() => document.querySelectorAll("[data-testid=stForm]:has(:disabled)").forEach(one => one.remove())"""
"""Takes away what cannot be used as things stand, which may be faint."""


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard on a store in which each page finds what it is about."""
    folder = tmp_path_factory.mktemp("dashboard")
    url = f"sqlite:///{folder}/store.db"
    DRIVE.furnish(url, folder)
    with served(url, folder / "log") as running:
        yield running


@pytest.fixture(scope="module", params=LOOKS)
def window(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """A window of one look, for all views."""
    with DRIVE.watched(browser, **LOOKS[request.param]) as page:
        yield page


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window as most people have it."""
    with DRIVE.watched(browser) as page:
        yield page


@pytest.mark.parametrize("view", VIEWS)
def test_fits_and_can_be_read(window: Page, dashboard: Served, contrast: str, view: str) -> None:
    """Each page shows what it is about, nothing is wider than the window and each word can be told from its ground."""
    name, asked, words = VIEWS[view]
    DRIVE.visit(window, dashboard.url, name, **asked)
    expect(DRIVE.main(window).get_by_text(words).first).to_be_visible()
    assert window.evaluate(WIDE) == []
    window.evaluate(UNUSABLE)
    assert window.evaluate(contrast) == []


def test_a_picture_follows_the_theme(browser: Browser, dashboard: Served) -> None:
    """Words and ground of a picture change places from light to dark."""
    lights = {}
    for scheme in ("light", "dark"):
        with DRIVE.watched(browser, color_scheme=scheme) as page:
            DRIVE.visit(page, dashboard.url, "trends")
            lights[scheme] = [page.evaluate(LIGHT, [one, name]) for one, name in GROUND_AND_WORDS]
    (ground, words), (dark_ground, dark_words) = lights["light"], lights["dark"]
    assert ground > 240
    assert words < 140
    assert dark_ground < 40
    assert dark_words > 180


def test_each_page_is_found_at_its_address(page: Page, dashboard: Served) -> None:
    """The first page is so at the bare address and at its own, and the menu leads to the others."""
    DRIVE.visit(page, dashboard.url, "")
    DRIVE.visit(page, dashboard.url, "trends")
    expect(page.get_by_text("Page not found")).to_have_count(0)
    for name, title in reversed(DRIVE.NAMES.items()):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=title).click()
        DRIVE.settled(page, name)
        expect(page).to_have_url(re.compile(f"/{name}$"))


def test_a_view_can_be_linked(page: Page, browser: Browser, dashboard: Served) -> None:
    """What is picked stands in the address; opened anew elsewhere, the address shows the same."""
    DRIVE.visit(page, dashboard.url, "triage", days="all")
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("combobox", name="Platform").click()
    page.get_by_role("option", name="windows").click()
    expect(page).to_have_url(re.compile("platform=windows"))
    page.keyboard.press("Escape")
    search = page.get_by_role("textbox", name="Search in root lines")
    search.fill("vocabulary")
    search.press("Enter")
    told = "platform windows · “vocabulary” in the root line · all days"
    expect(DRIVE.main(page).get_by_text(told)).to_be_visible()
    DRIVE.idle(page)
    with DRIVE.watched(browser) as other:
        other.goto(page.url)
        DRIVE.settled(other, "triage")
        expect(DRIVE.main(other).get_by_text(told)).to_be_visible()
        expect(other.get_by_role("textbox", name="Search in root lines")).to_have_value("vocabulary")
        assert rows(other) == rows(page)
        assert len(rows(other)) == 1


def rows(page: Page) -> list[str]:
    """The clusters that the list shows."""
    return DRIVE.main(page).get_by_role("link").filter(has_text=re.compile(r"C-\d{4} · ")).all_inner_texts()


def test_a_point_leads_to_what_is_behind_it(page: Page, dashboard: Served) -> None:
    """Clicked, a day shows its clusters and the way to triage at that day; the way back is the browser's."""
    DRIVE.visit(page, dashboard.url, "trends", days="90")
    points = page.get_by_test_id("stPlotlyChart").first.locator(".scatterlayer .point")
    point = points.nth(points.count() // 2)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    behind = DRIVE.main(page).get_by_text(re.compile(r"Behind 2026-\d\d-\d\d"))
    expect(behind).to_be_visible()
    day = re.findall(r"2026-\d\d-\d\d", behind.inner_text())[0]
    page.get_by_role("link", name="These in triage").click()
    DRIVE.settled(page, "triage")
    expect(page).to_have_url(re.compile(f"since={day}&until={day}"))
    expect(DRIVE.main(page).get_by_text(f"{day} alone")).to_be_visible()
    assert rows(page)
    assert re.search(f"since={day}&until={day}$", page.url)  # nothing of the page before came along
    page.go_back()
    DRIVE.settled(page, "trends")
    page.go_back()  # from a page with a filter Streamlit makes an entry of its own
    DRIVE.settled(page, "trends")
    expect(page).to_have_url(re.compile("days=90"))
    expect(page.get_by_role("combobox", name="Last days")).to_have_value("90")


def test_a_lasso_leads_to_its_clusters(page: Page, dashboard: Served) -> None:
    """Drawn around points, it lists their clusters, and triage shows just these; the browser leads back."""
    DRIVE.visit(page, dashboard.url, "map")
    area = page.get_by_test_id("stPlotlyChart").locator(".nsewdrag")
    box = area.bounding_box()
    assert box is not None
    left, top, width, height = (box[name] for name in ("x", "y", "width", "height"))
    corners = [(0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98), (0.02, 0.05)]
    page.mouse.move(left + corners[0][0] * width, top + corners[0][1] * height)
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(left + x * width, top + y * height, steps=8)
    page.mouse.up()
    chosen = DRIVE.main(page).get_by_role("heading", name=re.compile(r"Selected: \d+ clusters"))
    expect(chosen).to_be_visible()
    count = int(re.findall(r"\d+", chosen.inner_text())[0])
    page.get_by_role("link", name="Open these in triage").click()
    DRIVE.settled(page, "triage")
    assert len(re.findall(r"C-\d{4}", page.url)) == count
    assert "all" not in page.url  # nothing of the map's own pickers came along
    expect(DRIVE.main(page).get_by_text(f"{count} chosen clusters")).to_be_visible()
    page.go_back()
    DRIVE.settled(page, "map")
