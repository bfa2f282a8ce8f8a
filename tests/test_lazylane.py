"""A path that sleeps until it is needed: what it answers is compared before anybody gets it."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from crashpath.runtime.errors import Failure, HostMemory, LoadCorrupt
from crashpath.runtime.fakelane import FakeBackend
from crashpath.runtime.folder import TensorSpec, Tolerance
from crashpath.runtime.inprocess import InProcessLane
from crashpath.runtime.lane import LaneSignature, LaneState
from crashpath.runtime.lazylane import LazyLane
from crashpath.runtime.startup import Expected
from crashpath.runtime.values import Arrays, Path

LONG = 60.0
FEED: Arrays = {"x": np.ones(3, np.float32)}
EXPECTED = Expected((TensorSpec("x", "float32", ("n",)),), Tolerance(), {"y": FEED["x"] + 1})


def test_nobody_gets_an_answer_that_was_not_compared() -> None:
    """Rule: requests that come while it wakes wait for the comparison; where that fails each gets the failure."""
    checking = threading.Event()

    def answer(feed: Arrays) -> Arrays:
        checking.set()
        time.sleep(0.3)
        return {"y": feed["x"] + 100}

    lane = _lane(answer)
    assert lane.facts().state is LaneState.READY
    seen: list[object] = []
    threads = [threading.Thread(target=_ask, args=(lane, seen)) for _ in range(3)]
    threads[0].start()
    checking.wait(LONG)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert seen == [LoadCorrupt] * 3
    assert lane.facts().state is LaneState.CLOSED
    assert lane.facts().loads == 1


def test_those_who_waited_share_one_load() -> None:
    """Rule: the first request loads it, the others wait for that and are answered."""
    lane = _lane(lambda feed: {"y": feed["x"] + 1})
    seen: list[object] = []
    threads = [threading.Thread(target=_ask, args=(lane, seen)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert seen == [2.0] * 5
    assert lane.facts().loads == 1
    lane.close()


def test_a_load_that_failed_is_not_tried_by_each_request() -> None:
    """Rule: after a failed load requests get its class at once; whoever looks after the lane loads it again."""
    made: list[int] = []

    def make() -> FakeBackend:
        made.append(1)
        if len(made) == 1:
            raise MemoryError
        return FakeBackend(lambda feed: {"y": feed["x"] + 1})

    lane = LazyLane(InProcessLane(Path.FALLBACK, make, FEED), EXPECTED, load_s=LONG)
    for _ in range(3):
        with pytest.raises(HostMemory):
            lane.run(FEED, time.monotonic() + LONG)
    assert len(made) == 1
    assert lane.facts().state is LaneState.DOWN
    lane.load(LONG)
    assert lane.run(FEED, time.monotonic() + LONG)["y"][0] == 2
    lane.close()


def test_another_check_takes_the_place_of_what_is_expected() -> None:
    """Rule: `check_with` holds its loads, the first included."""
    lane = _lane(lambda feed: {"y": feed["x"] + 100})

    def check(signature: LaneSignature, warm: Arrays | None) -> Failure | None:
        assert signature.inputs == ("x",)
        assert warm is not None
        return None

    lane.check_with(check)
    assert lane.run(FEED, time.monotonic() + LONG)["y"][0] == 101
    lane.close()


def _lane(answer: object) -> LazyLane:
    return LazyLane(InProcessLane(Path.FALLBACK, lambda: FakeBackend(answer), FEED), EXPECTED, load_s=LONG)  # type: ignore[arg-type]


def _ask(lane: LazyLane, seen: list[object]) -> None:
    try:
        seen.append(float(lane.run(FEED, time.monotonic() + LONG)["y"][0]))
    except Failure as error:
        seen.append(type(error))
