"""A path in a worker: real processes that are really killed, limited and kept waiting."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from crashpath.runtime.errors import (
    DeadlineExceeded,
    DeviceFault,
    Failure,
    Hang,
    HostMemory,
    InputError,
    LoadCorrupt,
    LoadTimeout,
    ModelFolderError,
    NativeCrash,
    SessionClosed,
)
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.lane import LaneSignature, LaneState
from crashpath.runtime.messages import RemoteError
from crashpath.runtime.testing import ENDLESS, tiny_folder
from crashpath.runtime.values import Arrays, Path, Phase, Strike
from crashpath.runtime.workerlane import WorkerLane
from crashpath.runtime.workerprocess import WorkerProcess

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and /proc are Linux's here")
LONG = 60.0
STRIKES = """
import os, signal, sys, time

def die(name):
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(60)

def say_and_abort(text):
    sys.stderr.write(text + "\\n")
    sys.stderr.flush()
    os.abort()

def say_and_raise(text):
    sys.stderr.write(text + "\\n")
    sys.stderr.flush()
    raise MemoryError(text)

def leave(code):
    os._exit(int(code))

def odd(text):
    raise LookupError(text)

def poisoned(text):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

def wait(seconds):
    time.sleep(float(seconds))

def chatter(text):
    os.write(2, b"x" * 300000)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    return tiny_folder(tmp_path_factory.mktemp("loop"), kind="loop", fallback=False)


