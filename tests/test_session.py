"""What a session does with a request, over scripted lanes: policies, deadlines, what is counted and told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from crashpath.runtime.errors import (
    DeadlineExceeded,
    Failure,
    Hang,
    HostMemory,
    InputError,
    LoadCorrupt,
    LoadTimeout,
    ModelFolderError,
    NativeCrash,
    NoAnswer,
    Saturated,
    SessionClosed,
    TokenizerBroken,
)
from crashpath.runtime.events import (
    AttemptsEvent,
    BreakerEvent,
    CompareEvent,
    FailureEvent,
    LaneEvent,
    ProbeEvent,
    Told,
)
from crashpath.runtime.fakelane import FakeLane
from crashpath.runtime.folder import TensorSpec
from crashpath.runtime.lane import LaneState
from crashpath.runtime.policy import BreakerSettings, Policy, named
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.routes import IDS
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Answer, Arrays, BreakerState, Path, Phase, Strike

FEED = {"x": np.arange(3, dtype=np.float32)}
INPUTS = (TensorSpec("x", "float32", ("n",)),)
QUICK = Policy("quick", named("breaker").fall_back_on, BreakerSettings(calls=10, minimum=2, open_s=0.0, probes=2))


def _plus(amount: float) -> Callable[[Arrays], Arrays]:
    return lambda feed: {"y": feed["x"] + np.float32(amount)}


class Bench:
    """A session over two scripted lanes, and all that it told."""

    def __init__(self, stack: ExitStack, **options: Any) -> None:
        lane = options.pop("lane", {})
        self.main = FakeLane(Path.MAIN, _plus(1), **lane)
        self.fallback = FakeLane(Path.FALLBACK, options.pop("twin", _plus(1)), **options.pop("other", {}))
        self.told: list[Told] = []
        self.session = FallbackSession(
            self.main,
            self.fallback,
            **{"inputs": INPUTS, "sample": 0.0, "listeners": (self.told.append,), "deadline_ms": 10_000} | options,
        )
        stack.callback(self.session.close)

    def run(self, **options: Any) -> Answer:
        return self.session.run(FEED, **options)

    def of(self, kind: type) -> list[Any]:
        return [told.event for told in self.told if isinstance(told.event, kind)]

    def closed(self) -> Bench:
        self.session.close()
        return self


Make = Callable[..., Bench]


@pytest.fixture
def bench() -> Iterator[Make]:
    """Make benches; their sessions are closed at the end."""
    with ExitStack() as stack:
        yield lambda **options: Bench(stack, **options)


def wait_until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def test_main_answers(bench: Make) -> None:
    """A healthy main path answers; the fallback is not run; nothing is told but, at the end, the counts."""
    b = bench()
    answer = b.run()
    assert (answer.path, answer.cause, answer.route) == (Path.MAIN, None, "main:answered")
    assert answer.breaker is BreakerState.CLOSED
    assert answer.milliseconds > 0
    np.testing.assert_array_equal(answer.outputs["y"], FEED["x"] + 1)
    assert b.fallback.calls == 0
    assert b.told == []
    counts = {one.unit: one for one in b.closed().of(AttemptsEvent)}
    assert (counts["request"].attempts, counts["request"].failures) == (1, 0)
    assert (counts["load"].attempts, counts["load"].failures) == (2, 0)
    assert len({one.batch_id for one in counts.values()}) == 2


def test_a_failure_falls_back(bench: Make) -> None:
    """A known failure is answered by the fallback, and its event says what, where, who answered and which attempt."""
    b = bench()
    failure = HostMemory("std::bad_alloc")
    failure.__cause__ = MemoryError("x")
    b.main.script.append(failure)
    answer = b.run()
    assert (answer.path, answer.cause) == (Path.FALLBACK, failure)
    assert answer.route == "infer:oom_host -> fallback:answered"
    (event,) = b.of(FailureEvent)
    assert (event.unit, event.phase, event.path, event.failure_class) == ("request", "infer", "ort", "oom_host")
    assert (event.type, event.message) == ("MemoryError", "std::bad_alloc")
    assert (event.answered, event.by, event.attempt_id) == (True, "torchscript", answer.request_id)
    (counts,) = [one for one in b.closed().of(AttemptsEvent) if one.unit == "request"]
    assert (counts.attempts, counts.failures, counts.unanswered, counts.rerouted) == (1, 1, 0, 0)


def test_both_fail(bench: Make) -> None:
    """Two failures are one error that holds both, two witnesses of one attempt, and one that nobody answered."""
    b = bench()
    b.main.script.append(HostMemory("first"))
    b.fallback.script.append(ZeroDivisionError("second"))
    with pytest.raises(NoAnswer, match=r"HostMemory: first.*ZeroDivisionError: second") as raised:
        b.run()
    assert isinstance(raised.value.main, HostMemory)
    assert isinstance(raised.value.fallback, ZeroDivisionError)
    assert raised.value.__cause__ is raised.value.fallback
    events = b.of(FailureEvent)
    assert [(one.path, one.failure_class, one.answered) for one in events] == [
        ("ort", "oom_host", False),
        ("torchscript", "unclassified", False),
    ]
    assert len({one.attempt_id for one in events}) == 1
    assert {one.route for one in events} == {"infer:* -> fallback:failed"}
    (counts,) = [one for one in b.closed().of(AttemptsEvent) if one.unit == "request"]
    assert (counts.attempts, counts.failures, counts.unanswered) == (1, 1, 1)


@pytest.mark.parametrize("policy", ["breaker", "sticky", "account", "off"])
def test_a_wrong_feed_is_the_callers(bench: Make, policy: str) -> None:
    """A wrong feed names its input, reaches no path, sets no flag, moves no breaker and counts as no failure."""
    b = bench(policy=policy)
    for _ in range(20):
        with pytest.raises(InputError, match="'x' is float64") as raised:
            b.session.run({"x": np.ones(3)})
        assert raised.value.input == "x"
    b.main.script.append(InputError("x", "the library refused it"))
    with pytest.raises(InputError, match="the library refused it"):
        b.run()
    facts = b.session.facts()
    assert (b.main.calls, b.fallback.calls) == (1, 0)
    assert (facts.breaker, facts.switched) == (BreakerState.CLOSED, False)
    assert (facts.figures.requests.attempts, facts.figures.requests.failures) == (21, 0)
    assert b.run().path is Path.MAIN


def test_an_unknown_error_propagates(bench: Make) -> None:
    """An error that no reason knows reaches the caller as it is, is told, and moves no breaker."""
    b = bench(policy=QUICK)
    error = ZeroDivisionError("a bug")
    for _ in range(5):
        b.main.script.append(error)
        with pytest.raises(ZeroDivisionError) as raised:
            b.run()
        assert raised.value is error
    assert b.fallback.calls == 0
    assert b.session.facts().breaker is BreakerState.CLOSED
    assert {(one.failure_class, one.type, one.answered) for one in b.of(FailureEvent)} == {
        ("unclassified", "ZeroDivisionError", False)
    }


def test_sticky(bench: Make) -> None:
    """The first failure switches for good: the main path is never tried again."""
    b = bench(policy="sticky")
    b.main.script.append(HostMemory("once"))
    routes = [b.run().route for _ in range(4)]
    assert routes == ["infer:oom_host -> fallback:answered"] + ["sticky:switched -> fallback:answered"] * 3
    assert b.main.calls == 1
    assert b.session.ready().degraded


def test_account(bench: Make) -> None:
    """The first failure is answered, the main path is tried again each time, the second failure propagates."""
    b = bench(policy="account")
    b.main.script.extend([HostMemory("first"), None, NativeCrash("second"), None])
    assert b.run().path is Path.FALLBACK
    assert b.run().path is Path.MAIN
    with pytest.raises(NativeCrash, match="second"):
        b.run()
    assert b.run().path is Path.MAIN
    assert b.fallback.calls == 1
    assert b.of(FailureEvent)[1].route == "account:second -> caller"


def test_account_with_a_dead_main_path(bench: Make) -> None:
    """Under `account` a main path that is away is a failure, too: the second request gets an error of its own."""
    b = bench(policy="account", lane={"dies": True})
    b.main.script.append(NativeCrash("killed"))
    assert b.run().path is Path.FALLBACK
    caught = []
    for _ in range(2):
        with pytest.raises(NativeCrash, match="killed") as raised:
            b.run()
        caught.append(raised.value)
    assert caught[0] is not caught[1], "one error object raised again and again would grow"


def test_off(bench: Make) -> None:
    """With policy off the fallback is not even loaded, and the main path has the whole deadline."""
    b = bench(policy="off")
    b.main.script.append(HostMemory("x"))
    with pytest.raises(HostMemory):
        b.run()
    assert (b.fallback.load_calls, b.fallback.calls) == (0, 0)
    before = time.monotonic()
    b.run(deadline_ms=5000)
    assert b.main.deadlines[-1] >= before + 5
    assert b.session.ready().ready


def test_breaker_opens_probes_and_closes(bench: Make) -> None:
    """Enough failures open; then callers are answered by the fallback while probes in shadow close it again."""
    b = bench(policy=QUICK)
    b.main.script.extend([HostMemory("1"), HostMemory("2"), HostMemory("probe")])
    assert [b.run().route for _ in range(2)] == ["infer:oom_host -> fallback:answered"] * 2
    answers = []

    def answered_by_main() -> bool:
        answers.append(b.run())
        time.sleep(0.02)
        return answers[-1].path is Path.MAIN

    wait_until(answered_by_main)
    away = answers[:-1]
    assert {one.route for one in away} <= {
        "breaker:open -> fallback:answered",
        "breaker:half_open -> fallback:answered",
    }
    assert all(isinstance(one.cause, HostMemory) for one in away), "why the main path did not answer"
    probes = [one.route for one in b.of(ProbeEvent)]
    assert probes[0] == "probe:failed -> breaker:open"
    assert probes[-2:] == ["probe:passed"] * 2
    moves = [(one.before, one.after, one.why) for one in b.of(BreakerEvent)]
    assert moves[0] == ("closed", "open", "rate")
    assert moves[-1] == ("half_open", "closed", "probe")
    (counts,) = [one for one in b.closed().of(AttemptsEvent) if one.unit == "request"]
    assert (counts.failures, counts.rerouted) == (2, len(away)), "a reroute is no failure of the main path"


def test_a_probe_with_another_answer_keeps_it_open(bench: Make) -> None:
    """A main path that is back with wrong answers is not back."""
    b = bench(policy=QUICK)
    b.main.script.extend([HostMemory("1"), HostMemory("2")])
    for _ in range(2):
        b.run()
    b.main.script.append(_plus(99))

    def probed() -> bool:
        b.run()
        return bool(b.of(ProbeEvent))

    wait_until(probed)
    assert b.of(ProbeEvent)[0].route == "probe:differs -> breaker:open"


def test_abandoned_runs_open_the_breaker(bench: Make) -> None:
    """A lane that is down because of runs that never came back opens the breaker at once, below the minimum."""
    b = bench(lane={"abandoned": 4})

    def hang(feed: Arrays) -> Arrays:
        b.main.state = LaneState.DOWN
        raise Hang("late")

    b.main.script.append(hang)
    b.run()
    assert b.session.facts().breaker is BreakerState.OPEN
    assert b.of(BreakerEvent)[0].why == "abandoned"


def test_a_lane_without_a_turn_is_not_a_failure_of_the_breaker(bench: Make) -> None:
    """A turn that never came is answered by the fallback, as a hang, and moves no breaker: load is not breakage."""
    b = bench(policy=QUICK)
    b.main.script.extend([DeadlineExceeded("no turn")] * 5)
    answers = [b.run() for _ in range(5)]
    assert {one.route for one in answers} == {"main:busy -> fallback:answered"}
    assert all(isinstance(one.cause, Hang) for one in answers)
    assert b.session.facts().breaker is BreakerState.CLOSED


def test_a_restarting_main_path_is_not_waited_for(bench: Make) -> None:
    """While the main path is away the fallback answers at once; when it is back, it answers again."""
    b = bench(lane={"dies": True})
    b.main.script.append(NativeCrash("killed by signal 9"))
    b.run()
    answer = b.run()
    assert answer.route == "main:restarting -> fallback:answered"
    assert isinstance(answer.cause, NativeCrash)
    assert b.session.ready().degraded
    assert b.main.calls == 1
    wait_until(lambda: [one.change for one in b.of(LaneEvent)] == ["down"])
    b.main.come_back()
    assert b.run().path is Path.MAIN
    wait_until(lambda: [one.change for one in b.of(LaneEvent)][-1:] == ["restored"])
    assert not b.session.ready().degraded


def test_where_the_fallback_dies_the_main_path_is_waited_for(bench: Make) -> None:
    """A request that main never had goes to it when it is back, if the fallback dies of it; its failure is told."""
    b = bench(lane={"dies": True})
    b.main.script.append(NativeCrash("killed by signal 9"))
    b.run()
    b.fallback.script.append(NativeCrash("killed by signal 11"))
    back = threading.Timer(0.2, b.main.come_back)
    back.start()
    answer = b.run()
    back.join()
    assert (answer.path, answer.route) == (Path.MAIN, "both:restarting -> main:answered")
    assert [one.path for one in b.of(FailureEvent)] == [Path.MAIN, Path.FALLBACK]
    assert b.main.calls == 2


def test_one_death_is_one_failure(bench: Make) -> None:
    """A lane that dies fails the request that was on it; those that waited for their turn are sent on, not counted."""
    b = bench(policy=QUICK)
    for _ in range(5):
        away = NativeCrash("not ready since it failed")
        away.tried = False
        b.main.script.append(away)
        assert b.run().route == "main:restarting -> fallback:answered"
    assert b.of(FailureEvent) == []
    facts = b.session.facts()
    assert facts.breaker is BreakerState.CLOSED
    assert (facts.figures.requests.failures, facts.figures.requests.rerouted) == (0, 5)


def test_a_policy_may_not_cover_why_main_is_away(bench: Make) -> None:
    """A main path that is away for a reason that may not fall back is the caller's error, not a silent reroute."""
    b = bench(policy=Policy("memory", frozenset({HostMemory})), lane={"loads": (LoadCorrupt("x"),) * 50})
    with pytest.raises(LoadCorrupt):
        b.run()
    assert b.of(FailureEvent)[-1].route == "policy:excluded -> caller"
    assert b.fallback.calls == 0


