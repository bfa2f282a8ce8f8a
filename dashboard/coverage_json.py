"""The document of ``crashpath coverage --json``: the keys of the contract, and all that the other reports show."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from crashpath.coverage.report import Report
from crashpath.coverage.units import Kind, Ratio
from crashpath.runtime.values import Path as Which


def document(report: Report, before: Report | None = None, gate: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the document. ``gate`` are the sentences of a gate that is red."""
    shapes, placed = report.shapes(), report.placed()
    return {
        "release": report.release,
        "model": report.model,
        "model_hash": report.model_hash,
        "main": _ratio(report.main()),
        "fallback": _ratio(report.fallback()),
        "blocks": _ratio(report.blocks()),
        "experts": {
            f"{path} {kind}": _ratio(report.experts(path, kind))
            for path in Which
            for kind in (Kind.EXPERT, Kind.PAIR)
            if report.has(path, kind)
        },
        "routes": _ratio(report.taken()),
        "drills": _ratio(report.drilled()),
        "shapes": None if shapes is None else _ratio(shapes),
        "placement": None
        if placed is None
        else {
            "nodes": dict(placed.nodes),
            "asked": list(report.covered.asked),
            "absent": list(placed.absent),
            "unasked": list(placed.names),
            "runs": [
                {"run": run.run, "asked": list(run.asked), "absent": list(run.absent), "unasked": len(run.unasked)}
                for run in placed.runs
            ],
        },
        "shipped": {path.path: asdict(path.shipped) for path in report.covered.paths if path.shipped},
        "problems": list(report.problems()),
        "uncovered": [asdict(gap) for gap in report.gaps],
        "uncovered_field_classes": list(report.field),
        "excluded": [
            {"path": path.path, "kind": unit.kind, "unit": unit.id, "label": unit.label, "why": unit.reason}
            for path in report.covered.paths
            for unit in path.excluded()
        ]
        + [
            {"path": "", "kind": unit.kind, "unit": unit.id, "label": unit.label, "why": unit.reason}
            for unit in report.routes
            if not unit.counted
        ]
        + [
            {
                "path": Which.MAIN,
                "kind": "drill",
                "unit": f"{cell.failure_class} in {cell.phase}",
                "label": "",
                "why": cell.reason,
            }
            for cell in report.drills
            if not cell.counted
        ],
        "runs": [
            {
                "run": run.id,
                "origin": run.origin,
                "release": run.release,
                "ended": None if run.ended is None else run.ended.isoformat(),
                "requests": run.requests,
                "versions": dict(run.versions),
            }
            for run in report.covered.runs
        ],
        "not_counted": [{"run": one.run.id, "why": one.why} for one in report.left],
        "before": None
        if before is None
        else {"release": before.release, "main": _ratio(before.main()), "fallback": _ratio(before.fallback())},
        "gate": list(gate),
    }


def _ratio(ratio: Ratio) -> dict[str, int]:
    return {"covered": ratio.covered, "total": ratio.total}
