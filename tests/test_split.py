"""Cutting streams into records: what opens one, what joins it, whose lines they are, and where to go on."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.ingest import split as split_module
from crashpath.ingest.gather import RECORD_BYTES
from crashpath.ingest.model import Facts, Mark, Record
from crashpath.ingest.read import open_source, split_lines
from crashpath.ingest.split import Checkpoint, Item, SplitOptions, Splitter, Undecodable, one_record, split

OPTIONS = SplitOptions(mtime=datetime(2025, 12, 1, tzinfo=UTC), is_failure=lambda line: "model is gone" in line)
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n'


def items(text: str | bytes, start: int = 0, options: SplitOptions = OPTIONS) -> list[Item]:
    data = text.encode() if isinstance(text, str) else text
    return list(
        split(split_lines(iter([data[start : start + 200_000], data[start + 200_000 :]]), start), "s", options, start)
    )


def records(text: str | bytes, start: int = 0) -> list[Record]:
    return [item for item in items(text, start) if isinstance(item, Record)]


def texts(text: str) -> list[str]:
    return [record.text for record in records(text)]


def test_a_traceback_of_this_interpreter_is_one_record() -> None:
    """A chained traceback as Python prints it today is one record, whole."""
    code = "def f():\n    try: {}['a']\n    except KeyError as e: raise ValueError('bad') from e\nf()\n"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert texts(printed) == [printed.rstrip("\n")]


def test_two_causes_are_two_records_and_so_is_a_repeat() -> None:
    """A second complete traceback starts a record, whether of another cause or of the same again."""
    text = f"{TRACE}ValueError: a\n{TRACE}KeyError: b\n{TRACE}KeyError: b\n"
    assert [record.splitlines()[-1] for record in texts(text)] == ["ValueError: a", "KeyError: b", "KeyError: b"]


def test_error_lines_before_a_trace_and_aftermath_join_it() -> None:
    """The logger's words before, the exit code after and the engine's own death are one failure."""
    text = (
        f"ERROR: cannot start\n{TRACE}ValueError: a\nINFO: cleaning up\n"
        f"{TRACE}x.EngineDeadError: see above\nprocess exited with code 1\nINFO: bye\n"
    )
    (record,) = records(text)
    assert record.text.startswith("cannot start")
    assert record.text.endswith("process exited with code 1")


def test_the_same_trace_from_logger_and_interpreter_is_one_failure() -> None:
    """A logger that prints a traceback before it goes on up is an echo."""
    logged = "".join(f"ERROR 11-19 13:40:12 [a.py:1] {line}\n" for line in (TRACE + "ValueError: a").split("\n"))
    assert len(texts(f"{logged}{TRACE}ValueError: a\n")) == 1


def test_the_same_error_line_at_another_time_is_another_failure() -> None:
    """Retries are counted; the same line twice in a moment is not."""
    line = "2025-11-19 13:40:{:02d} ERROR cannot load\n"
    assert len(texts(line.format(1) + line.format(1))) == 1
    assert len(texts(line.format(1) + line.format(9) + line.format(20))) == 3


def test_lines_of_several_writers_are_untangled() -> None:
    """Interleaved traces come apart by their prefix, in the order of their lines."""
    one = [f"a-1  | {line}" for line in (TRACE + "ValueError: a").split("\n")]
    two = [f"b-1  | {line}" for line in (TRACE + "KeyError: b").split("\n")]
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    assert sorted(texts(mixed)) == [TRACE + "KeyError: b", TRACE + "ValueError: a"]
    assert {record.marks[0].writer for record in records(mixed)} == {"a-1", "b-1"}


def test_a_logger_in_the_midst_of_a_raw_trace_does_not_end_it() -> None:
    """Raw lines go on after another thread's log line."""
    text = TRACE + "INFO: request served\nValueError: a\n"
    (record,) = records(text)
    assert record.text.endswith("ValueError: a")


