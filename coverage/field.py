"""Field against proof: for each class of failure that deployments really have, what stands against it.

A class in a phase is *contained* where drills of it passed on the main path (under a policy that is in use: not
`account`, not `off`) and none of them is red now: of each fault, in each isolation and under each policy, the last
drill counts. *A check exists* where a check of `diagnose` looks for its cause before anything is served; whether it
was run for this model, and passed, nothing stores, so it is no proof that anything was prevented. *Without proof* is
the rest. Crashes of which the phase is not known are contained where no drill of the class is red, in any phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables import Cluster, CrashDaily, Signature
from crashpath.ingest.tables_evidence import CoverageRun, Drill
from crashpath.ingest.trends import ALL, Filters, conditions
from crashpath.runtime.values import Path as Which

IN_USE = ("breaker", "sticky")
"""Policies whose passing drills count."""


class Standing(StrEnum):
    """What stands against a class, the stronger first."""

    CONTAINED = "contained"
    CHECKED = "a check exists"
    UNPROVEN = "without proof"


@dataclass(frozen=True, slots=True)
class Names:
    """A check of `diagnose`: its id, and the class whose cause it looks for."""

    check: str
    failure_class: str


@dataclass(frozen=True, slots=True)
class FieldPart:
    """Crashes of a class in one phase. ``drills`` pass now and ``red`` do not; ``newest`` of both."""

    phase: str
    crashes: int
    share: float
    drills: int
    red: int
    newest: datetime | None
    standing: Standing


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One class in the field. ``share`` of all crashes; ``parts`` are its phases, the most crashes first."""

    failure_class: str
    crashes: int
    share: float
    checks: tuple[str, ...]
    parts: tuple[FieldPart, ...]

    @property
    def standing(self) -> Standing:
        """The weakest of its phases: a class is contained where it is so wherever it happens."""
        order = list(Standing)
        return max((part.standing for part in self.parts), key=order.index)


@dataclass(frozen=True, slots=True)
class Last:
    """How the last drill of a fault ended, in one isolation and under one policy."""

    failure_class: str
    fault: str
    phase: str
    isolation: str
    policy: str
    passed: bool
    at: datetime


def field_against_proof(
    session: Session,
    checks: Sequence[Names],
    *,
    filters: Filters = ALL,
    model_hash: str | None = None,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[FieldRow, ...]:
    """Return a row for each class that has crashes, the most crashes first.

    ``filters`` are of the crashes. ``model_hash``, ``release``, ``since`` and ``until`` leave out drills of other
    artefacts and releases, older and later ones: evidence for one hash says nothing of another. Nothing stands against
    unclassified crashes.
    """
    counts = _crashes(session, filters)
    total = sum(counts.values())
    drills = last_drills(session, model_hash=model_hash, release=release, since=since, until=until)
    rows = []
    for failure_class in dict.fromkeys(key for key, _ in counts):
        phases = {phase: crashes for (key, phase), crashes in counts.items() if key == failure_class}
        known = failure_class in {one.id for one in CLASSES}
        named = tuple(one.check for one in checks if one.failure_class == failure_class and known)
        last = [one for one in drills if one.failure_class == failure_class] if known else []
        parts = [_part(phase, crashes, total, last, named) for phase, crashes in phases.items()]
        parts.sort(key=lambda part: (-part.crashes, part.phase))
        crashes = sum(phases.values())
        rows.append(FieldRow(failure_class, crashes, crashes / total, named, tuple(parts)))
    return tuple(sorted(rows, key=lambda row: (-row.crashes, row.failure_class)))


def shares(rows: Sequence[FieldRow]) -> dict[Standing, float]:
    """Return the share of crashes under each standing; they add up to 1 where there are any."""
    return {one: sum(part.share for row in rows for part in row.parts if part.standing is one) for one in Standing}


def _part(phase: str, crashes: int, total: int, last: Sequence[Last], checks: Sequence[str]) -> FieldPart:
    mine = [one for one in last if phase in (UNKNOWN, one.phase)]
    red = sum(not one.passed for one in mine)
    unproven = Standing.CHECKED if checks else Standing.UNPROVEN
    standing = Standing.CONTAINED if mine and not red else unproven
    newest = max((one.at for one in mine), default=None)
    return FieldPart(phase, crashes, crashes / total, len(mine) - red, red, newest, standing)


def _crashes(session: Session, filters: Filters) -> dict[tuple[str, str], int]:
    """Return crashes by failure class and phase."""
    by_signature = (  # a tenth of the rows, before anything is looked up
        select(CrashDaily.phase, CrashDaily.signature_id, func.sum(CrashDaily.crashes).label("crashes"))
        .where(*conditions(filters))
        .group_by(CrashDaily.phase, CrashDaily.signature_id)
        .subquery()
        .c
    )
    column = func.coalesce(Cluster.failure_class, UNCLASSIFIED)
    query = (
        select(column, by_signature.phase, func.sum(by_signature.crashes))
        .join(Signature, Signature.id == by_signature.signature_id)
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
        .group_by(column, by_signature.phase)
    )
    return {(str(key), str(phase)): int(crashes) for key, phase, crashes in session.execute(query)}


def last_drills(
    session: Session,
    *,
    model_hash: str | None = None,
    release: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[Last, ...]:
    """Return the last drill of each fault on the main path, by phase, isolation and policy, of policies in use.

    Drills before ``since`` and after ``until`` are none.
    """
    query = (
        select(
            Drill.model_hash, Drill.run_id, Drill.failure_class, Drill.fault, Drill.phase, Drill.isolation,
            Drill.passed, Drill.at,
        )
        .where(Drill.path == Which.MAIN)
        .order_by(Drill.at, Drill.id)
    )  # fmt: skip
    if model_hash is not None:
        query = query.where(Drill.model_hash == model_hash)
    if release is not None:
        query = query.where(Drill.release == release)
    if since is not None:
        query = query.where(Drill.at >= since)
    if until is not None:
        query = query.where(Drill.at <= until)
    policies = policies_of_runs(session)
    last: dict[tuple[str, ...], Last] = {}
    for drill in session.execute(query):
        policy = policies.get(drill.run_id)
        if policy in IN_USE:
            told = (drill.failure_class, drill.fault, drill.phase, drill.isolation)
            last[(drill.model_hash, *told[1:], policy)] = Last(*told, policy, drill.passed, drill.at)
    return tuple(last.values())


def policies_of_runs(session: Session) -> dict[int | None, str]:
    """Return the policy of the drills of each run, by the run's id; what is told once is read once."""
    policy = CoverageRun.detail["policy"].as_string()
    query = select(CoverageRun.id, policy).where(select(Drill.id).where(Drill.run_id == CoverageRun.id).exists())
    return {run: str(told) for run, told in session.execute(query)}
