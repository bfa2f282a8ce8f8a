"""Take the pictures of ``docs/``: the dashboard on the demo's store, in a real Chromium, wide and narrow."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "demo-out" / "crashpath.db"
PICTURES = (
    ("trends.png", 1280, 1500, "light"),
    ("trends-dark.png", 1280, 1500, "dark"),
    ("trends-narrow.png", 390, 2200, "light"),
)
START_SECONDS = 60


def main() -> int:
    """Start the dashboard, take each picture, stop it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("No Chromium is installed: apt-get install chromium")
        return 4
    if not STORE.exists():
        print(f"{STORE} is not there: make demo")
        return 4
    port = _free_port()
    command = [sys.executable, "-m", "crashpath.dashboard.cli", "dashboard", "--port", str(port)]
    server = subprocess.Popen(
        command, env=os.environ | {"CRASHPATH_DB": f"sqlite:///{STORE}"}, stdout=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url)
        _shoot(url, browser)
    finally:
        server.terminate()
        server.wait()
    return 0


def _shoot(url: str, browser: str) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for name, width, height, scheme in PICTURES:
            context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(url)
            page.get_by_text("Headline by release").wait_for(timeout=START_SECONDS * 1000)
            page.locator(".js-plotly-plot").nth(1).wait_for(timeout=START_SECONDS * 1000)
            page.wait_for_timeout(1500)
            page.screenshot(path=str(ROOT / "docs" / name))
            print(f"docs/{name}")
            context.close()
        chromium.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.5)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
