"""A night over real logs in real files, with the real store."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night, contents
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.lease import Lease
from crashpath.ingest.nights import nights
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import LeaseHeld

PROGRAM = """
import json, sys
def load(path):
    with open(path) as file:
        return json.load(file)
def serve(kind):
    if kind == "missing": load("/opt/models/bert/vocab.json")
    if kind == "shape": raise ValueError("operands could not be broadcast together with shapes (3,4) (5,)")
    if kind == "import": import onnxruntime_extensions_that_is_not_there
serve(sys.argv[1])
"""
KINDS = ("missing", "shape", "import")


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a real program prints when it fails, by kind."""
    program = tmp_path_factory.mktemp("app") / "serve.py"
    program.write_text(PROGRAM)
    return {
        kind: subprocess.run([sys.executable, program, kind], capture_output=True, text=True, check=False).stderr
        for kind in KINDS
    }


@pytest.fixture
def logs(tmp_path: Path, traces: dict[str, str]) -> Path:
    """A folder with a log for each kind, and one with many failures between healthy lines."""
    folder = tmp_path / "logs" / "2.1" / "linux"
    folder.mkdir(parents=True)
    for kind, trace in traces.items():
        (folder / f"{kind}.log").write_text(trace)
    (folder / "busy.log").write_text(_busy(traces, 300))
    return folder


def _busy(traces: dict[str, str], n: int) -> str:
    pieces = []
    for i in range(n):
        stamp = f"2026-03-{1 + i % 28:02d} 10:{i // 60 % 60:02d}:{i % 60:02d},000"
        pieces += [f"{stamp} INFO server: request {i} took 12 ms"] * 3
        pieces += [f"{stamp} ERROR server: request {i} failed", traces[KINDS[i % 3]].rstrip()]
    return "\n".join(pieces) + "\n"


def test_second_run_adds_nothing(store: Store, logs: Path) -> None:
    """The same files once more: every source is skipped, nothing is embedded, nothing is born."""
    first = a_night(store, [logs])
    before = contents(store)
    again = a_night(store, [logs])
    assert first.status == "complete"
    assert first.new_crashes == first.records == 303
    assert first.embedded == first.new_signatures > 0
    assert (again.records, again.new_crashes, again.new_signatures, again.embedded) == (0, 0, 0, 0)
    assert again.skipped == 4
    assert contents(store) == before


def test_a_new_night_embeds_only_what_is_new(store: Store, logs: Path, traces: dict[str, str]) -> None:
    """A new file with known failures and one new one: only the new signature is embedded and clustered."""
    a_night(store, [logs])
    new = traces["missing"] + "\n" + traces["shape"].replace("broadcast together", "aligned")
    (logs / "tonight.log").write_text(new)
    night = a_night(store, [logs])
    assert (night.new_crashes, night.new_signatures, night.embedded) == (2, 1, 1)


def test_a_growing_log_is_read_on(store: Store, logs: Path, traces: dict[str, str]) -> None:
    """What is appended is added; the failure that was open at the old end is not counted twice."""
    log = logs / "missing.log"
    a_night(store, [log])
    with log.open("a") as file:
        file.write("2026-03-01 10:00:00 INFO server: starting again\n" * 40 + traces["import"])
    night = a_night(store, [log])
    assert (night.new_crashes, night.crashes) == (1, 2)


def test_order_of_files_does_not_matter(tmp_path: Path, logs: Path) -> None:
    """The same logs in another order give the same crashes, signatures and clusters."""
    files = sorted(logs.iterdir())
    held = []
    for name, order in (("a", files), ("b", files[::-1])):
        with open_store(f"sqlite:///{tmp_path}/{name}.db") as store:
            a_night(store, order)
            held.append(contents(store))
    assert held[0] == held[1]


POINTS = {
    "begun": "SELECT 1 FROM night WHERE status = 'running' AND id = {night}",
    "some crashes stored": "SELECT 1 FROM crash WHERE night_id = {night}",
    "vectors kept": "SELECT 1 FROM embedding",
}
"""Where a night is killed: a row that is there from then on. What the night still has to do comes after it."""


def _kill_at(point: str, night: int, file: Path, logs: Path) -> None:
    """Run a night in a process of its own and kill it as soon as it has got to a point."""
    child = subprocess.Popen([sys.executable, "-m", "crashpath.dashboard.testing", f"sqlite:///{file}", str(logs)])
    try:
        while child.poll() is None and not _is_at(POINTS[point].format(night=night), file):
            time.sleep(0.02)
    finally:
        child.kill()
    assert child.wait() == -signal.SIGKILL, f"the night was over before it was seen at: {point}"


def _is_at(query: str, file: Path) -> bool:
    if not file.exists():
        return False
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
        try:
            return store.execute(query).fetchone() is not None
        except sqlite3.OperationalError:  # the tables are being made, or the file is locked for a moment
            return False


def test_killed_anywhere_and_run_again(store: Store, tmp_path: Path, logs: Path, traces: dict[str, str]) -> None:
    """kill -9 in the middle of a night, at three points, then a run to the end: nothing is lost, nothing is twice."""
    (logs / "later.log").write_text(_busy(traces, 400))
    file = tmp_path / "killed.db"
    shutil.copy(tmp_path / "crashpath.db", file)  # both are empty so far
    a_night(store, [logs])
    wanted = contents(store)
    for night, point in enumerate(POINTS, start=1):
        _kill_at(point, night, file, logs)
    with open_store(f"sqlite:///{file}") as killed:
        with killed.read() as session:
            assert [night.status for night in nights(session)].count("running") == 1  # the last one, cut off at work
        assert contents(killed) != wanted
        a_night(killed, [logs])
        assert contents(killed) == wanted
        with killed.read() as session:
            assert sorted(night.status for night in nights(session)) == ["complete", *["failed"] * len(POINTS)]


