"""What a list says of a few clusters at once: since when, on which platforms, on which days, and what came of them.

All in a few statements for all of them, from indexes: quick for the fifty rows of a page whatever the store holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, String, cast, func, or_, select
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.failed_read import failed_releases
from crashpath.ingest.tables import CrashDaily, Signature
from crashpath.ingest.tables_counts import FailedDaily
from crashpath.ingest.trends import Count, Filters, conditions


@dataclass(frozen=True, slots=True)
class Seen:
    """When a cluster was first and last seen, unfiltered; of several releases of a day the first and last by name."""

    first_day: date
    first_release: str
    last_day: date
    last_release: str


class Outcomes(NamedTuple):
    """Failed attempts of which an event says what came of them: the fallback answered, or nobody did."""

    contained: int
    unanswered: int

    @property
    def known(self) -> int:
        """Failed attempts of which it is known."""
        return self.contained + self.unanswered


def weights(session: Session, filters: Filters) -> dict[int | None, int]:
    """Return the crashes of each cluster that pass; under ``None`` those of signatures that have no cluster yet."""
    by_signature = (
        select(CrashDaily.signature_id, func.sum(CrashDaily.crashes).label("crashes"))
        .where(*conditions(filters))
        .group_by(CrashDaily.signature_id)
        .subquery()
        .c
    )
    query = (
        select(Signature.cluster_id, func.sum(by_signature.crashes))
        .join(Signature, Signature.id == by_signature.signature_id)
        .group_by(Signature.cluster_id)
    )
    return {number: int(crashes) for number, crashes in session.execute(query)}


def seen(session: Session, numbers: Sequence[int]) -> dict[int, Seen]:
    """Return when each of these clusters was seen; nothing for those without a crash.

    Day and release of each signature's first and last crash are looked up in one, as a text that sorts as they do.
    """
    place = cast(CrashDaily.day, String) + " " + CrashDaily.release
    own = select(place).where(CrashDaily.signature_id == Signature.id).limit(1)
    first = own.order_by(CrashDaily.day, CrashDaily.release).scalar_subquery()
    last = own.order_by(CrashDaily.day.desc(), CrashDaily.release.desc()).scalar_subquery()
    out: dict[int, Seen] = {}
    for chunk in chunks(sorted(numbers)):
        query = (
            select(Signature.cluster_id, func.min(first), func.max(last))
            .where(Signature.cluster_id.in_(chunk))
            .group_by(Signature.cluster_id)
        )
        for number, begin, end in session.execute(query):
            if number is not None and begin is not None:
                out[number] = Seen(*_place(begin), *_place(end))
    return out


def _place(text: str) -> tuple[date, str]:
    day, _, release = text.partition(" ")
    return date.fromisoformat(day), release


def platforms(session: Session, numbers: Sequence[int], filters: Filters) -> dict[int, tuple[Count, ...]]:
    """Return the crashes of each cluster that pass by platform, most first."""
    out: dict[int, list[Count]] = {}
    for number, platform, crashes in session.execute(_of(numbers, filters, CrashDaily.platform)):
        out.setdefault(number, []).append(Count(platform, int(crashes)))
    return {number: tuple(sorted(found, key=lambda one: (-one.crashes, one.key))) for number, found in out.items()}


def daily(
    session: Session, numbers: Sequence[int], filters: Filters, since: date, until: date
) -> dict[int, dict[date, int]]:
    """Return the crashes of each cluster that pass by day, from ``since`` to ``until``, both inclusive."""
    inside = replace(filters, since=max(since, filters.since or since), until=min(until, filters.until or until))
    by_signature = (
        select(CrashDaily.signature_id, CrashDaily.day, func.sum(CrashDaily.crashes).label("crashes"))
        .where(CrashDaily.signature_id.in_(_members(numbers)), *conditions(inside))
        .group_by(CrashDaily.signature_id, CrashDaily.day)
        .subquery()
        .c
    )
    query = select(Signature.cluster_id, by_signature.day, by_signature.crashes).join(
        Signature, Signature.id == by_signature.signature_id
    )
    out: dict[int, dict[date, int]] = {}
    for number, day, crashes in session.execute(query):
        assert number is not None  # the query asked for these
        days = out.setdefault(number, {})
        days[day] = days.get(day, 0) + int(crashes)
    return out


def outcomes(session: Session, numbers: Sequence[int], filters: Filters) -> dict[int, Outcomes]:
    """Return what came of the failed attempts of each cluster; nothing for those of which no event tells.

    Of the filters days, release, platform and model count; paths and phases are not told apart. An attempt of which an
    event tells has one unit, so that nothing is counted twice here.
    """
    by_signature = (
        select(
            FailedDaily.signature_id,
            func.sum(FailedDaily.contained).label("contained"),
            func.sum(FailedDaily.unanswered).label("unanswered"),
        )
        .where(
            or_(FailedDaily.contained > 0, FailedDaily.unanswered > 0),
            *_failed(session, filters),
            FailedDaily.signature_id.in_(_members(numbers)),
        )
        .group_by(FailedDaily.signature_id)
        .subquery()
    )
    query = (
        select(Signature.cluster_id, func.sum(by_signature.c.contained), func.sum(by_signature.c.unanswered))
        .join(by_signature, by_signature.c.signature_id == Signature.id)
        .group_by(Signature.cluster_id)
    )
    return {number: Outcomes(int(c), int(u)) for number, c, u in session.execute(query) if number is not None}


def _failed(session: Session, filters: Filters) -> list[ColumnElement[bool]]:
    """The rows of a release stand together, by day: named one by one, only the days asked for are read."""
    releases = [filters.release] if filters.release is not None else failed_releases(session)
    where: list[ColumnElement[bool]] = [FailedDaily.release.in_(releases)]
    if filters.since is not None:
        where.append(FailedDaily.day >= filters.since)
    if filters.until is not None:
        where.append(FailedDaily.day <= filters.until)
    for name in ("platform", "model"):
        wanted = getattr(filters, name)
        if wanted is not None:
            where.append(getattr(FailedDaily, name) == wanted)
    return where


def _of(numbers: Sequence[int], filters: Filters, column: Any) -> Any:
    return (
        select(Signature.cluster_id, column, func.sum(CrashDaily.crashes))
        .join(CrashDaily, CrashDaily.signature_id == Signature.id)
        .where(Signature.cluster_id.in_(sorted(numbers)), *conditions(filters))
        .group_by(Signature.cluster_id, column)
    )


def _members(numbers: Sequence[int]) -> Any:
    return select(Signature.id).where(Signature.cluster_id.in_(sorted(numbers)))
