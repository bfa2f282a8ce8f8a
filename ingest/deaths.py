"""Two witnesses of one death: the runtime's event, and the line in which the kernel or a supervisor names the process.

The line knows no attempt. Where it names, on the same host and within a minute, the process that an event tells of,
it is given that event's attempt, so that both are one failed attempt. The time is short because ids of processes come
back.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, aliased

from crashpath.ingest.piece import Format
from crashpath.ingest.stale import mark_stale
from crashpath.ingest.tables import Crash, Night

NEAR = timedelta(seconds=60)


def join_deaths(session: Session, night_id: int, near: timedelta = NEAR) -> int:
    """Join what this night read, and what a night that was killed before it had read, to the events of the store.

    Returns how many crashes were joined. Of several events the earliest that is near enough counts. A crash that has
    an attempt keeps it, so a second run changes nothing.
    """
    ended = select(func.max(Night.id)).where(Night.id < night_id, Night.status.in_(("complete", "partial")))
    since = session.scalar(ended) or 0
    line, event = aliased(Crash), aliased(Crash)
    pairs = (
        select(line.id, line.day, line.at, event.at, event.attempt_id)
        .join(event, (event.process_key == line.process_key) & (event.host_key == line.host_key))
        .where(line.attempt_id.is_(None), event.format == Format.EVENT.value, event.attempt_id.is_not(None))
        .order_by(event.at, event.id)
    )
    joined: dict[int, str] = {}
    days = set()
    for new in (line, event):  # each by its own index; together they would need a look at every crash
        for key, day, at, told, attempt in session.execute(pairs.where(new.night_id > since)):
            if attempt is not None and abs(told - at) <= near:
                joined.setdefault(key, attempt)
                days.add(day)
    for key, attempt in joined.items():
        session.execute(update(Crash).where(Crash.id == key).values(attempt_id=attempt))
    mark_stale(session, days)
    return len(joined)
