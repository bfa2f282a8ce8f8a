"""Fixtures that several test modules use."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables_evidence import SCHEMA
from crashpath.ingest.testing import new_database, temporary_postgres
from crashpath.ingest.upgrade import backup

_numbers = itertools.count()
_NO_SKIPS = os.environ.get("CRASHPATH_NO_SKIPS") == "1" or os.environ.get("CI") == "true"

_CONTRAST = """() => {
    const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const colour = (css, under) => {
        probe.clearRect(0, 0, 1, 1);
        for (const one of [under, css]) { if (one) { probe.fillStyle = one; probe.fillRect(0, 0, 1, 1); } }
        return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    };
    const light = rgb => rgb.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const css = rgb => `rgb(${rgb.join(",")})`;
    const under = node => {
        const above = node.parentElement ? under(node.parentElement) : (dark ? "rgb(18,18,18)" : "rgb(255,255,255)");
        return css(colour(getComputedStyle(node).backgroundColor, above));
    };
    const opacity = node => node ? getComputedStyle(node).opacity * opacity(node.parentElement) : 1;
    const poor = [];
    for (const node of document.querySelectorAll("body *")) {
        const words = [...node.childNodes].filter(one => one.nodeType === 3).map(one => one.data.trim()).join("");
        if (!words) continue;
        const back = colour(under(node)), front = colour(getComputedStyle(node).color, css(back)), seen = opacity(node);
        const mixed = front.map((v, i) => seen * v + (1 - seen) * back[i]);
        const [high, low] = [light(mixed), light(back)].sort((a, b) => b - a);
        const ratio = (high + .05) / (low + .05);
        if (ratio < 4.5) poor.push(`${ratio.toFixed(1)} ${node.tagName}.${node.className} ${words.slice(0, 40)}`);
    }
    return poor;
}"""
"""Text whose contrast is under 4.5 to 1, the AA level of the Web Content Accessibility Guidelines 2.2 (1.4.3)."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be skipped for want of a tool (CI), such a skip is a failure that names the tool."""
    report = yield
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if _NO_SKIPS and ("not installed" in reason or "missing" in reason):
        report.outcome = "failed"
        report.longrepr = f"{reason.removeprefix('Skipped: ')}, and CRASHPATH_NO_SKIPS or CI says that it has to be"
    return report


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL of the test run's own; skips where none is installed."""
    try:
        server = temporary_postgres()
        template = server.__enter__()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    yield template
    server.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty place for a store, on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/crashpath.db"
    return new_database(request.getfixturevalue("postgres_server"), f"store{next(_numbers)}")


@pytest.fixture(params=["sqlite", "postgresql"])
def any_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store, on each database in turn."""
    if request.param == "sqlite":
        yield request.getfixturevalue("store")
        return
    with open_store(request.getfixturevalue("_postgres_store")) as store:
        yield store
        names = ", ".join(f'"{table}"' for table in SCHEMA.tables if table != "project")
        with store.write() as session:
            session.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
            session.execute(text("UPDATE project SET encoder_id = NULL"))


@pytest.fixture(scope="session")
def _postgres_store(postgres_server: str) -> str:
    return new_database(postgres_server, "shared")


@pytest.fixture(scope="session")
def _empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "empty.db"
    with open_store(f"sqlite:///{path}") as store:
        return backup(store, path.with_name("copy.db"))


@pytest.fixture
def store(tmp_path: Path, _empty_store: Path) -> Iterator[Store]:
    """An empty SQLite store."""
    shutil.copy(_empty_store, tmp_path / "crashpath.db")
    with open_store(f"sqlite:///{tmp_path}/crashpath.db") as store:
        yield store


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; of one module, because the driver's event loop runs as long as it is open."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def contrast() -> str:
    """A script for a page, which returns the texts that can hardly be told from their ground."""
    return _CONTRAST


class OpenPage(Protocol):
    """Opens a page of the dashboard on a store, at the view that ``asked`` (parameters of its address) names."""

    def __call__(self, url: str, page: str = "trends", **asked: str) -> AppTest: ...


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open pages in Streamlit's own test harness; a page that raises fails the test."""

    def open_page(url: str, page: str = "trends", **asked: str) -> AppTest:
        monkeypatch.setenv("CRASHPATH_DB", url)
        script = f"from crashpath.dashboard.page_frame import navigation\nnavigation({page!r})\n"
        app = AppTest.from_string(script, default_timeout=60)
        for name, value in asked.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception
        return app

    return open_page
