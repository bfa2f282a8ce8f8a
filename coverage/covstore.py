"""Traced runs in the store: one ``coverage_run`` each, with a ``coverage_hit`` for every unit, route and bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.coverage.runfile import Run, Seen, read_shipped
from crashpath.coverage.units import Declared, Kind, Placed, Timing, Trace, Unit
from crashpath.ingest.schema import Json
from crashpath.ingest.tables_evidence import CoverageHit, CoverageRun

NO_PATH = ""
"""The path of what is of the session as a whole: routes, and shapes of feeds."""


def store_run(session: Session, run: Run) -> bool:
    """Add a finished run; false where the store has it already."""
    same = select(CoverageRun).where(CoverageRun.at == run.began, CoverageRun.model_hash == run.model_hash)
    if any((row.detail or {}).get("run") == run.id for row in session.scalars(same)):
        return False
    row = CoverageRun(
        at=run.began,
        release=run.release,
        model=run.model,
        model_hash=run.model_hash,
        origin=run.origin,
        versions=dict(run.versions),
        detail={
            "run": run.id,
            "ended": None if run.ended is None else run.ended.isoformat(),
            "asked": list(run.asked),
            "requests": run.requests,
            "paths": {seen.declared.path: _detail(seen) for seen in run.seen},
        },
    )
    session.add(row)
    session.flush()
    session.add_all(_hits(row.id, run))
    return True


def _detail(seen: Seen) -> Json:
    trace = seen.trace
    return {
        "timings": [asdict(one) for one in trace.timings],
        "placed": [asdict(one) for one in trace.placed],
        "shipped": None if trace.shipped is None else asdict(trace.shipped),
    }


def _hits(run_id: int, run: Run) -> Iterator[CoverageHit]:
    for seen in run.seen:
        for order, unit in enumerate(seen.declared.units):
            yield CoverageHit(
                run_id=run_id,
                path=seen.declared.path,
                kind=unit.kind,
                unit=unit.id,
                hits=seen.trace.hits.get(unit.id, 0),
                counted=unit.counted,
                reason=unit.reason or seen.trace.replaced.get(unit.id),
                detail={"order": order, "label": unit.label, "where": unit.where, "parent": unit.parent},
            )
    for kind, counts in ((Kind.ROUTE, run.routes), (Kind.DOMAIN, run.domain)):
        for name, count in counts.items():
            yield CoverageHit(
                run_id=run_id, path=NO_PATH, kind=kind, unit=name, hits=count, counted=True, reason=None, detail=None
            )


def stored_runs(session: Session, *, release: str | None = None, model_hash: str | None = None) -> tuple[Run, ...]:
    """Return the runs of the store, the oldest first; of one release and one model where they are given."""
    query = select(CoverageRun).where(CoverageRun.detail.is_not(None)).order_by(CoverageRun.at, CoverageRun.id)
    if release is not None:
        query = query.where(CoverageRun.release == release)
    if model_hash is not None:
        query = query.where(CoverageRun.model_hash == model_hash)
    return tuple(_run(session, row) for row in session.scalars(query) if "run" in row.detail)


def _run(session: Session, row: CoverageRun) -> Run:
    hits = session.scalars(select(CoverageHit).where(CoverageHit.run_id == row.id)).all()
    detail = row.detail
    ended = detail.get("ended")
    return Run(
        id=detail["run"],
        origin=row.origin,
        model=row.model,
        model_hash=row.model_hash,
        release=row.release,
        began=row.at,
        ended=None if ended is None else datetime.fromisoformat(ended).astimezone(UTC),
        versions=tuple((str(name), str(told)) for name, told in row.versions.items()),
        asked=tuple(detail["asked"]),
        requests=detail["requests"],
        seen=tuple(
            _seen(path, told, [hit for hit in hits if hit.path == path]) for path, told in detail["paths"].items()
        ),
        routes={hit.unit: hit.hits for hit in hits if hit.kind == Kind.ROUTE},
        domain={hit.unit: hit.hits for hit in hits if hit.kind == Kind.DOMAIN},
    )


def _seen(path: str, told: Json, hits: Sequence[CoverageHit]) -> Seen:
    rows = sorted(((hit, hit.detail or {}) for hit in hits), key=lambda one: one[1].get("order", 0))
    units = tuple(
        Unit(
            Kind(hit.kind), hit.unit, more["label"], more["where"], more["parent"], None if hit.counted else hit.reason
        )
        for hit, more in rows
    )
    trace = Trace(
        path,
        {hit.unit: hit.hits for hit, _ in rows if hit.hits},
        tuple(Timing(**one) for one in told["timings"]),
        tuple(Placed(**one) for one in told["placed"]),
        {hit.unit: hit.reason for hit, _ in rows if hit.counted and hit.reason},
        read_shipped(told.get("shipped")),
    )
    return Seen(Declared(path, units), trace)