def test_two_nights_at_once(store: Store, logs: Path) -> None:
    """The second night says who is at work, in one sentence, and touches nothing."""
    with Lease(store), pytest.raises(LeaseHeld, match="Another night is writing to this store"):
        a_night(store, [logs])
    assert contents(store).crashes == ()


def test_unreadable_sources_lose_nothing_else(store: Store, logs: Path, tmp_path: Path) -> None:
    """A missing path, a binary file, an empty one, bad bytes: a sentence each, the rest is read, the night partial."""
    (logs / "empty.log").write_bytes(b"")
    (logs / "program.log").write_bytes(Path(sys.executable).resolve().read_bytes()[:4096])
    (logs / "latin.log").write_bytes(b"ERROR caf\xe9 not found in the catalogue of the tokenizer\n")
    night = a_night(store, [logs, tmp_path / "nowhere.log"])
    assert night.status == "partial"
    assert night.empty == 1
    assert night.new_crashes == 304
    assert len(night.problems) == 2
    assert all(problem.count("\n") == 0 and problem.endswith(".") for problem in night.problems)


def test_excluded_files_do_not_make_a_night_partial(store: Store, logs: Path) -> None:
    """Files that a glob excludes, by name or by path, are as if they were not there; all others are read."""
    (logs / "program.bin").write_bytes(Path(sys.executable).resolve().read_bytes()[:4096])
    (logs / "old").mkdir()
    (logs / "old" / "core").write_bytes(b"\x7fELF\0\0")
    assert a_night(store, [logs]).status == "partial"
    night = a_night(store, [logs, logs / "program.bin"], NightOptions(exclude=("*.bin", "old/*")))
    assert (night.status, night.unreadable, night.skipped) == ("complete", 0, 4)
    for glob in ("*/linux/*", str(logs / "*")):
        assert a_night(store, [logs], NightOptions(exclude=(glob,))).note is not None
    assert a_night(store, [logs], NightOptions(exclude=("linux", "BUSY.log", "old"))).unreadable == 2


def test_folder_without_permission(store: Store, logs: Path) -> None:
    """A folder that may not be read is named, and the other paths are read."""
    if os.geteuid() != 0:
        locked = logs / "locked"
        locked.mkdir(mode=0)
        night = a_night(store, [logs, locked])
        assert night.status == "partial"
        return
    code = (
        "import os, sys\nfrom crashpath.ingest.read import expand\nos.setgid(65534); os.setuid(65534)\n"
        "print([f.problem for f in expand([sys.argv[1]])])"
    )
    locked = Path("/tmp") / f"crashpath-locked-{os.getpid()}"
    locked.mkdir(mode=0o700)
    try:
        done = subprocess.run([sys.executable, "-c", code, locked], capture_output=True, text=True, check=False)
    finally:
        locked.rmdir()
    assert "ermission" in done.stdout, done.stderr


def test_facts_come_from_path_and_flags(store: Store, logs: Path) -> None:
    """The path pattern tells release and platform; a flag fills what it does not tell."""
    options = NightOptions(feed=FeedOptions(patterns=("logs/{release}/{platform}/*",)))
    options = replace(options, feed=replace(options.feed, facts=replace(options.feed.facts, model="bert", release="0")))
    a_night(store, [logs], options)
    with store.read() as session:
        from crashpath.ingest.trends import counts

        assert [count.key for count in counts(session, "release")] == ["2.1"]
        assert [count.key for count in counts(session, "model")] == ["bert"]


def _planted() -> Iterator[tuple[str, str]]:
    data = tomllib.loads(Path(__file__).with_name("planted.toml").read_text())
    for one in data["planted"]:
        yield one["value"], one["line"]


def test_no_secret_reaches_the_store(store: Store, tmp_path: Path, traces: dict[str, str]) -> None:
    """Planted secrets and personal data, in context and in root lines, are nowhere in the store's bytes."""
    log = tmp_path / "secrets.log"
    planted = list(_planted())
    assert len(planted) >= 50
    log.write_text("".join(f"{line}\n{traces['shape']}ValueError: {line}\nERROR {line}\n" for _, line in planted))
    night = a_night(store, [log])
    assert night.redactions >= len(planted)
    store.close()
    raw = b"".join(file.read_bytes() for file in tmp_path.glob("crashpath.db*"))
    found = [value for value, _ in planted if value.encode() in raw]
    assert found == []
    with store.read() as session:
        from crashpath.ingest.details import show_signature
        from crashpath.ingest.trends import counts

        texts = [
            example.text
            for count in counts(session, "signature")
            for example in show_signature(session, count.key, examples=50).examples
        ]
    assert texts
    assert [value for value, _ in planted if any(value in text for text in texts)] == []


def test_a_broken_sidecar_makes_a_night_partial_and_loses_nothing(store: Store, logs: Path) -> None:
    """The log beside it is read, and the night names the file; one with a key of no use costs advice alone."""
    log = logs / "missing.log"
    beside = log.with_name("missing.log.meta.json")
    beside.write_text("{not json")
    summary = a_night(store, [log])
    assert (summary.status, summary.sources, summary.unreadable) == ("partial", 1, 0)
    assert summary.new_crashes == 1
    assert f"{beside.name} is not JSON" in summary.problems[0]
    beside.write_text('{"modle": "tagger"}')
    log.write_text(log.read_text() * 2)
    summary = a_night(store, [log])
    assert (summary.status, summary.problems) == ("complete", ())
    assert [one.rpartition("/")[2] for one in summary.advice] == [
        f"{beside.name} has a key modle that is no fact; did you mean model?"
    ]
    assert summary.document()["advice"] == list(summary.advice)
