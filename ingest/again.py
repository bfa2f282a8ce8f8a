"""Sources that somebody asked to have read again: of a piece in quarantine nothing else is left than its place.

A file is cut into records anew only from its start, so it is read from there, in place of what it gave: a crash that is
found again at its offset is updated, one that is not is removed, and so is what was in quarantine. Nothing is counted
twice, however often it is asked. What was asked is a row of ``decision`` of the kind ``retry``, on no cluster; it is
done as soon as a night that began later has come upon the source.

Where the file holds what was read, that is all. A mended one does not, and may as well be another's that came to lie
there: it takes the source's place only where it gives all crashes again that the source gave, but those that border on
pieces in quarantine (``lost``). Else nothing of the source is touched, and the file is a source of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.decisions import By, hold
from crashpath.ingest.model import Analysis
from crashpath.ingest.rows import variant_key
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Crash, Night, Quarantine, Source, Variant
from crashpath.ingest.tables_evidence import Decision

KIND = "retry"
_LARGEST = 2**63 - 1
"""The largest number that a database has."""

Likeness = tuple[str, datetime | None]
"""What a crash is known by wherever it stands: its variant and when it was, ``None`` where that was inferred."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A source that is to be read again. ``night`` is the one that did it, ``None`` while it waits for one.

    ``overwritten``: another file lies in its place, so that it may never come.
    """

    number: int
    at: datetime
    who: str
    why: str | None
    source_id: int
    path: str
    night: int | None
    overwritten: bool


def ask(session: Session, source_id: int, by: By) -> tuple[Asked, bool]:
    """Ask for a source to be read again by the next night; also return whether nobody had before.

    Raises ``NoSuchThing``.
    """
    hold(session)  # no night may begin between the two statements: it would not know
    if source_id > _LARGEST or session.get(Source, source_id) is None:
        raise NoSuchThing(f"There is no source {source_id}.", "`crashpath quarantine` lists what may be asked for.")
    waiting = next((one for one in asked(session, source_id) if one.night is None), None)
    if waiting is not None:
        return waiting, False
    session.add(
        Decision(
            at=by.at, who=by.who, kind=KIND, cluster_id=None, other_id=None, review_id=None, signatures=[],
            value=str(source_id), why=by.why, before={"night": _last_night(session)}, undoes_id=None,
        )
    )  # fmt: skip
    session.flush()
    return asked(session, source_id)[0], True


def source_of(session: Session, piece: int) -> int:
    """Return the source of a piece in quarantine. Raises ``NoSuchThing``."""
    found = None if piece > _LARGEST else session.get(Quarantine, piece)
    if found is None:
        raise NoSuchThing(f"There is no piece {piece} in quarantine.", "`crashpath quarantine` lists them.")
    return found.source_id


def asked(session: Session, source_id: int | None = None, *, limit: int | None = 200) -> tuple[Asked, ...]:
    """Return what was asked, newest first."""
    query = select(Decision).where(Decision.kind == KIND).order_by(Decision.id.desc()).limit(limit)
    if source_id is not None:
        query = query.where(Decision.value == str(source_id))
    rows = session.scalars(query).all()
    ids = {int(row.value or 0) for row in rows}
    sources = {one.id: one for one in session.scalars(select(Source).where(Source.id.in_(ids)))}
    return tuple(_asked(row, sources[int(row.value or 0)]) for row in rows if int(row.value or 0) in sources)


def waiting(session: Session) -> frozenset[int]:
    """Return the sources that wait to be read again."""
    return frozenset(one.source_id for one in asked(session, limit=None) if one.night is None)


def likeness(analyses: Iterable[Analysis]) -> Counter[Likeness]:
    """Count what a file gives by what its crashes are known by."""
    return Counter((variant_key(one.variant), one.record.at) for one in analyses)


def lost(session: Session, source_id: int, found: Mapping[Likeness, int]) -> int:
    """Return how many crashes of a source are not among ``found`` and do not border on a piece in quarantine."""
    pieces = select(Quarantine.id).where(
        Quarantine.source_id == Crash.source_id, Quarantine.offset <= Crash.end, Quarantine.end >= Crash.offset
    )
    query = (
        select(Variant.key, Crash.at, Crash.at_inferred, func.count())
        .join(Variant, Variant.id == Crash.variant_id)
        .where(Crash.source_id == source_id, ~pieces.exists())
        .group_by(Variant.key, Crash.at, Crash.at_inferred)
    )
    stored: Counter[Likeness] = Counter()
    for key, at, inferred, number in session.execute(query):
        stored[key, None if inferred else at] += number
    return sum(max(0, number - found.get(one, 0)) for one, number in stored.items())


def _asked(row: Decision, source: Source) -> Asked:
    since = int(row.before.get("night", 0))
    night = source.last_night_id if source.last_night_id > since else None
    return Asked(
        row.id, row.at, row.who, row.why, source.id, source.path, night, source.superseded and night is None
    )  # fmt: skip


def _last_night(session: Session) -> int:
    return session.scalar(select(func.max(Night.id))) or 0
