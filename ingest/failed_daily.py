"""Failed attempts by day, counted once: what a review reads instead of every crash.

``failed_attempts`` says what one attempt is and stays the reference; here its rules are followed for the days that are
stale, and what they hold is kept in ``failed_daily``. An attempt counts on the day of its best witness, in that
witness's cohort and under its signature, so a write to one day may change every day on which a crash with the same
attempt id stands: those are counted along.

**Nothing is lost to a write in between.** A refresh claims the days that it counts: it puts a number of its own into
``touched``, reads the crashes after that, and writes only days whose ``touched`` is still that number, each with the
removal of its mark. A batch that came in between made it another number, and so did another refresh; such a day stays
stale and the next refresh counts it. Killed anywhere, a refresh leaves days stale that are right, never the reverse.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import delete, func, insert, null, select, type_coerce, update
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import CHUNK, chunks
from crashpath.ingest.failed_attempts import Windows, attempt_key, attempt_rank, unit_of, units_counted
from crashpath.ingest.schema import Json
from crashpath.ingest.stale import claim_new
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Crash, Variant
from crashpath.ingest.tables_counts import FailedCohort, FailedDaily, StaleDay

CRASHES = 20_000
"""Most crashes of the days that are counted at once, where one day has not more: a transaction stays short by it."""
_WINDOWS = Windows()
_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Refreshed:
    """``days`` were counted, over this many ``crashes``; ``left`` are still stale: somebody wrote to them meanwhile."""

    days: int = 0
    crashes: int = 0
    left: int = 0


class _Cell(NamedTuple):
    """What an attempt is counted by; ``told`` is whether an event named the unit."""

    day: date
    unit: str
    told: bool
    release: str
    platform: str
    model: str
    signature_id: str


class _Attempt:
    """One attempt while its witnesses are read: the best of them so far, and what all say together."""

    __slots__ = ("best", "cell", "contained", "unanswered", "witnesses")

    def __init__(self, best: Any, cell: _Cell) -> None:
        self.best, self.cell = best, cell
        self.witnesses, self.unanswered, self.contained = 0, False, False

    def witness(self, best: Any, cell: _Cell, outcome: str | None) -> None:
        if best < self.best:
            self.best, self.cell = best, cell
        self.witnesses += 1
        self.unanswered = self.unanswered or outcome == "unanswered"
        self.contained = self.contained or outcome == "contained"


def refresh_failures(store: Store, *, fence: Callable[[Session], None] | None = None) -> Refreshed:
    """Count the days that are stale. Crashes are read outside of the short transactions that write.

    ``fence`` is asked inside each of these and raises when a night may no longer write. Call it at any time, from
    several processes at once if need be.
    """
    with store.read() as session:
        if session.scalar(select(StaleDay.day).limit(1)) is None:
            return Refreshed()
    token = secrets.randbits(62)  # no other refresh has it, and no count of writes is as large
    claimed = _claim(store, token, fence)
    with store.read() as session:
        sizes = _sizes(session, claimed)
    done = crashes = 0
    for days in _portions(sizes):
        with store.read() as session:
            rows = _count(session, days)
        with store.write() as session:
            if fence is not None:
                fence(session)
            done += _replace(session, token, days, rows)
        crashes += sum(sizes[day] for day in days)
    with store.read() as session:
        left = session.scalar(select(func.count()).select_from(StaleDay)) or 0
    return Refreshed(done, crashes, left)


def _claim(store: Store, token: int, fence: Callable[[Session], None] | None) -> list[date]:
    """Claim the stale days, and then those that hang together with them by an attempt."""
    with store.write() as session:
        if fence is not None:
            fence(session)
        stale = set(session.scalars(select(StaleDay.day).order_by(StaleDay.day).with_for_update()).all())
        # Only these: a day that came meanwhile would be locked out of order, and two could wait for each other.
        for chunk in chunks(sorted(stale)):
            session.execute(update(StaleDay).where(StaleDay.day.in_(chunk)).values(touched=token))
    with store.read() as session:  # only now: whoever wrote before the claim is seen, whoever writes after it undoes it
        linked = _linked(session, stale)
    if linked:
        with store.write() as session:
            if fence is not None:
                fence(session)
            claim_new(session, linked, token)
    return sorted(stale | linked)


def _linked(session: Session, stale: set[date]) -> set[date]:
    """Return other days with crashes of attempts that have a crash on a stale day."""
    others = set(session.scalars(select(Crash.day).distinct())) - stale
    found: set[date] = set()
    if not others:
        return found
    for chunk in chunks(sorted(stale)):
        ids = select(Crash.attempt_id).where(Crash.day.in_(chunk), Crash.attempt_id.is_not(None))
        found.update(session.scalars(select(Crash.day).where(Crash.attempt_id.in_(ids)).distinct()))
    return found & others


def _sizes(session: Session, days: Sequence[date]) -> dict[date, int]:
    """Return how many crashes each day has."""
    sizes = dict.fromkeys(days, 0)
    for chunk in chunks(days):
        query = select(Crash.day, func.count()).where(Crash.day.in_(chunk)).group_by(Crash.day)
        sizes |= dict(session.execute(query).all())
    return sizes


def _portions(sizes: dict[date, int]) -> Iterator[list[date]]:
    portion: list[date] = []
    total = 0
    for day, size in sizes.items():
        if portion and (total + size > CRASHES or len(portion) == CHUNK):
            yield portion
            portion, total = [], 0
        portion.append(day)
        total += size
    if portion:
        yield portion


def _count(session: Session, days: Sequence[date]) -> list[Json]:
    """Return the rows of these days."""
    attempts: dict[str, _Attempt] = {}
    ids = select(Crash.attempt_id).where(Crash.day.in_(days), Crash.attempt_id.is_not(None))
    for own in (Crash.day.in_(days), Crash.attempt_id.in_(ids) & Crash.day.not_in(days)):
        _witnesses(session, own, attempts)
    wanted = set(days)
    sums: dict[tuple[Any, ...], list[int]] = {}
    for one in attempts.values():
        cell = one.cell
        if cell.day not in wanted:
            continue
        for unit in units_counted(cell.unit, cell.told):
            counts = sums.setdefault((cell.release, cell.day, unit, *cell[4:]), [0, 0, 0, 0])
            counts[0] += 1
            counts[1] += one.unanswered
            counts[2] += one.contained and not one.unanswered
            counts[3] += one.witnesses
    names = [column.name for column in FailedDaily.__table__.columns]
    return [dict(zip(names, (*key, *counts), strict=True)) for key, counts in sorted(sums.items())]


def _witnesses(session: Session, condition: Any, attempts: dict[str, _Attempt]) -> None:
    """Add crashes to their attempts."""
    moment = type_coerce(Crash.at, null().type)  # as the database has it: it is compared, not shown
    query = (
        select(
            attempt_key(_WINDOWS), attempt_rank(), moment, Crash.id, Crash.outcome, Crash.day,
            unit_of(), Crash.unit.is_not(None), Crash.release, Crash.platform, Crash.model, Variant.signature_id,
        )
        .join(Variant, Variant.id == Crash.variant_id)
        .where(condition)
        .execution_options(yield_per=_ROWS)
    )  # fmt: skip
    for key, rank, at, number, outcome, *cell in session.execute(query):
        best, where = (rank, at, number), _Cell._make(cell)
        attempt = attempts.get(key)
        if attempt is None:
            attempt = attempts[key] = _Attempt(best, where)
        attempt.witness(best, where, outcome)


def _replace(session: Session, token: int, days: Sequence[date], rows: Sequence[Json]) -> int:
    """Put in the rows of those days that are still ours, and take their marks away; return how many these were."""
    still = select(StaleDay.day).where(StaleDay.day.in_(days), StaleDay.touched == token).order_by(StaleDay.day)
    ours = set(session.scalars(still.with_for_update()))
    if not ours:
        return 0
    session.execute(delete(StaleDay).where(StaleDay.day.in_(ours)))
    new = [row for row in rows if row["day"] in ours]
    for table, counted in ((FailedDaily, new), (FailedCohort, _cohorts(new))):
        session.execute(delete(table).where(table.day.in_(ours)))
        if counted:
            session.connection().execute(insert(table.__table__), counted)  # type: ignore[arg-type]  # a Table
    return len(ours)


def _cohorts(rows: Sequence[Json]) -> list[Json]:
    """Return the sums of these rows over signatures."""
    key = [column.name for column in FailedCohort.__table__.primary_key]
    counts = [column.name for column in FailedCohort.__table__.columns if column.name not in key]
    sums: dict[tuple[Any, ...], Json] = {}
    for row in rows:
        cohort = {name: row[name] for name in key}
        total = sums.setdefault(tuple(cohort.values()), cohort | dict.fromkeys(counts, 0))
        for name in counts:
            total[name] += row[name]
    return list(sums.values())