def test_degraded_start(bench: Make) -> None:
    """A main path that fails to load with a known failure is tried again while the fallback answers."""
    b = bench(lane={"loads": (LoadTimeout("slow"), LoadTimeout("slow still"))})
    answer = b.run()
    assert answer.route == "load:load_timeout -> fallback:answered"
    assert isinstance(answer.cause, LoadTimeout)
    wait_until(lambda: b.run().path is Path.MAIN)
    wait_until(lambda: b.of(LaneEvent)[-1].change == "restored")
    failed = [one for one in b.of(FailureEvent) if one.unit == "load"]
    assert [(one.failure_class, one.phase, one.answered) for one in failed] == [("load_timeout", "load", True)] * 2
    assert len({one.attempt_id for one in failed}) == 2
    (counts,) = [one for one in b.closed().of(AttemptsEvent) if one.unit == "load"]
    assert (counts.attempts, counts.failures, counts.unanswered) == (4, 2, 0)


def test_a_main_path_that_comes_late_is_checked(bench: Make) -> None:
    """A main path that loads late and answers the golden feed wrongly is a failed load, and does not serve."""
    b = bench(
        lane={"loads": (LoadTimeout("slow"),), "warm": {"y": np.ones(2)}}, other={"warm": {"y": np.zeros(2)}},
        golden={"y": np.zeros(2)},
    )  # fmt: skip
    wait_until(lambda: len([one for one in b.of(FailureEvent) if one.unit == "load"]) == 2)
    answer = b.run()
    assert answer.route == "load:load_corrupt -> fallback:answered"
    assert "golden.npz" in str(answer.cause)
    assert b.session.ready().degraded
    assert b.main.calls == 0


