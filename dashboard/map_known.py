"""What may be picked on the page Map."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.following import followed
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Cluster
from crashpath.ingest.trends import days, values


@dataclass(frozen=True, slots=True)
class Known:
    """Values that crashes have, and the last UTC day with a crash; ``None`` for a store without crashes."""

    classes: tuple[str, ...]
    releases: tuple[str, ...]
    platforms: tuple[str, ...]
    last: date | None


def read_known(session: Session) -> Known:
    """Read them."""
    span = days(session)
    classes = session.scalars(select(Cluster.failure_class).distinct().where(Cluster.status == "active"))
    return Known(
        tuple(sorted(classes)), values(session, "release"), values(session, "platform"), span[1] if span else None
    )


def find(session: Session, shown: str) -> tuple[int, str | None]:
    """Return the cluster that an id means now, and a sentence where it is another one. Raises ``NoSuchThing``."""
    number = cluster_number(shown)
    if session.get(Cluster, number) is None:
        raise NoSuchThing(f"There is no cluster {cluster_id(number)}.", "The page Triage lists them.")
    return followed(session, number)
