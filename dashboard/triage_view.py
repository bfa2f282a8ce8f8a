"""The ranked list of the page Triage: what broke first, then by weight, muted ones at the end. SQL in, values out.

*Broken* are clusters with a mark of the last night (``marks``): new and regressed ones first, then spiking and back.
Whatever the filters, *first and last seen* are of all crashes; days, platforms and outcomes are of those that pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.dashboard.marks import BROKEN
from crashpath.ingest.cluster_facts import Outcomes, Seen, daily, outcomes, platforms, seen, weights
from crashpath.ingest.cluster_filter import EVERY, ClusterFilter, cluster_conditions
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, CrashDaily
from crashpath.ingest.trends import ALL, Count, Filters

PAGE = 25
"""Clusters on one page of the list."""
SPARK = timedelta(days=30)
"""Days that the small picture of a row shows, at most."""
MOST_MUTED = 100
MOST_TITLE = 400
"""Characters of a name or a root line that are read; a line may have millions."""
_FIRST = ("regressed", "new")
"""Marks that come before the other ones."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a list is of: crashes that pass ``filters``, of clusters that pass ``of`` and have the ``mark``.

    With ``all_marked`` a broken cluster is there even where no crash of it passes, because its crashes are older than
    the days whose weight is looked at.
    """

    filters: Filters = ALL
    of: ClusterFilter = EVERY
    mark: str | None = None
    all_marked: bool = False


class Mark(NamedTuple):
    """What the last night noticed of a cluster, with the sentence that the digest has."""

    cluster: int
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """One cluster in the list. ``days`` are crashes by day from ``since``; ``share`` is of all crashes that pass."""

    number: int
    name: str | None
    root_line: str
    failure_class: str
    mark: Mark | None
    crashes: int
    share: float
    since: date
    days: tuple[int, ...]
    seen: Seen | None
    platforms: tuple[Count, ...]
    outcomes: Outcomes
    assignee: str | None
    ticket: str | None
    resolved_in: str | None
    muted_until: datetime | None

    @property
    def id(self) -> str:
        """The id that people see."""
        return cluster_id(self.number)

    @property
    def broken(self) -> bool:
        """Whether it is one of those that broke."""
        return self.mark is not None and self.mark.kind in BROKEN


@dataclass(frozen=True, slots=True)
class Muted:
    """A cluster that people muted: it is said that it is there, and no more."""

    id: str
    title: str
    crashes: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list. ``broken`` and ``clusters`` are counted over all pages, without ``muted_clusters``.

    ``crashes`` are those of all listed clusters (muted ones, too), ``pending`` those of signatures that have no cluster
    yet; ``elsewhere`` is the number of clusters that pass and have no crash that does.
    """

    rows: tuple[Row, ...]
    page: int
    pages: int
    clusters: int
    broken: int
    crashes: int
    pending: int
    elsewhere: int
    muted: tuple[Muted, ...]
    muted_clusters: int


@dataclass(frozen=True, slots=True)
class Known:
    """What may be asked for: days with a crash, classes and owners of clusters, and how many clusters there are."""

    first_day: date
    last_day: date
    classes: tuple[str, ...]
    owners: tuple[str, ...]
    clusters: int


class _Found(NamedTuple):
    """The columns of a cluster that its row has."""

    number: int
    name: str | None
    root_line: str
    failure_class: str
    assignee: str | None
    ticket: str | None
    resolved_in: str | None
    muted_until: datetime | None


def read_known(session: Session) -> Known | None:
    """Return what may be asked for; ``None`` for a store without crashes."""
    first, last = (session.scalar(select(end(CrashDaily.day))) for end in (func.min, func.max))
    if first is None or last is None:
        return None
    active = Cluster.status == "active"
    classes = session.scalars(select(Cluster.failure_class).where(active).distinct())
    owners = session.scalars(select(Cluster.assignee).where(active, Cluster.assignee.is_not(None)).distinct())
    clusters = session.scalar(select(func.count()).select_from(Cluster).where(active)) or 0
    return Known(first, last, tuple(sorted(classes)), tuple(sorted(one for one in owners if one)), clusters)


