"""Traced runs in the store: one ``coverage_run`` each, with a ``coverage_hit`` for every unit, route and bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from crashpath.coverage.covread import NO_PATH, STATE
from crashpath.coverage.covread import newest_run as newest_run
from crashpath.coverage.covread import stored_runs as stored_runs
from crashpath.coverage.covread import summed_runs as summed_runs
from crashpath.coverage.runfile import Run, State, told_of
from crashpath.coverage.units import Kind
from crashpath.ingest.tables_evidence import CoverageHit, CoverageRun


def store_run(session: Session, run: Run) -> bool:
    """Add a run that is finished, or was lost; false where the store has it already.

    One that was lost is there so that reports name it, and so that its file is told once. Where it turns out to have
    finished all the same, that takes its place. Raises `ValueError` for a run under way.
    """
    if run.state is State.RUNNING:
        raise ValueError(f"the run {run.id} has not ended yet; store it when it has")
    known = session.execute(select(CoverageRun.id, STATE).where(CoverageRun.run == run.id)).one_or_none()
    if known is not None:
        if known[1] != State.LOST or run.state is State.LOST:
            return False
        session.execute(delete(CoverageRun).where(CoverageRun.id == known.id))
    row = CoverageRun(
        run=run.id,
        at=run.began,
        release=run.release,
        model=run.model,
        model_hash=run.model_hash,
        origin=run.origin,
        versions=dict(run.versions),
        detail={
            "run": run.id,
            "state": run.state,
            "ended": None if run.ended is None else run.ended.isoformat(),
            "asked": list(run.asked),
            "requests": run.requests,
            "paths": {seen.declared.path: told_of(seen.trace) for seen in run.seen},
        },
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:  # another writer was quicker
        return False
    if hits := list(_hits(row.id, run)):
        session.execute(insert(CoverageHit), hits)
    return True


def _hits(run_id: int, run: Run) -> Iterator[dict[str, Any]]:
    for seen in run.seen:
        for order, unit in enumerate(seen.declared.units):
            yield {
                "run_id": run_id,
                "path": seen.declared.path,
                "kind": unit.kind,
                "unit": unit.id,
                "hits": seen.trace.hits.get(unit.id, 0),
                "counted": unit.counted,
                "reason": unit.reason or seen.trace.replaced.get(unit.id),
                "detail": {"order": order, "label": unit.label, "where": unit.where, "parent": unit.parent},
            }
    for kind, counts in ((Kind.ROUTE, run.routes), (Kind.DOMAIN, run.domain)):
        for name, count in counts.items():
            yield {
                "run_id": run_id, "path": NO_PATH, "kind": kind, "unit": name, "hits": count, "counted": True,
                "reason": None, "detail": None,
            }  # fmt: skip
