"""The coverage page in a real Chromium: bright and dark, wide and as narrow as a telephone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from crashpath.dashboard import cli
from crashpath.dashboard.exits import Exit
from crashpath.runtime.testing import tiny_folder

DARK = "/1:Loop/body/2:If/then_branch/3:If/else_branch/0:Sub"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model with one branch left out, whose name is a piece of markup."""
    folder = tmp_path_factory.mktemp("page")
    model = tiny_folder(folder / "model", kind="branches")
    told = model.path / "model.toml"
    text = told.read_text(encoding="utf-8")
    told.write_text(text.replace('name = "', 'name = "<img src=x onerror=alert(1)>', 1), encoding="utf-8")
    target = folder / "coverage.html"
    flags = ["--trace", str(model.path), "--html", str(target), "--db", f"sqlite:///{folder}/crashpath.db"]
    assert cli.run(["coverage", *flags]) == Exit.DONE
    return target


@pytest.fixture(
    params=[("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)], ids=lambda one: f"{one[0]}{one[1]}"
)
def page(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Page]:
    """The page, opened; it may load nothing, run nothing and complain of nothing."""
    scheme, width = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened, asked, said = context.new_page(), [], []
    opened.on("request", lambda one: asked.append(one.url))
    opened.on("console", lambda one: said.append(one.text))
    opened.on("dialog", lambda one: (said.append(one.message), one.dismiss()))
    opened.goto(page_file.as_uri())
    yield opened
    assert {url.partition("#")[0] for url in asked} == {page_file.as_uri()}
    assert said == []
    context.close()


def test_fits_and_can_be_read(page: Page, contrast: str) -> None:
    """Nothing is wider than the window, each word can be told from its ground, and markup in a name stays text."""
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.evaluate(contrast) == []
    assert "<img src=x" in page.get_by_role("heading", level=1).inner_text()


def test_the_outline_leads_to_what_is_dark(page: Page) -> None:
    """The path to the node that was not hit is open as the page opens; a level can be closed."""
    missed = page.locator(".outline").first.get_by_text(DARK)
    assert missed.is_visible()
    assert "not hit" in missed.locator("..").inner_text()
    page.locator(".outline").first.locator("summary").first.click()
    assert not missed.is_visible()
