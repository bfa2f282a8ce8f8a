"""Drills of the store as failure class × phase: what passed last time, what is red, what was never driven."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.coverage.fault import Fault
from crashpath.coverage.field import IN_USE
from crashpath.coverage.report import Cell
from crashpath.ingest.tables_evidence import CoverageRun, Drill
from crashpath.runtime.values import Path as Which


def declared_cells(faults: Sequence[Fault]) -> dict[tuple[str, str], int]:
    """Return how many faults of the catalogue strike the main path in each failure class × phase."""
    cells: dict[tuple[str, str], int] = {}
    for fault in faults:
        if fault.drill is not None and fault.drill.path == Which.MAIN:
            for phase in fault.drill.phases:
                cells[fault.failure_class, phase] = cells.get((fault.failure_class, phase), 0) + 1
    return dict(sorted(cells.items()))


def drill_cells(
    session: Session,
    faults: Sequence[Fault],
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
) -> tuple[Cell, ...]:
    """Return every declared cell with the last drill of each of its faults, for these artefacts."""
    query = (
        select(Drill, CoverageRun.detail)
        .join(CoverageRun, CoverageRun.id == Drill.run_id)
        .where(Drill.model_hash == model_hash, Drill.path == Which.MAIN)
        .order_by(Drill.at, Drill.id)
    )
    if release is not None:
        query = query.where(Drill.release == release)
    if since is not None:
        query = query.where(Drill.at >= since)
    last: dict[tuple[str, str, str, str], tuple[bool, datetime]] = {}
    for drill, detail in session.execute(query):
        if (detail or {}).get("policy") in IN_USE:
            last[drill.failure_class, drill.phase, drill.fault, drill.isolation] = drill.passed, drill.at
    cells = []
    for (failure_class, phase), count in declared_cells(faults).items():
        mine = {key[2:]: told for key, told in last.items() if key[:2] == (failure_class, phase)}
        cells.append(
            Cell(
                failure_class,
                phase,
                passed=len({fault for (fault, _), (passed, _) in mine.items() if passed}),
                red=len({fault for (fault, _), (passed, _) in mine.items() if not passed}),
                faults=count,
                newest=max((at for _, at in mine.values()), default=None),
            )
        )
    return tuple(cells)
