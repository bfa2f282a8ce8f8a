"""Attempts that the runtime's events tell of: counts that add up, each batch once.

A batch is known by its id, wherever its line stands: a file that was copied, rotated or read again after a kill adds
nothing. What is added and which batches it was stand in the transaction that moves the source's checkpoint.

**Two origins of one cohort's day.** Rows ``via = 'events'`` are sums, rows ``via = 'file'`` (``--attempts``) are
totals that a person or another system stands for, and both keep their own row. They count the same attempts, so they
are never added: ``attempt_counts`` takes the file's row and leaves out every row of events that it may include, which
is one of the same unit and day whose release, platform, model and path are the same or not told on one side. A
denominator can come out too small by this (a rate too high, a verdict too careful), never too large.

A sum ends at ``MOST_SUM``: beyond what a column of 64 bits holds, one database would refuse the night and another
would go on in floating point.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from itertools import product
from operator import itemgetter
from typing import Any

from sqlalchemy import case, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.runtime_events import AttemptsEvent
from crashpath.ingest.schema import UNKNOWN, Json
from crashpath.ingest.storable import fact, storable
from crashpath.ingest.tables_evidence import Attempts, EventBatch

FILE, EVENTS = "file", "events"
COHORT = ("release", "platform", "model", "path")
_COUNTS = ("attempts", "failures", "unanswered", "rerouted")
_KEY = ("via", "unit", "day", *COHORT)
MOST_SUM = (1 << 53) - 1
"""A thousand times what one batch may tell, and exact wherever a JSON number is read."""
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """How often ``unit`` was tried on a UTC day in a cohort, and how many of them failed or were not answered.

    ``rerouted`` is how many were sent to the fallback without a try of the main path: events alone tell it.
    ``failures`` (attempts in which a path or the prepare step failed) and ``unanswered`` are ``None`` where a file does
    not say; ``via`` is the origin.
    """

    unit: str
    day: date
    release: str
    platform: str
    model: str
    path: str
    attempts: int
    failures: int | None
    unanswered: int | None
    rerouted: int | None
    users: int | None
    devices: int | None
    via: str


def add_attempts(
    session: Session,
    batches: Sequence[AttemptsEvent],
    *,
    night_id: int,
    redact: Callable[[str], str],
    now: datetime,
) -> int:
    """Add the batches that are not in the sums yet; return how many attempts that were."""
    found = {batch_hash(one.batch_id): one for one in batches}
    known: set[str] = set()
    for chunk in chunks(sorted(found), _CHUNK):
        known.update(session.scalars(select(EventBatch.batch_hash).where(EventBatch.batch_hash.in_(chunk))))
    new = {key: one for key, one in found.items() if key not in known}
    if not new:
        return 0
    rows = [
        {"batch_hash": key, "night_id": night_id, "unit": one.unit, "day": one.day, "attempts": one.attempts}
        for key, one in new.items()
    ]
    session.execute(insert(EventBatch), rows)
    _add(session, _sums(new.values(), lambda text: storable(redact(text)), now))
    return sum(one.attempts for one in new.values())


def batch_hash(batch_id: str) -> str:
    """Hash the id of a batch: it may be long, and hold a host's name."""
    return hashlib.blake2b(batch_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def attempt_counts(
    session: Session, *, releases: Collection[str] | None = None, unit: str | None = None
) -> tuple[AttemptCount, ...]:
    """Return the attempts to be counted, in order, both origins put together as this module says."""
    query = select(*(getattr(Attempts, field.name) for field in fields(AttemptCount)))
    wanted = None if releases is None else frozenset(releases)
    if wanted is not None:
        ours = Attempts.release.in_(sorted({*wanted, UNKNOWN}))
        # (What events tell of no release may be in a file's row of any.)
        query = query.where(ours | (Attempts.via == FILE) if UNKNOWN in wanted else ours)
    if unit is not None:
        query = query.where(Attempts.unit == unit)
    # There may be very many rows: tuples in the order of AttemptCount, until it is known which of them count.
    rows = session.connection().execute(query).all()
    told: dict[tuple[str, date], list[_Cohort]] = defaultdict(list)
    for row in rows:
        if row[-1] == FILE:
            told[row[0], row[1]].append(row[2:6])
    totals = {key: Totals(cohorts) for key, cohorts in told.items()}
    kept = [
        row
        for row in rows
        if (wanted is None or row[2] in wanted)
        and (row[-1] == FILE or (total := totals.get(row[:2])) is None or not total.cover(row[2:6]))
    ]
    kept.sort(key=itemgetter(slice(6)))
    return tuple(AttemptCount(*row) for row in kept)


_Cohort = tuple[str, ...]
"""Release, platform, model and path."""


class Totals:
    """The cohorts that files tell of one unit and day, looked up by those parts that an event's row knows."""

    def __init__(self, cohorts: Sequence[_Cohort]) -> None:
        self._cohorts = frozenset(cohorts)
        self._by_parts: dict[tuple[int, ...], set[tuple[str, ...]]] = {}

    def cover(self, cohort: _Cohort) -> bool:
        """Whether one of them may include this one: part by part they are the same, or one of the two is not told."""
        if cohort in self._cohorts:
            return True
        known = tuple(place for place, part in enumerate(cohort) if part != UNKNOWN)
        if known not in self._by_parts:
            self._by_parts[known] = {tuple(one[place] for place in known) for one in self._cohorts}
        found = self._by_parts[known]
        return any(parts in found for parts in product(*((cohort[place], UNKNOWN) for place in known)))


def _sums(batches: Iterable[AttemptsEvent], clean: Callable[[str], str], now: datetime) -> list[Json]:
    """Sum batches by cohort: one row each, as a statement that meets a row twice cannot say which."""
    sums: dict[tuple[object, ...], Json] = {}
    for one in batches:
        cohort = {name: fact(getattr(one.facts, name), clean) for name in COHORT}
        row: Json = {"via": EVENTS, "unit": one.unit, "day": one.day, **cohort}
        total = sums.setdefault(
            tuple(row[name] for name in _KEY),
            row | dict.fromkeys(_COUNTS, 0) | {"origin": EVENTS, "recorded_at": now, "history": []},
        )
        for name in _COUNTS:
            total[name] = min(MOST_SUM, total[name] + getattr(one, name))
    return list(sums.values())


def _add(session: Session, rows: list[Json]) -> None:
    dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(Attempts.__table__)
    new = statement.excluded
    added: Json = {name: _bounded(getattr(Attempts, name), new[name]) for name in _COUNTS}
    added["recorded_at"] = new.recorded_at
    session.connection().execute(statement.on_conflict_do_update(index_elements=[*_KEY], set_=added), rows)


def _bounded(old: Any, more: Any) -> Any:
    """The sum of two counts in SQL, asked before it is made: neither side ever leaves what the column holds."""
    return case((old > MOST_SUM - more, MOST_SUM), else_=old + more)
