"""What every deciding command does: a short transaction on a store that is there, who decides, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text
from sqlalchemy.orm import Session

from crashpath.dashboard import decide_text as words
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import console, emit
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.who import one_line, who_decides
from crashpath.ingest.decisions import By, taken
from crashpath.ingest.store import open_store
from crashpath.ingest.tables_evidence import Decision

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A cluster: C-0042.")]


@contextmanager
def deciding_in(db: str | None, who: str | None, why: str | None) -> Iterator[tuple[Session, By]]:
    """One short transaction on a store that is there, and who decides in it."""
    person, reason = who_decides(who), one_line(why or "", "--why") or None
    with open_store(load_settings(db=db).db, create=False) as store, store.write() as session:
        yield session, By(person, datetime.now(UTC), reason)


def take_one(
    db: str | None,
    who: str | None,
    why: str | None,
    as_json: bool,
    decide: Callable[[Session, By], Decision | None],
    already: str,
    cautions: Callable[[Session, Decision], Sequence[str]] = lambda session, made: (),
) -> int:
    """Take one decision and say what it was, or that it was so ``already``; then what whoever took it should know."""
    with deciding_in(db, who, why) as (session, by):
        made = decide(session, by)
        row = None if made is None else taken(session, made)
        known = () if made is None else cautions(session, made)
    if as_json:
        emit({"decision": None} if row is None else words.document(row) | ({"cautions": known} if known else {}))
        return Exit.DONE
    for line in (already if row is None else words.sentence(row), *known):
        console().print(Text(line))
    return Exit.DONE
