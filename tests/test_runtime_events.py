"""The runtime's events as ingest reads them, held against the schema that the runtime owns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy import select, update

from crashpath.dashboard.summary import NightSummary
from crashpath.dashboard.testing import a_night
from crashpath.ingest import runtime_events as read
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.event_attempts import MOST_SUM
from crashpath.ingest.event_lines import event_in, only_events
from crashpath.ingest.event_text import event_text, told_by_event
from crashpath.ingest.model import Facts, Role
from crashpath.ingest.queries import quarantine
from crashpath.ingest.rules import load_rules
from crashpath.ingest.store import Store
from crashpath.ingest.tables_evidence import Attempts
from crashpath.ingest.whole import SplitOptions, one_record
from crashpath.runtime import events as told
from crashpath.runtime.errors import FAILURES

AT = datetime(2026, 2, 1, 23, 59, 59, 250_000, tzinfo=UTC)
COHORT = told.Cohort("2.1.0", "linux-x86_64", "bert", "9f3c", "node-1", 4711)
FAILED = told.FailureEvent(
    AT.timestamp(), "s1-17", "request", "infer", "ort", "oom_host", "HostMemory", "the worker was killed",
    "infer:oom_host", True, "torchscript", 12.3, "closed",
)  # fmt: skip
COUNTED = told.AttemptsEvent(
    AT.timestamp(), "request", AT.timestamp() - 10, AT.timestamp(), 100, 3, 1, 2, "s1-request-1"
)
OTHERS = (
    told.BreakerEvent(AT.timestamp(), "closed", "open", "rate", "x"),
    told.LaneEvent(AT.timestamp(), "ort", "loaded", "x", None, 1, 0),
    told.ProbeEvent(AT.timestamp(), "probe:passed", "s1-18", None),
    told.CompareEvent(AT.timestamp(), "compare:equal", "s1-19", True, 0.0, float("inf"), ""),
)


def line_of(event: told.Event) -> bytes:
    """One line of an event file, as the runtime writes it."""
    return told.as_line(told.Told(event, COHORT, "s1")).rstrip(b"\n")


def document(one: told.Event, /, **changes: object) -> Mapping[str, Any]:
    """The object of an event, with some keys changed, or dropped where the value is ``...``."""
    out = {**json.loads(line_of(one)), **changes}
    return {key: value for key, value in out.items() if value is not ...}


def test_both_parts_name_one_schema() -> None:
    """The schema's name is the same on both sides, and every kind of event that the runtime has is known here."""
    assert told.SCHEMA == read.SCHEMA
    assert {one.kind for one in get_args(told.Event)} - read.INFORMATIVE == {"failure", "attempts"}


def test_each_kind_is_read_from_the_line_that_the_runtime_writes() -> None:
    """Nothing that the crash tables hold is lost between a line's writer and its reader."""
    failure = event_in(line_of(FAILED))
    facts = Facts("2.1.0", "linux-x86_64", "node-1", "bert", "ort", "infer", "s1-17")
    assert failure == read.FailureEvent(
        AT, facts, "4711", "request", "oom_host", "HostMemory", "the worker was killed", True, "infer:oom_host"
    )
    counted = event_in(line_of(COUNTED))
    cohort = Facts(release="2.1.0", platform="linux-x86_64", host="node-1", model="bert")
    assert counted == read.AttemptsEvent("s1-request-1", "request", date(2026, 2, 1), cohort, 100, 3, 1, 2)
    assert [event_in(line_of(one)) for one in OTHERS] == [read.Informative(one.kind) for one in OTHERS]


def test_the_runtime_speaks_in_the_classes_that_ingest_knows() -> None:
    """Each reason of the runtime is a failure class, and its event says so."""
    assert {one.failure_class for one in FAILURES} == {one.id for one in CLASSES}
    for one in FAILURES:
        event = event_in(line_of(replace(FAILED, failure_class=one.failure_class)))
        assert isinstance(event, read.FailureEvent)
        assert event.failure_class == one.failure_class


