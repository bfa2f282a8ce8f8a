"""How quick the dashboard's pages and filters are at a million crashes, in a real Chromium, on two cores.

The store is that of ``reviews_store``, two months of a fleet of 300 cohorts in seven releases with five attempts a
crash, told by model and path, and what ``pages_store`` adds. Times are measured in the browser, each the median of a
few takes: of the first picture, and of the whole page. Browser, server and night share the two cores. Beside every page
stands the same one of an empty store, and beside all of them a page with one picker and one picture that reads nothing:
what Streamlit and Plotly take by themselves. Then the same pages while a real night runs, and the server's memory.

The target is a first picture in 2 s and a filter in 1 s; what misses it is marked, and nothing here is red: what a page
takes by its address is for the most part what the browser does with Plotly. ``--store FILE`` keeps the store, which
takes minutes to make; it is made where there is none, and never written to after.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from pages_beside import Beside, beside
from pages_drive import PICTURE, Filter, Look, choose, chromium
from pages_memory import Held, held, sessions
from pages_store import furnish
from pages_tables import print_beside, print_filters, print_memory, print_pages
from pages_takes import Takes, bare, filtered, fresh, from_menu, opened, watched
from playwright.sync_api import Browser
from results_file import write_results
from reviews_store import Plan, make_attempts, make_crashes

from crashpath.dashboard.served import free_port
from crashpath.ingest.failed_daily import refresh_failures
from crashpath.ingest.store import open_store

CRASHES = 1_000_000
LEAST = 50_000
ATTEMPTS = 5
"""Attempts a crash."""
CORES = 2
TAKES = 3
PARTS = ("pages", "filters", "night", "memory")
_BARE = Filter(Look("bare", "", PICTURE), "a picker", choose("power", "2"))


def make(file: Path, crashes: int) -> None:
    """Make the store, whole or not at all."""
    unfinished = file.with_suffix(".making")
    unfinished.unlink(missing_ok=True)
    with open_store(f"sqlite:///{unfinished}") as store:
        make_crashes(store, Plan(crashes))
        refresh_failures(store)
        make_attempts(store, ATTEMPTS * crashes, fine=True)
        furnish(store, datetime.now(UTC))
    unfinished.rename(file)


def measured(browser: Browser, store: Path, folder: Path, parts: Sequence[str], takes: int) -> dict[str, Any]:
    """Measure the parts, print each when it is there, and return all figures."""
    found: dict[str, Any] = {}

    def part(name: str, measure: Callable[[], Any], show: Callable[[Any, str], None]) -> None:
        if name in parts:
            load = f"load {os.getloadavg()[0]:.1f} before"
            done = measure()
            show(done, load)
            found[name] = {"load_before": load, "figures": _plain(done)}

    db = f"sqlite:///{folder / 'pages.db'}"
    shutil.copyfile(store, folder / "pages.db")
    part("pages", lambda: _pages(browser, db, folder, takes), print_pages)
    part("filters", lambda: _filters(browser, db, folder, takes), print_filters)
    part("memory", lambda: sessions(browser, db, folder), print_memory)
    part("night", lambda: beside(browser, store, folder, takes), print_beside)
    return found


def _pages(browser: Browser, db: str, folder: Path, takes: int) -> list[Takes]:
    found = []
    with _bare_server(folder) as (url, process):
        found += bare(browser, url, process, _BARE, takes)
    nothing = f"sqlite:///{folder / 'empty.db'}"
    open_store(nothing).close()
    with watched(nothing, folder) as server:
        found += opened(browser, server, takes, bare=True)
    found += fresh(browser, db, folder, takes)
    with watched(db, folder) as server:
        found += opened(browser, server, takes)
        found += from_menu(browser, server, takes)
    return found


def _filters(browser: Browser, db: str, folder: Path, takes: int) -> tuple[list[Takes], Held]:
    with watched(db, folder) as server:
        return filtered(browser, server, takes), held("after every filter", server.process)


@contextmanager
def _bare_server(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Serve the page that reads nothing."""
    port, page = free_port(), Path(__file__).with_name("pages_bare.py")
    command = [sys.executable, "-m", "streamlit", "run", str(page), f"--server.port={port}", "--server.headless=true"]
    with (folder / "bare.log").open("wb") as log:
        server = subprocess.Popen([*command, "--browser.gatherUsageStats=false"], stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        _await(f"{url}/_stcore/health")
        yield url, psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait()


def _await(address: str) -> None:
    for _ in range(300):
        try:
            with closing(urllib.request.urlopen(address, timeout=2)):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"Nothing answers at {address}.")


def _plain(found: object) -> Any:
    if isinstance(found, list | tuple):
        return [_plain(one) for one in found]
    if isinstance(found, Takes):
        medians = {"first": found.first, "whole": found.whole, "server_cpu": found.server}
        return {**medians, **asdict(found)}
    if isinstance(found, Beside):
        return asdict(found) | {"pages": _plain(found.pages)}
    return asdict(found) if isinstance(found, Held) else found


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the store, measure, print, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, default=CRASHES, help="in place of a million")
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the store there, and take it from there")
    parser.add_argument("--takes", type=int, default=TAKES, help="of which each figure is the median")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; more than once for more of them")
    options = parser.parse_args(arguments)
    if options.crashes < LEAST:
        parser.error(f"--crashes below {LEAST:,} leaves cohorts without an attempt")
    parts = options.only or PARTS
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with tempfile.TemporaryDirectory(prefix="crashpath-pages-") as scratch:
        folder = Path(scratch)
        store = options.store or folder / "store.db"
        if not store.exists():
            print(f"Making a store of {options.crashes:,} crashes …", flush=True)
            make(store, options.crashes)
        with open_store(f"sqlite:///{store}", create=False) as known, known.engine.connect() as connection:
            crashes = connection.exec_driver_sql("select count(*) from crash").scalar_one()
        print(f"{crashes:,} crashes, {store.stat().st_size / 1e6:.0f} MB, {CORES} cores, medians of {options.takes}")
        begun = time.perf_counter()
        with chromium() as browser:
            found = measured(browser, store, folder, parts, options.takes)
    known_figures = {"used_cores": CORES, "crashes": crashes, "takes": options.takes}
    write_results("pages", known_figures | {"seconds": round(time.perf_counter() - begun), **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
