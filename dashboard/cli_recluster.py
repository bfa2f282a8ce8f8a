"""``crashpath recluster``: form clusters anew by hand, or see what that would do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from crashpath.clustering.affinity import CONFLICT
from crashpath.clustering.recluster import Moved
from crashpath.clustering.recluster_step import Preview
from crashpath.dashboard.engines import reclusterer
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.summary import reclustered_in_words
from crashpath.ingest.lease import Lease
from crashpath.ingest.store import open_store

BY_HAND = "asked for by hand"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(recluster)


def recluster(
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would change, and change nothing."),
    wait: float | None = typer.Option(None, metavar="SECONDS", help="Wait this long for a night that is running."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Form clusters anew: births, clusters of one, and clusters that hold together no longer; nightly does it weekly.

    All others keep their members, what people decided stands, and an id that ends goes on to mean where it went.
    """
    settings = load_settings(db=db, lease_wait=wait)
    engine = reclusterer(settings)
    with open_store(settings.db, create=False) as store:
        if dry_run:
            _tell(engine.preview(store), as_json)
            return Exit.DONE
        with Lease(store, wait=settings.lease_wait) as lease:
            done = engine.run(store, None, BY_HAND, clock=lambda: datetime.now(UTC), fence=lease.fence)
    if as_json:
        emit({"reclustered": done.document() if done else None})
    else:
        console().print(Text(reclustered_in_words(done) if done else "There are no clusters yet."))
    return Exit.DONE


def _tell(preview: Preview, as_json: bool) -> None:
    outcome = preview.outcome
    if as_json:
        emit({
            "looked_at": outcome.looked_at,
            "merged": [_document(one, preview) for one in outcome.merged],
            "split": [_document(one, preview) | {"made": one.new in outcome.made} for one in outcome.split],
        })  # fmt: skip
        return
    console().print(Text(f"{many(outcome.looked_at, 'cluster')} looked at; nothing is changed"))
    if not outcome.moved:
        console().print(Text("all would stay as they are"))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("what", "old", "new", "signatures", "crashes", "distance"):
        table.add_column(name, justify="left" if name in ("what", "old", "new") else "right")
    rows = [("merge", one) for one in outcome.merged] + [("split", one) for one in outcome.split]
    for what, one in rows:
        gap = "contradicts" if one.why.distance >= CONFLICT else f"{one.why.distance:.2f}"
        table.add_row(what, one.old, one.new, f"{len(one.items):,}", f"{preview.crashes(one):,}", gap)
    console().print(table)


def _document(one: Moved, preview: Preview) -> dict[str, Any]:
    return {
        "old": one.old, "new": one.new, "signatures": list(one.items), "crashes": preview.crashes(one),
        "distance": round(one.why.distance, 4), "nearest": one.why.exemplar, "why": one.why.words,
    }  # fmt: skip