@pytest.mark.parametrize(
    "text",
    [
        "Fatal Python error: Segmentation fault\n\n"
        'Current thread 0x1 (most recent call first):\n  File "x.py", line 3 in f',
        "terminate called after throwing an instance of 'std::bad_alloc'\n"
        "  what():  std::bad_alloc\nAborted (core dumped)",
        "run.sh: line 18:  2214 Illegal instruction     (core dumped) python serve.py",
        "Killed",
        'Exception in thread "main" java.io.IOException: x\n\tat a.B.c(B.java:1)\n'
        "Caused by: java.lang.Error: y\n\t... 1 more",
        "Error: boom\n    at f (/srv/a.js:1:2)\n    at g (/srv/b.js:2:3)",
        "thread 'main' panicked at src/main.rs:3:5:\nindex out of bounds",
        "python invoked oom-killer: gfp_mask=0x0\nCall Trace:\nMem-Info:\n"
        "Memory cgroup out of memory: Killed process 9 (python)",
        "oops, the model is gone",
    ],
)
def test_every_runtimes_death_opens_a_record(text: str) -> None:
    """Each shape is found between benign lines, whole, and the benign lines after it stay out."""
    calm = "".join(f"INFO: request {n} served\n" for n in range(40))
    (record,) = records(calm + text + "\n" + calm)
    assert record.text.endswith(text)
    assert record.text.count("served") <= 20


def test_context_is_kept_before_and_the_offset_is_its_first_line() -> None:
    """At most 20 lines before belong to the record; nothing else does."""
    calm = [f"INFO: request {n} served\n" for n in range(30)]
    (record,) = records("".join(calm) + TRACE + "ValueError: a\n")
    assert record.offset == len("".join(calm[:10]))
    assert record.text.splitlines()[0] == "request 10 served"


def test_an_unlevelled_text_without_a_failure_is_one_plain_record() -> None:
    """Nothing is dropped because nobody knows it."""
    assert texts("the thing\nfell over\n") == ["the thing\nfell over"]


def test_a_stream_that_says_all_is_well_gives_nothing_but_a_checkpoint() -> None:
    """Benign levels are believed, and the lines are counted."""
    text = "INFO: ready\nWARNING: slow\nDEBUG: x\n" * 30
    assert items(text) == [Checkpoint(len(text))]
    splitter = Splitter("s", OPTIONS)
    for line in split_lines(iter([text.encode()])):
        splitter.feed(line)
    assert (splitter.lines, splitter.quiet, splitter.recorded) == (90, 90, 0)


def test_an_empty_source_gives_nothing() -> None:
    """No line, no record, no error."""
    assert items("") == [Checkpoint(0)]


def test_lines_that_are_no_text_are_told_apart() -> None:
    """A stretch of bytes inside a log is one item with hash and place; the rest is read."""
    blob = b"\x00\x01\x02\x00\x00\n\xff\xfe\xfd\xfc\x00\x00\n"
    data = TRACE.encode() + b"ValueError: a\n" + blob + b"Killed\n"
    found = items(data)
    (bad,) = [item for item in found if isinstance(item, Undecodable)]
    assert data[bad.offset : bad.end] == blob
    assert len(bad.sha256) == 64
    assert "ValueError: a" in "".join(record.text for record in records(data))


def test_a_record_is_cut_to_head_and_tail() -> None:
    """A trace that does not end stays within the limit, keeps both ends and is marked."""
    text = (
        TRACE + "".join(f'  File "a.py", line {n}, in f\n    g()\n' for n in range(40_000)) + "RecursionError: deep\n"
    )
    (record,) = records(text)
    assert record.truncated
    assert len(record.text) <= RECORD_BYTES
    assert record.text.startswith(TRACE)
    assert record.text.endswith("RecursionError: deep")
    assert (record.offset, record.end) == (0, len(text))


