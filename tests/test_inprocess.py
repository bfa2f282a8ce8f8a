"""A path in this process: soft deadlines, threads that are given up and counted, loads, strikes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path as FilePath

import numpy as np
import pytest

from crashpath.runtime.backends import OrtBackend
from crashpath.runtime.errors import (
    DeadlineExceeded,
    DeviceFault,
    Failure,
    Hang,
    HostMemory,
    InputError,
    LoadCorrupt,
    LoadTimeout,
    NativeCrash,
    SessionClosed,
)
from crashpath.runtime.fakelane import FakeBackend
from crashpath.runtime.inprocess import InProcessLane
from crashpath.runtime.lane import LaneSignature, LaneState
from crashpath.runtime.testing import ENDLESS, tiny_folder
from crashpath.runtime.values import Arrays, Path, Phase, Strike

LONG = 60.0
FEED: Arrays = {"x": np.ones(3, np.float32)}


def test_answers_on_onnxruntime(tmp_path: FilePath) -> None:
    """Rule: it answers as the model does and says what it loaded."""
    folder = tiny_folder(tmp_path, fallback=False)
    feed, answer = folder.golden()
    lane = InProcessLane(Path.MAIN, lambda: OrtBackend(folder), feed)
    with pytest.raises(NativeCrash, match="not ready"):
        lane.run(feed, _soon())
    lane.load(LONG)
    np.testing.assert_allclose(lane.run(feed, _soon())["y"], answer["y"], rtol=1e-5)
    warm = lane.warm()
    assert warm is not None
    np.testing.assert_allclose(warm["y"], answer["y"], rtol=1e-5)
    assert lane.signature().inputs == ("x",)
    assert lane.facts().pid is None
    lane.close()


def test_a_cancelled_run_gives_its_thread_back(tmp_path: FilePath) -> None:
    """Rule: the caller gets `Hang` on time; ONNX Runtime stops between nodes, and the path answers again."""
    folder = tiny_folder(tmp_path, kind="loop", fallback=False)
    feed, answer = folder.golden()
    lane = InProcessLane(Path.MAIN, lambda: OrtBackend(folder), feed)
    lane.load(LONG)
    began = time.monotonic()
    with pytest.raises(Hang) as caught:
        lane.run({"x": feed["x"], "steps": np.array([ENDLESS])}, began + 0.2)
    assert 0.2 <= time.monotonic() - began < LONG
    assert caught.value.phase == "infer"
    _until(lambda: lane.facts().abandoned == 0)
    np.testing.assert_array_equal(lane.run(feed, _soon())["y"], answer["y"])
    lane.close()


def test_at_the_cap_the_path_is_down_until_threads_come_back() -> None:
    """Rule: what cannot be cancelled is counted; at the cap the lane is down, later ready again."""
    free = threading.Event()
    lane = _fake(lambda feed: free.wait() and feed, abandoned_cap=2)
    for count in (1, 2):
        assert lane.facts().state is LaneState.READY
        with pytest.raises(Hang):
            lane.run(FEED, time.monotonic() + 0.05)
        assert lane.facts().abandoned == count
    assert lane.facts().state is LaneState.DOWN
    assert isinstance(lane.facts().failure, Hang)
    with pytest.raises(Hang, match="not ready"):
        lane.run(FEED, _soon())
    free.set()
    _until(lambda: lane.facts().state is LaneState.READY)
    assert lane.facts().abandoned == 0
    lane.run(FEED, _soon())
    lane.close()


def test_turns_are_waited_for_until_the_deadline() -> None:
    """Rule: with one slot the second request waits; where no turn comes it is `DeadlineExceeded`, not a failure."""
    free, entered = threading.Event(), threading.Event()

    def answer(feed: Arrays) -> Arrays:
        entered.set()
        free.wait()
        return feed

    lane = _fake(answer)
    done: list[Arrays] = []
    thread = threading.Thread(target=lambda: done.append(lane.run(FEED, _soon())))
    thread.start()
    entered.wait()
    with pytest.raises(DeadlineExceeded):
        lane.run(FEED, time.monotonic() + 0.1)
    second = threading.Thread(target=lambda: done.append(lane.run(FEED, _soon())))
    second.start()
    free.set()
    thread.join()
    second.join()
    assert len(done) == 2
    lane.close()


def test_slots_run_at_once() -> None:
    """Rule: as many requests as there are slots are inside the backend together."""
    together = threading.Barrier(3)

    def answer(feed: Arrays) -> Arrays:
        together.wait(LONG)
        return feed

    lane = _fake(answer, slots=3)
    threads = [threading.Thread(target=lane.run, args=(FEED, _soon())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert not together.broken
    lane.close()


def test_each_thread_gets_its_own_answer() -> None:
    """Rule: under many threads no answer is lost, swapped or given twice."""
    lane = _fake(lambda feed: {"y": feed["x"] * 2}, slots=3)
    wrong: list[object] = []

    def ask(start: int) -> None:
        for number in range(start, start + 100):
            given = lane.run({"x": np.full(2, number)}, _soon())
            if not (given["y"] == 2 * number).all():
                wrong.append(given)

    threads = [threading.Thread(target=ask, args=(1000 * place,)) for place in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    lane.close()


def test_errors_keep_what_they_are() -> None:
    """Rule: an unknown error comes as it is; a known one is its failure with the error as its cause."""
    errors: list[Exception] = [LookupError("odd"), ValueError("Required inputs (['x']) are missing from input feed")]

    def answer(feed: Arrays) -> Arrays:
        raise errors.pop(0)

    lane = _fake(answer)
    odd, wrong = errors
    with pytest.raises(LookupError) as caught:
        lane.run(FEED, _soon())
    assert caught.value is odd
    with pytest.raises(InputError) as known:
        lane.run(FEED, _soon())
    assert known.value.__cause__ is wrong
    assert known.value.input == "x"
    lane.close()


def test_a_device_fault_takes_the_path_down() -> None:
    """Rule: a poisoned context is not used again in this process."""

    def answer(feed: Arrays) -> Arrays:
        raise RuntimeError("CUDA error: device-side assert triggered")

    lane = _fake(answer)
    with pytest.raises(DeviceFault):
        lane.run(FEED, _soon())
    assert lane.facts().state is LaneState.DOWN
    with pytest.raises(DeviceFault):
        lane.run(FEED, _soon())
    lane.close()


def test_a_load_has_a_deadline(tmp_path: FilePath) -> None:
    """Rule: a load that does not come back is a `LoadTimeout`, its thread counted; what comes late is let go."""
    folder = tiny_folder(tmp_path, fallback=False)
    folder.main.rename(tmp_path / "kept")
    os.mkfifo(folder.main)
    lane = InProcessLane(Path.MAIN, lambda: OrtBackend(folder), None)
    with pytest.raises(LoadTimeout) as caught:
        lane.load(0.3)
    assert caught.value.phase == "load"
    facts = lane.facts()
    assert (facts.state, facts.abandoned, facts.loads, facts.failed_loads) == (LaneState.DOWN, 1, 1, 1)
    pipe = os.open(folder.main, os.O_WRONLY)
    os.write(pipe, (tmp_path / "kept").read_bytes())
    os.close(pipe)
    _until(lambda: lane.facts().abandoned == 0)
    assert lane.facts().state is LaneState.DOWN
    folder.main.unlink()
    (tmp_path / "kept").rename(folder.main)
    lane.load(LONG)
    assert lane.facts().state is LaneState.READY
    lane.close()


def test_strikes_hit_inside_the_guarded_call() -> None:
    """Rule: a strike raises as the library would have, in its phase, as often as it says."""
    lane = _fake(lambda feed: feed)
    lane.arm(Strike("builtins:bytearray", Phase.INFER, "text", nth=2, times=1))
    lane.run(FEED, _soon())
    with pytest.raises(TypeError):
        lane.run(FEED, _soon())
    lane.run(FEED, _soon())
    lane.arm(Strike("builtins:bytearray", Phase.LOAD, "text"))
    lane.kill()
    _until(lambda: lane.facts().failed_loads == 1)
    lane.load(LONG)
    facts = lane.facts()
    assert (facts.loads, facts.failed_loads, facts.restarts) == (3, 1, 1)
    lane.close()


def test_a_load_is_held_to_its_check_before_it_serves() -> None:
    """Rule: no request reaches an artefact that answers its warm-up otherwise; the backend is closed."""
    made: list[FakeBackend] = []

    def make() -> FakeBackend:
        factor = 100 if len(made) == 1 else 1
        made.append(FakeBackend(lambda feed: {"y": feed["x"] * factor}))
        return made[-1]

    def check(signature: LaneSignature, warm: Arrays | None) -> Failure | None:
        assert signature.inputs == ("x",)
        assert warm is not None
        time.sleep(0.2)  # time for requests to get in between, if they could
        return None if (warm["y"] == 1).all() else LoadCorrupt("answers otherwise", "test")

    lane = InProcessLane(Path.MAIN, make, FEED)
    lane.load(LONG)
    lane.check_with(check)
    lane.kill()
    answers = []
    while not (facts := lane.facts()).failed_loads:
        with contextlib.suppress(Failure):
            answers.append(lane.run(FEED, _soon()))
    assert not answers
    assert (facts.state, facts.loads, made[1].closed) == (LaneState.DOWN, 2, True)
    assert isinstance(facts.failure, LoadCorrupt)
    assert facts.failure.phase == "warmup"
    with pytest.raises(LoadCorrupt, match="not ready"):
        lane.run(FEED, _soon())
    lane.load(LONG)
    assert (lane.run(FEED, _soon())["y"] == 1).all()
    lane.close()


def test_a_warm_up_that_fails_closes_the_backend() -> None:
    """Rule: what does not pass its warm-up is let go, and its failure is the load's."""
    backend = FakeBackend(lambda feed: feed["absent"])  # type: ignore[arg-type,return-value]
    lane = InProcessLane(Path.MAIN, lambda: backend, FEED)
    with pytest.raises(KeyError):
        lane.load(LONG)
    assert backend.closed
    assert lane.facts().state is LaneState.DOWN
    lane.close()


