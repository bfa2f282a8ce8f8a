"""What was decided, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from crashpath.dashboard.plurals import many
from crashpath.ingest.decisions import Taken
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
        case "override":
            return f"override of release {row.release}: {row.over} to {row.value}"
        case "undo":
            return f"undo of {row.undoes}"
        case other:
            return other


def _assigned(row: Taken) -> str:
    parts = [f"class {row.value}"] if row.value else []
    if row.assignee_changed:
        parts.append(f"given to {row.assignee}" if row.assignee else "given to nobody")
    return f"{row.cluster}: {', '.join(parts)}"


def sentence(row: Taken) -> str:
    """Say it with its number, by which it can be taken back."""
    return f"Decision {row.number}: {what(row)}."


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
