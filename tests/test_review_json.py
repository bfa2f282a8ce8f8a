"""The JSON document of a review: the contract's keys, the model's values, dates as ISO text."""

from __future__ import annotations

import json
import math
import runpy
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from crashpath.dashboard.review_json import document, plain
from crashpath.dashboard.review_model import Measure, Review

SAMPLES = runpy.run_path(str(Path(__file__).with_name("review_samples.py")))["SAMPLES"]
CONTRACT = ("verdict", "release", "baseline", "unit", "reasons", "rates", "attempts_needed", "looks")


@pytest.fixture(params=sorted(SAMPLES))
def review(request: pytest.FixtureRequest) -> Review:
    """Each sample in turn."""
    sample: Review = SAMPLES[request.param]()
    return sample


def test_the_contract(review: Review) -> None:
    """The keys that tools rely on are there, and it is JSON that needs no extension."""
    told = json.loads(json.dumps(document(review), allow_nan=False))
    assert set(CONTRACT) <= told.keys()
    assert set(told["rates"]) == {"primary", "unanswered", "contained"}
    for one in told["rates"].values():
        assert set(one) == {"failures", "attempts", "rate", "low", "high", "baseline", "difference", "ratio"}
    assert told == document(review)


def test_rates_are_those_of_the_unit(review: Review) -> None:
    """Rates are the model's, to the last bit; without a unit nothing was tried."""
    told = document(review)["rates"]
    for measure in Measure:
        if review.main is None:
            assert (told[measure]["attempts"], told[measure]["rate"]) == (0, None)
            continue
        one = review.main.rates[measure]
        assert told[measure]["rate"] == one.release.rate
        assert told[measure]["failures"] == one.release.failures
        assert (told[measure]["baseline"] or {}).get("rate") == (one.baseline.rate if one.baseline else None)
        assert told[measure]["ratio"] == plain(one.ratio)


def test_every_value_of_the_model_is_there(review: Review) -> None:
    """Each field of the review has its place, so that nothing that a page shows is missing in the document."""
    told = document(review)
    renamed = {"first_day": "days", "last_day": "days"}
    assert {renamed.get(one.name, one.name) for one in fields(review)} <= told.keys()
    numbers = set(_leaves(told))
    for reason in review.reasons:
        assert reason.sentence in numbers
    for unit in review.units:
        assert {day.day.isoformat() for day in unit.days} <= numbers
        assert {row.cohort.platform for row in unit.cohorts} <= numbers


def test_times_are_utc() -> None:
    """A time of another zone is written in UTC, and a day of which no attempts were told has null, not 0."""
    at = datetime(2026, 12, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    told = document(replace(SAMPLES["small"](), at=at))
    assert told["at"] == "2026-12-01T10:30:00Z"
    assert [day["attempts"] for day in told["units"][0]["days"]] == [3, None, 2]
    assert told["days"] == {"first": "2026-11-01", "last": "2026-11-03"}


def test_no_number_is_no_json() -> None:
    """What is no number is null, and an infinite weight the largest number that there is."""
    review = SAMPLES["no_go"]()
    reasons = tuple(
        replace(one, e_value=value) for one, value in zip(review.reasons, (math.inf, math.nan), strict=True)
    )
    told = json.loads(json.dumps(document(replace(review, reasons=reasons)), allow_nan=False))
    assert told["reasons"][0]["e_value"] > 1e308
    assert told["reasons"][1]["e_value"] is None


def _leaves(value: Any) -> list[Any]:
    assert not is_dataclass(value)
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    return [leaf for one in value for leaf in _leaves(one)] if isinstance(value, list) else [value]
