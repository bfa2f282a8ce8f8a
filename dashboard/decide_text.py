"""What was decided, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from crashpath.dashboard.plurals import many
from crashpath.ingest.decisions import Kind, Taken
from crashpath.ingest.undoing import Undone


def what(row: Taken) -> str:
    """Say what a decision was: ``C-0002 into C-0001 (3 signatures)``."""
    match row.kind:
        case "merge":
            return f"merge of {row.other} into {row.cluster} ({many(len(row.signatures), 'signature')})"
        case "split":
            return f"split of {many(len(row.signatures), 'signature')} out of {row.cluster} into {row.other}"
        case "name":
            return f"name of {row.cluster}: {row.value}" if row.value else f"name of {row.cluster} taken away"
        case "assign":
            return _assigned(row)
        case "resolve":
            return f"{row.cluster} {resolved(row.value)}"
        case "mute":
            return f"{row.cluster} {muted(row.value)}"
        case "ticket":
            return f"ticket of {row.cluster}: {row.value}" if row.value else f"ticket of {row.cluster} taken away"
        case "note":
            return f"note on {row.cluster}: {' '.join((row.value or '').split())}"
        case "override":
            return f"override of release {row.release}: {row.over} to {row.value}"
        case "undo":
            return f"undo of {row.undoes}"
        case other:
            return other


def resolved(release: str | None) -> str:
    """Say where a cluster is resolved."""
    return f"resolved in {release}" if release else "no longer resolved"


def muted(until: str | datetime | None) -> str:
    """Say until when a cluster is muted; a moment in JSON is text."""
    moment = datetime.fromisoformat(until) if isinstance(until, str) else until
    return "no longer muted" if moment is None else f"muted until {moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def unchanged(kind: Kind, cluster: str, wanted: object) -> str:
    """Say that a decision was so already; ``wanted`` is false where something was to be taken away."""
    match kind:
        case "name":
            said = f"{cluster} {'has that name' if wanted else 'has no name'} already"
        case "resolve":
            said = f"{cluster} is {'resolved in that release' if wanted else 'not resolved in any release'} already"
        case "mute":
            said = f"{cluster} is {'muted until then' if wanted else 'not muted'} already"
        case "ticket":
            said = f"{cluster} has {'that ticket' if wanted else 'no ticket'} already"
        case "note":
            said = f"{cluster} has that note already"
        case _:
            said = f"People said so of {cluster} already"
    return f"{said}: nothing was recorded."


def _assigned(row: Taken) -> str:
    parts = [f"class {row.value}"] if row.value else []
    if row.assignee_changed:
        parts.append(f"given to {row.assignee}" if row.assignee else "given to nobody")
    return f"{row.cluster}: {', '.join(parts)}"


def sentence(row: Taken) -> str:
    """Say it with its number, by which it can be taken back."""
    return f"Decision {row.number}: {what(row)}."


def entry(row: Taken) -> str:
    """Say it as a list of decisions does: its number, day, who, what, why, and what became of it."""
    undone = "" if row.undone_by is None else f" (undone by {row.undone_by})"
    why = f": {row.why}" if row.why else ""
    return f"{row.number}  {row.at:%Y-%m-%d} {row.who}: {what(row)}{why}{undone}"


def undone_sentence(row: Taken, back: Taken) -> str:
    """Say of an undo what it took back."""
    return f"Decision {row.number}: undo of {back.number}, {what(back)}."


def document(row: Taken) -> dict[str, Any]:
    """Return a decision as JSON has it."""
    out = asdict(row)
    return {"decision": out.pop("number"), **out, "at": row.at.isoformat()}


def undone_document(done: Undone) -> dict[str, Any]:
    """Return what an undo did as JSON has it."""
    return {
        "returned": done.returned,
        "elsewhere": done.elsewhere,
        "newcomers": [asdict(one) for one in done.newcomers],
    }


def undone_lines(done: Undone) -> Iterator[str]:
    """Say what became of the signatures."""
    if done.returned:
        yield f"{many(done.returned, 'signature')} went back."
    if done.elsewhere:
        yield f"{many(done.elsewhere, 'signature')} moved on since, and stay where they are."
    for one in done.newcomers:
        if one.source == one.target:
            yield f"{many(one.number, 'signature')} that joined {one.source} since stay there."
        else:
            yield (
                f"{many(one.number, 'signature')} that joined {one.source} since went to {one.target}, "
                "as their nearest exemplar did."
            )
