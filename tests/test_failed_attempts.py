"""The numerator: attempts that failed, however many records tell of each."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.failed_attempts import FailedAttempts, Windows, failed_attempts
from crashpath.ingest.failed_read import failed_cells, stale_days
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.model import Facts
from crashpath.ingest.store import Store

DAY = date(2026, 2, 1)
USUAL = Windows()
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"


def event(attempt: str, **more: object) -> str:
    """One failure event of a request on 1 February."""
    return json.dumps(
        {
            "schema": "crashpath.event/1", "at": "2026-02-01T10:00:00Z", "event": "failure", "attempt_id": attempt,
            "unit": "request", "phase": "infer", "path": "ort", "class": "native_crash", "type": "NativeCrash",
            "message": "the worker died of SIGSEGV", "route": "x", "answered": True, "release": "2.1.0",
            "platform": "linux", "model": "bert", "host": "node-1", "pid": 1,
        }
        | more
    )  # fmt: skip


def night(store: Store, folder: Path, **files: list[str]) -> None:
    """Run a night over files of these lines."""
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / name.replace("_", ".")).write_text("".join(f"{line}\n" for line in lines))
    a_night(store, [folder])


def found(store: Store, windows: Windows = USUAL, **filters: object) -> list[tuple[str, str, int, int]]:
    """Unit, class, attempts and witnesses."""
    with store.read() as session:
        rows = failed_attempts(session, windows=windows, **filters)  # type: ignore[arg-type]  # of the tests
    return [(row.unit, row.failure_class, row.attempts, row.witnesses) for row in rows]


def test_an_event_and_a_log_of_one_attempt_are_one_failure(any_store: Store, tmp_path: Path) -> None:
    """What the event says stands for both: the log may know neither the release nor the class."""
    log = ["2026-02-02 00:00:01 ERROR attempt_id=a-1 worker: Segmentation fault (core dumped)"]
    night(any_store, tmp_path / "logs", events_jsonl=[event("a-1"), event("a-2", answered=False)], worker_log=log)
    with any_store.read() as session:
        assert failed_attempts(session) == (
            FailedAttempts("request", DAY, "2.1.0", "linux", "native_crash", "other", 2, 1, 1, 3),
        )


def test_both_paths_failed_in_one_attempt(any_store: Store, tmp_path: Path) -> None:
    """Two events of one attempt are one failed attempt, that of the path which failed first."""
    both = [event("a-1", answered=False), event("a-1", answered=False, path="torchscript", **{"class": "oom_host"})]
    night(any_store, tmp_path / "logs", events_jsonl=both)
    assert found(any_store) == [("request", "native_crash", 1, 2)]


def test_a_retry_storm_is_one_failure(any_store: Store, tmp_path: Path) -> None:
    """Without an id, what one process says within a window is one attempt; another process is another."""
    storm = [f"2026-02-01 10:00:{s:02d} ERROR [pid 7] loader: release=1.0 phase=load {OOM}" for s in range(0, 60, 6)]
    other = [f"2026-02-01 10:00:03 ERROR [pid 8] loader: release=1.0 phase=load {OOM}"]
    night(any_store, tmp_path / "logs", a_log=storm, b_log=other)
    with any_store.read() as session:
        assert sum(row.witnesses for row in failed_attempts(session) if row.unit == "load") == 11
    assert [(unit, n) for unit, _, n, _ in found(any_store)] == [("deployment", 2), ("load", 2)]
    assert [(unit, n) for unit, _, n, _ in found(any_store, Windows(load=1))] == [("deployment", 11), ("load", 11)]


def test_a_window_ends_with_its_last_fraction_of_a_second(any_store: Store, tmp_path: Path) -> None:
    """Every database counts whole seconds down: what comes .7 s before the end of a window is in it."""
    last = (datetime(2026, 2, 1, 10) + timedelta(seconds=USUAL.load - 0.3)).isoformat(" ", "milliseconds")
    lines = [f"{at} ERROR [pid 7] loader: release=1.0 phase=load {OOM}" for at in ("2026-02-01 10:00:00.000", last)]
    night(any_store, tmp_path / "logs", a_log=lines)
    assert [(unit, n, w) for unit, _, n, w in found(any_store)] == [("deployment", 1, 2), ("load", 1, 2)]


def test_units_come_from_events_and_phases(any_store: Store, tmp_path: Path) -> None:
    """Loads of a log may be deployments; those of a session are loads; a phase that says neither stands apart."""
    log = [
        f"2026-02-01 1{hour}:00:00 ERROR attempt_id=l-{hour} phase={phase} {OOM}"
        for hour, phase in enumerate(("load", "warmup", "infer", "prepare"))
    ]
    events = [event("e-1", unit="load", phase="load"), event("e-2", phase="prepare")]
    night(any_store, tmp_path / "logs", events_jsonl=events, server_log=log)
    sums: dict[str, int] = {}
    for unit, _, attempts, _ in found(any_store):
        sums[unit] = sums.get(unit, 0) + attempts
    assert sums == {"deployment": 2, "load": 3, "request": 2, "unknown": 1}


def test_days_and_releases_are_those_of_the_attempt(any_store: Store, tmp_path: Path) -> None:
    """An attempt whose witnesses stand on both sides of midnight counts on one day, whatever is asked for."""
    late = "2026-02-02 00:00:01 ERROR attempt_id=a-1 worker: Segmentation fault (core dumped)"
    night(any_store, tmp_path / "logs", events_jsonl=[event("a-1", at="2026-02-01T23:59:59Z")], worker_log=[late])
    assert found(any_store, since=DAY, until=DAY) == [("request", "native_crash", 1, 2)]
    assert found(any_store, since=date(2026, 2, 2)) == []
    assert found(any_store, release="2.1.0") == [("request", "native_crash", 1, 2)]
    assert found(any_store, release="unknown") == []


def cells(store: Store) -> list[tuple[str, str, int, int]]:
    """Unit, class, attempts and witnesses, as a night kept them."""
    with store.read() as session:
        return [(one.unit, one.failure_class, one.attempts, one.witnesses) for one in failed_cells(session)]


def test_a_night_keeps_a_retry_storm_as_one_failure(any_store: Store, tmp_path: Path) -> None:
    """Five hundred records of one attempt are one failure; so are those of one process within a minute."""
    moments = [f"2026-02-01 10:{n // 30:02d}:{n % 30 * 2:02d}" for n in range(500)]
    night(any_store, tmp_path / "named", a_log=[f"{at} ERROR attempt_id=a-1 phase=infer {OOM}" for at in moments])
    assert cells(any_store) == [("request", "oom_device", 1, 500)]
    night(any_store, tmp_path / "not", b_log=[f"{at} ERROR [pid 7] loader: phase=load {OOM}" for at in moments[:30]])
    assert sorted(cells(any_store)) == [
        ("deployment", "oom_device", 1, 30), ("load", "oom_device", 1, 30), ("request", "oom_device", 1, 500)
    ]  # fmt: skip
    with any_store.read() as session:
        assert stale_days(session) == ()


def test_a_night_keeps_an_event_and_a_log_of_one_attempt_as_one_failure(any_store: Store, tmp_path: Path) -> None:
    """Also where the log comes a night later, and where it stands behind midnight."""
    night(any_store, tmp_path / "events", events_jsonl=[event("a-1", at="2026-02-01T23:59:59Z")])
    assert cells(any_store) == [("request", "native_crash", 1, 1)]
    log = ["2026-02-02 00:00:01 ERROR attempt_id=a-1 worker: Segmentation fault (core dumped)"]
    night(any_store, tmp_path / "logs", worker_log=log)
    assert cells(any_store) == [("request", "native_crash", 1, 2)]


@pytest.mark.parametrize(("phase", "units"), [(None, ["unknown"]), ("load", ["deployment", "load"])])
def test_a_kill_that_only_the_kernel_saw_is_counted(
    any_store: Store, tmp_path: Path, phase: str | None, units: list[str]
) -> None:
    """The process could not say anything: its failure has no unit where nothing tells the phase, but it is counted."""
    line = "kernel: [12345.678] Out of memory: Killed process 4121 (python3) total-vm:8000kB, anon-rss:7000kB"
    (tmp_path / "syslog").write_text(f"2026-02-01T10:00:00+00:00 node-1 {line}\n")
    a_night(any_store, [tmp_path / "syslog"], NightOptions(feed=FeedOptions(facts=Facts(release="1.0", phase=phase))))
    assert cells(any_store) == [(unit, "oom_host", 1, 1) for unit in units]
