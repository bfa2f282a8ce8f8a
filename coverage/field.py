"""Field against proof: for each class of failure that deployments really have, what stands against it.

A class is *contained* where a drill of it passed (under a policy that is in use: not `account`, not `off`), *prevented*
where a check of `diagnose` looks for its cause before anything is served, and *without proof* where there is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.tables_evidence import CoverageRun, Drill
from crashpath.ingest.trends import ALL, Filters, crashes_by_class

IN_USE = ("breaker", "sticky")
"""Policies whose passing drills count."""


class Standing(StrEnum):
    """What stands against a class, the stronger first."""

    CONTAINED = "contained"
    PREVENTED = "prevented"
    UNPROVEN = "without proof"


@dataclass(frozen=True, slots=True)
class Names:
    """A check of `diagnose`: its id, and the class that it prevents."""

    check: str
    prevents: str


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One class in the field. ``share`` of all crashes; ``drills`` passed and ``red`` did not; ``newest`` of both."""

    failure_class: str
    crashes: int
    share: float
    checks: tuple[str, ...]
    drills: int
    red: int
    newest: datetime | None

    @property
    def standing(self) -> Standing:
        """Contained before prevented: a check that is not run prevents nothing."""
        if self.drills:
            return Standing.CONTAINED
        return Standing.PREVENTED if self.checks else Standing.UNPROVEN


@dataclass(frozen=True, slots=True)
class Proof:
    """Passed and red drills of a class, and when the last of them was driven."""

    passed: int
    red: int
    newest: datetime | None


def field_against_proof(
    session: Session,
    checks: Sequence[Names],
    *,
    filters: Filters = ALL,
    model_hash: str | None = None,
    since: datetime | None = None,
) -> tuple[FieldRow, ...]:
    """Return a row for each class that has crashes, the most crashes first.

    ``model_hash`` and ``since`` leave out drills of other artefacts and older ones: evidence for one hash says nothing
    of another. Unclassified crashes can be neither prevented nor contained.
    """
    counts = crashes_by_class(session, filters)
    total = sum(count.crashes for count in counts)
    rows = []
    for count in counts:
        known = count.key != UNCLASSIFIED
        proof = _proof(session, count.key, model_hash, since) if known else Proof(0, 0, None)
        named = tuple(one.check for one in checks if one.prevents == count.key and known)
        rows.append(
            FieldRow(count.key, count.crashes, count.crashes / total, named, proof.passed, proof.red, proof.newest)
        )
    return tuple(sorted(rows, key=lambda row: -row.crashes))


def shares(rows: Sequence[FieldRow]) -> dict[Standing, float]:
    """Return the share of crashes under each standing; they add up to 1 where there are any."""
    return {one: sum(row.share for row in rows if row.standing is one) for one in Standing}


def _proof(session: Session, failure_class: str, model_hash: str | None, since: datetime | None) -> Proof:
    query = (
        select(Drill.passed, Drill.at, CoverageRun.detail)
        .outerjoin(CoverageRun, CoverageRun.id == Drill.run_id)
        .where(Drill.failure_class == failure_class)
    )
    if model_hash is not None:
        query = query.where(Drill.model_hash == model_hash)
    if since is not None:
        query = query.where(Drill.at >= since)
    found = [(passed, at) for passed, at, detail in session.execute(query) if (detail or {}).get("policy") in IN_USE]
    return Proof(
        passed=sum(passed for passed, _ in found),
        red=sum(not passed for passed, _ in found),
        newest=max((at for _, at in found), default=None),
    )
