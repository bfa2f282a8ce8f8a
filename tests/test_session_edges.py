"""What a session does where something gives out beside the model: threads, memory, its own closing, its options."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crashpath.runtime.errors import (
    DeadlineExceeded,
    Hang,
    HostMemory,
    LoadCorrupt,
    NoAnswer,
    SessionClosed,
    ShapeInference,
    TokenizerBroken,
)
from crashpath.runtime.events import AttemptsEvent, FailureEvent, Told
from crashpath.runtime.fakelane import FakeLane
from crashpath.runtime.folder import TensorSpec
from crashpath.runtime.logged import EventLog
from crashpath.runtime.opening import open_session
from crashpath.runtime.policy import BreakerSettings, Policy, named
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Arrays, BreakerState, Path, Phase, Strike

FEED = {"x": np.arange(3, dtype=np.float32)}
GOLDEN = {"y": FEED["x"] + 1}
QUICK = Policy("quick", named("breaker").fall_back_on, BreakerSettings(calls=10, minimum=2, open_s=60.0))


def _answer(feed: Arrays) -> Arrays:
    return {"y": feed["x"] + np.float32(1)}


class Served:
    """A session over two scripted lanes, and what it told."""

    def __init__(self, **options: Any) -> None:
        self.main = FakeLane(Path.MAIN, _answer, warm=GOLDEN, dies=options.pop("dies", False))
        self.fallback = FakeLane(Path.FALLBACK, _answer, warm=GOLDEN)
        self.told: list[Told] = []
        self.session = FallbackSession(
            self.main,
            self.fallback,
            **{
                "inputs": (TensorSpec("x", "float32", ("n",)),), "golden": GOLDEN, "sample": 0.0,
                "listeners": (self.told.append,), "deadline_ms": 10_000,
            } | options,
        )  # fmt: skip

    def requests(self) -> tuple[int, int, int]:
        """Attempts, failures and unanswered ones that were told."""
        told = [one.event for one in self.told if isinstance(one.event, AttemptsEvent) and one.event.unit == "request"]
        return (
            sum(one.attempts for one in told),
            sum(one.failures for one in told),
            sum(one.unanswered for one in told),
        )

    def failures(self) -> list[tuple[str, str]]:
        """Path and class of the failures of requests that were told."""
        events = [one.event for one in self.told if isinstance(one.event, FailureEvent)]
        return [(one.path, one.failure_class) for one in events if one.unit == "request"]


def _no_thread(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the host has no thread left for those of this name, as at a limit of processes."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if name in thread.name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)


def test_what_both_paths_refuse_alike_is_the_feeds() -> None:
    """A value that breaks both paths in the same way is one unanswered request and moves neither breaker nor flag."""
    for policy in (QUICK, "sticky"):
        served = Served(policy=policy)
        for lane in (served.main, served.fallback):
            lane.script.extend(ShapeInference("indices element out of data bounds") for _ in range(6))
        for _ in range(6):
            with pytest.raises(NoAnswer):
                served.session.run(FEED)
        assert served.session.facts().breaker is BreakerState.CLOSED
        assert served.session.run(FEED).path is Path.MAIN
        served.session.close()
        assert served.requests() == (7, 6, 6)


def test_what_only_main_refuses_is_mains() -> None:
    """The same failure moves the breaker where the fallback answers, or fails for another reason."""
    served = Served(policy=QUICK)
    served.main.script.extend(ShapeInference("mismatch") for _ in range(2))
    served.fallback.script.append(HostMemory("full"))
    with pytest.raises(NoAnswer):
        served.session.run(FEED)
    assert served.session.run(FEED).path is Path.FALLBACK
    assert served.session.facts().breaker is BreakerState.OPEN
    served.session.close()


def test_a_turn_that_never_came_is_no_failure() -> None:
    """A request that waited in vain for the main path is rerouted: no failure is told, and sticky does not switch."""
    served = Served(policy="sticky")
    served.main.script.append(DeadlineExceeded("no turn"))
    answer = served.session.run(FEED)
    assert answer.route == "main:busy -> fallback:answered"
    assert isinstance(answer.cause, Hang)
    assert served.session.run(FEED).path is Path.MAIN
    served.session.close()
    assert served.failures() == []
    assert served.requests() == (2, 0, 0)


def test_a_fallback_that_turned_wrong_does_not_serve() -> None:
    """A fallback whose artefact answers otherwise after a reload is down, and the session says that it is degraded."""
    served = Served()
    served.fallback._warm = {"y": GOLDEN["y"] + 99}
    served.fallback.come_back()
    assert served.session.ready().degraded
    assert served.session.ready().ready
    assert isinstance(served.fallback.facts().failure, LoadCorrupt)
    served.session.close()


def test_the_shadow_harms_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no thread or no memory for a comparison, the caller has its answer and the sample is skipped."""
    _no_thread(monkeypatch, "crashpath-shadow")
    served = Served(sample=1.0)
    assert served.session.run(FEED).path is Path.MAIN
    assert served.session.facts().skipped == 1
    served.session.close()


