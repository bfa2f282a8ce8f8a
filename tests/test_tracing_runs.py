"""Runs that are traced beside sessions, their files and their place in the store: what is lost, and what never is."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from crashpath.coverage import runfile, runparts
from crashpath.coverage import tracer as tracers
from crashpath.coverage.covered import add_up
from crashpath.coverage.covstore import newest_run, store_run, stored_runs, summed_runs
from crashpath.coverage.domain import asked_for, bucket
from crashpath.coverage.runfile import Run, RunFile, RunFileError, Seen, State, read_run, run_files
from crashpath.coverage.tracer import FeedError, FolderError, Tracer
from crashpath.coverage.tracing import Tracing
from crashpath.coverage.units import Declared, Kind, Placed, Shipped, Timing, Trace, Unit
from crashpath.coverage.wholefile import write_whole
from crashpath.dashboard.coverage_work import Feed, drawn, golden_feed, traced
from crashpath.dashboard.errors import InputError
from crashpath.ingest import migrate, upgrade
from crashpath.ingest.store import Store, connect, open_store
from crashpath.ingest.tables_evidence import CoverageRun
from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.events import Cohort
from crashpath.runtime.fakelane import FakeLane
from crashpath.runtime.folder import FALLBACK_FILE, MAIN_FILE, SPEC_FILE, ModelFolder, TensorSpec, file_hash
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
FEED = {"x": np.arange(3, dtype=np.float32)}


def a_run(number: int = 1, *, model_hash: str = "a" * 12, hits: int = 1, units: int = 3) -> Run:
    """A finished run of a model with so many nodes, the first ``hits`` of which ran once."""
    nodes = tuple(Unit(Kind.NODE, f"/{one}:Add", "Add") for one in range(units))
    blocks = (Unit(Kind.BLOCK, "/", "forward"), Unit(Kind.OP, "/0:aten::add", "aten::add", "m.py:3", "/"))
    return Run(
        f"run-{number}", "trace", "scores", model_hash, "1.4", BEGAN, BEGAN.replace(minute=number % 60),
        versions=(("torch", "2"),), asked=("CPUExecutionProvider",), requests=2,
        seen=(
            Seen(
                Declared(Which.MAIN, nodes),
                Trace(
                    Which.MAIN, {node.id: 1 for node in nodes[:hits]},
                    (Timing(Which.MAIN, "Add", 2, 4, 0.5),), shipped=Shipped(1, 2, ("b (Add)",)),
                ),
            ),
            Seen(Declared(Which.FALLBACK, blocks), Trace(Which.FALLBACK, {"/": 2, "/0:aten::add": 2})),
        ),
        routes={"main:answered": 2}, domain={"n<=4": 2},
    )  # fmt: skip


class _Slow:
    """Traces for a minute of the session's own clock."""

    def __init__(self, now: list[float]) -> None:
        self._now = now

    def asked(self, session: FallbackSession, feed: Arrays) -> None:
        self._now[0] += 60.0

    def closed(self, session: FallbackSession) -> None:
        pass


def test_tracing_spends_nothing_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose tracing takes longer than its deadline is answered, and the tracing is not in its time."""
    now = [0.0]
    monkeypatch.setattr(FallbackSession, "tracing", _Slow(now))
    main, fallback = (FakeLane(path, lambda feed: {"y": feed["x"]}) for path in (Which.MAIN, Which.FALLBACK))
    inputs = (TensorSpec("x", "float32", ("n",)),)
    with FallbackSession(main, fallback, inputs=inputs, deadline_ms=300, sample=0.0, clock=lambda: now[0]) as session:
        answer = session.run(FEED)
        assert (answer.path, answer.milliseconds < 300) == (Which.MAIN, True)
        assert session.run(FEED, deadline_ms=50).path == Which.MAIN


def test_a_run_file_is_the_run(tmp_path: Path) -> None:
    """What is read is what was written, and nothing else lies beside it."""
    path = RunFile(tmp_path, a_run()).finish(a_run())
    assert read_run(path) == a_run()
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_run_that_finishes_while_it_is_read_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opened the file just before its process put the finished one in its place reads the finished one."""
    file = RunFile(tmp_path, a_run())
    held = runfile._is_held
    ends: list[Callable[[], Path]] = [lambda: file.finish(a_run())]

    def late(descriptor: int) -> bool:
        while ends:
            ends.pop()()
        return held(descriptor)

    monkeypatch.setattr(runfile, "_is_held", late)
    assert read_run(file.path).state is State.FINISHED


