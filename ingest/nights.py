"""Nights: one row a run of the nightly job, from ``running`` to ``complete``, ``partial`` or ``failed``."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from crashpath.ingest.tables import Night, Project

Status = Literal["running", "complete", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class NightRow:
    """One night as it is shown; times are UTC."""

    id: int
    started_at: datetime
    finished_at: datetime | None
    status: str
    reason: str | None
    counts: Mapping[str, object]
    seconds: Mapping[str, float]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NightSeen:
    """What others need to know of a night: ``reason`` is why it was not complete; times are UTC."""

    id: int
    status: str
    reason: str | None
    finished_at: datetime | None
    started_at: datetime


def start_night(session: Session, *, versions: Mapping[str, str], now: datetime) -> int:
    """Begin a night and return its id. Call it with the lease held: whatever else still says ``running`` was killed."""
    session.execute(select(Project.id).with_for_update()).all()  # what is asked of the next night is asked before it
    session.execute(
        update(Night)
        .where(Night.status == "running")
        .values(status="failed", finished_at=now, reason="the process ended before the night did")
    )
    night = Night(
        started_at=now,
        finished_at=None,
        status="running",
        reason=None,
        holder=f"{socket.gethostname()} pid {os.getpid()}",
        counts={},
        seconds={},
        versions=dict(versions),
    )
    session.add(night)
    session.flush()
    return night.id


def finish_night(
    session: Session,
    night_id: int,
    status: Status,
    *,
    counts: Mapping[str, object],
    seconds: Mapping[str, float],
    reason: str | None = None,
    now: datetime,
) -> None:
    """End a night: ``partial`` and ``failed`` say why in ``reason``."""
    night = session.get_one(Night, night_id)
    night.status, night.reason, night.finished_at = status, reason, now
    night.counts, night.seconds = dict(counts), dict(seconds)


def nights(session: Session, limit: int = 100) -> tuple[NightRow, ...]:
    """Return the last nights, newest first."""
    rows = session.scalars(select(Night).order_by(Night.id.desc()).limit(limit))
    return tuple(
        NightRow(n.id, n.started_at, n.finished_at, n.status, n.reason, n.counts, n.seconds, n.versions) for n in rows
    )


def last_night(session: Session) -> NightSeen | None:
    """Return the night that began last, whether or not it is over; ``None`` where there was none."""
    columns = (Night.id, Night.status, Night.reason, Night.finished_at, Night.started_at)
    row = session.execute(select(*columns).order_by(Night.id.desc()).limit(1)).first()
    return None if row is None else NightSeen(*row)
