"""What is in quarantine and what was asked to be read again, in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from crashpath.dashboard.page_text import one_line
from crashpath.dashboard.plurals import many
from crashpath.ingest.again import Asked
from crashpath.ingest.quarantined import Held
from crashpath.ingest.queries import QuarantineRow

MEANING = (
    "A piece in quarantine could not be decoded, or is no event that can be read. It gave no crash; its bytes are not "
    "kept, only where they are, their hash and a redacted beginning."
)
RETRY = (
    "The next night that comes upon the file reads it again from its start, in place of what it gave: nothing is "
    "counted twice. Mend the file first, or upgrade crashpath; a file that is as it was gives what it gave."
)


def summed(held: Held) -> str:
    """Say how much is in quarantine, and why: ``3 pieces of 1 source: not text 2, no event in an event file 1``."""
    if not held.pieces:
        return "Nothing is in quarantine."
    reasons = [f"{one_line(reason, 60)} {number:,}" for reason, number in held.reasons]
    reasons += [f"other reasons {held.others:,}"] if held.others else []
    return f"{many(held.pieces, 'piece')} of {many(held.sources, 'source')}: {', '.join(reasons)}."


def asked_sentence(one: Asked) -> str:
    """Say what was asked of a source, and what became of it."""
    asked = f"asked for by {one_line(one.who, 60)} on {one.at:%Y-%m-%d %H:%M} UTC"
    said = f"Source {one.source_id} ({one_line(one.path, 120)}), {asked}"
    if one.night is not None:
        return f"{said}: night {one.night} came upon it."
    if one.overwritten:
        return f"{said}: its file was overwritten by another one, so it waits until a copy of it is found."
    return f"{said}: waits for a night that reads this file."


def asked_now(one: Asked, first: bool) -> str:
    """Say that a source will be read again, or that this was asked for before."""
    path = one_line(one.path, 120)
    if first:
        return f"Source {one.source_id} ({path}) will be read again from its start by the next night that finds it."
    return f"Nothing was recorded: {asked_sentence(one)}"


def document(held: Held, pieces: tuple[QuarantineRow, ...], asked: tuple[Asked, ...]) -> dict[str, Any]:
    """Return all of it as JSON."""
    return {
        "pieces": held.pieces,
        "sources": held.sources,
        "reasons": dict(held.reasons) | ({"other reasons": held.others} if held.others else {}),
        "listed": [asdict(one) | {"at": one.at.isoformat()} for one in pieces],
        "asked": [asked_document(one) for one in asked],
    }


def asked_document(one: Asked) -> dict[str, Any]:
    """Return what was asked as JSON."""
    return asdict(one) | {"at": one.at.isoformat()}
