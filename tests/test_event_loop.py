"""The loop closes: what a real session told of a real death is what a night knows of the field."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from crashpath.dashboard.testing import a_night
from crashpath.ingest.event_attempts import attempt_counts
from crashpath.ingest.failed_attempts import failed_attempts
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster, Crash, Signature, Variant
from crashpath.runtime.opening import open_session
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path as Served
from crashpath.runtime.values import Phase, Strike

FEED = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}


@pytest.mark.parametrize(
    ("struck", "failure_class", "printed"),
    [
        (
            "killed",
            "oom_host",
            "kernel: [8123.4] Memory cgroup out of memory: Killed process {pid} (python3) total-vm:5242880kB, "
            "anon-rss:4194304kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:9000kB oom_score_adj:0",
        ),
        (
            "segmentation_fault",
            "native_crash",
            "systemd-coredump[77]: Process {pid} (python3) of user 0 dumped core.",
        ),
    ],
    ids=["killed", "segmentation_fault"],
)
def test_a_dead_worker_comes_back_as_one_failed_attempt(
    store: Store, tmp_path: Path, struck: str, failure_class: str, printed: str
) -> None:
    """The main worker really dies in the midst of a request: the request is answered; its event, and the line in which
    the system's log names the dead process, are two crashes and one failed attempt among those that were really made.

    The line has the kernel's or systemd's words and knows nothing of attempts: who died is all that joins the two.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    folder = tiny_folder(tmp_path / "model", kind="affine")
    strike = Strike(f"crashpath.coverage.strikes_process:{struck}", Phase.INFER)
    with open_session(folder, isolation="process", events=logs / "events.jsonl", release="2.1.0", sample=0) as session:
        assert session.run(FEED).path is Served.MAIN
        pid = session.facts().main.pid
        with session.armed(Served.MAIN, strike):
            answer = session.run(FEED, deadline_ms=60_000)
        assert answer.path is Served.FALLBACK
    assert answer.cause is not None
    assert answer.cause.worker_pid == pid
    syslog(logs / "syslog", printed.format(pid=pid))
    night = a_night(store, [logs])
    assert (night.status, night.quarantined) == ("complete", 0)
    with store.read() as read:
        query = (
            select(Crash.format, Cluster.failure_class)
            .join(Variant, Variant.id == Crash.variant_id)
            .join(Signature, Signature.id == Variant.signature_id)
            .join(Cluster, Cluster.id == Signature.cluster_id)
            .where(Crash.attempt_id == answer.request_id)
        )
        witnesses = {str(kind): named for kind, named in read.execute(query)}
        assert witnesses["runtime_event"] == answer.cause.failure_class == failure_class
        assert len(witnesses) == 2
        failed = [row for row in failed_attempts(read) if row.unit == "request"]
        assert [(row.release, row.failure_class, row.attempts, row.contained, row.witnesses) for row in failed] == [
            ("2.1.0", failure_class, 1, 1, 2)
        ]
        counts = {row.unit: row for row in attempt_counts(read, releases=["2.1.0"])}
    assert (counts["request"].attempts, counts["request"].failures, counts["request"].unanswered) == (2, 1, 0)
    assert counts["load"].attempts >= 2
    assert a_night(store, [logs]).new_crashes == 0


def test_a_worker_that_dies_idle_is_a_crash_of_no_request(store: Store, tmp_path: Path) -> None:
    """A kill between two requests is told, with whose it was; it is a crash of the field and no failed request."""
    logs = tmp_path / "logs"
    logs.mkdir()
    folder = tiny_folder(tmp_path / "model", kind="affine")
    with open_session(folder, isolation="process", events=logs / "events.jsonl", release="2.1.0", sample=0) as session:
        assert session.run(FEED).path is Served.MAIN
        pid = session.facts().main.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 30
        while session.facts().figures.loads.attempts < 3 and time.monotonic() < end:
            time.sleep(0.05)
        assert session.run(FEED, deadline_ms=60_000).outputs["y"].shape == (2, 3)
    told = [json.loads(line) for line in (logs / "events.jsonl").read_text().splitlines()]
    (death,) = [one for one in told if one["event"] == "failure"]
    assert (death["unit"], death["worker_pid"], death["class"], death["path"]) == (None, pid, "oom_host", "ort")
    syslog(logs / "syslog", f"kernel: Out of memory: Killed process {pid} (python3) total-vm:1kB, anon-rss:1kB")
    night = a_night(store, [logs])
    assert (night.status, night.new_crashes) == ("complete", 2)
    with store.read() as read:
        failed = failed_attempts(read)
        assert [(row.unit, row.failure_class, row.attempts, row.witnesses) for row in failed] == [
            ("unknown", "oom_host", 1, 2)
        ]
        counts = {row.unit: row for row in attempt_counts(read, releases=["2.1.0"])}
    assert (counts["request"].attempts, counts["request"].failures) == (2, 0)


def syslog(path: Path, text: str) -> None:
    """Write a line of this host's system log, now."""
    path.write_text(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f+00:00} {platform.node()} {text}\n")
