"""The documents of ``crashpath faults --json`` and ``crashpath drill --json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crashpath.coverage.drillcells import DrillResult, Verdict
from crashpath.coverage.drillclaim import claimed
from crashpath.coverage.drillmix import MixResult
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillstore import Evidence, mix_json
from crashpath.coverage.fault import Fault, missing
from crashpath.coverage.field import FieldRow
from crashpath.coverage.routescenario import RouteResult
from crashpath.coverage.routestore import route_json


def fault_json(one: Fault) -> dict[str, Any]:
    """A fault of the catalogue."""
    plan = one.drill
    return {
        "id": one.id,
        "class": one.failure_class,
        "phase": one.phase,
        "library": one.library,
        "title": one.title,
        "missing": missing(one),
        "drill": None
        if plan is None
        else {
            "phases": plan.phases,
            "path": plan.path,
            "raises": plan.strike or plan.spoiler,
            "isolations": ["process"] if plan.process_only else list(ISOLATIONS),
            "not_in_process": plan.process_only or None,
        },
    }


def document(
    evidence: Evidence,
    results: Sequence[DrillResult],
    mixes: Sequence[MixResult],
    field: Sequence[FieldRow],
    routes: Sequence[RouteResult] = (),
) -> dict[str, Any]:
    """What was driven. ``lower_bound`` is of the ``claim`` beside it, which says its unit; no route drill is in it."""
    driven = [one for one in results if one.verdict is not Verdict.NULL]
    counted: list[DrillResult | MixResult] = [*driven, *mixes]
    claim = claimed(results, mixes)
    return {
        "model": evidence.model,
        "model_hash": evidence.model_hash,
        "release": evidence.release,
        "policy": evidence.policy,
        "providers": list(evidence.providers),
        "limits": dict(evidence.limits),
        "at": evidence.at.isoformat(),
        "versions": dict(evidence.versions),
        "drills": [_drill_json(one) for one in results],
        "driven": len(driven),
        "requests": sum(one.requests for one in counted),
        "unanswered": sum(one.unanswered for one in counted),
        "wrong": sum(one.wrong for one in counted),
        "lower_bound": claim.bound,
        "claim": {"unit": claim.unit, "trials": claim.trials, "misses": claim.misses},
        "mixes": [mix_json(mix) for mix in mixes],
        "routes": [route_json(one) for one in routes],
        "field": [_field_json(row) for row in field],
    }


def _drill_json(one: DrillResult) -> dict[str, Any]:
    return {
        "fault": one.fault,
        "class": one.failure_class,
        "phase": one.phase,
        "isolation": one.isolation,
        "policy": one.policy,
        "path": one.path,
        "verdict": one.verdict,
        "cells": {cell.name: cell.value for cell in one.cells},
        "why": {cell.name: cell.why for cell in one.cells if cell.why},
        "requests": one.requests,
        "unanswered": one.unanswered,
        "wrong": one.wrong,
        "seconds": round(one.seconds, 3),
        "observed": one.observed,
        "told": one.told,
    }


def _field_json(row: FieldRow) -> dict[str, Any]:
    return {
        "class": row.failure_class,
        "crashes": row.crashes,
        "share": row.share,
        "standing": row.standing,
        "checks": list(row.checks),
        "phases": [
            {
                "phase": part.phase,
                "crashes": part.crashes,
                "share": part.share,
                "standing": part.standing,
                "passed": part.drills,
                "red": part.red,
                "newest": None if part.newest is None else part.newest.isoformat(),
            }
            for part in row.parts
        ],
    }
