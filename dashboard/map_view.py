"""What the page Map shows: signatures with a place, their clusters, and what has none. Read from the store as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.dashboard.page_text import one_line
from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, Night, Signature
from crashpath.ingest.trends import Filters, counts

MOST_POINTS = 20_000
"""Points that a browser is sent, those with most crashes first."""
TITLE = 100
"""Characters of a root line in a list; a line may have millions."""
_RAISED = re.compile(r"(?:[A-Za-z_$][\w$]*(?:\.|::))*[A-Za-z_$][\w$]*: +(?=\S)")


class Point(NamedTuple):
    """A signature on the map. Days are UTC days; ``crashes`` are those that pass the filters."""

    cluster: int
    x: float
    y: float
    crashes: int
    first: date
    last: date
    new: bool


@dataclass(frozen=True, slots=True)
class OnMap:
    """A cluster with a signature on the map. ``title`` is its name, or the root line that stands for it, on one line.

    ``first`` and ``last`` are UTC days of all its crashes, ``crashes`` and ``signatures`` what passes the filters.
    """

    number: int
    title: str
    named: bool
    failure_class: str
    crashes: int
    signatures: int
    first: date
    last: date
    new: bool

    @property
    def id(self) -> str:
        """The id that people see."""
        return cluster_id(self.number)

    @property
    def short(self) -> str:
        """What it is called on the map: without the kind of what was raised, where more is said."""
        return self.title if self.named else _without_kind(self.title)


@dataclass(frozen=True, slots=True)
class Box:
    """The edges of the whole map, whatever passes the filters: what is looked at stays where it is."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True)
class MapView:
    """One look. ``points`` are in the order of crashes, most first, ``clusters`` by number.

    ``stored`` are all signatures, ``placed`` those with a place. Of those that pass the filters ``unplaced`` have none,
    and ``left_out`` have one and are too many. ``night`` is the last one that is over and found
    any, so that one that is run again at noon hides nothing; of it are what is ``new``.
    """

    points: tuple[Point, ...]
    clusters: Mapping[int, OnMap]
    box: Box | None
    stored: int
    placed: int
    unplaced: int
    left_out: int
    night: int | None


def read_map(session: Session, filters: Filters) -> MapView:
    """Read the map of the signatures with a crash that passes the filters."""
    over = select(Night.id).where(Night.status != "running")
    night = session.scalar(select(func.max(Signature.night_id)).where(Signature.night_id.in_(over)))
    edges = select(
        func.count(), func.count(Signature.map_x), func.min(Signature.map_x), func.max(Signature.map_x),
        func.min(Signature.map_y), func.max(Signature.map_y),
    )  # fmt: skip
    stored, placed, left, right, bottom, top = session.execute(edges.select_from(Signature)).one()
    crashes = dict(counts(session, "signature", filters))
    columns = (
        Signature.id, Signature.cluster_id, Signature.map_x, Signature.map_y, Signature.first_seen,
        Signature.last_seen, Signature.night_id,
    )  # fmt: skip
    points, unplaced = [], 0
    for one, number, x, y, first, last, found in session.execute(select(*columns)):
        if one not in crashes:
            continue
        if x is None or y is None or number is None:
            unplaced += 1
            continue
        points.append(Point(number, x, y, crashes[one], _day(first), _day(last), found == night))
    points.sort(key=lambda point: (-point.crashes, point.cluster, point.x, point.y))
    shown = tuple(points[:MOST_POINTS])
    box = Box(left or 0.0, right or 0.0, bottom or 0.0, top or 0.0) if placed else None
    left_out = len(points) - len(shown)
    return MapView(shown, _clusters(session, points), box, stored, placed, unplaced, left_out, night)


def _without_kind(title: str) -> str:
    match = _RAISED.match(title)
    return title[match.end() :] if match else title


def _day(moment: datetime) -> date:
    return moment.date()


def _clusters(session: Session, points: list[Point]) -> Mapping[int, OnMap]:
    members: dict[int, list[Point]] = {}
    for point in points:
        members.setdefault(point.cluster, []).append(point)
    rows = session.execute(select(Cluster.id, Cluster.name, func.substr(Cluster.label, 1, 1000), Cluster.failure_class))
    found = {}
    for number, name, label, failure_class in rows:
        its = members.get(number)
        if its:
            found[number] = OnMap(
                number, one_line(name or label, TITLE), name is not None, failure_class or UNCLASSIFIED,
                sum(one.crashes for one in its), len(its), min(one.first for one in its), max(one.last for one in its),
                all(one.new for one in its),
            )  # fmt: skip
    return MappingProxyType(dict(sorted(found.items())))