def test_a_run_file_is_whole_before_it_can_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its making and its first line there is no file that a reader would call cut short."""
    seen: list[tuple[Path, ...]] = []
    lock = runfile._lock

    def look(descriptor: int) -> None:
        seen.append(run_files([tmp_path]))
        lock(descriptor)

    monkeypatch.setattr(runfile, "_lock", look)
    file = RunFile(tmp_path, a_run())
    assert seen == [()]
    assert read_run(file.path).state is State.RUNNING
    file.leave()
    assert read_run(file.path).state is State.LOST


def _with(**parts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda raw: raw.update(parts)


def _in_path(**parts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda raw: raw["seen"][0].update(parts)


def _timed(**parts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda raw: raw["seen"][0]["timings"][0].update(parts)


@pytest.mark.parametrize(
    "spoil",
    [
        _with(versions=[]), _with(seen=None), _with(seen=[[]]), _with(requests=float("inf")), _with(requests=-1),
        _with(requests=2**63), _with(began="2026-03-01T12:00:00"), _with(began=5), _with(state="odd"),
        _with(model=["a"]), _with(release="\ud800"), _with(routes={"a": None}), _with(domain=[1]),
        _in_path(units=[["node", "/0:Add", "Add", "", "", None]] * 2),
        _in_path(units=[["odd", "a", "b", "", "", None]]),
        _in_path(units=[[]]), _in_path(hits=[]), _in_path(timings=[{}]), _in_path(placed=[5]), _in_path(shipped=[]),
        _with(requests=True), _with(requests=2**53 + 1), _with(ended=None), _with(ended="2026-03-01T11:59:59+00:00"),
        _with(began="0001-01-01T00:00:00+00:00"), _with(ended="9999-12-31T23:59:59+00:00"), _with(ended="x"),
        _with(model_hash=""), _with(id=""), _with(id="x" * 3000), _with(id=["a"]), _with(release="a\0b"),
        _with(asked="CPU"), _with(versions={"a": 5}), _with(domain={"a\0": 1}), _with(routes={"a": 1e30}),
        _in_path(path=""), _in_path(hits={"/0:Add": 10**30}), _in_path(hits={"/0:Add": -1}), _in_path(hits={"": 1.5}),
        _in_path(hits={"/0:Add": float("inf")}), _in_path(problems="odd"), _in_path(replaced=[1]),
        _in_path(units=[["node", "a", "", "", "", None], ["op", "a", "", "", "", None]]),
        _in_path(units=[["node", ["a"], "", "", "", None]]), _in_path(units=[["node", "", "", "", "", None]]),
        _in_path(units=[["node", "a", "", "", "b", None], ["node", "b", "", "", "a", None]]),
        _in_path(units=[["node", str(one + 1), "", "", str(one or ""), None] for one in range(3000)]),
        _in_path(units=[["node", str(one + 1), "", "", str(one or ""), None] for one in reversed(range(3000))]),
        _in_path(placed=[{"node": ["a"], "operator": "", "assigned": "", "ran": ""}]),
        _in_path(shipped={"ran": 3, "nodes": 2, "left": [], "problems": []}),
        *(_timed(**parts) for parts in (
            {"calls": "x"}, {"seconds": None}, {"seconds": "1"}, {"seconds": float("nan")}, {"seconds": -0.5},
            {"seconds": 1e300}, {"batch": "x"}, {"batch": -1}, {"path": ""}, {"path": "torchscript"}, {"operator": 1},
        )),
    ],
)  # fmt: skip
def test_what_is_no_run_file_is_told_in_a_sentence(tmp_path: Path, spoil: Callable[[dict[str, Any]], None]) -> None:
    """Whatever is wrong with a part of it, the file is named, and no other error comes."""
    path = RunFile(tmp_path, a_run()).finish(a_run())
    raw = json.loads(path.read_bytes())
    spoil(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(RunFileError, match=path.name) as raised:
        read_run(path)
    assert ("\n" in str(raised.value), len(str(raised.value)) < 600) == (False, True)


def test_what_is_no_plain_file_is_told_at_once(tmp_path: Path) -> None:
    """A named pipe is not waited for, be it a run file or one of events; a folder of that name is no run file."""
    pipe, folder = tmp_path / f"pipe{runfile.SUFFIX}", tmp_path / "in" / f"folder{runfile.SUFFIX}"
    os.mkfifo(pipe)
    folder.mkdir(parents=True)
    for path, kind in ((pipe, "named pipe"), (folder, "folder")):
        with pytest.raises(RunFileError, match=f"{path.name} cannot be read: it is a {kind}"):
            read_run(path)
    with pytest.raises(OSError, match="named pipe") as raised:
        asked_for([pipe], OPEN, "m")
    assert raised.value.filename == str(pipe)


def test_nodes_may_lie_deep(tmp_path: Path) -> None:
    """A hundred within each other are a graph that somebody has, in whichever order they are told."""
    units = [Unit(Kind.NODE, str(one + 1), "If", "", str(one or "")) for one in range(100)]
    for order in (units, units[::-1]):
        run = replace(a_run(), seen=(Seen(Declared(Which.MAIN, tuple(order)), Trace(Which.MAIN)),))
        path = RunFile(tmp_path, run).finish(run)
        assert read_run(path) == run


def test_too_deep_to_be_a_run_file(tmp_path: Path) -> None:
    """Brackets without end are no run file either."""
    path = tmp_path / "deep.coverage.json"
    path.write_text("[" * 200_000)
    with pytest.raises(RunFileError, match=path.name):
        read_run(path)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """Where the target cannot be replaced nothing stays beside it, and what was there is as it was."""
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError, match="there"):
        write_whole(tmp_path / "there", "new")
    assert [one.name for one in tmp_path.iterdir()] == ["there"]
    write_whole(tmp_path / "file", "é")
    assert (tmp_path / "file").read_bytes() == "é".encode()


def test_a_run_that_cannot_be_written_lets_go(tmp_path: Path) -> None:
    """The file of a run whose end cannot be written is held no longer, and nothing stays beside it."""
    file = RunFile(tmp_path, a_run())
    file.path.unlink()
    file.path.mkdir()
    with pytest.raises(OSError, match=file.path.name):
        file.finish(a_run())
    assert file._file is None
    assert [one.name for one in tmp_path.iterdir()] == [file.path.name]


def session_of(folder: ModelFolder, **options: Any) -> FallbackSession:
    """A session of this model over lanes that answer at once, and otherwise than the model."""
    takes = tuple(spec.name for spec in folder.inputs)
    main, fallback = (FakeLane(path, lambda feed: dict(feed), inputs=takes) for path in (Which.MAIN, Which.FALLBACK))
    cohort = Cohort(model_hash=folder.hash)
    return FallbackSession(main, fallback, inputs=folder.inputs, sample=0.0, cohort=cohort, **options)


@pytest.fixture
def tracing_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Tracing]:
    """Makes a tracing of folders, and leaves none behind."""
    monkeypatch.setattr(FallbackSession, "tracing", None)
    return lambda *folders, **more: Tracing([one.path for one in folders], data=tmp_path / "runs", **more)


def test_a_folder_that_cannot_be_traced_harms_nobody(tmp_path: Path, tracing_of: Callable[..., Tracing]) -> None:
    """Its requests are answered, its sessions close; no run file, no descriptor is left, and the summary says why."""
    folder = tiny_folder(tmp_path / "m")
    (folder.path / FALLBACK_FILE).unlink()
    tracing = tracing_of(folder)
    tracing.start()
    feed = folder.golden()[0]
    with session_of(folder) as session:
        session.run(feed)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            session.run(feed)
    assert len(os.listdir("/proc/self/fd")) <= before
    with pytest.raises(FolderError, match="cannot be traced"):
        tracing.first()
    tracing.stop()
    assert not (tmp_path / "runs").exists()
    told = list(tracing.summary(since=0.0))
    assert told[0].endswith("no request was traced")
    assert ["cannot be traced" in one for one in told] == [False, True]


def test_a_tracer_that_cannot_open_leaves_nothing(tmp_path: Path) -> None:
    """Neither its run file nor the copy of the main path stays."""
    folder = tiny_folder(tmp_path / "m")
    folder.fallback.write_bytes(b"no archive")
    with pytest.raises(RuntimeError), Tracer(_declared_anew(folder), data=tmp_path / "runs"):
        pass
    assert list((tmp_path / "runs").iterdir()) == []


def _declared_anew(folder: ModelFolder) -> ModelFolder:
    """The folder with the digests of its files as they are now."""
    return replace(folder, files=tuple((name, file_hash(folder.path / name)) for name, _ in folder.files))


@pytest.mark.parametrize("name", [MAIN_FILE, FALLBACK_FILE, "w.bin"])
def test_other_artefacts_are_no_evidence(tmp_path: Path, name: str) -> None:
    """A file that was changed since it was declared, be it weights beside the graph, is not traced under its hash."""
    folder = tiny_folder(tmp_path / "m", external="w.bin")
    with Tracer(folder, data=tmp_path / "runs", timed=False):
        pass
    changed = folder.path / name
    content = changed.read_bytes()
    changed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(FolderError, match=f"{name} is not the file") as raised, Tracer(folder, data=tmp_path / "none"):
        pass
    assert (folder.hash in str(raised.value), "\n" in str(raised.value), (tmp_path / "none").exists()) == (
        False, False, False,
    )  # fmt: skip
    changed.unlink()
    with pytest.raises(FolderError, match=f"{name} cannot be read"), Tracer(folder, data=tmp_path / "none"):
        pass


def test_a_folder_whose_hash_says_nothing_is_not_traced(tmp_path: Path, tracing_of: Callable[..., Tracing]) -> None:
    """All models without digests have one hash; and what the graph reads besides has to have a digest, too."""
    folder = tiny_folder(tmp_path / "m", external="w.bin")
    some = replace(folder, files=tuple(one for one in folder.files if one[0] != "w.bin"))
    for files, said in ((some, "reads w.bin, of which"), (replace(folder, files=()), r"give it a \[files\] table")):
        with pytest.raises(FolderError, match=said), Tracer(files, data=tmp_path / "none"):
            pass
    spec = folder.path / SPEC_FILE
    spec.write_text(spec.read_text().partition("[files]")[0])
    with pytest.raises(FolderError, match=r"give it a \[files\] table"):
        tracing_of(folder)


def test_a_clock_that_is_set_back_costs_no_run(tmp_path: Path) -> None:
    """A run ends at the earliest when it began, so that its file can be read."""
    folder = tiny_folder(tmp_path / "m", fallback=False)
    times = iter([BEGAN, BEGAN - timedelta(hours=1)])
    with Tracer(folder, data=tmp_path / "runs", timed=False, now=lambda: next(times)):
        pass
    assert [read_run(path).ended for path in run_files([tmp_path / "runs"])] == [BEGAN]


def test_a_model_without_fallback_is_traced_on_its_main_path(
    tmp_path: Path, tracing_of: Callable[..., Tracing]
) -> None:
    """A folder that declares no fallback, as under the policy ``off``, has evidence of its main path."""
    folder = tiny_folder(tmp_path / "m", fallback=False)
    tracing = tracing_of(folder)
    tracing.start()
    with session_of(folder, policy="off") as session:
        session.run(folder.golden()[0])
    tracing.stop()
    (run,) = map(read_run, run_files([tmp_path / "runs"]))
    assert [one.declared.path for one in run.seen] == [Which.MAIN]
    (told,) = tracing.summary(since=0.0)
    assert "fallback none (1 request in 1 run)" in told


@pytest.mark.parametrize("late", [True, False])
def test_a_request_that_takes_too_long_is_the_last_one(
    tmp_path: Path, tracing_of: Callable[..., Tracing], monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Who asks waits for the limit and no longer, once; where it ends before all does, the run is written with it."""
    folder = tiny_folder(tmp_path / "m")
    gate, asked = threading.Event(), []
    real = Tracer.run

    def slow(tracer: Tracer, feed: Arrays) -> object:
        asked.append(feed)
        gate.wait(60)
        return real(tracer, feed)

    monkeypatch.setattr(Tracer, "run", slow)
    tracing = tracing_of(folder, limit_s=2.0)
    tracing.start()
    with session_of(folder) as session:
        for _ in range(3):
            assert session.run(folder.golden()[0]).path == Which.MAIN
    assert (len(asked), tracing.stuck) == (1, True)
    if late:
        gate.set()
        for _ in range(600):
            if not tracing.stuck:
                break
            time.sleep(0.05)
    tracing.stop()
    gate.set()
    assert "tracing took more than 2 s" in tracing.troubles[0]
    assert ["all of this run is lost" in one for one in tracing.troubles] == ([False] if late else [False, True])
    (run,) = map(read_run, run_files([tmp_path / "runs"]))
    assert (run.state, run.requests) == ((State.FINISHED, 1) if late else (State.RUNNING, 0))


