"""Reads traced runs from the store: what they say of themselves, and what they saw, added up by the database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, and_, case, func, or_, select
from sqlalchemy.orm import Session

from crashpath.coverage.covered import AHEAD
from crashpath.coverage.runfile import Run, Seen, State, read_trace
from crashpath.coverage.units import Declared, Kind, Placed, Trace, Unit
from crashpath.ingest.tables_evidence import CoverageHit, CoverageRun
from crashpath.runtime.values import Path as Which

NO_PATH = ""
"""The path of what is of the session as a whole: routes, and shapes of feeds."""
STATE = CoverageRun.detail["state"].as_string()
"""Of a run in the store; nothing in runs of older stores, which kept finished ones alone."""
_ENDED = CoverageRun.detail["ended"].as_string()
_IDS = 500
"""Runs that one query asks for: databases take only so many values."""


def newest_run(
    session: Session, *, release: str | None = None, model: str | None = None, now: datetime | None = None
) -> Run | None:
    """Return the finished run that began last, of this release and this model's name if given, without what it saw.

    None is of a time yet to come. ``now`` is that of the clock unless it is given.
    """
    until = (now or datetime.now(UTC)) + AHEAD
    query = _heads(release, None).where(STATE.is_distinct_from(State.LOST), CoverageRun.at <= until)
    query = query.where(or_(_ENDED.is_(None), until.isoformat() >= _ENDED))  # as text: all are in UTC
    if model is not None:
        query = query.where(CoverageRun.model == model)
    newest = query.order_by(None).order_by(CoverageRun.at.desc(), CoverageRun.run.desc()).limit(1)
    row = session.execute(newest).one_or_none()
    return None if row is None else _head(row)


def summed_runs(
    session: Session,
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
    now: datetime | None = None,
) -> tuple[Run, ...]:
    """Return all runs, the oldest first, so that `add_up` gives what it gives of `stored_runs`, at a fraction of it.

    ``now`` is that of the clock unless it is given; `add_up` gets the same.
    Of runs that count (of this hash, finished, ended at ``since`` or later, not in the future) each has its timings and
    its placement; the newest has the hits, routes and shapes of all, and its units hold for all. Other runs have
    nothing that they saw, but that where no run counts the newest of this hash has the units that its artefacts
    declare.
    """
    runs = {row.id: _head(row) for row in session.execute(_heads(release, None))}
    mine = [id for id, run in runs.items() if run.model_hash == model_hash and run.state is State.FINISHED]
    until = (now or datetime.now(UTC)) + AHEAD
    ended = {id: runs[id].ended or runs[id].began for id in mine}
    counted = [id for id in mine if (since is None or ended[id] >= since) and ended[id] <= until]
    for path in Which:
        traces = dict(_traces(session, path, counted or mine[-1:]))
        if not traces:
            continue
        newest = [id for id in mine if id in traces][-1]
        units, gone = _units(session, path, newest)
        sums = _sums(session, path, counted)
        always = {unit: why for unit, why in gone.items() if sums.replaced.get(unit) == len(traces)}
        for id, trace in traces.items():
            seen = replace(trace, hits=sums.all() if id == newest else {}, replaced=always) if counted else Trace(path)
            runs[id] = replace(runs[id], seen=(*runs[id].seen, Seen(Declared(path, units), seen)))
    if counted:
        whole = _sums(session, NO_PATH, counted)
        runs[counted[-1]] = replace(runs[counted[-1]], routes=whole.of(Kind.ROUTE), domain=whole.of(Kind.DOMAIN))
    return tuple(runs.values())


def stored_runs(session: Session, *, release: str | None = None, model_hash: str | None = None) -> tuple[Run, ...]:
    """Return runs whole, the oldest first; of one release and one model where they are given. Slow where many are."""
    return tuple(_whole(session, row) for row in session.execute(_heads(release, model_hash)).all())


def _whole(session: Session, row: Any) -> Run:
    run, seen = _head(row), []
    for path in Which:
        for _, trace in _traces(session, path, [row.id]):
            units, gone = _units(session, path, row.id)
            trace = replace(trace, hits=_sums(session, path, [row.id]).all(), replaced=gone)
            seen.append(Seen(Declared(path, units), trace))
    whole = _sums(session, NO_PATH, [row.id])
    return replace(run, seen=tuple(seen), routes=whole.of(Kind.ROUTE), domain=whole.of(Kind.DOMAIN))


def _heads(release: str | None, model_hash: str | None) -> Select[Any]:
    """Return the query for what runs say of themselves, the oldest first; `_head` reads a row of it."""
    query: Select[Any] = select(
        CoverageRun.id, CoverageRun.run, CoverageRun.origin, CoverageRun.model, CoverageRun.model_hash,
        CoverageRun.release, CoverageRun.at, CoverageRun.versions, _ENDED, STATE,
        CoverageRun.detail["requests"].as_string(), CoverageRun.detail["asked"].as_string(),
    )  # fmt: skip
    query = query.where(CoverageRun.run.is_not(None)).order_by(CoverageRun.at, CoverageRun.run)
    if release is not None:
        query = query.where(CoverageRun.release == release)
    return query if model_hash is None else query.where(CoverageRun.model_hash == model_hash)


def _head(row: Any) -> Run:
    _, run, origin, model, model_hash, release, at, versions, ended, state, requests, asked = row
    return Run(
        id=run,
        origin=origin,
        model=model,
        model_hash=model_hash,
        release=release,
        began=at,
        ended=None if ended is None else datetime.fromisoformat(ended).astimezone(UTC),
        versions=tuple((str(name), str(told)) for name, told in versions.items()),
        asked=tuple(json.loads(asked)),
        requests=int(requests),
        state=State(state or State.FINISHED),
    )


def _traces(session: Session, path: Which, ids: Sequence[int]) -> Iterator[tuple[int, Trace]]:
    """Yield what runs of this path tell besides their units."""
    parts = ("timings", "shipped", "problems", "placed")
    columns = [CoverageRun.detail[("paths", path.value, part)].as_string() for part in parts]
    placed = _placed_once()
    for some in _batches(ids):
        for id, *texts in session.execute(select(CoverageRun.id, *columns).where(CoverageRun.id.in_(some))):
            if texts[0] is not None:
                told = {part: text and json.loads(text) for part, text in zip(parts, texts[:-1], strict=False)}
                yield id, replace(read_trace(path, told | {"placed": ()}), placed=placed(texts[-1]))


def _placed_once() -> Callable[[str], tuple[Placed, ...]]:
    """Return a reader of placement for which runs that were placed alike, as nearly all are, cost one."""
    return lru_cache(maxsize=16)(
        lambda text: read_trace("", {"placed": json.loads(text), "timings": (), "shipped": None}).placed
    )


def _units(session: Session, path: str, id: int) -> tuple[tuple[Unit, ...], dict[str, str]]:
    """Return the units of a run in the order of the artefact, and which counted ones were replaced, and by what."""
    query = select(CoverageHit.kind, CoverageHit.unit, CoverageHit.counted, CoverageHit.reason, CoverageHit.detail)
    rows = session.execute(query.where(CoverageHit.run_id == id, CoverageHit.path == path)).all()
    told = sorted(((row, row.detail or {}) for row in rows), key=lambda one: int(one[1].get("order", 0)))
    units = tuple(
        Unit(Kind(kind), unit, more["label"], more["where"], more["parent"], None if counted else reason)
        for (kind, unit, counted, reason, _), more in told
    )
    return units, {row.unit: row.reason for row in rows if row.counted and row.reason}


@dataclass(frozen=True, slots=True)
class _Sums:
    """``hits`` of one path over runs, by kind and unit, and in how many of them a counted unit was ``replaced``."""

    hits: Mapping[tuple[str, str], int]
    replaced: Mapping[str, int]

    def all(self) -> dict[str, int]:
        return {unit: count for (_, unit), count in self.hits.items() if count}

    def of(self, kind: Kind) -> dict[str, int]:
        return {unit: count for (one, unit), count in self.hits.items() if one == kind and count}


def _sums(session: Session, path: str, ids: Sequence[int]) -> _Sums:
    gone = and_(CoverageHit.counted, CoverageHit.reason.is_not(None))
    hits: Counter[tuple[str, str]] = Counter()
    replaced: Counter[str] = Counter()
    for some in _batches(ids):
        query = (
            select(CoverageHit.kind, CoverageHit.unit, func.sum(CoverageHit.hits), func.sum(case((gone, 1), else_=0)))
            .where(CoverageHit.run_id.in_(some), CoverageHit.path == path, or_(CoverageHit.hits > 0, gone))
            .group_by(CoverageHit.kind, CoverageHit.unit)
        )
        for kind, unit, count, runs in session.execute(query):
            hits[kind, unit] += int(count)
            replaced[unit] += int(runs)
    return _Sums(hits, replaced)


def _batches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(ids), _IDS):
        yield ids[at : at + _IDS]