def test_a_fallback_that_cannot_load_is_none(bench: Make) -> None:
    """A fallback that fails to load is an error at construction, and neither lane is left open."""
    made = []
    with pytest.raises(LoadCorrupt, match="cut short"):
        made.append(bench(other={"loads": (LoadCorrupt("cut short"),)}))
    with pytest.raises(ZeroDivisionError):
        made.append(bench(lane={"loads": (ZeroDivisionError(),)}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lane": {"inputs": ("z",)}}, "the ort artefact takes z where model.toml declares x"),
        ({"other": {"inputs": ("x", "z")}}, "the torchscript artefact takes x, z where model.toml declares x"),
        (
            {"lane": {"warm": {"y": np.ones(2)}}, "other": {"warm": {"y": np.full(2, 1.1)}}},
            "the ort artefact answers the golden feed otherwise than the torchscript artefact",
        ),
        ({"lane": {"warm": {"y": np.ones(2)}}, "golden": {"y": np.zeros(2)}}, "otherwise than golden.npz"),
        ({"lane": {"warm": {"z": np.ones(2)}}, "golden": {"y": np.ones(2)}}, "gives no output 'y' that golden.npz has"),
    ],
)
def test_two_models_are_found_at_construction(bench: Make, options: dict[str, Any], says: str) -> None:
    """Artefacts of different models are refused before anything is served, in one sentence with advice."""
    with pytest.raises(ModelFolderError, match=says) as raised:
        bench(**options)
    assert "crashpath export" in str(raised.value)