def test_looking_after_the_paths_outlives_a_host_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no thread can be started no path is loaded again; as soon as one can, the path comes back."""
    with monkeypatch.context() as host:
        _no_thread(host, "crashpath-load")
        served = Served()
        served.main.loads.append(None)
        served.main._failed(LoadCorrupt("gone"))
        _wait(lambda: served.session.facts().missed_looks)
    _wait(lambda: served.session.run(FEED).path is Path.MAIN)
    served.session.close()


def test_closing_loses_no_count() -> None:
    """A request that cannot be cut and ends after the closing is told, too, before what listens is closed."""
    inside, go = threading.Event(), threading.Event()
    ended: list[tuple[int, int, int]] = []
    served = Served(on_close=(lambda: ended.append(served.requests()),))

    def slow(feed: Arrays) -> Arrays:
        inside.set()
        go.wait(20)
        return _answer(feed)

    served.main.script.append(slow)
    caller = threading.Thread(target=served.session.run, args=(FEED,))
    caller.start()
    assert inside.wait(20)
    served.session.close()
    assert ended == []  # it waited a second; the run goes on
    go.set()
    caller.join(20)
    assert ended == [(1, 0, 0)]


def test_a_request_that_closing_cut_is_unanswered() -> None:
    """Nobody answered it, so it counts; one that comes after the closing is no attempt."""
    served = Served()

    def cut(feed: Arrays) -> Arrays:
        served.session.close()
        raise HostMemory("gone")

    served.main.script.append(cut)
    for _ in range(2):
        with pytest.raises(SessionClosed):
            served.session.run(FEED)
    assert served.requests() == (1, 1, 1)


def _broken(raw: Any) -> Arrays:
    raise TokenizerBroken("cut in half")


def _prepared(raw: Any) -> Arrays:
    return FEED


def test_prepare_keeps_to_the_policy() -> None:
    """A reason that the policy does not cover is the caller's in the prepare step, too; account answers it once."""
    narrow = Policy("narrow", frozenset({HostMemory}))
    served = Served(policy=narrow, prepare=PrepareStep(_broken, _prepared))
    with pytest.raises(TokenizerBroken):
        served.session.run_raw("x")
    served.session.close()
    served = Served(policy="account", prepare=PrepareStep(_broken, _prepared))
    assert served.session.run_raw("x").path is Path.MAIN
    with pytest.raises(TokenizerBroken):
        served.session.run_raw("x")
    served.session.close()
    assert served.requests() == (2, 2, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"fallback_slots": 0}, {"sample": 1.5}, {"sample": float("nan")}, {"deadline_ms": 0.0},
        {"deadline_ms": float("inf")}, {"load_s": -1.0}, {"flush_s": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_an_option_that_cannot_be(options: dict[str, float], tmp_path: Any) -> None:
    """It is refused by one sentence that names it, and nothing is left open."""
    folder = tiny_folder(tmp_path / "m")
    before = len(os.listdir("/proc/self/fd"))
    (name,) = options
    with pytest.raises(ValueError, match=name):
        open_session(folder, events=tmp_path / "events.jsonl", isolation="process", **options)  # type: ignore[arg-type]
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_deadline_that_is_no_number() -> None:
    """A request with such a deadline is refused, not answered late or never."""
    served = Served()
    with pytest.raises(ValueError, match="deadline_ms"):
        served.session.run(FEED, deadline_ms=float("nan"))
    served.session.close()


def test_a_fork_is_told(tmp_path: Any) -> None:
    """A session that was opened before a fork refuses in the child, at once and in one sentence."""
    with open_session(tiny_folder(tmp_path / "m"), sample=0.0) as session:
        feed = {"x": np.ones((1, 4), dtype=np.float32)}
        told, heard = multiprocessing.get_context("fork").Pipe()

        def child() -> None:
            try:
                session.run(feed)
            except Exception as error:  # noqa: BLE001  # whatever it says goes to the parent
                told.send(f"{type(error).__name__}: {error}")

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        assert heard.poll(20)
        assert heard.recv().startswith("SessionClosed: a session belongs to the process that opened it")
        process.join(20)


def _wait(true: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_deadline_of_nothing_is_the_callers() -> None:
    """A deadline that is over at once is an error to the caller, and no failure of a path that nobody tried."""
    served = Served()
    for none in (0.0, -5.0, 1e-9):
        with pytest.raises(DeadlineExceeded, match="before a path was tried"):
            served.session.run(FEED, deadline_ms=none)
    served.session.close()
    assert served.failures() == []
    assert served.requests() == (3, 0, 0)


def test_failures_are_logged(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Without any listener a failure of a path is a warning that names the model, path, class and attempt."""
    strike = Strike("builtins:exec", Phase.INFER, "raise MemoryError('std::bad_alloc')")
    with open_session(tiny_folder(tmp_path / "m"), sample=0.0) as session, session.armed(Path.MAIN, strike):
        answer = session.run({"x": np.ones((1, 4), dtype=np.float32)})
    (said,) = [one.getMessage() for one in caplog.records if one.name == "crashpath.runtime"]
    assert "ort failed in infer: oom_host" in said
    assert answer.request_id in said


def test_a_short_deadline_is_not_tried_where_it_is_hopeless() -> None:
    """A caller's deadline below the quickest answer so far costs nobody the worker; others are answered as before."""
    served = Served()

    def slow(feed: Arrays) -> Arrays:
        time.sleep(0.05)
        return _answer(feed)

    served.main.script.extend([slow] * 3)
    for _ in range(3):
        assert served.session.run(FEED).path is Path.MAIN
    tried = served.main.calls
    answer = served.session.run(FEED, deadline_ms=20.0)
    assert (answer.route, served.main.calls) == ("main:busy -> fallback:answered", tried)
    assert served.session.run(FEED).path is Path.MAIN
    served.session.close()
    assert served.failures() == []


def test_deadlines_of_other_types() -> None:
    """A number of numpy's and one beyond what a lock can wait are deadlines as well."""
    served = Served()
    for deadline in (np.float32(500), np.int64(500), 1e20):
        assert served.session.run(FEED, deadline_ms=deadline).path is Path.MAIN  # type: ignore[arg-type]
    served.session.close()


def test_a_failed_load_of_the_only_path_is_unanswered() -> None:
    """With policy off nobody answers while the main path is away, and its failed loads say so."""
    served = Served(policy="off")
    served.main.loads.append(LoadCorrupt("gone"))
    served.main._failed(LoadCorrupt("gone"))
    _wait(lambda: served.session.facts().figures.loads.failures >= 1)
    assert served.session.facts().figures.loads.unanswered >= 1
    served.session.close()


def test_the_log_does_not_fill_a_disk(caplog: pytest.LogCaptureFixture) -> None:
    """Of failures alike one is logged in a while, with how many there were since."""
    now = [0.0]
    served = Served(listeners=(EventLog(clock=lambda: now[0]),))
    for at in (0.0, 1.0, 2.0, 11.0):
        now[0] = at
        served.main.script.append(HostMemory("full"))
        served.session.run(FEED)
    served.session.close()
    said = [one.getMessage() for one in caplog.records if "oom_host" in one.getMessage()]
    assert len(said) == 2
    assert "and 2 more like it since" in said[1]


def test_a_fallback_may_write_to_its_feed(tmp_path: Any) -> None:
    """A script that works in place changes neither the caller's array nor what the main path is held to."""
    import torch

    folder = tiny_folder(tmp_path / "m", kind="echo")

    class InPlace(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1.0)

    torch.jit.script(InPlace()).save(str(folder.fallback))
    text = (folder.path / "model.toml").read_text()
    digest = hashlib.sha256(folder.fallback.read_bytes()).hexdigest()
    (folder.path / "model.toml").write_text(text.replace(dict(folder.files)["model.ts.pt"], digest))
    strike = Strike("builtins:exec", Phase.INFER, "raise MemoryError('std::bad_alloc')", times=9)
    feed = {"x": np.zeros(4, dtype=np.float32)}
    with open_session(folder.path, sample=0.0) as session:
        with session.armed(Path.MAIN, strike):
            np.testing.assert_array_equal(session.run(feed).outputs["y"], np.ones(4))
        np.testing.assert_array_equal(feed["x"], np.zeros(4))
        session._main.kill()
        _wait(lambda: session.run(feed).path is Path.MAIN)