def test_time_and_facts_of_a_record_come_from_its_lines() -> None:
    """The failure's own line tells the time; what lines say of facts goes before what the path says."""
    options = SplitOptions(mtime=OPTIONS.mtime, facts=Facts(release="1", model="m"))
    text = "Nov 15 22:10:38 node-3 app[9]: INFO: up\nNov 15 22:11:00 node-3 app[9]: ERROR: release=2 broke\n"
    (record,) = [item for item in items(text, options=options) if isinstance(item, Record)]
    assert record.at == datetime(2025, 11, 15, 22, 11, tzinfo=UTC)
    assert (record.facts.release, record.facts.model, record.facts.host) == ("2", "m", "node-3")
    assert record.marks[1] == Mark("ERROR", "app[9]", record.at)


def test_one_record_keeps_every_line_and_groups_writers() -> None:
    """The whole text is the record, whatever is in it; marks have one entry a line."""
    record = one_record("a-1  | x\nb-1  | y\na-1  | z\n\nINFO: w", source="s", offset=5, options=OPTIONS)
    assert record.text == "x\nz\n\ny\nw"
    assert len(record.marks) == 5
    assert (record.offset, record.end, record.source) == (5, 40, "s")
    assert one_record("", source="s", options=OPTIONS).text == ""
    assert one_record("plain\nwords", source="s", options=OPTIONS).marks == ()
    assert one_record('{"message": "m", "exc_info": "a\\nb"}', source="s", options=OPTIONS).text == "m\na\nb"


PREFIXES = (
    "",
    "",
    "(Core pid=1) ERROR 11-19 13:40:{s:02d} [a.py:8] ",
    "svc-1  | ",
    "Nov 15 22:10:{s:02d} h app[{w}]: ",
)
PIECES = (
    TRACE + "ValueError: bad {w}",
    "Killed",
    "loading {s}",
    "Error: boom\n    at f (a.js:1:2)",
    "java.lang.Error: x{w}\n\tat a.b.C(D.java:1)\nCaused by: y\n\t... 2 more",
    "",
    "ERROR: disk {w}",
    "INFO: calm",
    "INFO: calm\n" * 35,
    "During handling of the above exception, another exception occurred:",
    "\x00\x01\x00\x00\x00",
    'Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n  File "x.py", line 3 in f',
    '{{"level": "error", "message": "m{w}", "exc_info": "Traceback (most recent call last):\\nKeyError: {w}"}}',
    "process exited with code 1",
)
PIECE = st.tuples(
    st.sampled_from(PREFIXES), st.sampled_from(PIECES), st.integers(0, 59), st.integers(1, 2), st.integers(1, 9)
)


def render(pieces: list[tuple[str, str, int, int, int]]) -> bytes:
    out = []
    for prefix, piece, second, writer, most in pieces:
        start = prefix.format(s=second, w=writer)
        body = piece.format(s=second, w=writer).split("\n")
        out += [start + line for line in (body[:most] if "calm" not in piece else body)]
    return "\n".join(out).encode()


def comparable(found: list[Item]) -> list[object]:
    return [item for item in found if not isinstance(item, Checkpoint)]


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECE, max_size=30))
def test_a_restart_at_any_checkpoint_gives_the_remaining_records(pieces: list[tuple[str, str, int, int, int]]) -> None:
    """Started again where a checkpoint stands, a splitter gives what the first one still had to give, and no offset
    comes twice. Checkpoints are made dense for it."""
    data = render(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_module, "SOFT_BYTES", 300)
        patch.setattr(split_module, "HARD_BYTES", 2500)
        found = items(data)
        for index, item in enumerate(found):
            if isinstance(item, Checkpoint):
                assert comparable(items(data, item.offset)) == comparable(found[index + 1 :])
    offsets = [item.offset for item in found if isinstance(item, Record)]
    assert len(offsets) == len(set(offsets))


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECE, max_size=30))
def test_every_line_is_counted_once(pieces: list[tuple[str, str, int, int, int]]) -> None:
    """Lines in records, lines that are no text and quiet lines add up, and each failure's words are in a record."""
    data = render(pieces)
    splitter = Splitter("s", OPTIONS)
    found: list[Item] = []
    for line in split_lines(iter([data])):
        found.extend(splitter.feed(line))
    found.extend(splitter.close())
    kept = [item for item in found if isinstance(item, Record)]
    assert splitter.lines == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert splitter.quiet >= 0
    assert splitter.recorded <= sum(record.text.count("\n") + 1 for record in kept)
    words = "\n".join(record.text for record in kept)
    for sentence in ("ValueError: bad", "Killed", "disk ", "Fatal Python error"):
        assert words.count(sentence) == data.count(sentence.encode())


