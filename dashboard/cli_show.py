"""``crashpath show ID``: one cluster, signature or crash, with the reasons for what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import typer
from rich.text import Text
from sqlalchemy.orm import Session

from crashpath.dashboard import decide_text
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.nearness import Near, nearest_clusters
from crashpath.dashboard.rule_text import rule_words
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.show_text import Line, cluster_lines, crash_lines, signature_lines
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.decisions import Taken, decisions
from crashpath.ingest.details import ClusterDetail, CrashDetail, Example, SignatureDetail
from crashpath.ingest.details import show as find
from crashpath.ingest.following import follow_signature, followed
from crashpath.ingest.store import open_store
from crashpath.ingest.store_errors import NoSuchThing

Thing = ClusterDetail | SignatureDetail | CrashDetail


@dataclass(frozen=True, slots=True)
class Shown:
    """What was found, a sentence where the id led elsewhere, its neighbours, and what people decided of it."""

    found: Thing
    followed: str | None
    near: tuple[Near, ...]
    decisions: tuple[Taken, ...]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(show)


def show(
    thing: str = typer.Argument(..., metavar="ID", help="C-0042, sig2-… (or its beginning), or a crash's number."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show a cluster, a signature or a crash: its root line, its parts, and why it is where it is."""
    with open_store(load_settings(db=db).db, create=False) as store, store.read() as session:
        shown = look(session, thing)
    if as_json:
        emit(document(shown))
        return Exit.DONE
    for text, style in lines(shown):
        console().print(Text(text, style=style), overflow="fold")
    return Exit.DONE


def look(session: Session, thing: str) -> Shown:
    """Find what an id means now. Raises ``NoSuchThing``."""
    wanted, note = _followed(session, thing.strip())
    found = find(session, wanted, examples=1)
    match found:
        case ClusterDetail():
            own = [one.id for one in found.signatures if one.is_exemplar]
            near = nearest_clusters(session, own, found.row.id)
            return Shown(found, note, near, decisions(session, found.row.number))
        case SignatureDetail():
            near = nearest_clusters(session, [found.id], found.cluster)
            home = () if found.cluster is None else decisions(session, cluster_number(found.cluster))
            return Shown(found, note, near, tuple(row for row in home if found.id in row.signatures))
        case CrashDetail():
            return Shown(found, note, (), ())


def _followed(session: Session, wanted: str) -> tuple[str, str | None]:
    if wanted.lower().startswith("sig"):
        try:
            find(session, wanted, examples=0)
        except NoSuchThing:
            if new := follow_signature(session, wanted):
                more = f" (and in part {', '.join(new[1:])})" if len(new) > 1 else ""
                return new[0], f"{wanted} is {new[0]} since a re-key{more}."
        return wanted, None
    if wanted.isdigit():
        return wanted, None
    number, note = followed(session, cluster_number(wanted))
    return cluster_id(number), note


def lines(shown: Shown) -> Iterator[Line]:
    """All of it as text."""
    if shown.followed:
        yield shown.followed, ""
    match shown.found:
        case ClusterDetail() as found:
            yield from cluster_lines(found, shown.near, shown.decisions)
        case SignatureDetail() as found:
            yield from signature_lines(found, shown.near, shown.decisions)
        case CrashDetail() as found:
            yield from crash_lines(found)


def document(shown: Shown) -> dict[str, Any]:
    """All of it as JSON."""
    rules = sorted({example.rule for example in _examples(shown.found)})
    return asdict(shown.found) | {
        "followed": shown.followed,
        "rules": {rule: list(rule_words(rule)) for rule in rules},
        "nearest": [asdict(one) for one in shown.near],
        "decisions": [decide_text.document(row) for row in shown.decisions],
    }


def _examples(found: Thing) -> tuple[Example, ...]:
    match found:
        case ClusterDetail():
            return tuple(example for one in found.signatures for example in one.examples)
        case SignatureDetail():
            return found.examples
        case CrashDetail():
            return () if found.example is None else (found.example,)
