"""Failed attempts: the numerator of every rate. What failed is an attempt, not a log record.

A retry storm is one failure; an event and a standard error log of one attempt are one failure with two witnesses.
Crashes with an ``attempt_id`` are one attempt an id (`deaths` finds that of a line which names a dead process). The
others are one a *window* of a process, known by host and process where the lines say so, else by the source they stand
in. A storm over the edge of two windows counts twice, so that a rate may come out too high, never too low.

Of its witnesses an attempt takes all that is counted by (class, release, platform, unit, day) from the one that knows
most: an event of the runtime, then one whose root rule knows a class, then the earliest.

**Units.** An event says its unit. Of other crashes the phase tells: ``load`` and ``warmup`` count on loads, and once
more on deployments, as a rate has only one of the two as its denominator; ``infer`` counts on requests. All other
phases (``prepare`` happens in all three) stand under ``unknown``, apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, String, case, cast, extract, func, select
from sqlalchemy.orm import Session

from crashpath.ingest.classes import UNCLASSIFIED, headline_of
from crashpath.ingest.piece import Format
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables import Cluster, Crash, Signature, Variant

DEPLOYMENT, LOAD, REQUEST = "deployment", "load", "request"
_PHASES = {"load": LOAD, "warmup": LOAD, "infer": REQUEST}


@dataclass(frozen=True, slots=True)
class Windows:
    """Seconds in which crashes without an id, of one process, are one attempt."""

    load: int = 60
    request: int = 1
    unknown: int = 60


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """``attempts`` that failed on a UTC ``day``; ``witnesses`` are the crashes that tell of them.

    ``unanswered`` and ``contained`` are those of which an event says so; of the rest nothing is known.
    """

    unit: str
    day: date
    release: str
    platform: str
    failure_class: str
    headline: str
    attempts: int
    unanswered: int
    contained: int
    witnesses: int


class _Row(NamedTuple):
    """What the query gives, in its order."""

    unit: str
    told: bool
    day: date
    release: str
    platform: str
    failure_class: str
    attempts: int
    unanswered: int
    contained: int
    witnesses: int


def failed_attempts(
    session: Session,
    *,
    release: str | None = None,
    since: date | None = None,
    until: date | None = None,
    windows: Windows = Windows(),
) -> tuple[FailedAttempts, ...]:
    """Count failed attempts by unit, day, release, platform and class, in this order. Days are inclusive."""
    near = []  # the witnesses of one attempt stand near each other in time
    if since is not None:
        near.append(Crash.day >= since - timedelta(days=1))
    if until is not None:
        near.append(Crash.day <= until + timedelta(days=1))
    known = _ranked(windows).where(*near).subquery().c
    cell = (
        unit_of(),
        Crash.unit.is_not(None), Crash.day, Crash.release, Crash.platform,
        func.coalesce(Cluster.failure_class, UNCLASSIFIED),
    )  # fmt: skip
    sums_of = (func.sum(known.unanswered), func.sum(known.contained), func.sum(known.witnesses))
    query = (
        select(*cell, func.count(), *sums_of)
        .join(Crash, Crash.id == known.id)
        .join(Variant, Variant.id == Crash.variant_id)
        .join(Signature, Signature.id == Variant.signature_id)
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
        .where(known.place == 1)
    )
    if release is not None:
        query = query.where(Crash.release == release)
    if since is not None:
        query = query.where(Crash.day >= since)
    if until is not None:
        query = query.where(Crash.day <= until)
    return _by_unit(_Row(*row) for row in session.execute(query.group_by(*cell)))


def _by_unit(rows: Iterable[_Row]) -> tuple[FailedAttempts, ...]:
    """Sum the rows by unit."""
    sums: dict[tuple[str, date, str, str, str], tuple[int, int, int, int]] = {}
    for row in rows:
        for unit in units_counted(row.unit, row.told):
            key = (unit, row.day, row.release, row.platform, row.failure_class)
            before = sums.get(key, (0, 0, 0, 0))
            now = (row.attempts, row.unanswered, row.contained, row.witnesses)
            sums[key] = (before[0] + now[0], before[1] + now[1], before[2] + now[2], before[3] + now[3])
    return tuple(
        FailedAttempts(*key, headline_of(key[-1]), *(int(n) for n in numbers)) for key, numbers in sorted(sums.items())
    )


def _ranked(windows: Windows) -> Any:
    """Every crash with its place among the witnesses of its attempt, and what those know together.

    Narrow rows, because they are sorted; all windows are one, because each other one would sort them again.
    """
    attempt = attempt_key(windows)
    knows_most = (attempt_rank(), Crash.at, Crash.id)

    def over_all(aggregate: Any) -> Any:
        return aggregate.over(partition_by=attempt, order_by=knows_most, rows=(None, None))

    unanswered = over_all(_told("unanswered"))
    return select(
        Crash.id,
        unanswered.label("unanswered"),
        case((unanswered == 1, 0), else_=over_all(_told("contained"))).label("contained"),
        over_all(func.count()).label("witnesses"),
        func.row_number().over(partition_by=attempt, order_by=knows_most).label("place"),
    )


def unit_of() -> Any:
    """The unit of a crash in SQL: told by an event, else by its phase."""
    return func.coalesce(Crash.unit, case(_PHASES, value=Crash.phase, else_=UNKNOWN))


def units_counted(unit: str, told: bool) -> tuple[str, ...]:
    """Return the units that an attempt counts on: what the phase alone calls a load may be a deployment."""
    return (DEPLOYMENT, LOAD) if unit == LOAD and not told else (unit,)


def attempt_rank() -> Any:
    """How much a witness knows of its attempt, in SQL: the lowest knows most; then the earliest counts."""
    return case((Crash.format == Format.EVENT.value, 0), (Crash.cue_class.is_not(None), 1), else_=2)


def attempt_key(windows: Windows) -> Any:
    """What makes two crashes witnesses of one attempt, as a text in SQL. A window never reaches into another day."""
    seconds = cast(func.floor(extract("epoch", Crash.at)), BigInteger)  # PostgreSQL's cast alone would round
    sizes = {"load": windows.load, "warmup": windows.load, "infer": windows.request}
    size = case(sizes, value=Crash.phase, else_=windows.unknown)
    source = "source " + cast(Crash.source_id, String)
    place = func.coalesce(Crash.host_key, "-") + " " + func.coalesce(Crash.process_key, source)
    window = cast(Crash.day, String) + " " + cast(seconds - seconds % size, String) + " " + cast(size, String)
    return case(
        (Crash.attempt_id.is_not(None), "id " + Crash.attempt_id),
        else_="window " + place + " " + window,
    )


def _told(outcome: str) -> Any:
    return func.max(case((Crash.outcome == outcome, 1), else_=0))
