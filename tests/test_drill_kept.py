"""A run of drills is kept as it goes, however it ends; what libraries write meanwhile stays off the terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from crashpath.coverage.drillcells import CELLS, Cell, DrillResult, none_apply
from crashpath.coverage.drillkept import Kept, Planned
from crashpath.coverage.drillsaid import kept_apart
from crashpath.coverage.drillstore import Evidence, drill_policies, drill_routes
from crashpath.coverage.field import last_drills
from crashpath.dashboard.cli import run
from crashpath.dashboard.drill_work import Ending, ended_in_order
from crashpath.dashboard.exits import Exit
from crashpath.ingest.store import open_store
from crashpath.ingest.tables_evidence import CoverageHit, CoverageRun, Drill

AT = datetime(2026, 1, 2, tzinfo=UTC)
MANY = ["--fault", "model-killed", "--fault", "model-array-refused", "--fault", "model-abort", "--isolation", "process"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store of the test's own."""
    return f"sqlite:///{tmp_path}/drills.db"


def _takes_signals() -> None:
    """Whatever the tests' own process ignores, as a shell's job in the background does."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)


@pytest.fixture
def _interrupted() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def _drilling(tmp_path: Path, url: str, *more: str, errors: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own; what it leaves behind is below the test's folder."""
    command = [sys.executable, "-P", "-m", "crashpath.dashboard.cli", "drill", "--db", url, *more]
    (tmp_path / "tmp").mkdir()
    env = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PYTHONUNBUFFERED": "1", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env, cwd=tmp_path) as process:
        try:
            yield process
        finally:
            process.kill()


def _after(process: subprocess.Popen[str], drills: int) -> str:
    """Read what is printed until so many drills were told."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if text.count(" green\n") >= drills:
            break
    return text


def _stored(url: str) -> tuple[CoverageRun, int, int]:
    """The one run, how many drills it has, and how many routes."""
    with open_store(url, create=False) as store, store.read() as session:
        kept = session.scalars(select(CoverageRun)).one()
        drills = session.scalar(select(func.count()).where(Drill.run_id == kept.id)) or 0
        routes = session.scalar(select(func.count()).where(CoverageHit.run_id == kept.id)) or 0
        assert len(last_drills(session, model_hash=kept.model_hash)) == drills
        assert len(drill_routes(session, kept.model_hash)) == routes
        assert drill_policies(session, kept.model_hash) == {"breaker"}
        return kept, drills, routes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_keeps_what_was_driven(tmp_path: Path, url: str, number: signal.Signals) -> None:
    """Ended in its middle, the command sums up what was driven, says how far it came, and keeps it; logs, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background hands it on
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with _drilling(tmp_path, url, *MANY, "--release", "2.1.0", "--logs", str(tmp_path / "logs")) as process:
        out = _after(process, 2)
        process.send_signal(number)
        rest, err = process.communicate(timeout=120)
    out += rest
    assert process.returncode == Exit.FAILED
    kept, drills, routes = _stored(url)
    assert drills == out.count(" green\n")
    assert 2 <= drills < 9
    told = f"ended early: {drills} of 9 driven; these are kept"
    assert out.splitlines()[-1] == told
    assert f"{drills} drills: {drills} green" in out
    assert "GREEN:" not in out
    assert err == f"crashpath: Stopped: {told}.\n"
    assert kept.detail["ended"] == told
    assert kept.detail["planned"] == {"drills": 9, "mixes": 0}
    assert "onnxruntime" in kept.versions
    assert kept.release == "2.1.0"
    assert routes > 0
    assert (tmp_path / "logs" / "labels.csv").is_file()
    assert not list((tmp_path / "tmp").glob("drill-*"))


def test_a_run_that_is_killed_keeps_what_was_driven(tmp_path: Path, url: str) -> None:
    """SIGKILL leaves all that was told before, with its routes, and a run that does not say that it is whole."""
    with _drilling(tmp_path, url, *MANY) as process:
        _after(process, 2)
        process.kill()
        process.wait(60)
    kept, drills, routes = _stored(url)
    assert 2 <= drills < 9
    assert kept.detail["ended"] == f"unfinished: {drills} of 9 driven"
    assert "onnxruntime" in kept.versions
    assert routes > 0


def test_a_document_of_a_run_that_is_ended(tmp_path: Path, url: str) -> None:
    """With `--json` it is one document still, of what was driven, and says that it ended early."""
    with _drilling(tmp_path, url, *MANY, "--json") as process:
        with open_store(url) as store:
            for _ in range(1200):
                with store.read() as session:
                    if session.scalars(select(Drill.id)).first() is not None:
                        break
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.1)
        process.terminate()
        out, _ = process.communicate(timeout=120)
    assert process.returncode == Exit.FAILED
    document = json.loads(out)
    _, drills, _ = _stored(url)
    assert len(document["drills"]) == drills
    assert document["ended_early"] == f"ended early: {drills} of 9 driven; these are kept"


