"""Drills in the store: what ran is one ``coverage_run`` with a ``drill`` row for each case that could be driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from crashpath.coverage.drillcells import DrillResult, Verdict
from crashpath.coverage.drillmix import MixResult
from crashpath.coverage.units import Kind
from crashpath.ingest.schema import Json
from crashpath.ingest.tables_evidence import CoverageHit, CoverageRun, Drill

ORIGIN = "drill"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What all drills of a run have in common. ``versions`` are those of the libraries that ran.

    ``policy`` is that of the drills; a mix tells its own. ``limits`` are those that held, by name;
    ``routes`` how often the sessions took each declared edge.
    """

    at: datetime
    release: str
    model: str
    model_hash: str
    policy: str
    versions: tuple[tuple[str, str], ...]
    providers: tuple[str, ...] = ()
    limits: tuple[tuple[str, float], ...] = ()
    routes: tuple[tuple[str, int], ...] = ()


def begin_run(session: Session, evidence: Evidence) -> int:
    """Add a run in which nothing was driven yet, and return its id."""
    run = CoverageRun(
        at=evidence.at,
        release=evidence.release,
        model=evidence.model,
        model_hash=evidence.model_hash,
        origin=ORIGIN,
        versions=dict(evidence.versions),
        detail={
            "policy": evidence.policy,
            "providers": list(evidence.providers),
            "limits": dict(evidence.limits),
            "not_driven": [],
            "mixes": [],
        },
    )
    session.add(run)
    session.flush()
    return run.id


def add_to_run(
    session: Session,
    run_id: int,
    evidence: Evidence,
    results: Sequence[DrillResult],
    mixes: Sequence[MixResult],
    told: Json,
) -> None:
    """Add drills to a run: ``evidence.at`` is when they ended, its versions and routes are those of all up to now.

    Cases that could not be driven, and what is ``told`` besides, are in the run's detail.
    """
    run = session.get_one(CoverageRun, run_id)
    versions: Json = dict(evidence.versions)
    refused = [_not_driven(one) for one in results if one.verdict is Verdict.NULL]
    more = {
        "not_driven": [*run.detail["not_driven"], *refused],
        "mixes": [*run.detail["mixes"], *(mix_json(mix) for mix in mixes)],
    }
    run.versions = versions
    run.detail = run.detail | more | told
    session.add_all(_row(run_id, evidence, versions, one) for one in results if one.verdict is not Verdict.NULL)
    hits = {hit.unit: hit for hit in session.scalars(select(CoverageHit).where(CoverageHit.run_id == run_id))}
    for route, count in evidence.routes:
        if route in hits:
            hits[route].hits = count
        elif count:
            session.add(CoverageHit(run_id=run_id, path="", kind=Kind.ROUTE, unit=route, hits=count, counted=True))


def _row(run_id: int, evidence: Evidence, versions: Json, result: DrillResult) -> Drill:
    return Drill(
        run_id=run_id,
        at=evidence.at,
        release=evidence.release,
        model=evidence.model,
        model_hash=evidence.model_hash,
        fault=result.fault,
        failure_class=result.failure_class,
        phase=result.phase,
        path=result.path,
        isolation=result.isolation,
        passed=result.verdict is Verdict.GREEN,
        cells={cell.name: cell.value for cell in result.cells},
        why={cell.name: cell.why for cell in result.cells if cell.why},
        requests=result.requests,
        unanswered=result.unanswered,
        wrong=result.wrong,
        seconds=result.seconds,
        versions=versions,
    )


def mix_json(mix: MixResult) -> Json:
    """Return a mix as the store and documents hold it."""
    told = {"breaker": dict(mix.breaker), "faults": dict(mix.faults), "versions": dict(mix.versions)}
    return asdict(mix) | told | {"errors": list(mix.errors), "red": list(mix.faulty), "lower_bound": mix.bound}


def _not_driven(result: DrillResult) -> Json:
    return {
        "fault": result.fault,
        "class": result.failure_class,
        "phase": result.phase,
        "isolation": result.isolation,
        "why": next((cell.why for cell in result.cells), ""),
    }


def drill_routes(
    session: Session,
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, int]:
    """Return how often the sessions of drills of these artefacts took each declared edge."""
    query = (
        select(CoverageHit.unit, func.sum(CoverageHit.hits))
        .join(CoverageRun, CoverageRun.id == CoverageHit.run_id)
        .where(*_of_drills(model_hash, release, since, until), CoverageHit.kind == Kind.ROUTE)
        .group_by(CoverageHit.unit)
    )
    return {route: int(count) for route, count in session.execute(query)}


def drill_policies(
    session: Session,
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> frozenset[str]:
    """Return the policies under which these artefacts were drilled."""
    told = told_by_drills(session, model_hash, release=release, since=since, until=until)
    return frozenset(str(detail["policy"]) for detail in told if "policy" in detail)


def not_driven(
    session: Session,
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[tuple[str, str], dict[str, str]]:
    """Return why faults could not be driven, as it was said last: (failure class, phase) → fault → reason."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for detail in told_by_drills(session, model_hash, release=release, since=since, until=until):
        for one in detail.get("not_driven", ()):
            found.setdefault((one["class"], one["phase"]), {})[one["fault"]] = one["why"]
    return found


def told_by_drills(
    session: Session,
    model_hash: str,
    *,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[Json, ...]:
    """Return what runs of drills of these artefacts told besides their drills, the oldest first."""
    query = (
        select(CoverageRun.detail)
        .where(*_of_drills(model_hash, release, since, until))
        .order_by(CoverageRun.at, CoverageRun.id)
    )
    return tuple(detail or {} for detail in session.scalars(query))


def _of_drills(
    model_hash: str, release: str | None, since: datetime | None, until: datetime | None
) -> tuple[ColumnElement[bool], ...]:
    """The conditions on ``CoverageRun``."""
    own = (CoverageRun.origin == ORIGIN, CoverageRun.model_hash == model_hash)
    of_release = () if release is None else (CoverageRun.release == release,)
    after = () if since is None else (CoverageRun.at >= since,)
    return own + of_release + after + (() if until is None else (CoverageRun.at <= until,))
