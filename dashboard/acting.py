"""Take decisions as a page does: one short transaction each, what to say of it, and where the page goes from there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import case, select
from sqlalchemy.orm import Session

from crashpath.dashboard import decide_text as words
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.who import one_line, who_decides
from crashpath.ingest import undoing
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.decisions import By, taken
from crashpath.ingest.failed_read import releases
from crashpath.ingest.first_seen import first_days
from crashpath.ingest.following import followed
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster
from crashpath.ingest.tables_evidence import Decision

MOST_OTHERS = 2000
"""Clusters to choose from; each goes to the browser. Any other one can be typed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done on a page: sentences, the decisions to take it back by (none where nothing was recorded), the
    cluster that the page goes on with, and the one that was made.
    """

    said: tuple[str, ...]
    decisions: tuple[int, ...]
    cluster: str
    made: str | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """Another cluster, to choose from."""

    id: str
    failure_class: str
    title: str


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is to choose from: other active clusters, those of one class first, and releases, newest first."""

    others: tuple[Other, ...]
    releases: tuple[str, ...]


def choices(session: Session, number: int) -> Choices:
    """Return what a person who decides on a cluster can choose from; at most ``MOST_OTHERS`` clusters."""
    own = select(Cluster.failure_class).where(Cluster.id == number).scalar_subquery()
    query = (
        select(Cluster.id, Cluster.failure_class, Cluster.name, Cluster.label)
        .where(Cluster.status == "active", Cluster.id != number)
        .order_by(case((Cluster.failure_class == own, 0), else_=1), Cluster.id)
        .limit(MOST_OTHERS)
    )
    others = (Other(cluster_id(one), of, (name or label)[:400]) for one, of, name, label in session.execute(query))
    days = first_days(session, releases(session))
    newest = sorted(days, key=lambda one: (days[one], one), reverse=True)
    return Choices(tuple(others), tuple(newest))


def who_by_default() -> str:
    """Return who decides where nobody says it: ``CRASHPATH_WHO``, or the name of the login; else nothing."""
    try:
        return who_decides(os.environ.get("CRASHPATH_WHO"))
    except UsageError:
        return ""


def by(who: str, why: str) -> By:
    """Return who decides now. Raises ``UsageError`` without a name."""
    person = one_line(who, "Who decides")
    if not person:
        raise UsageError("Nobody knows who decides: write a name.")
    return By(person, datetime.now(UTC), one_line(why, "Why") or None)


def take(
    store: Store,
    cluster: int,
    decided: By,
    decide: Callable[[Session, By], Sequence[Decision | None]],
    already: str,
    cautions: Callable[[Session, Decision], Sequence[str]] = lambda session, made: (),
) -> Done:
    """Take decisions on a cluster, all or none; say them, or that it was so ``already``.

    Raises what ``decide`` does, and other ``StoreError``s where the store cannot be written.
    """
    with store.write() as session:
        made = [one for one in decide(session, decided) if one is not None]
        rows = [taken(session, one) for one in made]
        known = [caution for one in made for caution in cautions(session, one)]
        stays = cluster_id(followed(session, cluster)[0])
    said = [words.sentence(row) for row in rows] or [already]
    parts = [row.other for row in rows if row.kind == "split"]
    return Done((*said, *known), tuple(row.number for row in rows), stays, parts[0] if parts else None)


def take_back(store: Store, cluster: int, decided: By, decision: int) -> Done:
    """Undo a decision and say what became of it. Raises ``NoSuchThing``, ``Refused``."""
    with store.write() as session:
        done = undoing.undo(session, decision, decided)
        row, back = taken(session, done.decision), taken(session, done.what)
        stays = cluster_id(followed(session, cluster)[0])
    return Done((words.undone_sentence(row, back), *words.undone_lines(done)), (row.number,), stays)


def typed_clusters(chosen: Sequence[str]) -> list[int]:
    """Return the numbers of clusters that were chosen or typed. Raises ``UsageError`` where none was."""
    if not chosen:
        raise UsageError("Choose at least one other cluster.")
    return [cluster_number(one) for one in chosen]