def test_checkpoints_come_often_in_a_long_stream(tmp_path: Path) -> None:
    """A night that is killed loses little: a checkpoint at least every 4 MiB, and far more often as a rule."""
    path = tmp_path / "long.log"
    with path.open("w") as file:
        for n in range(30_000):
            file.write(f"INFO: request {n} served in 3 ms by worker 1\n")
            if n % 1000 == 0:
                file.write(TRACE + f"ValueError: {n}\n")
    with open_source(str(path)) as source:
        found = list(split(source.lines(), "s", OPTIONS))
    places = [0, *(item.offset for item in found if isinstance(item, Checkpoint))]
    assert len([item for item in found if isinstance(item, Record)]) == 30
    assert max(b - a for a, b in pairwise(places)) < 400_000


STAMPED = "2025-11-19 13:40:{:02d},000 {} {}\n"
LATE = (
    "shutting down",
    "request a451bc57 failed with status 500",
    "worker process 123 died, restarting in 10 s",
    "1 of 3 replicas healthy",
)


def complete(kind: str, prefix: str = "") -> str:
    return "".join(f"{prefix}{line}\n" for line in f"{TRACE}{kind}".split("\n"))


def test_what_other_processes_say_after_a_trace_joins_it() -> None:
    """An ERROR line that only its level marks is aftermath, whichever process of the same stream writes it."""
    late = "".join(f"[2025-11-19 13:40:12 +0000] [{n + 30}] [ERROR] {said}\n" for n, said in enumerate(LATE * 2))
    (record,) = records(complete("ValueError: a") + late)
    assert record.text.endswith(LATE[-1])
    (record,) = records(complete("ValueError: a", "(Core pid=1) ERROR 11-19 13:40:11 [a.py:8] ") + late)
    assert record.text.endswith(LATE[-1])


def test_what_is_told_long_after_a_trace_is_a_failure_of_its_own() -> None:
    """Past five seconds or thirty lines, an ERROR line of another process does not belong to the trace any more."""
    trace = complete("ValueError: a", "2025-11-19 13:40:11,000 [8] [ERROR] ")
    assert len(records(trace + "2025-11-19 13:40:15,000 [9] [ERROR] disk is full\n")) == 1
    assert len(records(trace + "2025-11-19 13:40:17,000 [9] [ERROR] disk is full\n")) == 2
    calm = "[2025-11-19 13:40:12 +0000] [7] [INFO] served\n" * 31
    assert len(records(complete("ValueError: a") + calm + "2025-11-19 13:40:15,000 [9] [ERROR] disk is full\n")) == 2


def test_a_known_failure_after_a_trace_starts_a_record() -> None:
    """A line that the root rules know is no aftermath of another process's trace."""
    line = "[2025-11-19 13:40:12 +0000] [31] [ERROR] the model is gone\n"
    assert len(records(complete("ValueError: a") + line)) == 2