def test_loads_that_never_come_back_are_capped() -> None:
    """Rule: at the cap no further load is started, nor counted; when threads come back the next one is."""
    free = threading.Event()
    lane = InProcessLane(Path.MAIN, lambda: free.wait() and FakeBackend(lambda feed: feed), None, abandoned_cap=2)
    for _ in range(6):
        with pytest.raises(LoadTimeout):
            lane.load(0.02)
    facts = lane.facts()
    assert (facts.abandoned, facts.loads, facts.failed_loads) == (2, 2, 2)
    assert facts.state is LaneState.DOWN
    free.set()
    _until(lambda: lane.facts().abandoned == 0)
    lane.load(LONG)
    assert lane.facts().state is LaneState.READY
    lane.close()


def test_a_host_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: where no thread can be started, load and run fail by name, and work again once one can."""
    lane = InProcessLane(Path.MAIN, lambda: FakeBackend(lambda feed: feed), FEED)
    with monkeypatch.context() as host:
        host.setattr(threading.Thread, "start", _refuse)
        with pytest.raises(HostMemory, match="can't start new thread") as caught:
            lane.load(LONG)
    assert caught.value.phase == "load"
    assert (lane.facts().state, lane.facts().failed_loads) == (LaneState.DOWN, 1)
    lane.load(LONG)
    with monkeypatch.context() as host:
        host.setattr(threading.Thread, "start", _refuse)
        for _ in range(2):
            with pytest.raises(HostMemory, match="can't start new thread"):
                lane.run(FEED, _soon())
    lane.run(FEED, _soon())  # its slot was given back
    with monkeypatch.context() as host:
        host.setattr(threading.Thread, "start", _refuse)
        lane.kill()
    assert lane.facts().state is LaneState.DOWN
    lane.load(LONG)
    lane.run(FEED, _soon())
    lane.close()


def test_turns_come_in_order_of_arrival() -> None:
    """Rule: who asks again in the moment in which a slot is free waits behind those who wait already."""
    free, entered = threading.Event(), threading.Event()
    order: list[int] = []

    def answer(feed: Arrays) -> Arrays:
        order.append(int(feed["x"][0]))
        entered.set()
        free.wait()
        return feed

    lane = _fake(answer)

    def ask(numbers: range) -> None:
        for number in numbers:
            lane.run({"x": np.array([number])}, _soon())

    threads = []
    for place in range(8):  # the first four ask again and again
        many = 200 if place < 4 else 1
        threads.append(threading.Thread(target=ask, args=(range(1000 * place, 1000 * place + many),)))
        threads[-1].start()
        entered.wait()
        _until(lambda place=place: len(lane._turns._line) == place)  # type: ignore[misc]
    free.set()
    for thread in threads:
        thread.join()
    assert order[:8] == [1000 * place for place in range(8)]
    lane.close()


def test_a_turn_that_ends_is_never_lost() -> None:
    """Rule: a free slot goes to a request, and never to what waits for something else, as for the next load."""
    broken = False

    def make() -> FakeBackend:
        if broken:
            raise MemoryError
        return FakeBackend(lambda feed: time.sleep(0.2) or feed)

    lane = InProcessLane(Path.MAIN, make, None)
    lane.load(LONG)
    broken = True
    lane.kill()
    time.sleep(0.8)  # loads in the background fail, and the wait for the next is long by now
    broken = False
    lane.load(LONG)
    seen: list[Arrays] = []
    threads = [threading.Thread(target=lambda: seen.append(lane.run(FEED, time.monotonic() + 20))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2
    lane.close()


def test_closed() -> None:
    """Rule: after close each call says so, waiters included, and its threads end."""
    before = set(threading.enumerate())
    free, entered = threading.Event(), threading.Event()
    lane = _fake(lambda feed: entered.set() or (free.wait() and feed))
    seen: list[BaseException] = []

    def wait() -> None:
        try:
            lane.run(FEED, _soon())
        except SessionClosed as error:
            seen.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered.wait()
    time.sleep(0.2)
    lane.close()
    _until(lambda: len(seen) == 2)  # the third was inside the backend, and is answered
    free.set()
    for thread in threads:
        thread.join()
    with pytest.raises(SessionClosed):
        lane.run(FEED, _soon())
    with pytest.raises(SessionClosed):
        lane.load(1)
    _until(lambda: not set(threading.enumerate()) - before)


def _fake(answer: Callable[[Arrays], Arrays], **options: int) -> InProcessLane:
    lane = InProcessLane(Path.MAIN, lambda: FakeBackend(answer), None, **options)
    lane.load(LONG)
    return lane


def _refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def _soon() -> float:
    return time.monotonic() + LONG


def _until(done: Callable[[], bool]) -> None:
    by = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < by
        time.sleep(0.01)
