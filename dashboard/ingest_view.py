"""What the page Ingest health shows: nights, sources, quarantine, versions, size. Read from the store, bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.again import Asked, asked
from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.keying import keying
from crashpath.ingest.lineage import tied_encoder
from crashpath.ingest.nights import NightRow, nights
from crashpath.ingest.outbox import Standing, standings
from crashpath.ingest.quarantined import Held, held
from crashpath.ingest.queries import QuarantineRow, SourceRow, quarantine
from crashpath.ingest.queries import sources as source_rows
from crashpath.ingest.sizes import StoreSize, store_size
from crashpath.ingest.store import HEAD
from crashpath.ingest.tables import CrashDaily, Night, Source
from crashpath.ingest.trends import Filters, counts_by_day

MOST_NIGHTS = 200
MOST_PIECES = 200
MOST_SOURCES = 200
MOST_VERSIONS = 2000
"""Nights that are looked through for changes of versions."""


@dataclass(frozen=True, slots=True)
class NightLine:
    """One night. Numbers are those of the night, ``None`` where it did not get so far; times are UTC.

    ``crashes`` and ``unclassified`` (a share) are of the whole store after it, ``bytes`` its size on disk.
    """

    id: int
    status: str
    reason: str | None
    started: datetime
    finished: datetime | None
    stages: tuple[tuple[str, float], ...]
    counts: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    advice: tuple[str, ...]
    records: int | None
    new_crashes: int | None
    new_signatures: int | None
    new_clusters: int | None
    quarantined: int | None
    redactions: int | None
    read: int | None
    unreadable: int | None
    crashes: int | None
    unclassified: float | None
    bytes: int | None

    @property
    def seconds(self) -> float | None:
        """How long it took by the clock of its stages; ``None`` where none was kept."""
        return sum(spent for _, spent in self.stages) if self.stages else None


@dataclass(frozen=True, slots=True)
class Nights:
    """The last nights, newest first, and how many there are in all."""

    nights: tuple[NightLine, ...]
    total: int

    @property
    def last(self) -> NightLine | None:
        """The one that began last."""
        return self.nights[0] if self.nights else None


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is in quarantine: counted, the newest listed, and what was asked to be read again."""

    held: Held
    rows: tuple[QuarantineRow, ...]
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """The ledger: how many sources there are, with a problem, overwritten; those with a problem are listed first."""

    total: int
    problems: int
    superseded: int
    rows: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What ran from a night on: ``old`` is ``None`` in the first of the nights that are looked through."""

    what: str
    old: str | None
    new: str
    night: int
    at: datetime


@dataclass(frozen=True, slots=True)
class CatchAll:
    """Crashes of one UTC day, and those of them that are in no class today."""

    day: date
    crashes: int
    unclassified: int


@dataclass(frozen=True, slots=True)
class StoreState:
    """What the store is made of and tied to, and what it has still to tell."""

    size: StoreSize
    encoder: str | None
    keying: str
    schema: str
    changes: tuple[Change, ...]
    looked_through: int
    places: tuple[Standing, ...]


def read_nights(session: Session, limit: int = MOST_NIGHTS) -> Nights:
    """Return the last nights."""
    total = session.scalar(select(func.count()).select_from(Night)) or 0
    return Nights(tuple(_line(one) for one in nights(session, limit)), total)


def read_night(session: Session, number: int) -> NightLine | None:
    """Return one night, however long ago; ``None`` for one that never was."""
    if not 0 < number < 2**31:
        return None
    row = session.get(Night, number)
    return (
        None
        if row is None
        else _line(
            NightRow(
                row.id, row.started_at, row.finished_at, row.status, row.reason, row.counts, row.seconds, row.versions
            )
        )
    )


def read_pieces(session: Session, night: int | None = None, limit: int = MOST_PIECES) -> Pieces:
    """Return what is in quarantine, or what one night put there."""
    return Pieces(held(session, night), quarantine(session, night_id=night, limit=limit), asked(session, limit=50))


def read_sources(session: Session, problems_only: bool = False, limit: int = MOST_SOURCES) -> Sources:
    """Return the ledger."""
    total, problems, superseded = session.execute(
        select(
            func.count(), func.count(Source.problem), func.count().filter(Source.superseded)
        ).select_from(Source)
    ).one()  # fmt: skip
    broken = source_rows(session, problems_only=True, limit=limit)
    known = {one.id for one in broken}
    rest = () if problems_only else source_rows(session, limit=limit)
    rows = (*broken, *(one for one in rest if one.id not in known))[:limit]
    return Sources(int(total), int(problems), int(superseded), rows)


def read_store(session: Session) -> StoreState:
    """Return size, versions and what waits to be told."""
    changes, looked = _changes(session)
    return StoreState(
        store_size(session), tied_encoder(session), keying().id, HEAD, changes, looked, standings(session)
    )


def read_catch_all(session: Session) -> tuple[CatchAll, ...]:
    """Return how much is in no class, by UTC day of the crash."""
    query = select(CrashDaily.day, func.sum(CrashDaily.crashes)).group_by(CrashDaily.day).order_by(CrashDaily.day)
    none = {one.day: one.crashes for one in counts_by_day(session, "class", Filters(failure_class=UNCLASSIFIED))}
    return tuple(CatchAll(day, int(crashes), none.get(day, 0)) for day, crashes in session.execute(query))


def _line(row: NightRow) -> NightLine:
    counts, files = row.counts, _mapping(row.counts.get("sources"))
    share = counts.get("unclassified_share")
    return NightLine(
        id=row.id,
        status=row.status,
        reason=row.reason,
        started=row.started_at,
        finished=row.finished_at,
        stages=tuple((str(stage), max(0.0, float(spent))) for stage, spent in row.seconds.items()),
        counts=tuple(_flat(counts)),
        versions=tuple((str(name), str(value)) for name, value in row.versions.items()),
        problems=_texts(counts.get("problems")),
        advice=_texts(counts.get("advice")),
        records=_number(counts, "records"),
        new_crashes=_number(counts, "new_crashes"),
        new_signatures=_number(counts, "new_signatures"),
        new_clusters=_number(counts, "new_clusters"),
        quarantined=_number(counts, "quarantined"),
        redactions=_number(counts, "redactions"),
        read=_number(files, "read"),
        unreadable=_number(files, "unreadable"),
        crashes=_number(counts, "crashes"),
        unclassified=float(share) if isinstance(share, int | float) and _number(counts, "crashes") else None,
        bytes=_number(counts, "store_bytes"),
    )


def _number(counts: Mapping[str, Any], name: str) -> int | None:
    """Older nights, and those that failed, have fewer figures."""
    found = counts.get(name)
    return found if isinstance(found, int) else None


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _texts(found: object) -> tuple[str, ...]:
    return tuple(str(one) for one in found[:50]) if isinstance(found, list) else ()


def _flat(counts: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """All single figures of a night, by their names in ``nightly --json``."""
    out: list[tuple[str, str]] = []
    for name, value in counts.items():
        if isinstance(value, Mapping):
            out += _flat(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            out.append((f"{before}{name}", f"{value:,}"))
        elif isinstance(value, str | bool):
            out.append((f"{before}{name}", str(value)))
    return out


def _changes(session: Session) -> tuple[tuple[Change, ...], int]:
    """Return what ran when, newest first; only where it changed."""
    query = select(Night.id, Night.started_at, Night.versions).order_by(Night.id.desc()).limit(MOST_VERSIONS)
    rows = session.execute(query).all()
    ran: dict[str, str] = {}
    changes = []
    for number, at, versions in reversed(rows):
        for what, new in versions.items():
            if ran.get(what) != new:
                changes.append(Change(str(what), ran.get(what), str(new), number, at))
                ran[what] = new
    return tuple(reversed(changes)), len(rows)
