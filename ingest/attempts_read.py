"""What is known of attempts, in sums, and which rows were corrected."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import date, datetime
from itertools import pairwise

from sqlalchemy import String, cast, select
from sqlalchemy.orm import Session

from crashpath.ingest.event_attempts import FILE, AttemptCount, attempt_counts
from crashpath.ingest.schema import Json
from crashpath.ingest.tables_evidence import Attempts


@dataclass(frozen=True, slots=True)
class AttemptSum:
    """Attempts of a cohort in a unit, over all paths and days. ``failures`` is ``None`` where no row tells it.

    ``corrected`` of the ``rows`` had other numbers before.
    """

    unit: str
    release: str
    platform: str
    model: str
    first_day: date
    last_day: date
    attempts: int
    failures: int | None
    rows: int
    corrected: int


@dataclass(frozen=True, slots=True)
class RowTold:
    """The numbers of a row, the file that told them, and when it was loaded (UTC)."""

    attempts: int
    failures: int | None
    unanswered: int | None
    users: int | None
    devices: int | None
    origin: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Correction:
    """A row that a file told anew with other numbers: those before and those after."""

    unit: str
    day: date
    release: str
    platform: str
    model: str
    path: str
    before: RowTold
    after: RowTold


def attempt_sums(session: Session, *, releases: Collection[str] | None = None) -> tuple[AttemptSum, ...]:
    """Sum the attempts that are counted, in order of unit, release, platform and model."""
    corrected = {_key(one) for one in _corrected(session, releases)}
    sums: dict[tuple[str, str, str, str], AttemptSum] = {}
    for row in attempt_counts(session, releases=releases):
        cohort = (row.unit, row.release, row.platform, row.model)
        known = sums.get(cohort, AttemptSum(*cohort, row.day, row.day, 0, None, 0, 0))
        sums[cohort] = AttemptSum(
            *cohort, min(known.first_day, row.day), max(known.last_day, row.day), known.attempts + row.attempts,
            _both(known.failures, row.failures), known.rows + 1,
            known.corrected + (row.via == FILE and _key(row) in corrected),
        )  # fmt: skip
    return tuple(one for _, one in sorted(sums.items()))


def corrections(session: Session, *, releases: Collection[str] | None = None) -> tuple[Correction, ...]:
    """Return every correction, in order of the rows and, within a row, of time."""
    found = []
    for row in sorted(_corrected(session, releases), key=_key):
        now = RowTold(*(getattr(row, field.name) for field in fields(RowTold)))
        told = [*(_told(one) for one in row.history), now]
        found += [Correction(*_key(row), before, after) for before, after in pairwise(told)]
    return tuple(found)


def _told(before: Json) -> RowTold:
    return RowTold(
        before["attempts"], before.get("failures"), before.get("unanswered"), before.get("users"),
        before.get("devices"), before["origin"], datetime.fromisoformat(before["recorded_at"]),
    )  # fmt: skip


def _corrected(session: Session, releases: Collection[str] | None) -> Iterable[Attempts]:
    query = select(Attempts).where(cast(Attempts.history, String) != "[]")
    if releases is not None:
        query = query.where(Attempts.release.in_(sorted(releases)))
    return session.scalars(query)


def _key(row: Attempts | AttemptCount) -> tuple[str, date, str, str, str, str]:
    return row.unit, row.day, row.release, row.platform, row.model, row.path


def _both(known: int | None, more: int | None) -> int | None:
    return more if known is None else known + (more or 0)