def test_another_containers_error_is_no_aftermath() -> None:
    """What a container says never joins the record of another one, before a trace or after it."""
    for one, two in (("a-1  | ", "b-1  | "), ("[pod/a-5f7d9c-x2k8p/m] ", "[pod/a-5f7d9c-q9d4z/m] ")):
        assert len(records(complete("ValueError: a", one) + two + "ERROR: shutting down\n")) == 2
        assert len(records(one + "ERROR: cannot load\n" + complete("ValueError: a", two))) == 2
        assert (
            len(
                records(
                    complete("ValueError: a", one) + one + "[2025-11-19 13:40:12 +0000] [9] [ERROR] shutting down\n"
                )
            )
            == 1
        )


def test_failures_of_two_pods_that_interleave_stay_two_with_their_own_aftermath() -> None:
    """Each pod's late words go to its own trace."""
    one, two = ([f"{name}  | {line}" for line in (TRACE + cause).split("\n")] for name, cause in (
        ("a-1", "ValueError: a"), ("b-1", "KeyError: b")))  # fmt: skip
    lines = [line for pair in zip(one, two, strict=True) for line in pair]
    lines += [
        "b-1  | [2025-11-19 13:40:12 +0000] [9] [ERROR] b goes down",
        "a-1  | [2025-11-19 13:40:12 +0000] [9] [ERROR] a goes down",
    ]
    assert sorted(texts("\n".join(lines))) == [
        TRACE + "KeyError: b\nb goes down",
        TRACE + "ValueError: a\na goes down",
    ]


def test_what_announces_a_trace_is_in_its_record() -> None:
    """An error line just before a trace belongs to it, also where the logger names a process and the trace does not."""
    for before in ("[2025-11-19 13:40:12 +0000] [4084] [ERROR] ", "(Core pid=4) ERROR 11-19 13:40:12 [a.py:8] "):
        for front in ("", "a-1  | "):
            text = f"{front}{before}input could not be prepared\n" + complete("ValueError: a", front)
            assert texts(text) == [f"input could not be prepared\n{TRACE}ValueError: a"]


def test_an_error_line_long_before_a_trace_is_a_failure_of_its_own() -> None:
    """Ten lines or five seconds apart, the words of one process do not announce the trace of another."""
    error = "[2025-11-19 13:40:12 +0000] [4] [ERROR] disk is full\n"
    assert (
        len(
            records(
                error + "(Core pid=4) INFO 11-19 13:40:12 [a.py:8] ok\n" * 12 + complete("KeyError: b", "[rank0]: ")
            )
        )
        == 2
    )
    stamped = complete("KeyError: b", "2025-11-19 13:40:18,000 [5] [ERROR] ")
    assert len(records("2025-11-19 13:40:12,000 [4] [ERROR] disk is full\n" + stamped)) == 2


def test_androids_headline_and_its_exception_are_one_record() -> None:
    """What the runtime says before a Java exception is its head."""
    front = "11-19 01:00:{:02d}.014 23237  38908 E AndroidRuntime: "
    lines = (
        "FATAL EXCEPTION: main",
        "Process: org.example.app, PID: 23237",
        "java.lang.Error: x",
        "\tat a.B.c(B.kt:1)",
    )
    text = "".join(front.format(8) + line + "\n" for line in lines)
    assert texts(text) == ["\n".join(lines)]
    again = "".join(front.format(12) + line + "\n" for line in lines)
    assert texts(text + again) == ["\n".join(lines)] * 2


def test_an_earlier_stamp_ends_no_record() -> None:
    """The clock of another component may be late, and its stamps in UTC may lie whole half hours off."""
    lines = [STAMPED.format(40, "ERROR", "cannot run"), STAMPED.format(3, "ERROR", "node failed")]
    assert len(records("".join(lines))) == 1
    runtime = "2025-11-19 {}:40:41.123456789 [E:onnxruntime:, session.cc:514 Run] Non-zero status code\n"
    for hour in (11, 15, 19):
        assert len(records(lines[0] + runtime.format(hour) + STAMPED.format(42, "ERROR", "gave up"))) == 1


