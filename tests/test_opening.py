"""Sessions over real artefacts, in this process and in real workers that are really killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path as FilePath

import numpy as np
import pytest

from crashpath.runtime.errors import (
    DeadlineExceeded,
    Hang,
    HostMemory,
    InputError,
    LoadCorrupt,
    ModelFolderError,
    NativeCrash,
    NoAnswer,
)
from crashpath.runtime.folder import FALLBACK_FILE, GOLDEN_FILE, MAIN_FILE, ModelFolder, open_folder
from crashpath.runtime.opening import open_session
from crashpath.runtime.policy import POLICIES, BreakerSettings, Policy
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Answer, Path, Phase, Strike

NEVER_OPEN = Policy("calm", POLICIES["breaker"].fall_back_on, BreakerSettings(calls=1000, minimum=1000))
MEMORY = "crashpath.coverage.strikes_memory:bytes_refused"
SLEEP = "crashpath.coverage.strikes_waiting:sleeps"
SEGFAULT = "crashpath.coverage.strikes_process:segmentation_fault"
LONG_MS = 60_000.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    """A whole folder; tests that break one copy it."""
    return tiny_folder(tmp_path_factory.mktemp("affine"), deadline_ms=LONG_MS)


@pytest.fixture(scope="module")
def in_process(folder: ModelFolder) -> Iterator[FallbackSession]:
    """Both paths in this process."""
    with open_session(folder, policy=NEVER_OPEN, sample=0.0) as session:
        yield session


@pytest.fixture(scope="module")
def in_workers(folder: ModelFolder) -> Iterator[FallbackSession]:
    """Both paths in workers."""
    with open_session(folder, policy=NEVER_OPEN, isolation="process", sample=0.0) as session:
        yield session


@pytest.fixture(params=["in_process", "in_workers"])
def session(request: pytest.FixtureRequest) -> FallbackSession:
    """Each isolation in turn, with its main path ready."""
    found: FallbackSession = request.getfixturevalue(request.param)
    _restored(found)
    return found


def _feed(number: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": np.full((2, 4), number, np.float32)}


def _restored(session: FallbackSession, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while session.run(_feed()).path is not Path.MAIN:
        assert time.monotonic() < end, "the main path did not come back"
        time.sleep(0.05)


def _copy(folder: ModelFolder, to: FilePath) -> FilePath:
    return FilePath(shutil.copytree(folder.path, to))


def test_answers(session: FallbackSession, folder: ModelFolder) -> None:
    """The main path gives the golden answer; with a failure in its run, the fallback gives the same."""
    feed, golden = folder.golden()
    plain = session.run(feed)
    with session.armed(Path.MAIN, Strike(MEMORY, Phase.INFER)):
        other = session.run(feed)
    assert (plain.path, other.path) == (Path.MAIN, Path.FALLBACK)
    assert other.route == "infer:oom_host -> fallback:answered"
    assert isinstance(other.cause, HostMemory)
    for answer in (plain, other):
        np.testing.assert_allclose(answer.outputs["y"], golden["y"], rtol=1e-5)


def test_both_fail(session: FallbackSession) -> None:
    """Both paths fail: one error that holds both causes; the next request is answered."""
    strike = Strike(MEMORY, Phase.INFER)
    with session.armed(Path.MAIN, strike), session.armed(Path.FALLBACK, strike), pytest.raises(NoAnswer) as raised:
        session.run(_feed())
    assert isinstance(raised.value.main, HostMemory)
    assert isinstance(raised.value.fallback, HostMemory)
    _restored(session)


def test_wrong_feed(session: FallbackSession) -> None:
    """A wrong feed names the input and reaches no path."""
    before = session.facts()
    for wrong, named in (
        ({"x": np.zeros((2, 5), np.float32)}, "x"),
        ({"x": np.zeros((2, 4))}, "x"),
        ({"z": np.zeros((2, 4), np.float32)}, "x"),
        (_feed() | {"z": np.zeros(1)}, "z"),
    ):
        with pytest.raises(InputError, match=f"'{named}'") as raised:
            session.run(wrong)
        assert raised.value.input == named
    after = session.facts()
    assert after.breaker == before.breaker
    assert after.figures.requests.failures == before.figures.requests.failures
    assert after.main.restarts == before.main.restarts


def test_unknown_error(session: FallbackSession) -> None:
    """An error that no reason knows propagates and says what it was, also from a worker; the path stays."""
    pid = session.facts().main.pid
    with session.armed(Path.MAIN, Strike("builtins:int", Phase.INFER, "no number")):
        with pytest.raises(Exception, match="no number") as raised:
            session.run(_feed())
        assert not isinstance(raised.value, NoAnswer)
    assert "ValueError" in f"{type(raised.value).__name__} {raised.value}"
    assert session.run(_feed()).path is Path.MAIN
    assert session.facts().main.pid == pid


def test_a_hang(session: FallbackSession) -> None:
    """A main path that hangs is answered by the fallback within the deadline, and comes back."""
    with session.armed(Path.MAIN, Strike(SLEEP, Phase.INFER, "30")):
        answer = session.run(_feed(), deadline_ms=8000)
    assert answer.route == "infer:hang -> fallback:answered"
    assert isinstance(answer.cause, Hang)
    assert answer.milliseconds < 8000
    _restored(session)


def test_kill_in_the_middle(in_workers: FallbackSession) -> None:
    """kill -9 of the main worker while it works: the caller has the fallback's answer at once, then main is back."""
    _restored(in_workers)
    pid = in_workers.facts().main.pid
    assert pid is not None
    answers: list[Answer] = []
    with in_workers.armed(Path.MAIN, Strike(SLEEP, Phase.INFER, "120")):
        thread = threading.Thread(target=lambda: answers.append(in_workers.run(_feed(3))))
        thread.start()
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        thread.join(LONG_MS / 1000)
    (answer,) = answers
    assert answer.path is Path.FALLBACK
    assert answer.milliseconds < 0.4 * LONG_MS, "not at the deadline, but when it died"
    _restored(in_workers)
    assert in_workers.facts().main.pid not in (pid, None)
    assert not os.path.exists(f"/proc/{pid}"), "no zombie is left"


