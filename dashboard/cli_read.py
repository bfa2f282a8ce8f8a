"""Reading commands: ``classes``, ``clusters``, ``show``, ``trends`` and ``dashboard``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import cast, get_args

import typer
from rich.padding import Padding
from rich.table import Table

from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import Settings, load_settings
from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED
from crashpath.ingest.queries import ClusterRow, cluster_list
from crashpath.ingest.store import open_store
from crashpath.ingest.trends import DayCount, Dimension, Filters, counts_by_day

By = StrEnum("By", {name: name for name in get_args(Dimension)})  # type: ignore[misc]  # names come from the queries
BY_HEADLINE = By("headline")
ORDER = (*HEADLINES, *(one.id for one in CLASSES), UNCLASSIFIED)
LINE = 46
PATIENCE = 10.0
"""Seconds that the server of the dashboard has to end by itself."""
COLOURS = {
    "light.textColor": "#0f0e0d", "light.primaryColor": "#a82c3a", "light.codeTextColor": "#04210e",
    "dark.textColor": "#f4f2ef", "dark.primaryColor": "#f0808a", "dark.codeTextColor": "#b5f0c8",
}  # fmt: skip
"""Of the pages, where Streamlit's own are too faint: captions are drawn in six tenths of the text's colour."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (classes, clusters, trends, dashboard):
        app.command()(command)


def classes(as_json: JsonOption = False) -> int:
    """List the failure classes: what each is, where it ends, what to do next."""
    if as_json:
        emit([asdict(one) for one in CLASSES])
        return Exit.DONE
    for one in CLASSES:
        console().print(f"[bold]{one.id}[/bold]  {one.title} ({one.headline})")
        for name, text in (("is", one.meaning), ("ends", one.boundary), ("next", " ".join(_lines(one.next_steps)))):
            console().print(Padding(f"{name:<5} {text}", (0, 0, 0, 2)))
    return Exit.DONE


def _lines(text: str | Sequence[str]) -> Sequence[str]:
    return (text,) if isinstance(text, str) else text


def clusters(
    db: DbOption = None,
    failure_class: str | None = typer.Option(None, "--class", help="Only clusters of this class."),
    release: str | None = typer.Option(None, help="Only crashes of this release."),
    platform: str | None = typer.Option(None, help="Only crashes of this platform."),
    limit: int = typer.Option(30, min=1, help="At most so many."),
    as_json: JsonOption = False,
) -> int:
    """List the clusters, most crashes first."""
    known = (*(one.id for one in CLASSES), UNCLASSIFIED)
    if failure_class is not None and failure_class not in known:
        raise UsageError(f"--class {failure_class} is none of {', '.join(known)}.")
    filters = Filters(release=release, platform=platform, failure_class=failure_class)
    with open_store(load_settings(db=db).db, create=False) as store, store.read() as session:
        found = cluster_list(session, filters)
    rows = found[:limit]
    if as_json:
        emit([asdict(row) for row in rows])
        return Exit.DONE
    if not rows:
        some = filters != Filters()
        console().print("No cluster passes these filters." if some else "No clusters yet. Run crashpath nightly LOGS…")
        return Exit.DONE
    console().print(_cluster_table(rows))
    if len(rows) < len(found):
        console().print(f"{len(rows):,} of {many(len(found), 'cluster')}; --limit {len(found)} shows all.")
    return Exit.DONE


def _cluster_table(rows: tuple[ClusterRow, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in (("cluster", False), ("crashes", True), ("class", False), ("root line", False)):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(row.id, f"{row.crashes:,}", row.failure_class, _short(row.name or row.root_line))
    return table


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"


def trends(
    db: DbOption = None,
    by: By = typer.Option(BY_HEADLINE, help="What to count by."),
    days: int = typer.Option(14, min=1, help="So many days up to the last one with a crash."),
    release: str | None = typer.Option(None, help="Only crashes of this release."),
    platform: str | None = typer.Option(None, help="Only crashes of this platform."),
    as_json: JsonOption = False,
) -> int:
    """Crashes by UTC day and headline, class, release, platform or path."""
    filters = Filters(release=release, platform=platform)
    with open_store(load_settings(db=db).db, create=False) as store, store.read() as session:
        rows = counts_by_day(session, cast("Dimension", by.value), filters)
    outside = 0
    if rows:
        since = max(row.day for row in rows) - timedelta(days=days - 1)
        outside = sum(row.crashes for row in rows if row.day < since)
        rows = tuple(row for row in rows if row.day >= since)
    place = {name: i for i, name in enumerate(ORDER)}
    rows = tuple(sorted(rows, key=lambda row: (row.day, place.get(row.key, len(place)), row.key)))
    if as_json:
        emit([{"day": row.day.isoformat(), by.value: row.key, "crashes": row.crashes} for row in rows])
        return Exit.DONE
    if not rows:
        none = (
            "No crash passes these filters." if filters != Filters() else "No crashes yet. Run crashpath nightly LOGS…"
        )
        console().print(none)
        return Exit.DONE
    console().print(_day_table(rows, by.value))
    if outside:
        console().print(f"Not shown: {many(outside, 'crash')} on earlier days; --days N looks further back.")
    return Exit.DONE


def _day_table(rows: tuple[DayCount, ...], by: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("day (UTC)")
    table.add_column(by)
    table.add_column("crashes", justify="right")
    last: date | None = None
    for row in rows:
        table.add_row("" if row.day == last else row.day.isoformat(), row.key, f"{row.crashes:,}")
        last = row.day
    return table


def dashboard(
    db: DbOption = None,
    port: int = typer.Option(8501, min=1, max=65535, help="Port to listen on."),
    address: str = typer.Option("127.0.0.1", help="Address to listen on; only this machine by default."),
    read_only: bool = typer.Option(False, "--read-only", help="Show all, and let nobody decide anything."),
) -> int:
    """Open the dashboard in a browser. Ctrl-C ends it."""
    settings = load_settings(db=db, read_only=read_only or None)
    page = Path(__file__).with_name("app.py")
    command = [sys.executable, "-m", "streamlit", "run", str(page)]
    options = {
        "server.port": str(port),
        "server.address": address,
        "server.headless": "true",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",  # no button that would deploy the page somewhere else
        **{f"theme.{name}": colour for name, colour in COLOURS.items()},
    }
    command += [f"--{name}={value}" for name, value in options.items()]
    console().print(f"Dashboard of {settings.db} on http://{address}:{port}")
    # Whoever stops this process, by whatever signal, means the server behind it, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = subprocess.Popen(command, env=os.environ | _told(settings))
    try:
        code = server.wait()
    except KeyboardInterrupt:
        return Exit.DONE
    finally:
        _end(server)
    if code:
        raise InputError(f"The dashboard ended with code {code}. Is port {port} in use? Try --port.")
    return Exit.DONE


def _told(settings: Settings) -> dict[str, str]:
    """Return what the server has to be told of the settings that options may have changed."""
    return {"CRASHPATH_DB": settings.db, "CRASHPATH_READ_ONLY": str(settings.read_only).lower()}


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server, by force where it does not follow the request: a closed pipe or an open page can hold it."""
    server.terminate()
    try:
        server.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