def test_a_collectors_stamp_goes_before_a_loggers() -> None:
    """What a logger inside says of the time is not held against the collector's clock."""
    outer = "2025-11-19T13:40:{:02d}.000Z stderr F "
    text = outer.format(10) + STAMPED.format(10, "ERROR", "cannot load")
    text += outer.format(11) + "2025-11-19 19:10:50,000 ERROR gave up\n"
    assert len(records(text)) == 1


def test_every_retry_is_a_record_and_its_aftermath_none() -> None:
    """A trace that comes again after a notice counts again; the lines after each go with it."""
    late = "".join(f"[2025-11-19 13:40:12 +0000] [{n + 30}] [ERROR] {said}\n" for n, said in enumerate(LATE))
    once = complete("ValueError: a") + late
    assert len(records(once + "restarting (attempt 1)\n" + once + "restarting (attempt 2)\n" + once)) == 3
    front = "a-1  | "
    once = front + "[2025-11-19 13:40:12 +0000] [4084] [ERROR] could not be loaded\n" + complete("ValueError: a", front)
    assert len(records((once + front + "[2025-11-19 13:40:12 +0000] [7] [ERROR] shutting down\n") * 3)) == 3


@pytest.mark.parametrize(
    "line",
    [
        '{{"timestamp": "2026-02-01T10:00:0{n}Z", "level": "error", "msg": "out of memory", "attempt_id": "a-{id}"}}\n',
        "2026-02-01 10:00:0{n} ERROR attempt_id=a-{id} loader: torch.OutOfMemoryError: out of memory\n",
        "2026-02-01 10:00:0{n} ERROR [{n}] loader: attempt_id=a-{id} out of memory\n",
    ],
)
def test_attempts_that_are_named_are_failures_of_their_own(line: str) -> None:
    """Many attempts fail in one second with the same words; what one attempt says twice stays together."""
    assert len(records("".join(line.format(n=0, id=id) for id in range(6)))) == 6
    assert len(records("".join(line.format(n=n, id=1) for n in (1, 1)))) == 1


def test_attempts_that_are_logged_before_the_exception_gets_out_are_one_failure() -> None:
    """A message that a logger has told, raised in the end, is not told of a second failure."""
    tried = (
        'WARNING: attempt {} of 3 failed: global variables are not supported:\n  File "a.py", line 8\n    global X\n'
    )
    text = "".join(tried.format(n) for n in (1, 2, 3)) + complete("NotSupported: global variables are not supported:")
    assert len(records(text)) == 1


def test_lines_of_another_thread_do_not_break_a_java_trace() -> None:
    """A trace goes on after a logger's line right behind its ``Caused by``."""
    text = (
        'Exception in thread "main" java.lang.Error: x\n\tat a.B.c(B.java:1)\nCaused by: java.lang.Error: y\n'
        "INFO: served\n\tat a.B.d(B.java:2)\n\tat a.B.e(B.java:3)\n\t... 2 more\n"
    )
    (record,) = records(text)
    assert record.text.endswith("... 2 more")


DENIED, UNKNOWN = "PermissionError: [Errno 13] Permission denied: '/models/a'", "KeyError: 'unk_token'"
FAILED = "2026-03-01 00:00:{0:02},000 ERROR request failed\n{1}{2}\n"


def test_another_failure_after_a_pause_is_another_record() -> None:
    """Two failures of one writer that are seconds apart, and wait for nothing, are two records; each with its line."""
    for gap in (3, 20):
        told = [
            record.splitlines()
            for record in texts(FAILED.format(1, TRACE, DENIED) + FAILED.format(1 + gap, TRACE, UNKNOWN))
        ]
        assert [(lines[0], lines[-1]) for lines in told] == [("request failed", DENIED), ("request failed", UNKNOWN)]


