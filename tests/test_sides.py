"""One release in one unit: of two totals the larger holds, and what has no denominator is kept apart."""

from __future__ import annotations

from datetime import date

from crashpath.dashboard.review_model import Cohort, Measure
from crashpath.dashboard.sides import Tally, make_side
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_read import FailedCell

DAY, NEXT = date(2026, 3, 1), date(2026, 3, 2)


def _count(attempts: int, **more: object) -> AttemptCount:
    told = {
        "unit": "deployment", "day": DAY, "release": "1.4", "platform": "linux", "model": "m", "path": "unknown",
        "attempts": attempts, "failures": None, "unanswered": None, "rerouted": None, "users": None, "devices": None,
        "via": "file",
    }  # fmt: skip
    return AttemptCount(**(told | more))  # type: ignore[arg-type]  # values by name


def _cell(attempts: int, **more: object) -> FailedCell:
    told = {
        "unit": "deployment", "day": DAY, "release": "1.4", "platform": "linux", "model": "m", "cluster": 1,
        "failure_class": "oom_host", "attempts": attempts, "unanswered": 0, "contained": 0, "witnesses": attempts,
    }  # fmt: skip
    return FailedCell(**(told | more))  # type: ignore[arg-type]  # values by name


def test_failures_that_counts_alone_tell_are_added_once() -> None:
    """A count of 9 failures and logs of 6 of them are 9, of which 3 have no log."""
    side = make_side("1.4", "deployment", [_cell(6)], [_count(100, failures=9)])
    assert side.tally == Tally(100, 100, 9, 9)
    assert side.unlogged == 3


def test_a_failure_is_unanswered_unless_something_says_otherwise() -> None:
    """Of 5 failures, 2 are told to be contained: 3 were not answered."""
    side = make_side("1.4", "deployment", [_cell(5, contained=2)], [_count(100)])
    assert side.tally.of(Measure.UNANSWERED) == (3, 100)
    assert side.tally.of(Measure.CONTAINED) == (2, 100)


def test_a_process_that_died_before_it_could_tell_was_not_answered() -> None:
    """Counts of 4 failures, all answered, and a fifth in the logs alone: one was not answered."""
    side = make_side("1.4", "deployment", [_cell(5, contained=4)], [_count(100, failures=4, unanswered=0)])
    assert side.tally == Tally(100, 100, 5, 1)


def test_a_day_without_attempts_is_apart() -> None:
    """Failures of a day of which no attempts are told are in no rate, and are not dropped."""
    side = make_side("1.4", "deployment", [_cell(2), _cell(7, day=NEXT)], [_count(50)])
    assert side.tally.primary == 2
    assert side.bare == 7
    assert side.without_attempts == {NEXT}


def test_an_unknown_phase_counts_where_one_unit_alone_is_told() -> None:
    """With attempts of one unit it counts there; with several nobody knows, and it is apart."""
    cells = [_cell(3, unit="unknown")]
    assert make_side("1.4", "deployment", cells, [_count(50)]).tally.primary == 3
    both = make_side("1.4", "deployment", cells, [_count(50), _count(900, unit="request")])
    assert (both.tally.primary, both.phaseless) == (0, 3)


def test_requests_sent_past_the_main_path_are_not_tries_of_it() -> None:
    """Primary failures are counted on what tried the main path."""
    side = make_side("1.4", "request", [_cell(1, unit="request")], [_count(100, unit="request", rerouted=60)])
    assert side.tally.of(Measure.PRIMARY) == (1, 40)


def test_a_cohort_takes_what_names_it_or_can_only_be_it() -> None:
    """A failure without a platform is that of the only cohort it fits, and vague where several fit."""
    one = make_side("1.4", "deployment", [_cell(2, platform="unknown")], [_count(50)])
    assert [(c.cohort, c.tally.primary) for c in one.cohorts] == [(Cohort("linux", "m"), 2)]
    two = make_side("1.4", "deployment", [_cell(2, platform="unknown")], [_count(50), _count(50, platform="mac")])
    assert (two.vague, two.tally.primary) == (2, 2)


def test_a_cohort_without_attempts_is_told_apart() -> None:
    """Failures of a cohort of which no attempts are told stand there, and say so."""
    side = make_side("1.4", "deployment", [_cell(2, platform="bsd")], [_count(50)])
    assert [(c.cohort.platform, c.told) for c in side.cohorts] == [("linux", True), ("bsd", False)]
