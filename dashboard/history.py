"""Crashes of the last weeks by cluster and day, and on which days anything was heard at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.clusters import cluster_number
from crashpath.ingest.tables_evidence import Attempts
from crashpath.ingest.trends import UNASSIGNED, Filters, counts_by_day

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
        wanted = [until - timedelta(n) for n in range(length, 0, -1)]
        return [days.get(day, 0) for day in wanted if day >= self.begin and (not heard or day in self.heard)]

    def heard_after(self, day: date) -> int:
        """Return on how many full days after ``day`` anything was heard."""
        return 0 if self.full is None else sum(day < one <= self.full for one in self.heard)


def read_history(session: Session, length: int, at: datetime) -> History:
    """Read ``length`` days up to the day of ``at``, which is not over; what is dated later is not read."""
    today = at.date()
    start = today - timedelta(length)
    clusters: dict[int, dict[date, int]] = {}
    crashed: set[date] = set()
    for row in counts_by_day(session, "cluster", Filters(since=start, until=today)):
        crashed.add(row.day)
        if row.key != UNASSIGNED:
            clusters.setdefault(cluster_number(row.key), {})[row.day] = row.crashes
    tried = session.scalars(select(Attempts.day).where(Attempts.day.between(start, today), Attempts.attempts > 0))
    heard = crashed | set(tried)
    full = max((day for day in crashed if day < today), default=None)
    return History(start, min(heard, default=today), today, full, frozenset(heard), clusters)


def together(several: Sequence[Days]) -> Days:
    """Return the sums of several by day."""
    out: dict[date, int] = {}
    for days in several:
        for day, crashes in days.items():
            out[day] = out.get(day, 0) + crashes
    return out