def test_another_failure_after_other_work_is_another_record() -> None:
    """An error line with words of its own, after the writer told of work that went well, is another failure."""
    work = "2026-03-01 00:00:04,000 INFO request 12 finished in 8 ms\n"
    other = "2026-03-01 00:00:05,000 ERROR tokenizer has no vocabulary\n"
    first, second = texts(FAILED.format(1, TRACE, DENIED) + work + other)
    assert first.endswith(DENIED)
    assert second.endswith("tokenizer has no vocabulary")


def test_who_waited_is_no_other_failure() -> None:
    """What times out, loses its peer or is tried again because of a failure stays with it, seconds later."""
    for later in (
        "ERROR request 7 timed out: no answer of the worker",
        "ERROR worker process 811 died, restarting in 10 s",
        "WARNING attempt 2 of 3 failed",
    ):
        (record,) = texts(FAILED.format(1, TRACE, DENIED) + f"2026-03-01 00:00:04,000 {later}\n")
        assert DENIED in record


def test_a_clock_is_known_by_the_shape_of_its_stamps_not_by_a_digit() -> None:
    """Lines of one clock are held against the line before, whatever digit their stamps end in."""
    line = "11-27 00:00:{}  E AndroidRuntime: {}\n".replace("  E", " 11408  5823 E")
    told = (("02.852", "cannot read"), ("04.757", "cannot map"), ("06.158", "cannot load"), ("07.952", "gave up"))
    assert len(texts("".join(line.format(at, said) for at, said in told))) == 1


def test_what_a_low_level_foretold_is_no_failure_of_its_own() -> None:
    """A cause logged as if it were nothing belongs to the error that it leads to, a few seconds later."""
    text = (
        "2026-03-01 00:00:01,000 INFO the model is gone\n2026-03-01 00:00:05,000 ERROR cannot load, model is gone too\n"
    )
    assert len(texts(text)) == 1
    assert len(texts(text.replace("INFO", "ERROR"))) == 2


def test_an_error_that_says_again_what_was_said_is_no_other_failure() -> None:
    """A caller that repeats a part of the message, seconds later, tells of the same failure."""
    first = "2026-03-01 00:00:01,000 ERROR cannot read: the model is gone, it is said\n"
    again = "2026-03-01 00:00:05,000 ERROR {}the model is gone{}\n"
    assert len(texts(first + again.format("", ""))) == 1
    assert len(texts(first + again.format("load: ", ""))) == 1
    assert len(texts(first + again.format("", ", twice"))) == 2


def test_a_trace_within_one_entry_is_known_by_its_exception() -> None:
    """A driver's entry that wraps the failure is its aftermath, whatever the last line of the message is."""
    entry = '{{"timestamp": "2026-03-01T00:00:0{}.000Z", "level": "ERROR", "message": "gave up\\n{}{}"}}\n'
    trace = TRACE.replace("\n", "\\n").replace('"', '\\"')
    first = entry.format(1, trace, "ValueError: empty vector")
    wrapped = entry.format(3, trace, "ray.exceptions.RayTaskError(ValueError): ray::embed()\\nValueError: empty vector")
    assert len(texts(first + wrapped)) == 1
    assert len(texts(first + entry.format(3, trace, "KeyError: 'a'\\nnothing more"))) == 2


def test_what_a_collector_carried_is_read_without_the_prefixes_inside() -> None:
    """One JSON line holds what a container printed: each line of it has the prefix of its own runtime."""
    inside = "".join(
        f"2026-02-01T10:00:0{n}.000000Z stderr F {line}\n"
        for n, line in enumerate(complete("ValueError: tokenizer.json: unknown token").splitlines())
    )
    (record,) = records(json.dumps({"time": "2026-02-01T10:00:09Z", "level": "error", "message": inside}) + "\n")
    assert "stderr F" not in record.text
    assert record.text.rstrip().endswith("ValueError: tokenizer.json: unknown token")
    assert len(record.marks) in (0, record.text.count("\n") + 1)
