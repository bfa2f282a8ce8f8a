"""The breaker moves by the rules of its settings, on a clock that the test owns."""

from __future__ import annotations

import pytest

from crashpath.runtime.breaker import Breaker, Change
from crashpath.runtime.policy import POLICIES, BreakerSettings, named
from crashpath.runtime.values import BreakerState

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def _breaker(clock: _Clock, **settings: float) -> Breaker:
    return Breaker(BreakerSettings(**{"minimum": 4, "rate": 0.5, "open_s": 5.0, "probes": 2} | settings), clock)  # type: ignore[arg-type]


def test_minimum(clock: _Clock) -> None:
    """Nothing opens before the minimum count, however bad the rate is."""
    breaker = _breaker(clock)
    assert [breaker.note(failed=True) for _ in range(3)] == [None] * 3
    assert breaker.note(failed=True) == Change(CLOSED, OPEN, "rate")
    assert breaker.state is OPEN


def test_rate(clock: _Clock) -> None:
    """It is the share of failures that opens, not failures in a row: every other one is half."""
    breaker = _breaker(clock)
    for failed in (False, True, False):
        assert breaker.note(failed=failed) is None
    assert breaker.note(failed=True) is not None

    breaker = _breaker(clock, rate=0.6)
    for _ in range(50):
        assert breaker.note(failed=False) is None
        assert breaker.note(failed=True) is None


def test_a_success_never_opens(clock: _Clock) -> None:
    """When old successes leave the window the rate rises, but only a failure opens."""
    breaker = _breaker(clock, calls=4, rate=0.5, window_s=10.0)
    for failed in (False, False, False, True):
        assert breaker.note(failed=failed) is None
    for failed in (False, False):
        assert breaker.note(failed=failed) is None
    assert breaker.state is CLOSED


def test_window_by_calls(clock: _Clock) -> None:
    """Outcomes before the last ``calls`` do not count: the same failures open or not by what came after them."""
    breaker = _breaker(clock, calls=10, minimum=10, rate=0.4)
    for failed in [True] * 3 + [False] * 6:
        assert breaker.note(failed=failed) is None
    assert breaker.note(failed=True) is not None, "4 of 10"

    breaker = _breaker(clock, calls=10, minimum=10, rate=0.4)
    for failed in [True] * 3 + [False] * 7:
        assert breaker.note(failed=failed) is None
    assert breaker.note(failed=True) is None, "3 of 10: the first has left"


def test_window_by_time(clock: _Clock) -> None:
    """Failures older than the window do not count."""
    breaker = _breaker(clock, window_s=10.0)
    for _ in range(3):
        breaker.note(failed=True)
    clock.now += 10.1
    assert breaker.note(failed=True) is None
    assert [breaker.note(failed=True) for _ in range(2)] == [None, None]
    assert breaker.note(failed=True) is not None


def test_half_open_only_when_due(clock: _Clock) -> None:
    """Open lasts ``open_s`` seconds and ends when somebody asks."""
    breaker = _breaker(clock)
    breaker.trip("abandoned")
    clock.now += 4.9
    assert breaker.admit() is None
    clock.now += 0.2
    assert breaker.state is OPEN
    assert breaker.admit() == Change(OPEN, HALF_OPEN, "time")
    assert breaker.admit() is None


def test_probes_close(clock: _Clock) -> None:
    """Enough probes in a row close, one at a time, with an empty window."""
    breaker = _half_open(clock)
    assert breaker.take_probe()
    assert not breaker.take_probe(), "one at a time"
    assert breaker.probed(passed=True) is None
    assert breaker.take_probe()
    assert breaker.probed(passed=True) == Change(HALF_OPEN, CLOSED, "probe")
    assert [breaker.note(failed=True) for _ in range(3)] == [None] * 3


def test_a_failed_probe_opens(clock: _Clock) -> None:
    """One failed probe opens again for the whole time, whatever passed before."""
    breaker = _half_open(clock)
    breaker.take_probe()
    breaker.probed(passed=True)
    breaker.take_probe()
    assert breaker.probed(passed=False) == Change(HALF_OPEN, OPEN, "probe")
    clock.now += 4.9
    assert breaker.admit() is None


def test_a_dropped_probe_says_nothing(clock: _Clock) -> None:
    """A probe that could not be made neither passes nor fails, and lets the next one in."""
    breaker = _half_open(clock)
    assert breaker.take_probe()
    breaker.drop_probe()
    assert breaker.state is HALF_OPEN
    assert breaker.take_probe()


def test_stragglers_move_nothing(clock: _Clock) -> None:
    """A request that began before it opened and ends after counts for nothing; so does a late probe."""
    breaker = _breaker(clock)
    breaker.trip("abandoned")
    assert breaker.note(failed=False) is None
    assert breaker.probed(passed=True) is None
    assert breaker.trip("abandoned") is None
    assert breaker.state is OPEN


def test_settings_that_cannot_work() -> None:
    """A breaker that could never open or close is refused at once; an unknown policy lists those that there are."""
    for wrong in ({"minimum": 0}, {"minimum": 101}, {"rate": 0.0}, {"rate": 1.1}, {"probes": 0}, {"window_s": 0.0}):
        with pytest.raises(ValueError, match="never"):
            BreakerSettings(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="breaker, sticky, account, off"):
        named("braker")
    assert list(POLICIES) == ["breaker", "sticky", "account", "off"]


def _half_open(clock: _Clock) -> Breaker:
    breaker = _breaker(clock)
    breaker.trip("abandoned")
    clock.now += 5.0
    breaker.admit()
    return breaker
