"""Drills of the store as failure class × phase: what passed last time, what is red, what was never driven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from crashpath.coverage.drillstore import not_driven
from crashpath.coverage.fault import Fault
from crashpath.coverage.field import last_drills
from crashpath.coverage.report import Cell
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
    until: datetime | None = None,
) -> tuple[Cell, ...]:
    """Return every declared cell with the last drill of each of its faults, for these artefacts.

    A cell whose faults were all tried, and none of them can be driven (no prepare step, no device), says why.
    """
    last = last_drills(session, model_hash=model_hash, release=release, since=since, until=until)
    refused = not_driven(session, model_hash, release=release, since=since, until=until)
    cells = []
    for (failure_class, phase), count in declared_cells(faults).items():
        why = refused.get((failure_class, phase), {})
        mine = [one for one in last if (one.failure_class, one.phase) == (failure_class, phase)]
        cells.append(
            Cell(
                failure_class,
                phase,
                passed=len({one.fault for one in mine if one.passed}),
                red=len({one.fault for one in mine if not one.passed}),
                faults=count,
                newest=max((one.at for one in mine), default=None),
                reason=_usual(why.values()) if len(why) >= count and not mine else None,
            )
        )
    return tuple(cells)


def _usual(reasons: Iterable[str]) -> str:
    """The most frequent of them; of equals the first by name."""
    counted = Counter(reasons)
    return f"cannot be driven here: {min(counted, key=lambda one: (-counted[one], one))}"
