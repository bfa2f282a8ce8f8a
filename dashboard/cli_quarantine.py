"""``crashpath quarantine``: what could not be decoded, and have its source read again."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from crashpath.dashboard import quarantine_text as words
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.page_text import one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.taking import deciding_in
from crashpath.dashboard.who import WhoOption, WhyOption
from crashpath.ingest import again
from crashpath.ingest.quarantined import held
from crashpath.ingest.queries import QuarantineRow
from crashpath.ingest.queries import quarantine as pieces_of
from crashpath.ingest.store import open_store


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(quarantine)


def quarantine(
    night: Annotated[int | None, typer.Option(min=1, help="Only what this night put there.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="List at most so many pieces, the newest.")] = 30,
    retry: Annotated[
        list[int] | None, typer.Option(metavar="PIECE", min=1, help="Have the source of this piece read again.")
    ] = None,
    source: Annotated[
        list[int] | None, typer.Option(metavar="SOURCE", min=1, help="Have this source read again.")
    ] = None,
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """List what could not be decoded, or have the next night read its file again, from its start.

    A file that is read again takes the place of what it gave: nothing is counted twice.
    """
    if retry or source:
        return _ask(retry or [], source or [], who, why, db, as_json)
    if why:
        raise UsageError("--why goes with --retry or --source, which say what is to be read again.")
    with open_store(load_settings(db=db).db, create=False) as store, store.read() as session:
        counted, found, asked = (
            held(session, night),
            pieces_of(session, night_id=night, limit=limit),
            again.asked(session),
        )
    if as_json:
        emit(words.document(counted, found, asked))
        return Exit.DONE
    console().print(Text(words.summed(counted)))
    if found:
        console().print(_table(found))
        if len(found) < counted.pieces:
            console().print(f"{len(found):,} of {many(counted.pieces, 'piece')}; --limit {counted.pieces} shows all.")
        console().print("crashpath quarantine --retry PIECE has its source read again by the next night.")
    for one in asked:
        console().print(Text(words.asked_sentence(one)))
    return Exit.DONE


def _ask(pieces: list[int], sources: list[int], who: str | None, why: str | None, db: str | None, as_json: bool) -> int:
    with deciding_in(db, who, why) as (session, by):
        wanted = dict.fromkeys([*sources, *(again.source_of(session, piece) for piece in pieces)])
        done = [again.ask(session, source, by) for source in wanted]
    if as_json:
        emit({"asked": [words.asked_document(one) | {"new": first} for one, first in done]})
        return Exit.DONE
    for one, first in done:
        console().print(Text(words.asked_now(one, first)), soft_wrap=True)
    return Exit.DONE


def _table(rows: tuple[QuarantineRow, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, right in (
        ("piece", True), ("source", True), ("night", True), ("bytes", True), ("reason", False), ("begins", False),
    ):  # fmt: skip
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        cells = (
            f"{row.id}",
            f"{row.source_id}",
            f"{row.night_id}",
            f"{row.offset:,}–{row.end:,}",
            row.reason,
            row.preview,
        )
        table.add_row(*(Text(one_line(cell, 60)) for cell in cells))
    return table