def test_reserve(bench: Make) -> None:
    """The main path never gets the whole deadline: a part stays for the fallback."""
    b = bench()
    before = time.monotonic()
    b.run(deadline_ms=4000)
    assert before + 2 <= b.main.deadlines[0] <= time.monotonic() + 3.6


def test_one_deadline_for_both(bench: Make) -> None:
    """A main path that hangs is answered by the fallback in the deadline; if that hangs, too, the caller is told."""
    b = bench()

    def hang(feed: Arrays) -> Arrays:
        time.sleep(max(0.0, b.main.deadlines[-1] - time.monotonic()))
        raise Hang("still running")

    b.main.script.extend([hang, hang])
    answer = b.run(deadline_ms=1000)
    assert answer.route == "infer:hang -> fallback:answered"
    assert answer.milliseconds < 1000
    late = Hang("still running, too")
    b.fallback.script.append(late)
    with pytest.raises(DeadlineExceeded, match="nobody answered in 200 ms") as raised:
        b.run(deadline_ms=200)
    assert isinstance(raised.value.__cause__, Hang), "why the main path had not answered"
    assert b.of(FailureEvent)[-1].route == "fallback:late -> caller"


def test_saturated(bench: Make) -> None:
    """Above its slots the fallback refuses, with the main path's failure as the cause, rather than queue for ever."""
    b = bench(policy="sticky", fallback_slots=1)
    go, inside = threading.Event(), threading.Event()

    def slow(feed: Arrays) -> Arrays:
        inside.set()
        go.wait(20)
        return _plus(1)(feed)

    b.main.script.append(HostMemory("x"))
    b.fallback.script.append(slow)
    thread = threading.Thread(target=b.run)
    thread.start()
    assert inside.wait(20)
    with pytest.raises(Saturated, match="fallback_slots") as raised:
        b.run(deadline_ms=50)
    assert isinstance(raised.value.__cause__, Failure)
    go.set()
    thread.join()
    assert b.run().path is Path.FALLBACK, "the slot is free again"


