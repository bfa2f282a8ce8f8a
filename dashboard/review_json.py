"""A release review as the document of ``crashpath review --json``: every value of the model, dates as ISO text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from crashpath.dashboard.review_model import (
    ClassRow,
    CohortRow,
    Compared,
    DayRow,
    Measure,
    Rate,
    Review,
    UnitReport,
)

_UNTRIED = Compared(Rate(0, 0, None, None, None), None, None, None)


def document(review: Review) -> dict[str, Any]:
    """Return the document. ``rates`` are of ``unit``; without one nothing was tried, and no rate is known."""
    main = {} if review.main is None else review.main.rates
    return {
        "verdict": str(review.verdict),
        "outcome": str(review.outcome),
        "release": review.release,
        "baseline": review.baseline,
        "unit": review.unit,
        "reasons": plain(review.reasons),
        "rates": rates({measure: main.get(measure, _UNTRIED) for measure in Measure}),
        "attempts_needed": review.attempts_needed,
        "looks": review.looks,
        "at": plain(review.at),
        "days": {"first": plain(review.first_day), "last": plain(review.last_day)},
        "units": [_unit(unit) for unit in review.units],
        "movements": plain(review.movements),
        "thresholds": plain(review.thresholds),
        "apart": plain(review.apart),
        "proof": plain(review.proof),
        "overrides": plain(review.overrides),
        "earlier": plain(review.earlier),
        "notes": list(review.notes),
        "policy": review.policy,
        "alpha": _number(review.alpha),
        "method": list(review.method),
    }


def rates(measures: Mapping[Measure, Compared]) -> dict[str, Any]:
    """Return measures by name, each as ``compared`` writes it."""
    return {str(measure): compared(one) for measure, one in measures.items()}


def compared(one: Compared) -> dict[str, Any]:
    """Return the release's rate, and beside it the baseline's, their difference and their ratio."""
    return {
        **plain(one.release),
        "baseline": plain(one.baseline),
        "difference": plain(one.difference),
        "ratio": plain(one.ratio),
    }


def _unit(unit: UnitReport) -> dict[str, Any]:
    return {
        "unit": unit.unit,
        "rates": rates(unit.rates),
        "attempts_needed": unit.attempts_needed,
        "cohorts": [_cohort(row) for row in unit.cohorts],
        "classes": [_class(row) for row in unit.classes],
        "days": [_day(row) for row in unit.days],
    }


def _cohort(row: CohortRow) -> dict[str, Any]:
    return {**plain(row.cohort), "rates": rates(row.rates), "problem": row.problem}


def _class(row: ClassRow) -> dict[str, Any]:
    return {
        "headline": row.headline,
        "class": row.failure_class,
        "share": _number(row.share),
        "baseline_share": _number(row.baseline_share),
        **compared(row.rate),
    }


def _day(row: DayRow) -> dict[str, Any]:
    return {
        "release": row.release,
        "day": row.day.isoformat(),
        "attempts": row.attempts,
        "primary": plain(row.primary),
        "unanswered": plain(row.unanswered),
    }


def plain(value: object) -> Any:
    """Return a value of the model as JSON has it: a dataclass as an object of its fields, a time in UTC."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | int | str | float):
        return _number(value) if isinstance(value, float) else value
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]  # all else here are dataclasses


def _number(value: float | None) -> float | None:
    """Return a number; what JSON has none for (an infinite weight of evidence) is the largest there is, or nothing."""
    if value is None or math.isnan(value):
        return None
    return math.copysign(1.7976931348623157e308, value) if math.isinf(value) else value
