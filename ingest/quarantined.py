"""How much is in quarantine, and why: counted in the store, whatever the number of pieces."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import distinct, func, select
from sqlalchemy.orm import Session

from crashpath.ingest.tables import Quarantine

MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class Held:
    """Pieces in quarantine, their sources, and the pieces of the most frequent reasons; ``others`` have another one."""

    pieces: int
    sources: int
    reasons: tuple[tuple[str, int], ...]
    others: int


def held(session: Session, night_id: int | None = None) -> Held:
    """Count what is in quarantine, or what one night put there."""
    where = () if night_id is None else (Quarantine.night_id == night_id,)
    pieces, sources = session.execute(
        select(func.count(), func.count(distinct(Quarantine.source_id))).where(*where)
    ).one()
    query = select(Quarantine.reason, func.count()).where(*where).group_by(Quarantine.reason)
    rows = session.execute(query.order_by(func.count().desc(), Quarantine.reason).limit(MOST_REASONS)).all()
    reasons = tuple((reason, int(number)) for reason, number in rows)
    return Held(int(pieces), int(sources), reasons, int(pieces) - sum(number for _, number in reasons))