def test_segfault(in_workers: FallbackSession) -> None:
    """A segfault in the main worker costs a restart, not the service."""
    _restored(in_workers)
    with in_workers.armed(Path.MAIN, Strike(SEGFAULT, Phase.INFER)):
        answer = in_workers.run(_feed())
    assert answer.route == "infer:native_crash -> fallback:answered"
    assert isinstance(answer.cause, NativeCrash)
    _restored(in_workers)


def test_a_fallback_that_was_killed_comes_back(in_workers: FallbackSession) -> None:
    """The fallback's worker is looked after, too: killed while idle, it answers again when it is needed."""
    _restored(in_workers)
    pid = in_workers.facts().fallback.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 120
    while (facts := in_workers.facts().fallback).state != "ready" or facts.pid == pid:
        assert time.monotonic() < end
        time.sleep(0.1)
    with in_workers.armed(Path.MAIN, Strike(MEMORY, Phase.INFER)):
        assert in_workers.run(_feed()).path is Path.FALLBACK


def test_under_load_with_kills(in_workers: FallbackSession) -> None:
    """Threads keep asking while the main worker is killed again and again: each gets its own answer, none is lost."""
    _restored(in_workers)
    wrong: list[object] = []
    stop = threading.Event()

    def work(number: int) -> None:
        expected: np.ndarray | None = None
        while not stop.is_set():
            answer = in_workers.run(_feed(number)).outputs["y"]
            expected = answer if expected is None else expected
            if not np.allclose(answer, expected, atol=1e-4):
                wrong.append((number, answer))

    def guarded(number: int) -> None:
        try:
            work(number)
        except Exception as error:  # noqa: BLE001  # whatever a caller gets instead of an answer fails the test
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        time.sleep(0.4)
        if (pid := in_workers.facts().main.pid) is not None:
            os.kill(pid, signal.SIGKILL)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_events_are_kept(folder: ModelFolder, tmp_path: FilePath) -> None:
    """The event file holds each failure, and at close the counts of requests and loads, with the model's hash."""
    path = tmp_path / "events" / "e.jsonl"
    with (
        open_session(folder, events=path, release="2.1", sample=0.0) as session,
        session.armed(Path.MAIN, Strike(MEMORY, Phase.INFER)),
    ):
        answer = session.run(_feed())
        session.run(_feed())
    told = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert {(one["release"], one["model"], one["model_hash"]) for one in told} == {("2.1", "tiny-affine", folder.hash)}
    (failure,) = [one for one in told if one["event"] == "failure"]
    assert (failure["class"], failure["attempt_id"], failure["by"]) == ("oom_host", answer.request_id, "torchscript")
    assert failure["type"] == "MemoryError"
    counts = {one["unit"]: (one["attempts"], one["failures"]) for one in told if one["event"] == "attempts"}
    assert counts == {"request": (2, 1), "load": (2, 0)}


