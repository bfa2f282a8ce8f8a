"""Crashes of the last weeks by cluster and day, and on which days anything was heard at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.cluster_days import days_by_cluster
from crashpath.ingest.tables_evidence import Attempts

Days = Mapping[date, int]


@dataclass(frozen=True, slots=True)
class History:
    """Crashes by cluster and UTC day since ``start``. ``full`` is the last full day with a crash, ``None`` without one.

    ``heard`` are the days with any crash or attempt. ``begin`` is the first of them, or ``start`` where that is later.
    """

    start: date
    begin: date
    today: date
    full: date | None
    heard: frozenset[date]
    clusters: Mapping[int, Days]

    def before(self, days: Days, until: date, length: int, *, heard: bool) -> list[int]:
        """Return the counts of ``length`` days up to the day before ``until``, as far back as anything is known.

        With ``heard``, only of days on which anything was heard.
        """
        return [days.get(day, 0) for day in _before(until, length, self.begin, self.heard if heard else None)]

    def heard_after(self, day: date) -> int:
        """Return on how many full days after ``day`` anything was heard."""
        return 0 if self.full is None else sum(day < one <= self.full for one in self.heard)


def read_history(session: Session, length: int, at: datetime) -> History:
    """Read ``length`` days up to the day of ``at``, which is not over; what is dated later is not read."""
    today = at.date()
    start = today - timedelta(length)
    counted = days_by_cluster(session, start, today)
    clusters = {number: days for number, days in counted.items() if number is not None}
    crashed = {day for days in counted.values() for day in days}
    tried = select(Attempts.day).where(Attempts.day.between(start, today), Attempts.attempts > 0).distinct()
    heard = crashed | set(session.scalars(tried))
    full = max((day for day in crashed if day < today), default=None)
    return History(start, min(heard, default=today), today, full, frozenset(heard), clusters)


@lru_cache(maxsize=256)
def _before(until: date, length: int, begin: date, heard: frozenset[date] | None) -> tuple[date, ...]:
    """Return the days to look at: thousands of clusters are asked for the same ones."""
    days = (until - timedelta(n) for n in range(length, 0, -1))
    return tuple(day for day in days if day >= begin and (heard is None or day in heard))


def together(several: Sequence[Days]) -> Days:
    """Return the sums of several by day."""
    out: dict[date, int] = {}
    for days in several:
        for day, crashes in days.items():
            out[day] = out.get(day, 0) + crashes
    return out
