"""JSON log lines: the message and the trace inside, as the text that a plain logger would have printed.

Knows the field names of python-json-logger, structlog, Elastic Common Schema, Google Cloud, bunyan and pino, zap,
logrus, log4j, GELF, journald and Docker's json-file; a nested name is written with dots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from crashpath.ingest.model import Facts

MESSAGE = (
    "message", "msg", "event", "log", "MESSAGE", "textPayload", "jsonPayload.message", "jsonPayload.msg", "body",
    "body.stringValue", "short_message", "@message", "text", "record.message", "detail",
)  # fmt: skip
TRACE = (
    "exc_info", "exc_text", "traceback", "stack_trace", "stacktrace", "stackTrace", "error.stack_trace", "error.stack",
    "err.stack", "exception.stacktrace", "exception.stack_trace", "thrown.extendedStackTrace",
    "attributes.exception.stacktrace",
    "exception", "stack", "full_message", "jsonPayload.stack_trace", "jsonPayload.exception", "jsonPayload.traceback",
    "record.exception", "errorVerbose",
)  # fmt: skip
ERROR = (
    "error", "err", "error.message", "err.message", "exception.message", "error_message", "thrown.message",
    "errorMessage", "jsonPayload.error", "reason",
)  # fmt: skip
ERROR_TYPE = (
    "error.type",
    "err.type",
    "exception.type",
    "exc_type",
    "error_type",
    "thrown.name",
    "errorType",
    "exception.class",
)
LEVEL = ("level", "severity", "levelname", "log.level", "lvl", "loglevel", "log_level", "severity_text", "level_name",
         "record.level.name", "jsonPayload.level", "severityText", "PRIORITY")  # fmt: skip
STAMP = ("timestamp", "@timestamp", "time", "ts", "asctime", "datetime", "date", "__REALTIME_TIMESTAMP", "t",
         "record.time.repr", "timeMillis", "instant.epochSecond", "eventTime")  # fmt: skip
HOST = ("host", "hostname", "host.name", "_HOSTNAME", "kubernetes.host", "node")
WRITER = ("kubernetes.pod_name", "pod", "pod_name", "resource.labels.pod_name", "container_name",
          "kubernetes.container_name", "pid", "process", "_PID", "process.pid", "rank")  # fmt: skip
#: "attempt" alone is mostly the count of a retry, which is nobody's id.
ATTEMPT = ("attempt_id", "attemptId", "extra.attempt_id", "context.attempt_id", "labels.attempt_id",
           "attributes.attempt_id", "record.extra.attempt_id", "jsonPayload.attempt_id", "request_id",
           "deployment_id")  # fmt: skip
RELEASE = ("release", "service.version", "app_version", "deployment.release", "labels.release")
PLATFORM = ("platform", "labels.platform", "os.name")
MODEL = ("model", "model_name", "model.name", "labels.model")
_BUNYAN = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARNING", 50: "ERROR", 60: "FATAL"}
_SYSLOG = ("FATAL", "FATAL", "FATAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
_DEEPEST = 4
_NOT_A_TRACE = frozenset({"true", "false", "none", "null", ""})


class Inside(NamedTuple):
    """What a JSON log line says: its text (may have newlines), level in the logger's words, stamp, writer, facts."""

    text: str
    level: str | None
    stamp: str | None
    writer: str | None
    facts: Facts


def open_json(text: str) -> Inside | None:
    """Read one JSON object (a line, or a document over several lines); ``None`` where it is none or says nothing."""
    fields = _fields(text)
    if fields is None:
        return None
    said = _said(fields)
    return _inside(fields, said) if said or _is_blank_line(fields) else None


def open_line(text: str) -> Inside | Facts | None:
    """Read one line as ``open_json`` does; of an object that says nothing and names a release, return the cohort."""
    fields = _fields(text)
    if fields is None:
        return None
    said = _said(fields)
    if said or _is_blank_line(fields):
        return _inside(fields, said)
    release = _first(fields, RELEASE)
    return _cohort(release, _first(fields, PLATFORM), _first(fields, MODEL)) if release else None