def read_list(
    session: Session, asked: Asked, marks: tuple[Mark, ...], until: date, now: datetime, page: int = 1
) -> Listing:
    """Return a page of the list. ``until`` is the last day of the small pictures; a page too far is the last one."""
    counted = weights(session, asked.filters)
    marked = {mark.cluster: mark for mark in marks}
    found = [one for one in _clusters(session, asked.of) if asked.mark in (None, _kind(marked, one))]
    listed = [one for one in found if counted.get(one.number) or (asked.all_marked and _matters(marked, one, asked))]
    loud = [one for one in listed if one.muted_until is None or one.muted_until <= now]
    loud.sort(key=lambda one: (_rank(_kind(marked, one)), -counted.get(one.number, 0), one.number))
    muted = [one for one in listed if one.muted_until is not None and one.muted_until > now]
    muted.sort(key=lambda one: (-counted.get(one.number, 0), one.number))
    pages = max(1, -(-len(loud) // PAGE))
    page = min(max(page, 1), pages)
    here = loud[(page - 1) * PAGE : page * PAGE]
    return Listing(
        rows=tuple(_rows(session, here, asked.filters, counted, marked, until)),
        page=page,
        pages=pages,
        clusters=len(loud),
        broken=sum(_kind(marked, one) in BROKEN for one in loud),
        crashes=sum(counted.get(one.number, 0) for one in listed),
        pending=counted.get(None, 0),
        elsewhere=len(found) - len(listed),
        muted=tuple(_muted(one, counted.get(one.number, 0)) for one in muted[:MOST_MUTED]),
        muted_clusters=len(muted),
    )


def _clusters(session: Session, of: ClusterFilter) -> Iterator[_Found]:
    query = select(
        Cluster.id, func.substr(Cluster.name, 1, MOST_TITLE), func.substr(Cluster.label, 1, MOST_TITLE),
        Cluster.failure_class, Cluster.assignee, Cluster.ticket, Cluster.resolved_in, Cluster.muted_until,
    )  # fmt: skip
    for row in session.execute(query.where(*cluster_conditions(of))):
        yield _Found(*row)


def _kind(marked: Mapping[int, Mark], one: _Found) -> str | None:
    mark = marked.get(one.number)
    return None if mark is None else mark.kind


def _matters(marked: Mapping[int, Mark], one: _Found, asked: Asked) -> bool:
    """Whether a cluster is listed for its mark alone: it broke, or the mark is asked for."""
    kind = _kind(marked, one)
    return kind is not None and (kind in BROKEN or kind == asked.mark)


def _rank(kind: str | None) -> int:
    return 0 if kind in _FIRST else 1 if kind in BROKEN else 2


def _rows(
    session: Session,
    found: Sequence[_Found],
    filters: Filters,
    counted: Mapping[int | None, int],
    marked: Mapping[int, Mark],
    until: date,
) -> Iterator[Row]:
    """Read what is known of the clusters of a page, for all of them at once."""
    numbers = [one.number for one in found]
    until = min(until, filters.until or until)
    since = max(until - SPARK + timedelta(days=1), filters.since or date.min)
    by_day = daily(session, numbers, filters, since, until)
    by_platform = platforms(session, numbers, filters)
    ends, came_of = seen(session, numbers), outcomes(session, numbers, filters)
    total = sum(counted.values()) or 1
    for one in found:
        crashes, days = counted.get(one.number, 0), by_day.get(one.number, {})
        yield Row(
            number=one.number,
            name=one.name,
            root_line=one.root_line,
            failure_class=one.failure_class,
            mark=marked.get(one.number),
            crashes=crashes,
            share=crashes / total,
            since=since,
            days=tuple(days.get(since + timedelta(n), 0) for n in range((until - since).days + 1)),
            seen=ends.get(one.number),
            platforms=by_platform.get(one.number, ()),
            outcomes=came_of.get(one.number, Outcomes(0, 0)),
            assignee=one.assignee,
            ticket=one.ticket,
            resolved_in=one.resolved_in,
            muted_until=one.muted_until,
        )


def _muted(one: _Found, crashes: int) -> Muted:
    assert one.muted_until is not None  # that is what makes it one
    return Muted(cluster_id(one.number), one.name or one.root_line, crashes, one.muted_until)