def test_folders_that_cannot_be_served(folder: ModelFolder, tmp_path: FilePath) -> None:
    """What is missing or does not go together is found at construction, in one sentence with advice."""
    broken = _copy(folder, tmp_path / "no-fallback")
    (broken / FALLBACK_FILE).unlink()
    _refused(broken, f"has no {FALLBACK_FILE}, its fallback")

    broken = _copy(folder, tmp_path / "no-main")
    (broken / MAIN_FILE).unlink()
    _refused(broken, f"has no {MAIN_FILE}, its main path")

    tiny_folder(tmp_path / "external", external="weights.bin")
    (tmp_path / "external" / "weights.bin").unlink()
    _refused(tmp_path / "external", "weights.bin")

    other = tiny_folder(tmp_path / "gather", kind="gather")
    broken = _copy(folder, tmp_path / "another-signature")
    shutil.copy(other.fallback, broken / FALLBACK_FILE)
    _refused(broken, f"{FALLBACK_FILE} takes ids where model.toml declares x")
    _refused(broken, f"{FALLBACK_FILE} takes ids where model.toml declares x", isolation="process")

    broken = _copy(folder, tmp_path / "another-answer")
    with np.load(broken / GOLDEN_FILE) as stored:
        arrays = {name: stored[name] + (name == "out.y") for name in stored.files}
    np.savez(broken / GOLDEN_FILE, **arrays)
    _refused(broken, "answers the golden feed otherwise than golden.npz")

    _refused(tmp_path / "nowhere", "is no folder")


@pytest.mark.parametrize("isolation", ["in_process", "process"])
def test_a_fallback_cut_short(folder: ModelFolder, tmp_path: FilePath, isolation: str) -> None:
    """A fallback that cannot be loaded is no fallback: its failure is raised at construction."""
    broken = _copy(folder, tmp_path / "broken")
    content = (broken / FALLBACK_FILE).read_bytes()
    (broken / FALLBACK_FILE).write_bytes(content[: len(content) // 2])
    with pytest.raises(LoadCorrupt):
        open_session(broken, isolation=isolation)  # type: ignore[arg-type]


@pytest.mark.parametrize("isolation", ["in_process", "process"])
def test_a_main_path_cut_short(folder: ModelFolder, tmp_path: FilePath, isolation: str) -> None:
    """A main path that cannot be loaded is a degraded start; put right on the disk, it serves without a restart."""
    broken = _copy(folder, tmp_path / "broken")
    content = (broken / MAIN_FILE).read_bytes()
    (broken / MAIN_FILE).write_bytes(content[: len(content) // 2])
    with open_session(broken, isolation=isolation, sample=0.0) as session:  # type: ignore[arg-type]
        answer = session.run(_feed())
        assert answer.route == "load:load_corrupt -> fallback:answered"
        assert isinstance(answer.cause, LoadCorrupt)
        ready = session.ready()
        assert (ready.ready, ready.degraded) == (True, True)
        (broken / MAIN_FILE).write_bytes(content)
        _restored(session)
        end = time.monotonic() + 10
        while session.ready().degraded:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_policy_off_needs_no_fallback(folder: ModelFolder, tmp_path: FilePath) -> None:
    """With policy off a folder without its fallback serves; what fails goes to the caller."""
    alone = _copy(folder, tmp_path / "alone")
    (alone / FALLBACK_FILE).unlink()
    with open_session(alone, policy="off") as session:
        assert session.run(_feed()).path is Path.MAIN
        with session.armed(Path.MAIN, Strike(MEMORY, Phase.INFER)), pytest.raises(HostMemory):
            session.run(_feed())
        with session.armed(Path.MAIN, Strike(SLEEP, Phase.INFER, "2")), pytest.raises((Hang, DeadlineExceeded)):
            session.run(_feed(), deadline_ms=100)


def test_wrong_isolation(folder: ModelFolder) -> None:
    """An isolation that is not there is refused by name."""
    with pytest.raises(ValueError, match="in_process or process"):
        open_session(open_folder(folder.path), isolation="thread")  # type: ignore[arg-type]


def _refused(folder: FilePath, says: str, isolation: str = "in_process") -> None:
    with pytest.raises(ModelFolderError, match=says) as raised:
        open_session(folder, isolation=isolation)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value).strip()
