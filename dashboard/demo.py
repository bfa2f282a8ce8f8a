"""The demonstration behind ``make demo``: the main job on the crash logs of ``data/``, as five nights of two releases.

Nothing here is special: each night is what ``crashpath nightly`` does. The logs are copied first, with the time of
their night as the files' time, since a log without stamps is dated by its file.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from crashpath.coverage.nights import FIRST
from crashpath.dashboard.engines import clusterer, mapper
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import complain, console
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.summary import NightSummary, print_summary
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.store import open_store

OUT = Path("demo-out")
DATA = Path("data/crashlogs")
ATTEMPTS = Path("data/attempts")
PATTERNS = ("logs/*/{release}/{platform}/*",)
ENDED = 26
"""Hours after its first log that a night's job runs."""


def main() -> int:
    """Run the demonstration in the working folder, the repository's root."""
    out = console()
    if not DATA.is_dir():
        complain(f"{DATA} is not here. Run this from the repository's root, or make the logs: make corpus.")
        return Exit.FAILED
    out.print("[bold]crashpath: which failures do these deployments have?[/bold]")
    started = time.perf_counter()
    nights = tuple(_lay_out())
    out.print("The first night also compiles UMAP and loads the encoder; all of it takes some minutes.")
    summaries = []
    for number, folder in nights:
        summaries.append(_night(number, folder))
        out.print(f"night {number}: {summaries[-1].records} records, {summaries[-1].new_signatures} new signatures")
    out.print(_nights(summaries))
    print_summary(summaries[-1], out)
    again = _again(nights[-1][0])
    out.print(
        f"\nThe same {again.skipped} files once more: {again.new_crashes} new crashes, {again.new_signatures} new "
        f"signatures, {again.embedded} texts embedded."
    )
    out.print(f"All of it took {time.perf_counter() - started:.0f} s.")
    _next(out)
    return Exit.DONE


def _lay_out() -> Iterator[tuple[int, Path]]:
    """Copy the logs below ``demo-out/logs``, dated by their night; what is there from an earlier run stays."""
    for folder in sorted(DATA.glob("night*")):
        number = int(folder.name.removeprefix("night"))
        at = _when(number).timestamp() - 3600
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            copy = OUT / "logs" / file.relative_to(DATA)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
                os.utime(copy, (at, at))
        yield number, OUT / "logs" / folder.name


def _when(number: int) -> datetime:
    return FIRST.replace(tzinfo=UTC) + timedelta(days=number - 1, hours=ENDED)


def _night(number: int, folder: Path) -> NightSummary:
    settings = load_settings(db=f"sqlite:///{OUT / 'crashpath.db'}")
    feed = FeedOptions(patterns=PATTERNS, host="demo", as_of=_when(number))
    options = NightOptions(feed=feed, attempts=str(ATTEMPTS / f"night{number}.csv"))
    with open_store(settings.db) as store:
        return run_night(
            store, [str(folder)], options, clusterer(settings), clock=lambda: _when(number), mapper=mapper()
        )


def _again(number: int) -> NightSummary:
    return _night(number, OUT / "logs")


def _nights(summaries: list[NightSummary]) -> Table:
    """What each night found new: the texts embedded are those of new signatures only."""
    table = Table(title="New in each night", box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    columns = ("night", "files", "records", "crashes", "signatures", "embedded", "joined", "clusters", "seconds")
    for name in columns:
        table.add_column(name, justify="right")
    for one in summaries:
        cells = (one.night, one.sources, one.records, one.new_crashes, one.new_signatures, one.embedded, one.joined)
        seconds = sum(spent for _, spent in one.seconds)
        table.add_row(*(f"{cell:,}" for cell in (*cells, one.new_clusters)), f"{seconds:.1f}")
    return table


def _next(out: Console) -> None:
    out.print("\n[bold]Where to look next[/bold]")
    for command, what in (
        (f".venv/bin/crashpath clusters --db sqlite:///{OUT}/crashpath.db", "the clusters, most crashes first"),
        (f".venv/bin/crashpath show C-0001 --db sqlite:///{OUT}/crashpath.db", "one of them, and why"),
        ("make dashboard", "the same in the browser"),
        (".venv/bin/crashpath nightly /var/log/your-app", "your own logs"),
    ):
        out.print(f"  {command}\n      {what}")


if __name__ == "__main__":
    sys.exit(main())