def test_routes_count_once_however_a_session_ends(tmp_path: Path, tracing_of: Callable[..., Tracing]) -> None:
    """One that is closed in time, one that is closed after the end and one that is never closed count alike."""
    folder = tiny_folder(tmp_path / "m")
    tracing = tracing_of(folder)
    tracing.start()
    feed = folder.golden()[0]
    early, late, never = (session_of(folder) for _ in range(3))
    for session in (early, late, never, never):
        session.run(feed)
    early.close()
    tracing.stop()
    late.close()
    (run,) = map(read_run, run_files([tmp_path / "runs"]))
    never.close()
    assert run.routes["main:answered"] == 4
    assert run.requests == 4


def test_a_session_that_cannot_open_says_its_own_error(tmp_path: Path, tracing_of: Callable[..., Tracing]) -> None:
    """Tracing a session that was never whole hides nothing of why it was not."""
    folder = tiny_folder(tmp_path / "m")
    tracing = tracing_of(folder)
    tracing.start()
    other = tiny_folder(tmp_path / "n", kind="gather")
    main, fallback = (FakeLane(path, lambda feed: dict(feed)) for path in (Which.MAIN, Which.FALLBACK))
    with pytest.raises(ModelFolderError, match=r"takes x where model\.toml declares ids"):
        FallbackSession(main, fallback, inputs=other.inputs, cohort=Cohort(model_hash=folder.hash))
    tracing.stop()


