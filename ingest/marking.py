"""Say how a cluster stands: resolved in a release, muted for a time, followed up in a ticket, or a note on it.

As in ``deciding``, each is a short transaction of the caller's; what cannot be said as things stand raises ``Refused``
or ``NoSuchThing`` and changes nothing, and what would change nothing is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.changes import Recorder
from crashpath.ingest.deciding import active
from crashpath.ingest.decisions import By, Kind, hold, record, tell, undoers
from crashpath.ingest.said import link, said
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.storable import clean, fact
from crashpath.ingest.store_errors import Refused
from crashpath.ingest.tables_evidence import Decision


def resolve(session: Session, number: int, release: str, by: By) -> Decision | None:
    """Say that a cluster's failures are gone from a release on, or take that away where ``release`` is empty.

    The release may be one that is still to come. Failures of the cluster in it, or in a later one, are regressions.
    """
    wanted = fact(release.strip(), clean) if release.strip() else None  # spelled as the releases of crashes are
    if wanted == UNKNOWN:
        raise Refused(
            f"{UNKNOWN} is no release: crashes that name none are counted under it.", "Name the one with the fix."
        )
    return _mark(session, "resolve", number, by, "resolved_in", wanted, str)


def mute(session: Session, number: int, until: datetime | None, by: By) -> Decision | None:
    """Leave a cluster out of what nights tell of until a moment, or take that away where it is ``None``."""
    if until is not None and until <= by.at:
        raise Refused(f"{until.astimezone(UTC):%Y-%m-%d %H:%M} UTC is past.", "Mute it until a day that is to come.")
    return _mark(session, "mute", number, by, "muted_until", until, datetime.isoformat)


def ticket(session: Session, number: int, address: str, by: By) -> Decision | None:
    """Link a cluster to where it is followed up, or take the link away where ``address`` is empty."""
    try:
        wanted = link(address.strip()) if address.strip() else None
    except ValueError as error:
        raise Refused(f"This link cannot be kept: {error}.", "Give the page's address as a browser shows it.") from None
    return _mark(session, "ticket", number, by, "ticket", wanted, str)


def note(session: Session, number: int, text: str, by: By) -> Decision | None:
    """Keep a text with a cluster. The same one is not kept twice; an undo strikes it out."""
    hold(session)
    active(session, number)
    wanted = said(text).strip()
    if not wanted:
        raise Refused("There is nothing in this note.", "Write what the next one should know.")
    if wanted in _notes(session, number):
        return None
    row = record(session, "note", by, Recorder(session).changes(), cluster=number, value=wanted)
    tell(session, row, number, "decided", note=wanted)
    return row


def _mark(
    session: Session, kind: Kind, number: int, by: By, field: str, wanted: Any, written: Callable[[Any], str]
) -> Decision | None:
    """Set one column of a cluster, with its decision and its line in the lineage."""
    hold(session)
    row = active(session, number)
    if getattr(row, field) == wanted:
        return None
    recorder = Recorder(session)
    recorder.cluster(number)
    setattr(row, field, wanted)
    value = None if wanted is None else written(wanted)
    made = record(session, kind, by, recorder.changes(), cluster=number, value=value)
    detail: dict[str, Any] = {field: value}
    tell(session, made, number, "decided", **detail)
    return made


def _notes(session: Session, number: int) -> set[str | None]:
    """The notes on a cluster that were not taken back."""
    undone = undoers(session)
    rows = session.execute(
        select(Decision.id, Decision.value).where(Decision.kind == "note", Decision.cluster_id == number)
    )
    return {text for decision, text in rows if decision not in undone}