@pytest.mark.parametrize(
    ("event", "changes", "said"),
    [
        (FAILED, {"schema": "crashpath.event/2"}, "schema crashpath.event/2"),
        (FAILED, {"event": "launch"}, "unknown kind launch"),
        (FAILED, {"event": ...}, "event is missing"),
        (FAILED, {"at": ...}, "at is missing"),
        (FAILED, {"at": "yesterday"}, "at is not a time"),
        (FAILED, {"at": "2026-02-01T00:00:00"}, "at has no zone"),
        (FAILED, {"at": "0001-01-01T00:00:00+14:00"}, "at is not a time that can be stored"),
        (FAILED, {"class": 7}, "class is no text"),
        (FAILED, {"answered": "yes"}, "answered is neither"),
        (FAILED, {"unit": "query"}, "unit query is none of"),
        (COUNTED, {"batch_id": ...}, "batch_id is missing"),
        (COUNTED, {"unit": None}, "unit is missing"),
        (COUNTED, {"attempts": -1}, "attempts is not a whole number"),
        (COUNTED, {"failures": True}, "failures is not a whole number"),
        (COUNTED, {"unanswered": 1.5}, "unanswered is not a whole number"),
        (COUNTED, {"attempts": (1 << 40) + 1}, "attempts is above 1099511627776, the most of one batch"),
        (COUNTED, {"attempts": 10**400}, "attempts is above 1099511627776"),
        (COUNTED, {"rerouted": (1 << 40) + 1}, "rerouted is above"),
        (COUNTED, {"attempts": 1, "failures": 100}, "failures 100 of attempts 1: a part is larger than the whole"),
        (COUNTED, {"unanswered": 4}, "unanswered 4 of failures 3: "),
        (COUNTED, {"rerouted": 101}, "rerouted 101 of attempts 100: "),
    ],
)
def test_what_is_malformed_is_named(event: told.Event, changes: dict[str, object], said: str) -> None:
    """A line that is an event by its schema and not by the rest says what is wrong with it."""
    with pytest.raises(read.BadEventError, match=said):
        event_in(json.dumps(document(event, **changes)).encode())


def test_counts_up_to_the_whole_are_read() -> None:
    """Every attempt may have failed without an answer, or been rerouted; a batch may be as large as the bound."""
    most = 1 << 40
    every = document(COUNTED, attempts=most, failures=most, unanswered=most, rerouted=most)
    event = event_in(json.dumps(every).encode())
    assert isinstance(event, read.AttemptsEvent)
    assert (event.attempts, event.failures, event.unanswered, event.rerouted) == (most,) * 4


def told_counts(store: Store, file: Path, batches: Sequence[Mapping[str, Any]]) -> tuple[Any, NightSummary]:
    """Have a night read batches; return the sums of the only row as the database gives them, and the night."""
    file.write_text("".join(f"{json.dumps(one)}\n" for one in batches))
    night = a_night(store, [file])
    columns = (Attempts.attempts, Attempts.failures, Attempts.unanswered, Attempts.rerouted)
    with store.read() as session:
        return tuple(session.execute(select(*columns)).one()), night


def test_counts_that_cannot_be_are_quarantined_with_the_reason(store: Store, tmp_path: Path) -> None:
    """What is malformed adds nothing to the sums, and says in quarantine why."""
    good = document(COUNTED, batch_id="good")
    wrong = [
        document(COUNTED, batch_id="a", attempts=1, failures=100),
        document(COUNTED, batch_id="b", unanswered=50),
        document(COUNTED, batch_id="c", rerouted=101),
        document(COUNTED, batch_id="d", attempts=(1 << 53) - 1),
    ]
    counts, night = told_counts(store, tmp_path / "events.jsonl", [*wrong, good])
    assert counts == (100, 3, 1, 2)
    assert night.quarantined == 4
    with store.read() as session:
        reasons = [one.reason for one in quarantine(session)]
    for said in (
        "failures 100 of attempts 1",
        "unanswered 50 of failures 3",
        "rerouted 101 of attempts 100",
        "attempts is above",
    ):
        assert any(said in one for one in reasons), reasons


def test_a_sum_never_leaves_what_the_column_holds(any_store: Store, tmp_path: Path) -> None:
    """Thousands of the largest batches, in one night and over nights, end at a whole number and not beyond."""
    most = 1 << 40
    large = [
        document(COUNTED, batch_id=f"b{i}", attempts=most, failures=most, unanswered=most, rerouted=0)
        for i in range(8195)
    ]
    counts, _ = told_counts(any_store, tmp_path / "one.jsonl", large)
    assert counts == (MOST_SUM, MOST_SUM, MOST_SUM, 0)
    counts, _ = told_counts(any_store, tmp_path / "two.jsonl", [document(COUNTED, batch_id="more")])
    assert counts == (MOST_SUM, MOST_SUM, MOST_SUM, 2)
    assert all(type(one) is int for one in counts)


def test_a_sum_that_an_earlier_release_let_grow_is_bounded(any_store: Store, tmp_path: Path) -> None:
    """A row at the end of 64 bits, as it may stand in an old database, is added to without an overflow."""
    told_counts(any_store, tmp_path / "one.jsonl", [document(COUNTED, batch_id="a")])
    with any_store.write() as session:
        session.execute(update(Attempts).values(attempts=(1 << 63) - 1, failures=MOST_SUM - 3))
    counts, _ = told_counts(any_store, tmp_path / "two.jsonl", [document(COUNTED, batch_id="b")])
    assert counts == (MOST_SUM, MOST_SUM, 2, 4)
    assert all(type(one) is int for one in counts)