def test_a_run_that_cannot_be_written_is_told(tmp_path: Path, tracing_of: Callable[..., Tracing]) -> None:
    """At the end the tests are not failed for it, and the run of the other model is written."""
    one, other = tiny_folder(tmp_path / "m"), tiny_folder(tmp_path / "n", kind="gather")
    tracing = tracing_of(one, other)
    tracing.start()
    for folder in (one, other):
        with session_of(folder) as session:
            session.run(folder.golden()[0])
    path = next(path for path in run_files([tmp_path / "runs"]) if read_run(path).model_hash == one.hash)
    path.unlink()
    path.mkdir()
    tracing.stop()
    assert any("could not be written" in told for told in tracing.troubles)
    path.rmdir()
    assert [read_run(path).model_hash for path in run_files([tmp_path / "runs"])] == [other.hash]


def test_the_summary_tells_lost_runs_from_those_under_way(tmp_path: Path, tracing_of: Callable[..., Tracing]) -> None:
    """Where none told what it saw, that is said, and how many were lost and how many are not at their end."""
    folder = tiny_folder(tmp_path / "m", fallback=False)
    begun = Tracer(folder).begun
    for number in range(3):
        file = RunFile(tmp_path / "runs", replace(begun, id=f"run-{number}"))
        if number:
            file.leave()
    (told,) = tracing_of(folder).summary(since=0.0)
    assert told.endswith("no run told what it saw (2 runs lost, 1 run not ended yet)")


