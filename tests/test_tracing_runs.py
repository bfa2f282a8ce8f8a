"""Runs that are traced beside sessions, their files and their place in the store: what is lost, and what never is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crashpath.coverage import runfile
from crashpath.coverage.runfile import Run, RunFile, RunFileError, Seen, State, read_run, run_files
from crashpath.coverage.units import Declared, Kind, Shipped, Timing, Trace, Unit
from crashpath.coverage.wholefile import write_whole
from crashpath.runtime.fakelane import FakeLane
from crashpath.runtime.folder import TensorSpec
from crashpath.runtime.session import FallbackSession
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


@pytest.mark.parametrize(
    "spoil",
    [
        _with(versions=[]), _with(seen=None), _with(seen=[[]]), _with(requests=float("inf")), _with(requests=-1),
        _with(requests=2**63), _with(began="2026-03-01T12:00:00"), _with(began=5), _with(state="odd"),
        _with(model=["a"]), _with(release="\ud800"), _with(routes={"a": None}), _with(domain=[1]),
        _in_path(units=[["node", "/0:Add", "Add", "", "", None]] * 2),
        _in_path(units=[["odd", "a", "b", "", "", None]]),
        _in_path(units=[[]]), _in_path(hits=[]), _in_path(timings=[{}]), _in_path(placed=[5]), _in_path(shipped=[]),
    ],
)  # fmt: skip
def test_what_is_no_run_file_is_told_in_a_sentence(tmp_path: Path, spoil: Callable[[dict[str, Any]], None]) -> None:
    """Whatever is wrong with a part of it, the file is named, and no other error comes."""
    path = RunFile(tmp_path, a_run()).finish(a_run())
    raw = json.loads(path.read_bytes())
    spoil(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(RunFileError, match=path.name):
        read_run(path)


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