def test_keys_that_are_not_known_are_left_alone() -> None:
    """A runtime that says more than this reader knows is still understood."""
    more = document(FAILED, gpu="none", **{"class": "a_class_of_tomorrow"})
    event = event_in(json.dumps(more).encode())
    assert isinstance(event, read.FailureEvent)
    assert event.failure_class is None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda line: b"2026-02-01T23:59:59Z stdout F " + line,
        lambda line: json.dumps({"log": line.decode() + "\n", "stream": "stdout"}).encode(),
        lambda line: json.dumps({"message": line.decode(), "level": "info"}).encode(),
    ],
)
def test_an_event_is_found_behind_what_a_collector_put_in_front(wrap: Any) -> None:
    """Events that went through a container's log are the same events."""
    assert event_in(wrap(line_of(FAILED))) == event_in(line_of(FAILED))


@pytest.mark.parametrize(
    "line",
    [
        b"INFO writing crashpath.event/1 lines to events.jsonl",
        b'{"msg": "schema crashpath.event/1 is written"}',
        b"{}",
        b"{",
    ],
)
def test_lines_that_only_speak_of_events_are_none(line: bytes) -> None:
    """A log line that names the schema stays a log line."""
    assert event_in(line) is None


def test_event_files_are_told_by_name_and_beginning() -> None:
    """Rotation and compression do not hide an event file, and a log that begins with an event is none."""
    head = line_of(OTHERS[0])[:1024]
    assert only_events("/var/events.jsonl", head)
    assert only_events("events.jsonl.3.gz", b'torn"}\n' + head)
    assert not only_events("/var/server.log", head)
    assert not only_events("events.jsonl", b'{"msg": "other lines of JSON"}')


@pytest.mark.parametrize("one", FAILURES)
@pytest.mark.parametrize("message", ["", "CUDA out of memory", "std::bad_alloc\nand a second line\n", "Killed", "a: b"])
def test_the_root_is_what_the_event_says(one: Any, message: str) -> None:
    """Whatever the words of the message tell, class, type and phase of the event stand, and its message is whole."""
    event = event_in(line_of(replace(FAILED, failure_class=one.failure_class, type=one.__name__, message=message)))
    assert isinstance(event, read.FailureEvent)
    record = one_record(event_text(event), source="x", options=SplitOptions())
    known = Analyser(load_rules(), redacting=True).analyse(record)
    assert (known.root.failure_class, known.root.rule) == (one.failure_class, "runtime-event")
    assert (known.root.type, known.root.message, known.root.phase) == (one.__name__, message.strip(), "infer")
    assert known.root.roles[known.root.line] is Role.ROOT
    assert len(known.root.roles) == known.record.text.count("\n") + 1
    assert (known.parsed.format, known.parsed.unit, known.parsed.outcome) == ("runtime_event", "request", "contained")


def test_the_same_words_of_two_classes_are_two_signatures() -> None:
    """Too slow while loading and too slow while running may be said in the same words, and are not one failure."""
    analyser = Analyser(load_rules(), redacting=True)
    ids = set()
    for failure_class in ("load_timeout", "hang"):
        event = event_in(
            line_of(replace(FAILED, failure_class=failure_class, type="TimeoutError", message="timed out"))
        )
        assert isinstance(event, read.FailureEvent)
        record = one_record(event_text(event), source="x", options=SplitOptions())
        ids.add(analyser.analyse(record).signature.id)
    assert len(ids) == 2


def test_without_a_class_the_rules_are_asked() -> None:
    """An error that the runtime knew no reason for is read as a log of it would be."""
    event = event_in(line_of(replace(FAILED, failure_class="", type="RuntimeError", message="CUDA out of memory.")))
    assert isinstance(event, read.FailureEvent)
    known = Analyser(load_rules(), redacting=True).analyse(
        one_record(event_text(event), source="x", options=SplitOptions())
    )
    assert (known.root.failure_class, known.root.line) == ("oom_device", 1)
    assert (known.parsed.unit, known.parsed.outcome) == ("request", "contained")


def test_the_text_of_an_event_tells_it_again() -> None:
    """What the store keeps of an event is enough to read it again, whatever stands in its fields."""
    odd = replace(FAILED, type="a: b\nc", route="x]\ny", message="m" * 5000)
    event = event_in(line_of(odd))
    assert isinstance(event, read.FailureEvent)
    head = told_by_event(event_text(event))
    assert head is not None
    assert (head.failure_class, head.unit, head.phase, head.outcome) == ("oom_host", "request", "infer", "contained")
    assert (head.type, head.message) == ("a_b_c", "m" * 5000)


def test_every_key_of_the_contract_is_written() -> None:
    """The keys that this reader needs are fields of the runtime's own dataclasses, under the names of the schema."""
    keys = set(document(FAILED)) | set(document(COUNTED))
    assert {"at", "event", "class", "type", "message", "answered", "unit", "attempt_id", "phase", "path"} <= keys
    assert {"batch_id", "attempts", "failures", "unanswered", "rerouted", "to", "release", "platform", "model"} <= keys
    assert {one.name for one in fields(told.Cohort)} <= keys