def test_a_fallback_error_frees_its_slot(bench: Make) -> None:
    """A failing fallback does not use its slots up."""
    b = bench(policy="sticky", fallback_slots=2)
    b.main.script.append(HostMemory("x"))
    b.fallback.script.extend([HostMemory("y")] * 5)
    for _ in range(5):
        with pytest.raises(NoAnswer):
            b.run()
    assert b.run(deadline_ms=500).path is Path.FALLBACK


def test_prepare(bench: Make) -> None:
    """A prepare step that fails for a known reason has a second way; the answer and the event say so."""
    broken = TokenizerBroken("cut in half")

    def prepare(raw: Any) -> Arrays:
        raise broken

    b = bench(prepare=PrepareStep(prepare, lambda raw: {"x": np.full(3, raw, np.float32)}))
    answer = b.session.run_raw(4.0)
    assert (answer.path, answer.cause) == (Path.MAIN, broken)
    np.testing.assert_array_equal(answer.outputs["y"], np.full(3, 5))
    (event,) = b.of(FailureEvent)
    assert (event.phase, event.failure_class, event.answered, event.by) == ("prepare", "tokenizer", True, "ort")
    assert dict(b.session.facts().figures.routes)["prepare:tokenizer -> prepare:fallback"] == 1


def test_prepare_without_a_second_way(bench: Make) -> None:
    """Without a second way the failure is the caller's; with one that fails, too, both causes are in one error."""

    def broken(raw: Any) -> Arrays:
        raise TokenizerBroken("cut in half")

    def also(raw: Any) -> Arrays:
        raise ValueError("no vocabulary")

    with pytest.raises(TokenizerBroken):
        bench(prepare=PrepareStep(broken)).session.run_raw(1.0)
    with pytest.raises(NoAnswer, match=r"cut in half.*no vocabulary"):
        bench(prepare=PrepareStep(broken, also)).session.run_raw(1.0)
    with pytest.raises(TokenizerBroken):
        bench(policy="off", prepare=PrepareStep(broken, lambda raw: FEED)).session.run_raw(1.0)


