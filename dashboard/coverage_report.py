"""The coverage report of what the store holds: traced runs, drills and routes of one model, by evidence that counts."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from crashpath.coverage.covered import AHEAD, add_up
from crashpath.coverage.covstore import newest_run, summed_runs
from crashpath.coverage.declare import with_declared
from crashpath.coverage.drilled import drill_cells
from crashpath.coverage.drillstore import drill_policies, drill_routes
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.field import IN_USE, Standing, field_against_proof
from crashpath.coverage.report import Report, make_report
from crashpath.coverage.route_units import DEFAULT_POLICIES, declared_routes, route_drills
from crashpath.coverage.routestore import route_reasons
from crashpath.dashboard.errors import InputError
from crashpath.ingest.trends import Filters
from crashpath.runtime.folder import ModelFolder


@dataclass(frozen=True, slots=True)
class Asked:
    """What evidence may count: its age in days; ``db`` as it was given, for the commands of the report."""

    max_age: float
    db: str | None = None


def stored_report(
    session: Session,
    folder: ModelFolder | None,
    release: str | None,
    asked: Asked,
    *,
    now: datetime,
    model_hash: str | None = None,
    production: Mapping[str, int] | None = None,
    field: bool = True,
) -> Report:
    """Return the report of one model: that of ``model_hash``, else of ``folder``, else of the run that began last.

    ``release`` leaves out evidence of others. ``production`` is requests a bucket of shapes, where it is known.
    Without ``field`` nobody counts the crashes, and no class of them is told.
    Raises ``InputError`` where no model is given and none was traced.
    """
    age = timedelta(days=asked.max_age)
    since, until = now - age, now + AHEAD
    if model_hash is None:
        model_hash = _newest_hash(session, release, asked, now) if folder is None else folder.hash
    runs = summed_runs(session, model_hash, release=release, since=since, now=now)
    covered = add_up(runs, model_hash, now=now, max_age=age)
    cells = drill_cells(session, FAULTS, model_hash, release=release, since=since, until=until)
    routes = Counter(covered.routes)
    routes.update(drill_routes(session, model_hash, release=release, since=since, until=until))
    policies = drill_policies(session, model_hash, release=release, since=since, until=until)
    policies = policies & set(IN_USE) or DEFAULT_POLICIES
    reasons = route_reasons(session, model_hash, release=release, since=since, until=until)
    covered = replace(covered, routes=dict(routes))
    told = Filters(release=release)
    proof = field_against_proof(session, (), filters=told, model_hash=model_hash, since=since) if field else ()
    return make_report(
        with_declared(covered, folder),
        release=release or "",
        routes=declared_routes(policies, cells, {edge: why for edge, why in reasons.items() if not routes[edge]}),
        route_drills=route_drills(policies),
        drills=cells,
        field=[row.failure_class for row in proof if row.standing is not Standing.CONTAINED],
        production=production,
        folder=shlex.quote(str(folder.path)) if folder is not None else "DIR",
        flags=_flags(release, asked.db),
    )


def _newest_hash(session: Session, release: str | None, asked: Asked, now: datetime) -> str:
    newest = newest_run(session, release=release, now=now)
    if newest is None:
        where = f" of release {release}" if release else ""
        command = f"crashpath coverage --trace DIR{_flags(release, asked.db)}"
        raise InputError(f"The store has no traced run{where}; trace one: {command}")
    return newest.model_hash


def _flags(release: str | None, db: str | None) -> str:
    """Return the flags without which what a command adds would not count here."""
    given = (("--release", release), ("--db", db))
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in given if value)
