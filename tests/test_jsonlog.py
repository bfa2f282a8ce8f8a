"""JSON log lines of the field's loggers."""

from __future__ import annotations

import json

import pytest

from crashpath.ingest.jsonlog import open_json
from crashpath.ingest.lines import decode, peel

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: bad'

LOGGERS = {
    "python-json-logger": {
        "asctime": "2025-01-02 03:04:05,6",
        "levelname": "ERROR",
        "message": "it broke",
        "exc_info": TRACE,
    },
    "structlog": {"timestamp": "2025-01-02T03:04:05Z", "level": "error", "event": "it broke", "exception": TRACE},
    "ecs": {
        "@timestamp": "2025-01-02T03:04:05Z",
        "log.level": "ERROR",
        "message": "it broke",
        "error.stack_trace": TRACE,
    },
    "ecs nested": {
        "@timestamp": "1",
        "log": {"level": "ERROR"},
        "message": "it broke",
        "error": {"stack_trace": TRACE},
    },
    "gcp": {"severity": "ERROR", "timestamp": "1", "jsonPayload": {"message": "it broke", "traceback": TRACE}},
    "pino": {"level": 50, "time": 1735787045000, "msg": "it broke", "err": {"message": "bad", "stack": TRACE}},
    "zap": {"level": "error", "ts": 1735787045.6, "msg": "it broke", "stacktrace": TRACE},
    "log4j": {"level": "ERROR", "timeMillis": 1, "message": "it broke", "thrown": {"extendedStackTrace": TRACE}},
    "lines": {"level": "ERROR", "time": "1", "message": "it broke", "traceback": TRACE.split("\n")},
}


@pytest.mark.parametrize("name", LOGGERS)
def test_each_loggers_line_gives_message_and_trace(name: str) -> None:
    """Message and trace stand as a plain logger would print them, with level and stamp."""
    line = peel(json.dumps(LOGGERS[name]))
    assert line.text == f"it broke\n{TRACE}"
    assert line.level == "ERROR"
    assert line.stamp


def test_structlogs_structured_trace_becomes_a_traceback() -> None:
    """A list of exceptions with frames is written as the interpreter would."""
    frames = [{"filename": "a.py", "lineno": 3, "name": "f"}]
    fields = {"event": "x", "exception": [{"exc_type": "ValueError", "exc_value": "bad", "frames": frames}]}
    assert peel(json.dumps(fields)).text == f"x\n{TRACE}"


def test_dockers_file_is_opened_down_to_the_loggers_line() -> None:
    """A line that Docker wrapped may be JSON or have prefixes itself."""
    inner = json.dumps({"level": "error", "message": "it broke", "pid": 7})
    line = peel(json.dumps({"log": inner + "\n", "stream": "stderr", "time": "2025-01-02T03:04:05.6Z"}))
    assert (line.text, line.level, line.stamp, line.writer) == ("it broke", "ERROR", "2025-01-02T03:04:05.6Z", "7")
    line = peel('{"log":"INFO 07-07 08:10:02 [a.py:12] ready\\n","stream":"stderr","time":"2025-01-02T03:04:05.6Z"}')
    assert (line.text, line.level) == ("ready", "INFO")


def test_an_empty_line_in_a_runtimes_wrapping_is_an_empty_line() -> None:
    """Docker wraps the empty lines of a trace too; what is no line of a container stays as it is."""
    assert peel('{"log":"\\n","stream":"stderr","time":"2025-01-02T03:04:05.6Z"}').text == ""
    assert peel('{"log": "", "level": "info"}').text == '{"log": "", "level": "info"}'


def test_a_json_line_behind_prefixes_is_opened() -> None:
    """Compose and journald put their prefixes before JSON."""
    line = peel('api-1  | {"level": "warn", "msg": "slow", "hostname": "h1", "release": "1.2"}')
    assert (line.text, line.level, line.writer) == ("slow", "WARNING", "api-1")
    assert (line.facts.host, line.facts.release) == ("h1", "1.2")


def test_facts_are_read_and_unknown_values_left() -> None:
    """Phase and path are words of the product; other values are not taken for them."""
    inside = open_json('{"message": "x", "phase": "load", "path": "/v1/models", "model_name": "m", "attempt_id": 12}')
    assert inside is not None
    assert (inside.facts.phase, inside.facts.path, inside.facts.model, inside.facts.attempt_id) == (
        "load",
        None,
        "m",
        "12",
    )


@pytest.mark.parametrize("text", ['{"a": 1}', "{not json}", "[1, 2]", "{}", '{"message": ""}', "{" * 2000 + "}"])
def test_what_says_nothing_stays_as_it_is(text: str) -> None:
    """JSON without a message, and what only looks like JSON, is the text itself."""
    assert open_json(text) is None
    assert peel(text).text == text


def test_a_document_that_a_terminal_wrapped_is_read() -> None:
    """Raw newlines inside strings come from the terminal, not from the writer."""
    inside = open_json('{"error":"process has terminated: exit status 1: error loading\nmodel: unknown"}')
    assert inside is not None
    assert inside.text == "process has terminated: exit status 1: error loading model: unknown"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("naïve".encode(), "naïve"),
        ("naïve text of another encoding".encode("latin-1"), "na\\xefve text of another encoding"),
        (b"\0" * 5000 + b"after the hole", "after the hole"),
        (b"a\0b", None),
        (b"some text a\0b", "some text ab"),
        (bytes(range(128, 255)), None),
        (b"windows\r", "windows"),
        (b" 10%|#   |\r 90%|### |\rValueError: x", "ValueError: x"),
    ],
)
def test_bytes_become_text_or_are_no_text(data: bytes, text: str | None) -> None:
    """A few strange bytes are written as escapes; a line that is mostly strange is none."""
    assert decode(data) == text