def test_prepare_passes_what_is_not_a_failure(bench: Make) -> None:
    """Wrong raw input and unknown errors of the prepare step reach the caller, without a second try."""
    tries = []

    def prepare(raw: Any) -> Arrays:
        raise raw

    b = bench(prepare=PrepareStep(prepare, lambda raw: tries.append(raw) or FEED))
    with pytest.raises(InputError):
        b.session.run_raw(InputError("text", "no text"))
    with pytest.raises(ZeroDivisionError):
        b.session.run_raw(ZeroDivisionError())
    assert tries == []
    with pytest.raises(TypeError, match="no prepare step"):
        bench().session.run_raw(1.0)


def test_prepare_takes_the_deadline_up(bench: Make) -> None:
    """Time that the prepare step took is not given again: no path is tried after the deadline."""

    def slow(raw: Any) -> Arrays:
        time.sleep(0.05)
        return FEED

    b = bench(prepare=PrepareStep(slow))
    with pytest.raises(DeadlineExceeded, match="prepare"):
        b.session.run_raw(1.0, deadline_ms=10)
    assert b.main.calls == 0
    assert b.of(FailureEvent)[0].phase == "prepare"


def test_compare(bench: Make) -> None:
    """Sampled answers are compared with the fallback's in the background; a difference is told, and harms nobody."""
    b = bench(sample=1.0)
    b.run()
    wait_until(lambda: len(b.of(CompareEvent)) == 1)
    b.fallback.script.append(_plus(5))
    b.run()
    wait_until(lambda: len(b.of(CompareEvent)) == 2)
    b.fallback.script.append(HostMemory("x"))
    assert b.run().path is Path.MAIN
    wait_until(lambda: len(b.of(CompareEvent)) == 3)
    assert [one.route for one in b.of(CompareEvent)] == ["compare:equal", "compare:differs", "compare:failed"]
    assert b.of(CompareEvent)[1].worst_abs == 4.0


