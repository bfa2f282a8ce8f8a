"""``crashpath show ID``: one cluster, signature or crash, with the reasons for what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import typer
from rich.text import Text

from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.details import ClusterDetail, CrashDetail, Example, SignatureDetail
from crashpath.ingest.details import show as find
from crashpath.ingest.model import Role, Signature
from crashpath.ingest.signature import explain
from crashpath.ingest.store import open_store

MARKS = {Role.ROOT: "> ", Role.CASCADE: "~ ", Role.CONFIRMATION: "+ ", Role.CONTEXT: "  "}
STYLES = {Role.ROOT: "bold", Role.CASCADE: "dim", Role.CONFIRMATION: "cyan", Role.CONTEXT: ""}
JOINED = {
    "birth": "began this cluster or came in together with the first one",
    "join": "joined this cluster, which was there before",
    "recluster": "came here when clusters were formed anew",
    "person": "was put here by a person",
}
"""What the store calls the ways into a cluster, in words."""
WHY = {
    "shared": "words that both have",
    "differing": "words that only one has",
    "words": "in short",
}
MOST_LINES = 40
MOST_SIGNATURES = 10


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(show)


def show(
    thing: str = typer.Argument(..., metavar="ID", help="C-0042, sig2-…, or the number of a crash."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show a cluster, a signature or a crash: its root line, its parts, and why it is where it is."""
    with open_store(load_settings(db=db).db, create=False) as store, store.read() as session:
        found = find(session, thing, examples=1)
    if as_json:
        emit(asdict(found))
        return Exit.DONE
    for line in _lines(found):
        console().print(line, overflow="fold")
    return Exit.DONE


def _lines(found: ClusterDetail | SignatureDetail | CrashDetail) -> Iterator[Text]:
    match found:
        case ClusterDetail():
            yield from _cluster(found)
        case SignatureDetail():
            yield from _signature(found)
        case CrashDetail():
            yield from _crash(found)


def _cluster(found: ClusterDetail) -> Iterator[Text]:
    row = found.row
    yield Text(f"{row.id} · {row.failure_class} · {many(row.crashes, 'crash')}", style="bold")
    yield Text(f"{row.name or row.root_line}")
    if row.probability is not None:
        yield Text(f"class given by the {row.class_by}, probability {row.probability:.2f}")
    for reason in found.evidence:
        yield Text(f"  because {reason}")
    yield Text(f"first seen {row.first_day} in {row.first_release}, last {row.last_day} in {row.last_release}")
    for name, counts in (("release", found.by_release), ("platform", found.by_platform), ("path", found.by_path)):
        yield Text(f"by {name}: " + ", ".join(f"{count.key} {count.crashes:,}" for count in counts))
    yield Text()
    yield Text(many(len(found.signatures), "signature"), style="bold")
    for one in found.signatures[:MOST_SIGNATURES]:
        yield Text(f"  {one.id}  {many(one.crashes, 'crash')}  {_joined(one)}")
    if len(found.signatures) > MOST_SIGNATURES:
        yield Text(f"  … and {len(found.signatures) - MOST_SIGNATURES} more (--json lists all)")
    if found.signatures:
        yield Text()
        yield from _example(found.signatures[0].examples)


def _joined(one: SignatureDetail) -> str:
    """Say how a signature came to its cluster, and what it was compared with."""
    if one.joined_by is None:
        return "is in no cluster yet"
    words = JOINED.get(one.joined_by, one.joined_by)
    why = one.why or {}
    nearest, distance, limit = why.get("exemplar"), why.get("distance"), why.get("threshold")
    if not nearest or not isinstance(distance, (int, float)):
        return words
    allowed = f" (joins up to {limit:.2f})" if isinstance(limit, (int, float)) else ""
    place = "nearest outside it" if one.joined_by == "birth" else "nearest in it"
    return f"{words}; {place}: {nearest} at distance {distance:.2f}{allowed}"


def _signature(found: SignatureDetail) -> Iterator[Text]:
    yield Text(f"{found.id} · {many(found.crashes, 'crash')} · cluster {found.cluster or 'none yet'}", style="bold")
    yield Text(explain(Signature(found.id, found.text, found.tree)))
    yield Text(_joined(found))
    why = found.why or {}
    for name, what in WHY.items():
        value = why.get(name)
        words = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value or "")
        if words:
            yield Text(f"  {what}: {words}")
    yield Text()
    yield from _example(found.examples)


def _crash(found: CrashDetail) -> Iterator[Text]:
    yield Text(f"crash {found.id} · {found.at:%Y-%m-%d %H:%M:%S} UTC · cluster {found.cluster}", style="bold")
    yield Text(f"{found.source} at byte {found.offset}")
    facts = (found.release, found.platform, found.model, found.path, found.phase)
    yield Text("release, platform, model, path, phase: " + ", ".join(facts))
    yield Text(f"root ({found.root_rule}): {found.root_type}: {found.root_message}")
    if found.example is not None:
        yield Text()
        yield from _example((found.example,))


def _example(examples: tuple[Example, ...]) -> Iterator[Text]:
    """The text of a crash, its lines marked: > root, ~ cascade, + confirmation."""
    if not examples:
        yield Text("No text is kept of it.")
        return
    yield Text("> root   ~ cascade   + confirmation", style="dim")
    example = examples[0]
    lines = example.text.split("\n")
    first = max(0, min(example.root_line - MOST_LINES // 2, len(lines) - MOST_LINES))
    for number, line in enumerate(lines[first : first + MOST_LINES], start=first):
        role = example.roles[number] if number < len(example.roles) else Role.CONTEXT
        yield Text(MARKS[role] + line, style=STYLES[role])