def test_both_paths_that_fail_are_named(tmp_path: Path) -> None:
    """A feed on which both fail tells both errors, each with its path, in a few words."""
    folder = tiny_folder(tmp_path / "m", kind="gather")
    with Tracer(folder, data=tmp_path / "runs", timed=False) as tracer, pytest.raises(FeedError) as raised:
        tracer.run({"ids": np.array([99], np.int64)})
    said = str(raised.value)
    assert said.startswith("the main path raised ")
    assert "; the fallback raised " in said
    assert ("Traceback" in said, "\n" in said, len(said) < 600) == (False, False, True)
    assert set(raised.value.errors) == {Which.MAIN, Which.FALLBACK}


def test_the_session_that_ships_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a result is taken; where nothing is timed it is not asked, and no feed is kept."""
    asked = []
    real = tracers.shipped
    monkeypatch.setattr(tracers, "shipped", lambda *given: asked.append(1) or real(*given))  # type: ignore[func-returns-value]
    folder = tiny_folder(tmp_path / "m")
    with Tracer(folder, data=tmp_path / "runs") as tracer:
        tracer.run(folder.golden()[0])
        first = tracer.result().seen[0].trace.shipped
        assert first == tracer.result().seen[0].trace.shipped
    with Tracer(folder, data=tmp_path / "runs", timed=False) as untimed:
        untimed.run(folder.golden()[0])
        assert untimed._feeds == []
    assert asked == [1]


def test_the_session_that_ships_is_never_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what it runs cannot be found out, the traced run counts, and the reason is told in a line."""

    def full(*_: object) -> Shipped:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tracers, "shipped", full)
    folder = tiny_folder(tmp_path / "m")
    with Tracer(folder, data=tmp_path / "runs") as tracer:
        tracer.run(folder.golden()[0])
    (run,) = map(read_run, run_files([tmp_path / "runs"]))
    told = run.seen[0].trace.shipped
    assert told is not None
    assert ("No space left" in told.problems[0], bool(run.seen[0].trace.hits)) == (True, True)


OPEN = (TensorSpec("x", "float32", ("batch", "tokens")), TensorSpec("y", "float32", (3,)))