def test_compare_is_what_was_asked(bench: Make) -> None:
    """The caller may change its arrays as soon as it has its answer: what is compared was copied before."""
    b = bench(sample=1.0)
    go = threading.Event()

    def slow(feed: Arrays) -> Arrays:
        go.wait(20)
        return _plus(1)(feed)

    b.fallback.script.append(slow)
    feed = {"x": np.ones(3, np.float32)}
    answer = b.session.run(feed)
    feed["x"][:] = 7
    answer.outputs["y"][:] = 9
    go.set()
    wait_until(lambda: b.of(CompareEvent))
    assert b.of(CompareEvent)[0].equal


def test_a_slow_comparison_blocks_nobody(bench: Make) -> None:
    """When the fallback is slow, samples are skipped and counted; callers do not wait and nothing piles up."""
    b = bench(sample=1.0)
    go = threading.Event()

    def slow(feed: Arrays) -> Arrays:
        go.wait(20)
        return _plus(1)(feed)

    b.fallback.script.append(slow)
    for _ in range(50):
        b.run()
    assert b.session.facts().skipped >= 40
    go.set()


def test_a_listener_that_raises(bench: Make) -> None:
    """A listener's error is counted and harms neither the request nor the other listeners."""
    heard: list[Told] = []

    def bad(told: Told) -> None:
        raise RuntimeError("full disk")

    b = bench(listeners=(bad, heard.append))
    b.main.script.append(HostMemory("x"))
    assert b.run().path is Path.FALLBACK
    assert len(heard) == 1
    assert b.session.facts().dropped_events == 1


def test_closed(bench: Make) -> None:
    """After close a request is refused, counts as no failure, and closing again is harmless."""
    b = bench().closed().closed()
    with pytest.raises(SessionClosed):
        b.run()
    assert not b.session.ready().ready


def test_closed_while_it_runs(bench: Make) -> None:
    """A request that close cuts off gets SessionClosed, not the lane's error, and does not try the fallback."""
    b = bench()

    def cut(feed: Arrays) -> Arrays:
        b.session.close()
        raise NativeCrash("the worker is gone")

    b.main.script.append(cut)
    with pytest.raises(SessionClosed):
        b.run()
    assert b.fallback.calls == 0


def test_armed(bench: Make) -> None:
    """A strike is armed for the block and no longer, also when the block raises."""
    b = bench()
    strike = Strike("m:f", Phase.INFER)
    with pytest.raises(KeyError), b.session.armed(Path.FALLBACK, strike):
        raise KeyError
    assert b.fallback.armed == [strike, None]
    assert b.main.armed == []


def test_many_threads(bench: Make) -> None:
    """Under many threads and scripted failures each request gets its own answer, once; the counts add up."""
    b = bench(policy=QUICK, sample=0.1)
    wrong: list[object] = []

    def work(start: int) -> None:
        for number in range(start, start + 200):
            if number % 7 == 0:
                b.main.script.append(HostMemory("x"))
            feed = {"x": np.full(2, number, np.float32)}
            answer = b.session.run(feed)
            if answer.outputs["y"][0] != number + 1 or answer.route not in IDS:
                wrong.append(answer)
            ids.append(answer.request_id)

    ids: list[str] = []
    threads = [threading.Thread(target=work, args=(1000 * at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(set(ids)) == 1600
    figures = b.session.facts().figures
    assert figures.requests.attempts == 1600
    assert sum(sum(one.counts) for one in figures.latencies) == 1600
    assert figures.requests.failures == len({one.attempt_id for one in b.of(FailureEvent)})
    assert figures.requests.unanswered == 0


def test_what_ends_leaves_no_thread(bench: Make) -> None:
    """A closed session has no thread left."""
    others = set(threading.enumerate())  # sessions that other tests share
    b = bench(sample=1.0)
    b.run()
    wait_until(lambda: b.of(CompareEvent))
    b.closed()
    wait_until(
        lambda: not [one for one in threading.enumerate() if one.name.startswith("crashpath-") and one not in others]
    )
