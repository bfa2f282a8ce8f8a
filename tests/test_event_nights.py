"""Nights over the runtime's event files: every failure one crash, every attempt counted once."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from rich.console import Console
from sqlalchemy import select

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.summary import print_summary
from crashpath.dashboard.testing import a_night
from crashpath.ingest.attempts import load_attempts
from crashpath.ingest.event_attempts import AttemptCount, attempt_counts
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.model import Facts
from crashpath.ingest.queries import quarantine
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster, Crash, Signature, Variant
from crashpath.runtime.errors import FAILURES

DAY = date(2026, 2, 1)
NOW = datetime(2026, 2, 2, tzinfo=UTC)
COHORT = {"release": "2.1.0", "platform": "linux", "model": "bert", "host": "node-1", "pid": 4711}
BASE = {"schema": "crashpath.event/1", "at": "2026-02-01T10:00:00.000Z"} | COHORT
LANE = json.dumps(BASE | {"event": "lane", "path": "ort", "change": "loaded"})


def failure(number: int, failure_class: str = "oom_host", **more: object) -> str:
    """One failure event."""
    return json.dumps(
        BASE
        | {
            "event": "failure", "attempt_id": f"s1-{number}", "unit": "request", "phase": "infer", "path": "ort",
            "class": failure_class, "type": "HostMemory", "message": "the worker was killed while it ran",
            "route": f"infer:{failure_class} -> fallback:answered", "answered": True,
        }
        | more
    )  # fmt: skip


def attempts(batch: str, count: int = 100, failures: int = 1, **more: object) -> str:
    """One event of counts."""
    told = {"attempts": count, "failures": failures, "unanswered": 0, "rerouted": 2, "batch_id": batch}
    return json.dumps(BASE | {"event": "attempts", "unit": "request", "to": "2026-02-01T10:00:10Z"} | told | more)


def write(path: Path, lines: Sequence[str], mode: str = "w") -> Path:
    """Write whole lines."""
    with path.open(mode) as file:
        file.write("".join(f"{line}\n" for line in lines))
    return path


def counted(store: Store) -> list[tuple[str, str, int, int | None, int | None, str]]:
    """Unit, release, attempts, failures, rerouted, origin of what is to be counted."""
    with store.read() as session:
        return [(c.unit, c.release, c.attempts, c.failures, c.rerouted, c.via) for c in attempt_counts(session)]


def test_a_night_says_by_whom_attempts_were_told(store: Store, tmp_path: Path) -> None:
    """The rows of a file and what events told are two figures, in text and as JSON; none is called 0 rows."""
    events = write(tmp_path / "events.jsonl", [LANE, attempts("b1", 1200)])
    rows = tmp_path / "rows.csv"
    rows.write_text("unit,day,release,platform,attempts,failures\nrequest,2026-02-01,2.1.0,linux,1000,9\n")
    for options, told in (
        (NightOptions(), "1,200 told by events"),
        (NightOptions(attempts=str(rows)), "1 row of a file"),
        (NightOptions(), "none told"),
    ):
        night = a_night(store, [events], options)
        out = io.StringIO()
        print_summary(night, Console(file=out, width=80))
        assert re.search(rf"^attempts +{told} *$", out.getvalue(), re.MULTILINE), out.getvalue()
        assert (night.document()["attempts"], night.document()["events"]["attempts"]) == (
            1 if "row" in told else 0,
            1200 if "events" in told else 0,
        )


def test_a_failure_is_one_crash_of_the_class_that_it_names(store: Store, tmp_path: Path) -> None:
    """Each class comes out as the cluster's class, and the crash has the event's time, place, phase and attempt."""
    lines = [failure(i, one.failure_class, type=one.__name__) for i, one in enumerate(FAILURES)]
    night = a_night(store, [write(tmp_path / "events.jsonl", [LANE, *lines, attempts("b1")])])
    assert (night.status, night.records, night.new_crashes, night.quarantined) == ("complete", 14, 14, 0)
    assert (night.events, night.attempts_told) == (16, 100)
    assert dict(night.classes) == {one.failure_class: 1 for one in FAILURES}
    with store.read() as session:
        crash = session.scalars(select(Crash).where(Crash.attempt_id == "s1-0")).one()
        assert crash.at == datetime(2026, 2, 1, 10, tzinfo=UTC)
        assert (crash.release, crash.platform, crash.model, crash.path) == ("2.1.0", "linux", "bert", "ort")
        assert (crash.phase, crash.unit, crash.outcome, crash.format) == (
            "infer",
            "request",
            "contained",
            "runtime_event",
        )
        assert crash.host_key == store.key("node-1")
        assert (crash.root_rule, crash.cue_class, crash.at_inferred) == ("runtime-event", "oom_host", False)


def test_attempts_add_up_and_each_batch_counts_once(store: Store, tmp_path: Path) -> None:
    """Appended batches add; the same file again, copied or rotated, adds nothing."""
    file = write(tmp_path / "events.jsonl", [failure(1), attempts("b1"), attempts("b2", 50, 0)])
    a_night(store, [file])
    assert counted(store) == [("request", "2.1.0", 150, 1, 4, "events")]
    write(file, [attempts("b3", 7, 0), failure(2)], "a")
    shutil.copy(file, tmp_path / "copied.jsonl")
    night = a_night(store, [file, tmp_path / "copied.jsonl"])
    assert (counted(store), night.attempts_told) == ([("request", "2.1.0", 157, 1, 6, "events")], 7)
    file.rename(tmp_path / "events.jsonl.1")
    write(file, [attempts("b4", 3, 0), LANE])
    night = a_night(store, [tmp_path / "events.jsonl.1", file])
    assert (counted(store), night.new_crashes) == ([("request", "2.1.0", 160, 1, 8, "events")], 0)
    assert night.crashes == 4  # the copy is a source of its own: its crashes are told twice, its attempts are not


def test_an_event_that_was_half_written_is_read_when_it_is_whole(store: Store, tmp_path: Path) -> None:
    """A line without its end is in quarantine until the rest of it is there, and then is no problem any more."""
    file = write(tmp_path / "events.jsonl", [LANE, attempts("b1")])
    line = attempts("b2")
    with file.open("a") as out:
        out.write(line[:200])
    a_night(store, [file])
    with store.read() as session:
        assert [one.reason for one in quarantine(session)] == ["an event that is cut short or is no JSON"]
    with file.open("a") as out:
        out.write(line[200:] + "\n")
    a_night(store, [file])
    with store.read() as session:
        assert quarantine(session) == ()
    assert counted(store) == [("request", "2.1.0", 200, 2, 4, "events")]


def test_malformed_lines_are_held_and_named(store: Store, tmp_path: Path) -> None:
    """Whatever is no event in an event file goes to quarantine with its reason; events around it are read."""
    bad = [attempts("b2", -5), '{"schema":"crashpath.event/1","event":"fail', "not JSON at all", '{"level": "error"}']
    night = a_night(store, [write(tmp_path / "events.jsonl", [failure(1), *bad, "", attempts("b1")])])
    assert (night.status, night.quarantined, night.new_crashes) == ("partial", 4, 1)
    assert counted(store) == [("request", "2.1.0", 100, 1, 2, "events")]
    with store.read() as session:
        assert sorted(one.reason for one in quarantine(session)) == [
            "an event that is cut short or is no JSON",
            "attempts is not a whole number from 0",
            "no event in an event file",
            "no event in an event file",
        ]


def test_events_among_log_lines(store: Store, tmp_path: Path) -> None:
    """A container's output may hold both: the log's failures and the events are read, neither goes into the other."""
    trace = ["Traceback (most recent call last):", '  File "/srv/app.py", line 3, in load_model', "    run()"]
    lines = [
        LANE,
        "INFO starting",
        trace[0],
        failure(1),
        *trace[1:],
        "ValueError: operands could not be broadcast",
        LANE,
    ]
    file = write(tmp_path / "server.log", [*lines, attempts("b1"), "INFO done"])
    night = a_night(store, [file])
    assert (night.status, night.new_crashes, night.quarantined, night.attempts_told) == ("complete", 2, 0, 100)
    write(file, [*trace, "MemoryError: std::bad_alloc", failure(2), attempts("b2")], "a")
    night = a_night(store, [file])
    assert (night.crashes, night.attempts_told) == (4, 100)
    with store.read() as session:
        types = sorted(session.scalars(select(Variant.root_type).join(Crash, Crash.variant_id == Variant.id)))
    assert types == ["HostMemory", "HostMemory", "MemoryError", "ValueError"]


def test_facts_of_the_place_fill_what_an_event_leaves_out(store: Store, tmp_path: Path) -> None:
    """An event goes before the flags; where it is silent, they speak."""
    file = write(tmp_path / "events.jsonl", [failure(1, release="", model=None)])
    a_night(store, [file], NightOptions(feed=FeedOptions(facts=Facts(release="9", platform="arm", model="m"))))
    with store.read() as session:
        crash = session.scalars(select(Crash)).one()
        assert (crash.release, crash.platform, crash.model) == ("9", "linux", "m")


def test_killed_anywhere_and_run_again(tmp_path: Path) -> None:
    """kill -9 while attempts are being added, again and again: in the end each batch is in the sums once."""
    lines = [line for i in range(4000) for line in (failure(i), attempts(f"b{i}", 10, 1))]
    file = write(tmp_path / "events.jsonl", lines)
    url = f"sqlite:///{tmp_path}/killed.db"
    with open_store(url) as store:
        command = [sys.executable, "-m", "crashpath.dashboard.testing", url, str(file)]
        seen = 0
        for _ in range(3):
            child = subprocess.Popen(command)
            try:
                deadline = time.monotonic() + 120
                while child.poll() is None and time.monotonic() < deadline:
                    now = sum(row[2] for row in counted(store))
                    if now > seen:
                        seen = now
                        break
                    time.sleep(0.02)
            finally:
                child.kill()
                child.wait()
        assert 0 < seen < 40_000, "no night was killed while it added"
        a_night(store, [file])
        assert counted(store) == [("request", "2.1.0", 40_000, 4000, 8000, "events")]
        with store.read() as session:
            assert len(session.scalars(select(Crash.attempt_id).distinct()).all()) == 4000
            assert len(session.scalars(select(Crash.id)).all()) == 4000


def test_a_file_stands_for_its_cohort_and_events_for_the_others(any_store: Store, tmp_path: Path) -> None:
    """Attempts of a file and of events are never added where they may be the same; both rows stay in the store."""
    store = any_store
    other = attempts("b2", 70, 0, release="3.0")
    later = attempts("b3", 9, 0, to="2026-02-02T00:00:01Z")
    a_night(
        store, [write(tmp_path / "events.jsonl", [attempts("b1"), other, later, attempts("b4", 5, 0, unit="load")])]
    )
    told = tmp_path / "a.csv"
    told.write_text("unit,day,release,platform,attempts,failures\nrequest,2026-02-01,2.1.0,linux,1000,9\n")
    load_attempts(store, str(told), now=NOW)
    load_attempts(store, str(told), now=NOW)
    expected = [
        AttemptCount("load", DAY, "2.1.0", "linux", "bert", "unknown", 5, 0, 0, 2, None, None, "events"),
        AttemptCount("request", DAY, "2.1.0", "linux", "unknown", "unknown", 1000, 9, None, None, None, None, "file"),
        AttemptCount("request", DAY, "3.0", "linux", "bert", "unknown", 70, 0, 0, 2, None, None, "events"),
        AttemptCount("request", NOW.date(), "2.1.0", "linux", "bert", "unknown", 9, 0, 0, 2, None, None, "events"),
    ]
    with store.read() as session:
        by_day = sorted(expected, key=lambda c: (c.unit, c.day, c.release))
        assert list(attempt_counts(session)) == by_day
        assert list(attempt_counts(session, releases=["3.0"])) == [expected[2]]
        assert list(attempt_counts(session, unit="load")) == [expected[0]]


@pytest.mark.parametrize("kind", ["breaker", "lane", "probe", "compare", "answered"])
def test_events_that_inform_give_nothing(store: Store, tmp_path: Path, kind: str) -> None:
    """They are no crashes, and no problem."""
    night = a_night(store, [write(tmp_path / "events.jsonl", [json.dumps(BASE | {"event": kind})] * 3)])
    assert (night.status, night.records, night.quarantined, night.events) == ("complete", 0, 0, 3)
    with store.read() as session:
        assert session.scalars(select(Cluster.id)).all() == session.scalars(select(Signature.id)).all() == []