def test_a_batch_of_nothing_is_not_a_batch_of_one() -> None:
    """Each power of two is a bucket of its own, and so is nothing."""
    found = [bucket(OPEN, {"x": (size, 5)}) for size in (0, 1, 2, 3, 4, 5)]
    assert found == [f"batch<={most} tokens<=8" for most in (0, 1, 2, 4, 4, 8)]


@pytest.mark.parametrize(
    "parts",
    [
        {"shapes": None}, {}, {"shapes": {"x=axb": 1}}, {"shapes": {"x=-3x4": 1}}, {"shapes": {"odd": 1}},
        {"shapes": {"x=1x2": None}}, {"shapes": {"x=1x2": 2.5}}, {"shapes": {"x=1x2": -1}}, {"shapes": ["x=1x2"]},
        {"shapes": {"x=1x2": 1, "x=1x": 1}},
    ],
)  # fmt: skip
def test_an_event_that_is_malformed_is_counted_as_such(tmp_path: Path, parts: dict[str, Any]) -> None:
    """No part of it counts, those around it do, and no other error comes."""
    head = {"schema": "crashpath.event/1", "event": "domain", "model_hash": "m"}
    good = json.dumps(head | {"shapes": {"x=1x2": 3}})
    file = tmp_path / "events.jsonl"
    file.write_text(f'{good}\n{json.dumps(head | parts)}\n{"[" * 100_000} "domain"\n["domain"]\n{good}\n')
    found = asked_for([file], OPEN, "m")
    assert (found.requests, found.unreadable) == ({"batch<=1 tokens<=2": 6}, 3)


def _kept(store: Store, *runs: Run) -> list[bool]:
    with store.write() as session:
        return [store_run(session, run) for run in runs]


def test_a_run_is_in_the_store_once(any_store: Store) -> None:
    """Whoever stores it again is told so, also where it claims another time; what comes back is what was stored."""
    assert _kept(any_store, a_run(), a_run(), replace(a_run(), began=BEGAN.replace(hour=9)), a_run(2)) == [
        True, False, False, True,
    ]  # fmt: skip
    with any_store.read() as session:
        assert stored_runs(session) == (a_run(), a_run(2))


def test_two_writers_store_a_run_once(any_store: Store) -> None:
    """The column refuses the second of two, whatever each saw when it looked."""
    _kept(any_store, a_run())
    with pytest.raises(IntegrityError), any_store.write() as session:
        session.add(CoverageRun(run="run-1", at=BEGAN, release="", model="m", model_hash="h", origin="trace",
                                versions={}, detail={}))  # fmt: skip


def test_a_lost_run_is_kept_and_gives_way_to_the_finished_one(any_store: Store) -> None:
    """It is new once, reports name it with the reason, and it is no run that a report could be of."""
    lost = replace(a_run(), state=State.LOST, seen=(), ended=None, routes={}, domain={}, requests=0)
    assert _kept(any_store, lost, lost) == [True, False]
    with any_store.read() as session:
        (kept,) = summed_runs(session, "a" * 12)
        assert newest_run(session) is None
    assert kept.state is State.LOST
    assert "before it could tell" in add_up([kept], "a" * 12, now=BEGAN).left[0].why
    assert _kept(any_store, a_run(), lost, a_run()) == [True, False, False]
    with any_store.read() as session:
        assert stored_runs(session) == (a_run(),)
    with pytest.raises(ValueError, match="has not ended"):
        _kept(any_store, replace(a_run(5), state=State.RUNNING))


def _many() -> list[Run]:
    """Runs that count, of other artefacts, too old, lost; with other units hit, replaced or placed in each."""
    runs = [a_run(number, hits=number % 4) for number in range(1, 6)]
    main = runs[0].seen[0]
    placed = (Placed("/0:Add", "Add", "CPUExecutionProvider", "CPUExecutionProvider"),)
    gone = {"/2:Add": "it is removed"}
    for at, hits in ((0, {}), (3, {"/1:Add": 7})):
        trace = replace(main.trace, hits=hits, placed=placed, replaced=gone, problems=("a profile was full",))
        runs[at] = replace(runs[at], seen=(Seen(main.declared, trace), runs[at].seen[1]))
    runs.append(replace(a_run(6), seen=a_run(6).seen[:1]))
    runs.append(replace(a_run(7), release="1.3"))
    runs.append(replace(a_run(8, model_hash="b" * 12), began=BEGAN.replace(hour=13)))
    runs.append(replace(a_run(9), began=BEGAN.replace(year=2025), ended=BEGAN.replace(year=2025, minute=9)))
    runs.append(replace(a_run(10), state=State.LOST, seen=(), routes={}, domain={}))
    return runs


