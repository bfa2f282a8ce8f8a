"""``crashpath attempts``: tell how often something was tried, and see what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.inert import inert
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.attempts import read_attempts, save_attempts
from crashpath.ingest.attempts_read import AttemptSum, attempt_sums, corrections
from crashpath.ingest.storable import clean
from crashpath.ingest.store import open_store


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(attempts)


def attempts(
    files: list[str] | None = typer.Argument(
        None, metavar="[FILE…]", help="Attempt counts to load: CSV, JSONL or Parquet. Without one, list what is known."
    ),
    db: DbOption = None,
    release: str | None = typer.Option(None, help="List only attempts of this release."),
    as_json: JsonOption = False,
) -> int:
    """Load attempt counts, or list what is known of attempts. Loading a file again adds nothing; numbers replace."""
    settings = load_settings(db=db)
    if files:
        return _load(settings.db, files, as_json)
    wanted = None if release is None else [release]
    with open_store(settings.db, create=False) as store, store.read() as session:
        sums = attempt_sums(session, releases=wanted)
        corrected = corrections(session, releases=wanted) if as_json else ()
    if as_json:
        emit({"attempts": [asdict(one) for one in sums], "corrections": [asdict(one) for one in corrected]})
    elif sums:
        console().print(_table(sums))
        if count := sum(one.corrected for one in sums):
            console().print(f"{many(count, 'row')} corrected; --json shows the numbers before and after.")
    else:
        of = f" of release {release}" if release else ""
        console().print(f"No attempts{of} are told. Load a file: crashpath attempts FILE.")
    return Exit.DONE


def _load(url: str, files: Sequence[str], as_json: bool) -> int:
    """Load files; where one of them cannot be used, nothing of any is stored."""
    # All are read first: a slip in the last one is seen before the first is stored, or a store is made.
    told = [(clean(Path(file).name), read_attempts(file)) for file in files]
    done = []
    with open_store(url) as store:
        for name, rows in told:
            with store.write() as session:
                loaded = save_attempts(session, rows, origin=name, now=datetime.now(UTC))
            done.append({"file": name} | asdict(loaded))
            if not as_json:
                figures = f"{many(loaded.rows, 'row')}, {loaded.new:,} new, {loaded.changed:,} changed"
                console().print(Text(f"{inert(name)}: {figures}"), soft_wrap=True)
    if as_json:
        emit({"files": done})
    return Exit.DONE


def _table(sums: Sequence[AttemptSum]) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for name in ("unit", "release", "platform", "model", "first day", "last day"):
        table.add_column(name, no_wrap=name.endswith("day"), overflow="fold")
    for name in ("attempts", "failures"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in sums:
        table.add_row(
            one.unit, *(Text(inert(part)) for part in (one.release, one.platform, one.model)),
            one.first_day.isoformat(), one.last_day.isoformat(),
            f"{one.attempts:,}", "-" if one.failures is None else f"{one.failures:,}",
        )  # fmt: skip
    return table
