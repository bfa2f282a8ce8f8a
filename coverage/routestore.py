"""Route drills in the store: they are in the detail of their run, and the edges that they took among its routes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from sqlalchemy.orm import Session

from crashpath.coverage.drillcells import Verdict
from crashpath.coverage.drillstore import told_by_drills
from crashpath.coverage.routescenario import RouteResult, impossible
from crashpath.ingest.schema import Json

ROUTES = "routes"
"""Their key in the run's detail."""


def route_json(one: RouteResult) -> Json:
    """Return a route drill as the store and documents hold it."""
    told: Json = asdict(one) | {
        "edges": list(one.edges),
        "verdict": str(one.verdict),
        "taken": dict(one.taken),
        "seconds": round(one.seconds, 3),
    }
    return told


def route_reasons(
    session: Session,
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, str]:
    """Return why edges cannot be taken with these artefacts, as route drills said it last, in every isolation."""
    last: dict[tuple[str, str], RouteResult] = {}
    for detail in told_by_drills(session, model_hash, release=release, since=since, until=until):
        for told in detail.get(ROUTES, ()):
            one = RouteResult(
                told["scenario"],
                told["isolation"],
                told["policy"],
                tuple(told["edges"]),
                Verdict(told["verdict"]),
                told["why"],
            )
            last[one.scenario, one.isolation] = one
    return impossible(tuple(last.values()))