@pytest.mark.parametrize("release", [None, "1.4", "1.3"])
def test_the_database_adds_up_as_a_person_would(any_store: Store, release: str | None) -> None:
    """Summed by the database the runs give what they give one by one: shares, gaps, timings, placement, who is left."""
    _kept(any_store, *_many())
    age = timedelta(days=30)
    with any_store.read() as session:
        whole = add_up(stored_runs(session, release=release), "a" * 12, now=BEGAN, max_age=age)
        quick = add_up(
            summed_runs(session, "a" * 12, release=release, since=BEGAN - age), "a" * 12, now=BEGAN, max_age=age
        )
    assert (quick.routes, quick.domain, quick.asked, quick.newest) == (
        whole.routes, whole.domain, whole.asked, whole.newest,
    )  # fmt: skip
    assert [run.id for run in quick.runs] == [run.id for run in whole.runs]
    assert [(left.run.id, left.why) for left in quick.left] == [(left.run.id, left.why) for left in whole.left]
    assert len(quick.paths) == len(whole.paths) == 2
    for one, other in zip(quick.paths, whole.paths, strict=True):
        assert (one.path, one.units, one.hits, one.timings) == (other.path, other.units, other.hits, other.timings)
        assert one.uncovered() == other.uncovered()
    problems = [[seen.trace.problems for seen in run.seen] for run in quick.runs]
    assert problems == [[seen.trace.problems for seen in run.seen] for run in whole.runs]


def test_what_is_expired_still_declares(any_store: Store) -> None:
    """Where no run counts any more the newest of these artefacts tells their units, and no hit of them."""
    _kept(any_store, a_run(1), a_run(2), a_run(3, model_hash="b" * 12))
    with any_store.read() as session:
        runs = summed_runs(session, "a" * 12, since=BEGAN.replace(year=2027))
    assert [run.id for run in runs if run.seen] == ["run-2"]
    assert [one.declared for one in runs[1].seen] == [one.declared for one in a_run().seen]
    assert [dict(one.trace.hits) for one in runs[1].seen] == [{}, {}]


def test_the_most_that_a_run_may_say_breaks_no_report(tmp_path: Path, any_store: Store) -> None:
    """Runs at every limit are read, stored and added up, to the unit, by either database."""
    most = runparts.MOST
    long = "ü" * 1250
    start = a_run(units=1)
    trace = replace(start.seen[0].trace, hits={"/0:Add": most}, timings=(Timing(Which.MAIN, long, 0, most, 1e12),))
    seen = (Seen(Declared(Which.MAIN, (*start.seen[0].declared.units, Unit(Kind.NODE, long, long))), trace),)
    for number in range(5):
        run = replace(
            start, id=f"{number}{long}"[:1250], requests=most, seen=seen, release=long, model_hash=long, model=long,
            routes={long: most}, domain={long: most},
        )  # fmt: skip
        assert _kept(any_store, read_run(RunFile(tmp_path, replace(run, id="a")).finish(run))) == [True]
    with any_store.read() as session:
        runs = summed_runs(session, long)
        assert (len(stored_runs(session)), newest_run(session)) == (5, replace(runs[-1], seen=(), routes={}, domain={}))
    covered = add_up(runs, long, now=BEGAN)
    assert ([run.requests for run in covered.runs], covered.routes) == ([most] * 5, {long: 5 * most})
    assert covered.paths[0].hits == {"/0:Add": 5 * most}


def test_the_newest_run_of_a_model(any_store: Store) -> None:
    """By release and by the model's name; none where there is none."""
    _kept(
        any_store,
        a_run(1),
        replace(a_run(2), model="other"),
        replace(a_run(3), release="1.3", began=BEGAN.replace(hour=8)),
    )
    with any_store.read() as session:
        found = [
            newest_run(session), newest_run(session, model="scores"), newest_run(session, release="1.3"),
            newest_run(session, release="1.3", model="other"),
        ]  # fmt: skip
    assert [run and run.id for run in found] == ["run-2", "run-1", "run-3", None]