@pytest.fixture
def strikes(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the functions above importable in workers that are started from now on."""
    (tmp_path / "lane_strikes.py").write_text(STRIKES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., WorkerLane]]:
    """Make lanes that are closed at the end, and check that nothing of them is left."""
    lanes: list[WorkerLane] = []

    def made(folder: ModelFolder, backend: str = "ort", **options: object) -> WorkerLane:
        lane = WorkerLane(Path.MAIN, backend, folder, folder.golden()[0], **options)  # type: ignore[arg-type]
        lanes.append(lane)
        return lane

    yield made
    pids = [lane.facts().pid for lane in lanes]
    for lane in lanes:
        lane.close()
    _until(lambda: not any(pid is not None and _alive(pid) for pid in pids))


def test_answers_and_says_what_it_loaded(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: a worker answers as the model does, many times, and tells names, versions, process and memory."""
    lane = make(folder)
    lane.load(LONG)
    feed, answer = folder.golden()
    for steps in range(20):
        given = lane.run({"x": feed["x"] * steps, "steps": np.array([0])}, _soon())
        np.testing.assert_array_equal(given["y"], feed["x"] * steps)
    warm = lane.warm()
    assert warm is not None
    np.testing.assert_array_equal(warm["y"], answer["y"])
    assert lane.signature().inputs == ("x", "steps")
    assert lane.signature().outputs == ("y",)
    facts = lane.facts()
    assert (facts.state, facts.restarts, facts.loads, facts.failed_loads) == (LaneState.READY, 0, 1, 0)
    assert facts.pid not in (None, os.getpid())
    assert facts.rss > 10 << 20
    assert "onnxruntime" in dict(facts.versions)


def test_answers_are_the_callers_own(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: the next request does not change what an earlier one was given."""
    lane = make(folder)
    lane.load(LONG)
    first = lane.run({"x": np.full((1, 4), 7, np.float32), "steps": np.array([0])}, _soon())["y"]
    lane.run({"x": np.full((1, 4), 9, np.float32), "steps": np.array([0])}, _soon())
    assert (first == 7).all()


def test_a_run_without_end_is_cut_and_the_path_comes_back(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: the deadline is hard: `Hang` on time, the worker dead, and a new one ready later."""
    lane = make(folder)
    lane.load(LONG)
    pid = lane.facts().pid
    assert pid is not None
    began = time.monotonic()
    with pytest.raises(Hang) as caught:
        lane.run(_endless(folder), began + 0.3)
    assert time.monotonic() - began >= 0.3
    assert caught.value.phase == "infer"
    assert lane.facts().state is not LaneState.READY
    assert isinstance(lane.facts().failure, Hang)
    with pytest.raises(Hang):  # not ready yet: at once, with the class that took it down
        lane.run(folder.golden()[0], _soon())
    _until(lambda: not _alive(pid))
    _answers_again(lane, folder)
    assert lane.facts().restarts == 1


def test_a_kill_of_the_idle_worker_is_noticed(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: kill -9 while nothing runs is seen without a request, counts as memory, and a new worker comes."""
    lane = make(folder)
    lane.load(LONG)
    pid = lane.facts().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    _until(lambda: lane.facts().restarts == 1)
    failure = lane.facts().failure
    assert failure is None or isinstance(failure, HostMemory)
    _answers_again(lane, folder)
    assert lane.facts().pid != pid
    assert not _alive(pid)


def test_a_kill_during_a_run_is_noticed_at_once(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: a death is told when it happens, not at the deadline."""
    lane = make(folder)
    lane.load(LONG)
    timer = threading.Timer(0.3, lane.kill)
    timer.start()
    began = time.monotonic()
    with pytest.raises(HostMemory, match="killed"):
        lane.run(_endless(folder), began + LONG)
    assert time.monotonic() - began < LONG / 2
    timer.join()


@pytest.mark.usefixtures("strikes")
@pytest.mark.parametrize(
    ("function", "argument", "failure"),
    [
        ("die", "SIGSEGV", NativeCrash),
        ("die", "SIGABRT", NativeCrash),
        ("die", "SIGKILL", HostMemory),
        ("say_and_abort", "terminate called after throwing an instance of 'std::bad_alloc'", HostMemory),
        ("leave", "3", NativeCrash),
    ],
)
def test_a_death_is_named_by_its_cause(
    folder: ModelFolder,
    make: Callable[..., WorkerLane],
    function: str,
    argument: str,
    failure: type[Failure],
) -> None:
    """Rule: signal and last words name the failure; the strike does not hit the next worker."""
    lane = make(folder)
    lane.load(LONG)
    lane.arm(Strike(f"lane_strikes:{function}", Phase.INFER, argument))
    with pytest.raises(failure) as caught:
        lane.run(folder.golden()[0], _soon())
    assert type(caught.value) is failure
    assert caught.value.phase == "infer"
    _answers_again(lane, folder)


@pytest.mark.usefixtures("strikes")
def test_a_death_is_not_named_by_an_earlier_request(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: what the worker wrote before its last reply did not end it."""
    lane = make(folder)
    lane.load(LONG)
    feed = folder.golden()[0]
    lane.arm(Strike("lane_strikes:say_and_raise", Phase.INFER, "std::bad_alloc while a node ran"))
    with pytest.raises(HostMemory):
        lane.run(feed, _soon())
    lane.run(feed, _soon())
    lane.arm(Strike("lane_strikes:die", Phase.INFER, "SIGSEGV"))
    with pytest.raises(NativeCrash, match="SIGSEGV"):
        lane.run(feed, _soon())


@pytest.mark.usefixtures("strikes")
def test_an_idle_death_after_a_load_is_none_of_the_load(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: a worker that dies before its first request died while it served."""
    lane = make(folder)
    lane.load(LONG)
    lane.arm(Strike("lane_strikes:wait", Phase.LOAD, "1"))  # so that there is time to look
    lane.kill()
    _until(lambda: lane.facts().failure is not None)
    failure = lane.facts().failure
    assert failure is not None
    assert failure.phase == "infer"


def test_a_load_is_held_to_its_check_before_it_serves(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: no request reaches a worker that answers its warm-up otherwise; it is ended, and the load has failed."""
    seen: list[int | None] = []

    def check(signature: LaneSignature, warm: Arrays | None) -> Failure | None:
        assert signature.inputs == ("x", "steps")
        assert warm is not None
        seen.append(lane.facts().pid)
        time.sleep(0.2)  # time for requests to get in between, if they could
        return LoadCorrupt("answers otherwise", "test") if len(seen) == 1 else None

    lane = make(folder, backoff=(2.0, 2.0))
    lane.load(LONG)
    lane.check_with(check)
    lane.kill()
    _until(lambda: lane.facts().restarts == 1)
    answers = []
    while not (facts := lane.facts()).failed_loads:
        with contextlib.suppress(Failure):
            answers.append(lane.run(folder.golden()[0], _soon()))
    assert not answers
    assert (facts.state, facts.loads) == (LaneState.DOWN, 2)
    assert isinstance(facts.failure, LoadCorrupt)
    _until(lambda: seen[0] is not None and not _alive(seen[0]))
    _answers_again(lane, folder)
    assert len(seen) == 2


def test_a_host_without_threads(
    folder: ModelFolder, make: Callable[..., WorkerLane], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: where no thread can be started the load fails by name, and a later one succeeds."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lane = make(folder)
    with monkeypatch.context() as host:
        host.setattr(threading.Thread, "start", refuse)
        with pytest.raises(HostMemory, match="can't start new thread"):
            lane.load(LONG)
    assert (lane.facts().state, lane.facts().failed_loads) == (LaneState.DOWN, 1)
    lane.load(LONG)
    _answers_again(lane, folder)


def test_a_host_without_descriptors(
    folder: ModelFolder, make: Callable[..., WorkerLane], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: a worker that serves needs no further descriptor to be watched, so the lane outlives such a time."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "dup", refuse)
    lane = make(folder)
    lane.load(LONG)
    _answers_again(lane, folder)
    lane.kill()
    _until(lambda: lane.facts().restarts == 1)
    _answers_again(lane, folder)


def test_a_worker_imports_nothing_from_the_working_folder(
    folder: ModelFolder, make: Callable[..., WorkerLane], tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: a file beside the service that is called like a library is not taken for it."""
    (tmp_path / "onnxruntime.py").write_text("raise SystemExit('not the library')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lane = make(folder)
    lane.load(LONG)
    _answers_again(lane, folder)


def test_what_the_system_refuses_is_the_cause(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: a feed that finds no room is a failure by name, caused by the system's own error; the worker lives on."""
    lane = make(folder)
    lane.load(LONG)
    feed = {"x": np.ones((1 << 14, 1 << 10), np.float32), "steps": np.array([0])}
    pages = int(FilePath("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (32 << 20), hard))
    try:
        with pytest.raises(HostMemory) as caught:
            lane.run(feed, _soon())
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOMEM
    _answers_again(lane, folder)
    assert lane.facts().restarts == 0


@pytest.mark.usefixtures("strikes")
def test_turns_come_in_order_of_arrival(
    folder: ModelFolder, make: Callable[..., WorkerLane], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: who asks again in the moment in which the worker is free waits behind those who wait already."""
    lane = make(folder)
    lane.load(LONG)
    lane.arm(Strike("lane_strikes:wait", Phase.INFER, "1"))
    order: list[int] = []
    ask = WorkerProcess.ask

    def noted(worker: WorkerProcess, phase: Phase, feed: Arrays, *rest: Any) -> Any:
        order.append(int(feed["x"][0, 0]))
        return ask(worker, phase, feed, *rest)

    monkeypatch.setattr(WorkerProcess, "ask", noted)

    def run(numbers: tuple[int, ...]) -> None:
        for number in numbers:
            lane.run({"x": np.full((1, 4), number, np.float32), "steps": np.array([0])}, _soon())

    threads = [threading.Thread(target=run, args=(tuple(range(10, 40)),))]
    threads[0].start()
    _until(lambda: bool(order))
    for place in (1, 2, 3):
        threads.append(threading.Thread(target=run, args=((place,),)))
        threads[-1].start()
        _until(lambda place=place: len(lane._keeper._line) == place)  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert order == [10, 1, 2, 3, *range(11, 40)]


@pytest.mark.usefixtures("strikes")
def test_errors_travel(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: an unknown error names its type and place, a known one is its failure; the worker lives on."""
    lane = make(folder)
    lane.load(LONG)
    feed = folder.golden()[0]
    lane.arm(Strike("lane_strikes:odd", Phase.INFER, "what is this"))
    with pytest.raises(RemoteError, match=r"LookupError: what is this") as caught:
        lane.run(feed, _soon())
    assert "in odd" in caught.value.trace
    with pytest.raises(InputError) as wrong:
        lane.run({"x": feed["x"][:, :3], "steps": feed["steps"]}, _soon())
    assert wrong.value.input == "x"
    lane.arm(Strike("lane_strikes:chatter", Phase.INFER, ""))
    for _ in range(3):
        lane.run(feed, _soon())
    assert lane.facts().restarts == 0


@pytest.mark.usefixtures("strikes")
def test_a_poisoned_device_costs_the_worker(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: after a device fault the worker is not asked again: its context is gone."""
    lane = make(folder)
    lane.load(LONG)
    pid = lane.facts().pid
    lane.arm(Strike("lane_strikes:poisoned", Phase.INFER, ""))
    with pytest.raises(DeviceFault):
        lane.run(folder.golden()[0], _soon())
    assert lane.facts().state is not LaneState.READY
    _answers_again(lane, folder)
    assert lane.facts().pid != pid


@pytest.mark.usefixtures("strikes")
def test_strikes_at_load(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: a strike in load or warm-up hits the next load; the first load is not retried by itself, later ones are."""
    lane = make(folder, start_timeout=LONG)
    lane.arm(Strike("lane_strikes:die", Phase.LOAD, "SIGSEGV"))
    with pytest.raises(NativeCrash) as caught:
        lane.load(LONG)
    assert caught.value.phase == "load"
    assert lane.facts().state is LaneState.DOWN
    lane.load(LONG)
    lane.arm(Strike("lane_strikes:die", Phase.WARMUP, "SIGKILL"))
    lane.kill()
    _answers_again(lane, folder)
    facts = lane.facts()
    assert (facts.loads, facts.failed_loads, facts.restarts) == (4, 2, 1)


@pytest.mark.usefixtures("strikes")
def test_a_model_that_never_comes_is_a_load_timeout(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: a load that does not end by itself ends by its deadline, and its process with it."""
    children = _children()
    lane = make(folder)
    lane.arm(Strike("lane_strikes:wait", Phase.LOAD, "600"))
    with pytest.raises(LoadTimeout) as caught:
        lane.load(3.0)
    assert caught.value.phase == "load"
    assert lane.facts().state is LaneState.DOWN
    assert isinstance(lane.facts().failure, LoadTimeout)
    _until(lambda: _children() <= children)


def test_what_cannot_be_loaded(tmp_path: FilePath, make: Callable[..., WorkerLane]) -> None:
    """Rule: a cut artefact is a failure, one that is not there a wrong folder."""
    folder = tiny_folder(tmp_path, fallback=False)
    os.truncate(folder.main, 50)
    with pytest.raises(LoadCorrupt, match="Protobuf parsing failed"):
        make(folder).load(LONG)
    folder.main.unlink()
    with pytest.raises(ModelFolderError, match=r"model\.onnx"):
        make(folder).load(LONG)


def test_memory_is_limited(tmp_path: FilePath, make: Callable[..., WorkerLane]) -> None:
    """Rule: beyond the folder's memory limit an allocation is refused, and the worker serves on."""
    folder = tiny_folder(tmp_path, kind="wide", fallback=False, memory_mib=256)
    lane = make(folder)
    lane.load(LONG)
    with pytest.raises(HostMemory) as caught:
        lane.run({"shape": np.array([1 << 15, 1 << 15])}, _soon())
    assert caught.value.phase == "infer"
    _answers_again(lane, folder)
    assert lane.facts().restarts == 0


def test_torchscript_in_a_worker(tmp_path: FilePath, make: Callable[..., WorkerLane]) -> None:
    """Rule: the TorchScript artefact is served, limited and cut in the same way."""
    folder = tiny_folder(tmp_path, kind="loop", memory_mib=512)
    lane = make(folder, "torchscript")
    lane.load(LONG)
    _answers_again(lane, folder)
    assert lane.signature().inputs == ("x", "steps")
    with pytest.raises(Hang):
        lane.run(_endless(folder), time.monotonic() + 0.5)
    assert lane.facts().state is not LaneState.READY


def test_turns_are_waited_for(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: one request at a time; who waits for its turn past its deadline gets `DeadlineExceeded`."""
    lane = make(folder)
    lane.load(LONG)
    started = threading.Event()

    def hog() -> None:
        started.set()
        with pytest.raises(Hang):
            lane.run(_endless(folder), time.monotonic() + 1.5)

    thread = threading.Thread(target=hog)
    thread.start()
    started.wait()
    time.sleep(0.2)
    with pytest.raises(DeadlineExceeded):
        lane.run(folder.golden()[0], time.monotonic() + 0.3)
    thread.join()


def test_closed(folder: ModelFolder, make: Callable[..., WorkerLane]) -> None:
    """Rule: after close there is no worker, and each call says so; a run under way ends."""
    lane = make(folder)
    lane.load(LONG)
    pid = lane.facts().pid
    assert pid is not None
    seen: list[BaseException] = []

    def run() -> None:
        try:
            lane.run(_endless(folder), time.monotonic() + LONG)
        except SessionClosed as error:
            seen.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    lane.close()
    thread.join(LONG)
    assert len(seen) == 1
    _until(lambda: not _alive(pid))
    with pytest.raises(SessionClosed):
        lane.run(folder.golden()[0], _soon())
    with pytest.raises(SessionClosed):
        lane.load(1)
    lane.close()


def test_nothing_is_left_behind(folder: ModelFolder) -> None:
    """Rule: files, processes and threads are as before after lanes that were killed, hung and closed."""
    _live_and_die(folder)  # what is opened once stays
    threads, files, children = threading.active_count(), _files(), _children()
    for _ in range(3):
        _live_and_die(folder)
    _until(lambda: threading.active_count() <= threads)
    _until(lambda: _children() == children)
    assert _files() == files


def test_the_worker_ends_with_its_parent(folder: ModelFolder) -> None:
    """Rule: a parent that is killed in the middle of a run leaves no worker."""
    source = f"""
    import os, signal, sys, threading, time
    from crashpath.runtime.folder import open_folder
    from crashpath.runtime.values import Path
    from crashpath.runtime.workerlane import WorkerLane
    import numpy as np
    folder = open_folder({str(folder.path)!r})
    lane = WorkerLane(Path.MAIN, "ort", folder, folder.golden()[0])
    lane.load(60)
    print(lane.facts().pid, flush=True)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    lane.run({{"x": np.ones((1, 4), np.float32), "steps": np.array([{ENDLESS}])}}, time.monotonic() + 60)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    pid = int(run.stdout)
    _until(lambda: not _alive(pid))


def _live_and_die(folder: ModelFolder) -> None:
    lane = WorkerLane(Path.MAIN, "ort", folder, folder.golden()[0])
    lane.load(LONG)
    with pytest.raises(Hang):
        lane.run(_endless(folder), time.monotonic() + 0.1)
    _answers_again(lane, folder)
    lane.kill()
    _answers_again(lane, folder)
    lane.close()


def _answers_again(lane: WorkerLane, folder: ModelFolder) -> None:
    feed, answer = folder.golden()
    by = time.monotonic() + LONG
    while True:
        try:
            given = lane.run(feed, _soon())
        except Failure:
            assert time.monotonic() < by
            time.sleep(0.05)
        else:
            np.testing.assert_array_equal(given["y"], answer["y"])
            return


def _endless(folder: ModelFolder) -> dict[str, np.ndarray]:
    return {"x": folder.golden()[0]["x"], "steps": np.array([ENDLESS])}


def _soon() -> float:
    return time.monotonic() + LONG


def _alive(pid: int) -> bool:
    try:
        return FilePath(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _files() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def _children() -> set[str]:
    found = set()
    for task in FilePath("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found |= set((task / "children").read_text(encoding="ascii").split())
    return found


def _until(done: Callable[[], bool]) -> None:
    by = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < by
        time.sleep(0.02)