def test_a_whole_run_says_so(url: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run that came to its end is whole; what a library writes in this process is in the drill's log, without
    colours, and not on the terminal.
    """
    logs = tmp_path / "logs"
    code = run(
        ["drill", "--fault", "model-request-memory", "--isolation", "in_process", "--db", url, "--logs", str(logs)]
    )
    told = capfd.readouterr()
    assert code == Exit.DONE
    assert told.err == ""
    assert "onnxruntime" not in told.out
    text = (logs / "model-request-memory-infer-in_process.log").read_text(encoding="utf-8")
    assert "[E:onnxruntime" in text
    assert "\x1b" not in text
    kept, drills, _ = _stored(url)
    assert (kept.detail["ended"], drills) == ("whole", 1)


def test_progress_on_a_terminal(tmp_path: Path, url: str) -> None:
    """Where standard error is a terminal, a bar says there how many drills there are; the output is lines alone."""
    terminal, other = pty.openpty()
    with _drilling(tmp_path, url, *MANY[:2], "--isolation", "process", errors=other) as process:
        os.close(other)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:  # nobody has it open any more
                break
            if not part:
                break
            shown += part
        out = process.stdout.read() if process.stdout else ""
        assert process.wait(60) == Exit.DONE
    os.close(terminal)
    assert b"3/3" in shown
    assert b"GREEN" not in shown
    assert "\x1b" not in out
    assert out.count(" green\n") == 3


def _result(fault: str) -> DrillResult:
    cells = tuple(Cell(one.id, True) for one in CELLS)
    return DrillResult(fault, "hang", "infer", "process", "breaker", "ort", cells, requests=2)


def test_a_locked_store_gets_it_later(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drill that could not be stored, as others held the store, is stored with the next one, once."""
    monkeypatch.setattr("crashpath.ingest.store.BUSY_MS", 50)
    evidence = Evidence(AT, "1.0", "tiny", "abc", "breaker", ())
    with open_store(url) as store:
        kept = Kept(store, evidence, Planned(3))
        kept.add(_result("a"), AT, (), (("main", 2),))
        with closing(sqlite3.connect(tmp_path / "drills.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            kept.add(_result("b"), AT, (), (("main", 4),))
            assert kept.early == "ended early: 2 of 3 driven; the last of them could not be kept"
        null = DrillResult("c", "hang", "infer", "process", "breaker", "ort", none_apply("no device"))
        kept.add(null, AT, (("torch", "2"),), (("main", 5), ("none", 0)))
        assert kept.early == "ended early: 2 of 3 driven; these are kept"
        kept.end(AT, (("main", 5), ("fallback", 1)), whole=True)
        with store.read() as session:
            assert session.scalars(select(Drill.fault).order_by(Drill.id)).all() == ["a", "b"]
            stored = session.scalars(select(CoverageRun)).one()
            assert (stored.detail["ended"], stored.versions) == ("whole", {"torch": "2"})
            assert [one["fault"] for one in stored.detail["not_driven"]] == ["c"]
            assert drill_routes(session, "abc") == {"main": 5, "fallback": 1}


def test_a_run_of_nothing_is_none(url: str) -> None:
    """Where it ended before the first drill, no run is stored."""
    with open_store(url) as store:
        kept = Kept(store, Evidence(AT, "1.0", "tiny", "abc", "breaker", ()), Planned(3))
        kept.end(AT, (), whole=False)
        assert kept.early == "ended early: 0 of 3 driven"
        with store.read() as session:
            assert session.scalars(select(CoverageRun)).all() == []


@pytest.mark.usefixtures("_interrupted")
def test_what_is_held_is_ended_first() -> None:
    """A signal that comes in the middle of a transaction ends the run after it; elsewhere at once."""
    done: list[object] = []

    def hold(ending: Ending) -> None:
        with ending.held():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("held")
        done.append("too late")

    def go_on() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        done.extend(range(1_000_000))

    with ended_in_order() as ending:
        with pytest.raises(KeyboardInterrupt):
            hold(ending)
        with pytest.raises(KeyboardInterrupt):
            go_on()
    assert done == ["held"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("_interrupted")
def test_what_is_ignored_stays_so() -> None:
    """A job of a shell in the background takes no Ctrl-C that is meant for another one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ended_in_order():
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_descriptor_two_is_kept_apart(capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever writes to descriptor 2 is taken once, and what no drill wrote is put aside; later it is as before."""
    with kept_apart() as said:
        os.write(2, b"\x1b[1;31mfirst\x1b[m\n")
        said.put_aside()
        subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('second')"], check=True)
        assert said.taken() == "second"
        assert said.taken() == ""
        said.terminal.write("seen\n")
    os.write(2, b"after\n")
    assert said.outside == "first\n"
    assert capfd.readouterr().err == "seen\nafter\n"