@lru_cache(maxsize=256)
def _cohort(release: str, platform: str | None, model: str | None) -> Facts:
    return Facts(release, platform, model=model)


def _inside(fields: dict[str, object], said: str) -> Inside:
    host = _first(fields, HOST)
    facts = Facts(
        release=_first(fields, RELEASE),
        platform=_first(fields, PLATFORM),
        host=host,
        model=_first(fields, MODEL),
        path=_known(_first(fields, ("path", "backend", "runtime")), ("ort", "torchscript")),
        phase=_known(_first(fields, ("phase",)), ("prepare", "load", "warmup", "infer", "shutdown")),
        attempt_id=_first(fields, ATTEMPT),
    )
    return Inside(said, _level(fields), _first(fields, STAMP), _first(fields, WRITER), facts)


def _is_blank_line(fields: dict[str, object]) -> bool:
    """Whether a container runtime wraps an empty line: a trace goes on behind it."""
    log = fields.get("log")
    return isinstance(log, str) and not log.strip() and "stream" in fields


def _fields(text: str) -> dict[str, object] | None:
    """Flatten the object to dotted names. A document that was wrapped by a terminal has raw newlines in its strings."""
    for candidate in (text, text.replace("\n", " ")) if "\n" in text else (text,):
        try:
            document = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, list) and len(document) == 1:
            document = document[0]
        return dict(_flat(document, "", 0)) if isinstance(document, dict) else None
    return None


def _flat(value: dict[str, object], prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        yield name, inner
        if isinstance(inner, dict) and depth < _DEEPEST:
            yield from _flat(inner, name + ".", depth + 1)


def _first(fields: dict[str, object], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return repr(value)
    return None


def _known(value: str | None, words: tuple[str, ...]) -> str | None:
    return value if value in words else None


def _said(fields: dict[str, object]) -> str:
    message = _first_text(fields, MESSAGE)
    error = _first_text(fields, ERROR)
    kind = _first_text(fields, ERROR_TYPE)
    trace = next((found for name in TRACE if (found := _trace(fields.get(name)))), "")
    if kind and error and kind not in error:
        error = f"{kind}: {error}"
    parts = [message] if message else []
    if error and error not in message and error not in trace:
        parts = [f"{message}: {error}" if message else error]
    if trace and trace not in message:
        parts.append(trace)
    return "\n".join(parts).rstrip()


def _first_text(fields: dict[str, object], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _trace(value: object) -> str:
    """Return a trace as text: a string, lines of one, or structlog's list of exceptions with frames."""
    if isinstance(value, str):
        return "" if value.strip().lower() in _NOT_A_TRACE else value
    if isinstance(value, list):
        if value and all(isinstance(line, str) for line in value):
            return "\n".join(line.rstrip("\n") for line in value)
        return "\n".join(filter(None, (_structured(item) for item in reversed(value))))
    return ""


def _structured(value: object) -> str:
    if not isinstance(value, dict) or "exc_type" not in value:
        return ""
    lines = ["Traceback (most recent call last):"]
    frames = value.get("frames")
    lines += [
        f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get("name")}'
        for frame in (frames if isinstance(frames, list) else ())
        if isinstance(frame, dict)
    ]
    lines.append(f"{value['exc_type']}: {value.get('exc_value', '')}".removesuffix(": "))
    return "\n".join(lines)


def _level(fields: dict[str, object]) -> str | None:
    for name in LEVEL:
        value = fields.get(name)
        if name == "PRIORITY" and (digits := str(value)).isdecimal():
            return _SYSLOG[min(int(digits[-4:]), 7)]
        if isinstance(value, int) and not isinstance(value, bool):
            return _BUNYAN.get(value)
        if isinstance(value, str) and value:
            return value
    return None
