"""What a night's digest tells of, as marks of clusters: new, regressed, spiking, back and fixed, by the same rules.

They are those of the last night that came to an end, at its time, whatever was told before: against the one before it,
of the nights that ended a day earlier, so that a night which is run again at noon hides nothing that broke in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.dashboard.noticed import Rules, last_finished, notice
from crashpath.dashboard.settings import Settings
from crashpath.ingest.nights import NightSeen, last_night
from crashpath.ingest.outbox import Thing
from crashpath.ingest.tables import ClusterEvent, Night, Project
from crashpath.ingest.tables_evidence import Decision

BROKEN = ("regressed", "new", "spiking", "back")
"""Marks of what people have to look at, in the order in which a list has them."""


@dataclass(frozen=True, slots=True)
class Marks:
    """``last`` is the night that began last, ``night`` the last one that came to an end: the marks are of that one.

    ``things`` are what was noticed, at most one of a cluster (or of a class, without a cluster); of ``muted`` clusters
    something would have been.
    """

    last: NightSeen | None
    night: NightSeen | None
    things: tuple[Thing, ...]
    muted: int


_A_DAY = timedelta(hours=20)
"""What is a day between two nights, which do not begin and end at the same minute."""


def rules_of(settings: Settings) -> Rules:
    """Return when something is told, as settings say."""
    return Rules(settings.spike_min, settings.spike_days, settings.quiet_days, settings.spike_alpha)


def read_marks(session: Session, rules: Rules) -> Marks:
    """Look at the store after the last night that came to an end; without marks where there was none."""
    last = last_night(session)
    number = 0 if last is None else last_finished(session, last.id + 1)
    if last is None or not number:
        return Marks(last, None, (), 0)
    columns = (Night.id, Night.status, Night.reason, Night.finished_at, Night.started_at)
    night = NightSeen(*session.execute(select(*columns).where(Night.id == number)).one())
    at = night.finished_at or night.started_at
    found = notice(session, night.id, rules, at=at, since=_before(session, night.id, at))
    return Marks(last, night, found.things, found.muted)


def _before(session: Session, night: int, at: datetime) -> int:
    """Return the last night that came to an end a day before; 0 where there is none."""
    ended = (Night.status.in_(("complete", "partial")), Night.finished_at <= at - _A_DAY)
    return session.scalar(select(func.max(Night.id)).where(Night.id < night, *ended)) or 0


def marks_key(session: Session) -> str:
    """Return a text that differs whenever marks may: a night that only reads on changes none of them."""
    begun = session.scalar(select(Project.created_at))
    newest = [session.scalar(select(func.max(table.id))) for table in (Night, Decision, ClusterEvent)]
    night = last_night(session)
    return f"marks {begun} {newest} {None if night is None else (night.status, night.finished_at)}"
