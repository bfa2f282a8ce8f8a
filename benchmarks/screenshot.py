"""Take the pictures of ``docs/pictures``: each page of the dashboard in a real Chromium, bright, dark and narrow.

They are of a copy of the demo's store, to which a traced run and the drills of a small model are added: the demo has no
model of its own. ``--only NAME`` takes the pictures of some pages anew.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from crashpath.dashboard.served import served
from crashpath.runtime.testing import tiny_folder

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "demo-out" / "crashpath.db"
PICTURES = ROOT / "docs" / "pictures"
LOOKS = (("", 1280, "light"), ("-dark", 1280, "dark"), ("-narrow", 390, "light"))
"""What is added to a picture's name, the window's width in pixels, and the scheme of colours."""
HEIGHT = 900
HIGHEST = {1280: 2400, 390: 3600}
"""Pixels that a picture has at most; a page may be longer."""
COLOURS = 128
WAIT_SECONDS = 60
FAULTS = (
    "model-uncaught-bad-alloc", "model-cut", "model-garbage", "model-weights-gone", "model-impossible-shape",
    "model-unknown-operator", "model-closed", "model-tokenizer-cut", "model-tokenizer-gone", "model-fetch-401",
    "model-abort", "model-package-missing", "model-driver-missing",
)  # fmt: skip
"""Drilled for the pictures: of several classes, each in seconds."""
DRAWN = """() => [...document.querySelectorAll("[data-testid=stPlotlyChart]")]
    .every(one => one.querySelector(".main-svg")) && !document.querySelector("[data-testid=stSkeleton]")"""
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"


@dataclass(frozen=True, slots=True)
class View:
    """One picture: the page in its address, and what is asked of it."""

    name: str
    page: str
    asked: tuple[tuple[str, str], ...] = ()


def main(asked: Sequence[str] | None = None) -> int:
    """Lay out the store, start the dashboard, take each picture, stop it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", help="the name of a picture; may be given more than once")
    only = parser.parse_args(asked).only
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("No Chromium is installed: apt-get install chromium")
        return 4
    if not STORE.exists():
        print(f"{STORE} is not there: make demo")
        return 4
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        url = _lay_out(folder)
        views = [view for view in _views(folder / STORE.name) if not only or view.name in only]
        with served(url, folder / "server.log") as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            for view in views:
                _shoot(browser, server.url, view)
            browser.close()
    return 0


def _lay_out(folder: Path) -> str:
    """Return a store with all that pages can show."""
    shutil.copyfile(STORE, folder / STORE.name)
    url = f"sqlite:///{folder / STORE.name}"
    model = tiny_folder(folder / "model", kind="branches").path
    release = _one(folder / STORE.name, "select max(release) from crash_daily where release != 'unknown'")
    flags = ["--release", release, "--db", url]
    _command("coverage", "--trace", str(model), *flags)
    faults = [word for fault in FAULTS for word in ("--fault", fault)]
    _command("drill", *faults, "--model", str(model), "--isolation", "process", *flags)
    return url


def _command(*words: str) -> None:
    print(f"crashpath {' '.join(words[:2])} …", flush=True)
    command = [sys.executable, "-m", "crashpath.dashboard.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"It ended with code {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def _views(store: Path) -> tuple[View, ...]:
    """Return what is shown; the cluster is the one with most crashes, as on a page that somebody looks into."""
    number = _one(
        store,
        "select cluster_id from crash_daily join signature on id = signature_id group by 1 order by sum(crashes) desc",
    )
    cluster = f"C-{int(number):04d}"
    return (
        View("trends", "trends"),
        View("triage", "triage"),
        View("cluster", "triage", (("cluster", cluster),)),
        View("map", "map"),
        View("coverage", "coverage"),
        View("review", "review"),
        View("ingest", "ingest"),
    )


def _one(store: Path, query: str) -> str:
    with closing(sqlite3.connect(store)) as connection:
        return str(connection.execute(query).fetchone()[0])


def _shoot(browser: Browser, url: str, view: View) -> None:
    for ending, width, scheme in LOOKS:
        context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{url}/{view.page}?{urlencode(view.asked)}")
        page.get_by_role("heading", level=1).first.wait_for(timeout=WAIT_SECONDS * 1000)
        page.locator(IDLE).wait_for(timeout=WAIT_SECONDS * 1000)
        page.wait_for_function(DRAWN, timeout=WAIT_SECONDS * 1000)
        page.set_viewport_size({"width": width, "height": min(_height(page), HIGHEST[width])})
        page.wait_for_timeout(1500)  # a chart is drawn anew for the new height
        target = PICTURES / f"{view.name}{ending}.png"
        page.screenshot(path=str(target))
        _smaller(target)
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:,.0f} kB", flush=True)
        context.close()


def _height(page: Page) -> int:
    """Return how high a window must be to show all of a page, whose main part scrolls by itself."""
    return max(HEIGHT, int(page.locator("[data-testid=stMain]").evaluate("one => one.scrollHeight")))


def _smaller(target: Path) -> None:
    """Keep as many colours as a page needs; the picture is a fraction of what it was."""
    with Image.open(target) as picture:
        few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
