"""Where an id leads that is no longer in use: a cluster that went into another, a signature that was re-keyed."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, ClusterEvent, Signature


def follow_cluster(session: Session, number: int) -> tuple[int, ...]:
    """Return the clusters that a cluster went into, one after the other; empty where it stands for itself."""
    path: list[int] = []
    row = session.get(Cluster, number)
    while row is not None and row.merged_into is not None and row.merged_into not in (number, *path):
        path.append(row.merged_into)
        row = session.get(Cluster, row.merged_into)
    return tuple(path)


def follow_signature(session: Session, beginning: str) -> tuple[str, ...]:
    """Return the signatures that one which was re-keyed is now, most crashes first, by the unique beginning of its id.

    Empty where no such id was ever in use, or where several begin like this.
    """
    became: dict[str, dict[str, int]] = {}
    query = select(ClusterEvent.detail).where(ClusterEvent.kind == "rekeyed").order_by(ClusterEvent.id)
    for detail in session.scalars(query):
        for old, new, crashes in detail.get("signatures", ()):
            became.setdefault(str(old), {})[str(new)] = int(crashes)
    found = [old for old in became if old.startswith(beginning)]
    if len(found) != 1 and beginning not in found:
        return ()
    return tuple(_ends(session, beginning if beginning in found else found[0], became))


def _ends(session: Session, one: str, became: dict[str, dict[str, int]]) -> list[str]:
    out: list[str] = []
    seen: set[str] = set()
    open_ends = [one]
    while open_ends:
        at = open_ends.pop(0)
        if at in seen:
            continue
        seen.add(at)
        if session.get(Signature, at) is not None:
            out.append(at)
        else:
            open_ends += sorted(became.get(at, {}), key=lambda new: (-became[at][new], new))
    return out


def followed(session: Session, number: int) -> tuple[int, str | None]:
    """Return the cluster that an id means now, and a sentence where it is another one."""
    path = follow_cluster(session, number)
    if not path:
        return number, None
    return path[-1], f"{cluster_id(number)} went into {', then into '.join(map(cluster_id, path))}."
