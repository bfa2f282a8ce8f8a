"""Deciding commands: ``merge``, ``split``, ``name``, ``assign``, ``undo``, and ``decisions``, which lists them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from crashpath.dashboard import decide_text as words
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.taking import IdArgument, deciding_in, take_one
from crashpath.dashboard.who import WhoOption, WhyOption, one_line
from crashpath.ingest import deciding, undoing
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.decisions import decisions as listed
from crashpath.ingest.decisions import taken
from crashpath.ingest.store import open_store

_DECIDE = "merge, split, name, assign, resolve, mute, ticket and note"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (merge, split, name, assign, undo, decisions):
        app.command()(command)


def merge(
    into: Annotated[str, typer.Argument(metavar="A", help="The cluster that stays.")],
    others: Annotated[list[str], typer.Argument(metavar="B…", help="The clusters that go into it.")],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Put clusters together: B goes into A, and so will what is like B from now on."""
    target, sources = cluster_number(into), [cluster_number(one) for one in others]
    with deciding_in(db, who, why) as (session, by):
        rows = [taken(session, row) for row in deciding.merge(session, target, sources, by)]
    if as_json:
        emit({"cluster": cluster_id(target), "decisions": [words.document(row) for row in rows]})
        return Exit.DONE
    for row in rows:
        console().print(Text(words.sentence(row)))
    return Exit.DONE


def split(
    cluster: IdArgument,
    signatures: Annotated[list[str], typer.Argument(metavar="SIGNATURE…", help="Signatures that leave it.")],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Move signatures out of a cluster into a new one; what is like them will follow."""
    number = cluster_number(cluster)
    return take_one(db, who, why, as_json, lambda session, by: deciding.split(session, number, signatures, by), "")


def name(
    cluster: IdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The name. An empty one takes the name away.")],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Name a cluster. The name stays whatever joins it."""
    number, wanted = cluster_number(cluster), one_line(text, "TEXT")
    already = words.unchanged("name", cluster_id(number), wanted)
    return take_one(db, who, why, as_json, lambda session, by: deciding.name(session, number, wanted, by), already)


def assign(
    cluster: IdArgument,
    failure_class: Annotated[
        str | None, typer.Argument(metavar="CLASS", help="A failure class: crashpath classes lists them.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="Who takes care of it. An empty one takes it away.")] = None,
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Give a cluster a failure class, which no classifier changes any more, or somebody who takes care of it."""
    if failure_class is None and to is None:
        raise UsageError("assign needs CLASS, or --to PERSON. Run crashpath assign --help for what is there.")
    number, wanted = cluster_number(cluster), None if failure_class is None else _class(failure_class)
    person = None if to is None else one_line(to, "--to")
    already = words.unchanged("assign", cluster_id(number), True)
    return take_one(
        db,
        who,
        why,
        as_json,
        lambda session, by: deciding.assign(session, number, wanted, by, assignee=person),
        already,
    )


def undo(
    decision: Annotated[int, typer.Argument(metavar="DECISION", min=1, help="Its number: crashpath decisions.")],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Take a decision back: all is as it was before it. An undo can be undone, too."""
    with deciding_in(db, who, why) as (session, by):
        done = undoing.undo(session, decision, by)
        row = taken(session, done.decision)
        what = taken(session, done.what)
    if as_json:
        emit(words.document(row) | words.undone_document(done))
        return Exit.DONE
    console().print(Text(words.undone_sentence(row, what)))
    for line in words.undone_lines(done):
        console().print(Text(line))
    return Exit.DONE


def decisions(
    cluster: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only those on this cluster.")] = None,
    limit: int = typer.Option(50, min=1, help="At most so many, the last ones."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """List what people decided: number, when, who, what, why, and what was undone."""
    number = None if cluster is None else cluster_number(cluster)
    with open_store(load_settings(db=db).db, create=False) as store, store.read() as session:
        found = listed(session, number)
    rows = found[-limit:]
    if as_json:
        emit([words.document(row) for row in rows])
        return Exit.DONE
    if not rows:
        console().print(_none(number), soft_wrap=True)
        return Exit.DONE
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("no.", "when (UTC)", "who", "what", "why"):
        table.add_column(heading, justify="right" if heading == "no." else "left", overflow="fold")
    for row in rows:
        undone = f" · undone by {row.undone_by}" if row.undone_by is not None else ""
        cells = (str(row.number), f"{row.at:%Y-%m-%d %H:%M}", row.who, f"{words.what(row)}{undone}", row.why or "")
        table.add_row(*map(Text, cells))
    console().print(table)
    if len(rows) < len(found):
        console().print(f"The last {len(rows):,} of {len(found):,}; --limit {len(found)} shows all.")
    return Exit.DONE


def _none(cluster: int | None) -> str:
    """Say that no decision was recorded, and which commands record one."""
    if cluster is not None:
        return f"Nobody decided anything on {cluster_id(cluster)} yet. crashpath {_DECIDE} do."
    return (
        f"Nobody decided anything yet. crashpath {_DECIDE} record a decision on clusters, "
        "crashpath review --override one on a release."
    )


def _class(given: str) -> str:
    known: Sequence[str] = (*(one.id for one in CLASSES), UNCLASSIFIED)
    if given in known:
        return given
    near = difflib.get_close_matches(given.lower().replace("-", "_").replace(" ", "_"), known, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(near)}?" if near else f"It is one of {', '.join(known)}."
    raise UsageError(f"{given} is no failure class. {advice}")