def test_a_run_of_the_future_never_counts(any_store: Store) -> None:
    """What ended more than a day from now is left with that reason, and no report is of it by default."""
    ahead = replace(a_run(2, model_hash="b" * 12), ended=BEGAN + timedelta(days=40 * 365))
    later = replace(ahead, id="run-3", began=BEGAN + timedelta(days=2), ended=BEGAN + timedelta(days=3))
    same = replace(a_run(4, hits=3), ended=BEGAN + timedelta(days=1, seconds=1))
    near = replace(a_run(5, hits=2), began=BEGAN + timedelta(hours=23), ended=BEGAN + timedelta(days=1))
    _kept(any_store, a_run(1), ahead, later, same, near)
    with any_store.read() as session:
        newest = newest_run(session, now=BEGAN)
        for runs in (stored_runs(session), summed_runs(session, "a" * 12, now=BEGAN)):
            covered = add_up(runs, "a" * 12, now=BEGAN)
            assert [run.id for run in covered.runs] == ["run-1", "run-5"]
            assert covered.paths[0].hits == {"/0:Add": 2, "/1:Add": 1}
            assert covered.newest == near.ended
            (left,) = [one.why for one in covered.left if one.run.id == "run-4"]
            assert left == "it says that it ended on 2026-03-02, which is yet to come; set that clock right"
        (future,) = [run for run in summed_runs(session, "b" * 12, now=BEGAN) if run.seen]
    assert newest is not None
    assert (newest.id, future.id) == ("run-5", "run-3")


def test_ids_of_runs_of_an_older_store(store_url: str) -> None:
    """The upgrade gives each traced run its id, keeps hits, those of drills, too, and one of two that are the same."""
    engine = connect(store_url, create=True)
    with engine.execution_options(crashpath_writer=True).begin() as connection:
        migrate.migrate(connection, "0007")
        for id, detail in (
            (1, {"run": "r1"}),
            (2, {"run": "r1"}),
            (3, {"policy": "off"}),
            (4, {"run": "r2"}),
            (5, {"run": 7}),
        ):
            connection.execute(
                text(
                    "INSERT INTO coverage_run (id, at, release, model, model_hash, origin, versions, detail) VALUES "
                    "(:id, '2026-01-01 00:00:00.000000', '', 'm', 'h', 'trace', '{}', :detail)"
                ),
                {"id": id, "detail": json.dumps(detail)},
            )
            connection.execute(
                text(
                    "INSERT INTO coverage_hit (run_id, path, kind, unit, hits, counted) "
                    "VALUES (:id, '', 'route', 'a', 1, true)"
                ),
                {"id": id},
            )
        connection.execute(text("INSERT INTO project VALUES (1, 'old', '2026-01-01 00:00:00.000000', 'ab12', NULL)"))
    engine.dispose()
    upgrade.upgrade(store_url, now=BEGAN)
    with open_store(store_url) as store, store.read() as session:
        assert session.execute(text("SELECT id, run FROM coverage_run ORDER BY id")).all() == [
            (1, "r1"), (3, None), (4, "r2"), (5, None),
        ]  # fmt: skip
        assert session.execute(text("SELECT run_id FROM coverage_hit ORDER BY run_id")).all() == [
            (1,),
            (3,),
            (4,),
            (5,),
        ]


def test_the_target_is_blamed_for_what_it_did_alone(tmp_path: Path) -> None:
    """A drawing that cannot be written names its file; one that cannot be made names the feed, and why."""
    folder = tiny_folder(tmp_path / "m")
    feed = golden_feed(folder)
    target = tmp_path / "none" / "one.json"
    with pytest.raises(InputError, match=r"one\.json cannot be written: No such file"):
        drawn(folder, feed, ("CPUExecutionProvider",), target)
    target = tmp_path / "one.json"
    folder.fallback.unlink()
    with pytest.raises(InputError, match=r"golden\.npz cannot be drawn"):
        drawn(folder, feed, ("CPUExecutionProvider",), target)
    assert not target.exists()


def test_a_folder_that_cannot_be_traced_is_told_in_a_sentence(tmp_path: Path) -> None:
    """An artefact that is broken is no defect of crashpath: the folder is named, with the reason, in one line."""
    folder = tiny_folder(tmp_path / "m")
    folder.fallback.write_bytes(b"no archive")
    with pytest.raises(InputError, match="cannot be traced") as raised:
        traced(folder, [golden_feed(folder)], (), ("CPUExecutionProvider",), "")
    assert (str(folder.path) in str(raised.value), "\n" in str(raised.value)) == (True, False)


def test_each_path_that_fails_on_a_feed_is_named(tmp_path: Path) -> None:
    """A feed on which both fail is one line with both errors; the others count."""
    folder = tiny_folder(tmp_path / "m", kind="gather")
    bad = Feed("bad.npz", {"ids": np.array([99], np.int64)})
    run, (told,) = traced(folder, [golden_feed(folder), bad], (), ("CPUExecutionProvider",), "")
    assert told.startswith("bad.npz: the main path raised ")
    assert "; the fallback raised " in told
    assert run.seen[0].trace.hits
    assert run.requests == 2
