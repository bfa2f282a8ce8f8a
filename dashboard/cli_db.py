"""``crashpath db``: upgrade, check and back up the store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.table import Table

from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, complain, console, emit
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.table_words import WORDS
from crashpath.ingest import upgrade as upkeep
from crashpath.ingest.store import open_store

app = typer.Typer(help="Upgrade, check or back up the store.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the commands of this module, below one name."""
    root.add_typer(app, name="db")


@app.command()
def upgrade(db: DbOption = None, as_json: JsonOption = False) -> int:
    """Bring the store to this version's schema. A SQLite store is backed up beside itself first."""
    done = upkeep.upgrade(load_settings(db=db).db, now=datetime.now(UTC))
    if as_json:
        emit({"old": done.old, "new": done.new, "backup": done.backup})
    elif done.backup is None and done.old == done.new:
        console().print(f"The store has schema {done.new}: nothing to do.")
    else:
        console().print(f"Schema {done.old} -> {done.new}. Backup: {done.backup or 'none (a server keeps its own)'}")
    return Exit.DONE


@app.command()
def check(db: DbOption = None, as_json: JsonOption = False) -> int:
    """Look for damage, and count what the store holds."""
    with open_store(load_settings(db=db).db, create=False) as store:
        found = upkeep.check(store)
    if as_json:
        document = {"revision": found.revision, "problems": found.problems, "rows": dict(found.rows)}
        emit(document | {"bytes": found.size})
    else:
        console().print(_counts(found.rows))
        state = "no damage found" if not found.problems else many(len(found.problems), "problem")
        size = f", {many(found.size, 'byte')}" if found.size else ""
        console().print(f"schema {found.revision}{size}, {state}")
    for problem in found.problems:
        complain(problem)
    if found.problems:
        complain("The store is damaged. Go back to a backup, or read the logs into a new store.")
    return Exit.FAILED if found.problems else Exit.DONE


def _counts(rows: tuple[tuple[str, int], ...]) -> Table:
    """The rows of each table under what they are, in the order in which they come about."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    counted = dict(rows)
    order = [name for name in WORDS if name in counted] + sorted(set(counted) - set(WORDS))
    for name in order:
        table.add_row(WORDS.get(name, name.replace("_", " ")), f"{counted[name]:,}")
    return table


@app.command()
def backup(
    file: Path = typer.Argument(..., metavar="FILE", help="Where the copy goes."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Copy the store while it is in use."""
    with open_store(load_settings(db=db).db, create=False) as store:
        kept = upkeep.backup(store, file)
    if as_json:
        emit({"backup": kept})
    else:
        console().print(f"Backup written to {kept}.")
    return Exit.DONE
