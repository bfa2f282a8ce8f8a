"""Dress a crash log as the field dresses it: lines before and after, retries, prefixes, other writers, JSON, cuts.

`dress` applies ``STEPS`` in their order; each looks at the log and decides by its own chance. The line that states the
cause always stays.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

_NAMES = ("orion", "harbor", "lumen", "cedar", "quartz", "delta", "willow", "ember")
_MESSAGES = (
    "GET /healthz 200 {ms}ms",
    "POST /v1/predict 200 {ms}ms batch={n}",
    "cache hit ratio 0.{ms}",
    "queue depth {n}, oldest {ms} ms",
    "scraped /metrics in {ms} ms",
    "config reloaded from /etc/serve/config.yaml",
    "warm pool size {n}",
    "request {hex} finished in {ms} ms",
    "connected to feature store",
    "heartbeat ok seq={ms}",
)
_STARTED = (
    "starting server, version {n}.{n}.{n}",
    "using {n} worker processes",
    "reading settings from environment",
    "listening on 0.0.0.0:80{n}",
    "metrics exporter ready on :9{ms}",
    "model repository: /srv/models",
    "loading model {model}",
    "device: cpu, threads: {n}",
    "tracing disabled",
)
_AFTER = (
    "worker {pid} exited with code 1",
    "worker process {pid} died, restarting in {n} s",
    "shutting down",
    "Application shutdown complete.",
    "backend unavailable, returning 503",
    "1 of {n} replicas healthy",
    "closing {n} open connections",
    "model {model} marked as UNAVAILABLE",
    "request {hex} failed with status 500",
)


@dataclass(frozen=True, slots=True)
class Log:
    """A log in the making. ``framed`` texts have stamps or a layout of their own and take no more prefixes."""

    lines: tuple[str, ...]
    rng: random.Random
    at: datetime
    model: str
    framed: bool
    chained: bool
    writers: tuple[str, ...] = ()
    crlf: bool = False

    def clock(self, index: int) -> datetime:
        """Return the time of a line: a few milliseconds a line."""
        return self.at + timedelta(milliseconds=37 * index)

    def say(self, messages: tuple[str, ...]) -> str:
        """Fill one of ``messages``."""
        rng = self.rng
        values = {
            "ms": rng.randint(100, 999),
            "n": rng.randint(2, 32),
            "pid": rng.randint(100, 30000),
            "model": self.model,
        }
        return rng.choice(messages).format(hex=f"{rng.getrandbits(32):08x}", **values)


def dress(text: str, *, rng: random.Random, at: datetime, model: str, framed: bool) -> str:
    """Return ``text`` as a log of the field would hold it; ``at`` is the UTC time of its first line."""
    lines = tuple(text.rstrip("\n").split("\n"))
    chained = any("direct cause of" in line or "During handling of" in line or "Caused by" in line for line in lines)
    log = Log(lines, rng, at, model, framed, chained)
    for step in STEPS:
        log = step(log)
    return ("\r\n" if log.crlf else "\n").join(log.lines) + ("\r\n" if log.crlf else "\n")


def _cut_head(log: Log) -> Log:
    """A rotated file begins in the middle of a trace. Only where the cause is stated last."""
    if log.framed or log.chained or len(log.lines) < 14 or log.rng.random() > 0.08:
        return log
    if not log.lines[-1] or log.lines[-1].startswith(" ") or not log.lines[0].startswith("Traceback"):
        return log
    return replace(log, lines=log.lines[log.rng.randint(1, 5) :])


def _repeat(log: Log) -> Log:
    """The same failure again, as a restart or a retry makes it."""
    if len(log.lines) > 60 or log.rng.random() > 0.12:
        return log
    lines = list(log.lines)
    times = log.rng.randint(1, 3)
    for attempt in range(times):
        if not log.framed:
            lines.append(
                log.rng.choice(("restarting (attempt {})", "WARNING: retry {} in 2 s", "-- restart {} --")).format(
                    attempt + 1
                )
            )
        lines.extend(log.lines)
    return replace(log, lines=tuple(lines))


def _plain_line(log: Log, level: str, message: str, index: int, style: int) -> str:
    stamp = log.clock(index)
    day = stamp.strftime("%Y-%m-%d")
    clock = stamp.strftime("%H:%M:%S")
    return (
        f"{day} {clock},{stamp.microsecond // 1000:03d} {level} serve.main: {message}",
        f"{level}:     {message}",
        f"[{day} {clock} +0000] [{log.rng.randint(7, 99)}] [{level}] {message}",
        f"{day}T{clock}Z {level.lower()} {message}",
        f'time={day}T{clock}Z level={level} source=serve.go:{log.rng.randint(20, 900)} msg="{message}"',
        message,
    )[style]


def _surround(log: Log) -> Log:
    """Start-up lines before, shutdown lines after."""
    if log.framed and log.rng.random() > 0.3:
        return log
    style = log.rng.randrange(6)
    before, after = [], []
    if log.rng.random() < 0.5:
        before = [_plain_line(log, "INFO", log.say(_STARTED), i, style) for i in range(log.rng.randint(1, 7))]
    if log.rng.random() < 0.4:
        level = log.rng.choice(("INFO", "WARNING", "ERROR"))
        count = log.rng.randint(1, 4)
        after = [_plain_line(log, level, log.say(_AFTER), len(log.lines) + i, style) for i in range(count)]
    return replace(log, lines=(*before, *log.lines, *after))


def _interleave(log: Log) -> Log:
    """A second writer's lines stand between those of the first; a prefix in the next step tells them apart."""
    if log.framed:
        return log
    if log.rng.random() > 0.2:
        return replace(log, writers=("a",) * len(log.lines))
    lines: list[str] = []
    writers: list[str] = []
    for line in log.lines:
        if log.rng.random() < 0.3:
            lines.append("INFO " + log.say(_MESSAGES))
            writers.append("b")
        lines.append(line)
        writers.append("a")
    return replace(log, lines=tuple(lines), writers=tuple(writers))


Front = Callable[[Log, str, int], str]


def _compose(log: Log, writer: str, index: int) -> str:
    return f"{'inference' if writer == 'a' else 'gateway'}-1  | "


def _pod(log: Log, writer: str, index: int) -> str:
    tail = "x7k2p" if writer == "a" else "q9d4z"
    return f"[pod/{log.model}-6d9f7c5b8-{tail}/server] "


def _stern(log: Log, writer: str, index: int) -> str:
    return f"{log.model}-7c9d8f6b54-{'hjw2v' if writer == 'a' else 'm4x8t'} server "


def _cri(log: Log, writer: str, index: int) -> str:
    stamp = f"{log.clock(index):%Y-%m-%dT%H:%M:%S.%f}{index % 1000:03d}Z"
    return f"{stamp} {'stderr' if writer == 'a' else 'stdout'} F "


def _syslog(log: Log, writer: str, index: int) -> str:
    program, pid = ("serve", 1400) if writer == "a" else ("gateway", 1391)
    return f"{log.clock(index):%b %d %H:%M:%S} infer-{len(log.model):02d} {program}[{pid + len(log.model)}]: "


def _worker(log: Log, writer: str, index: int) -> str:
    return f"(Worker pid={2100 + len(log.model) + (7 if writer == 'b' else 0)}) "


def _stamped(log: Log, writer: str, index: int) -> str:
    return f"{log.clock(index).strftime('%Y-%m-%dT%H:%M:%S.%f')}Z {'' if writer == 'a' else '[gateway] '}"


def _rank(log: Log, writer: str, index: int) -> str:
    return f"[rank{0 if writer == 'a' else 1}]: "


FRONTS: tuple[Front, ...] = (_compose, _pod, _stern, _cri, _syslog, _worker, _stamped, _rank)


def _prefix(log: Log) -> Log:
    """Put a writer's prefix before each line; always where two writers share the log."""
    mixed = "b" in log.writers
    if log.framed or (not mixed and log.rng.random() > 0.35):
        return log
    front = log.rng.choice(FRONTS)
    pairs = zip(log.lines, log.writers, strict=True)
    return replace(log, lines=tuple(front(log, writer, i) + line for i, (line, writer) in enumerate(pairs)))


def _objects(log: Log, text: str, style: int) -> list[dict[str, str]]:
    """Return some benign rows of a JSON logger and the one that holds ``text``."""
    last = next((line for line in reversed(log.lines) if line.strip()), "")
    stamp = log.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    fixed, level, message, trace = (
        ({"asctime": stamp, "name": "serve"}, "levelname", "message", "exc_info"),
        ({"timestamp": stamp, "model": log.model}, "level", "event", "exception"),
        ({"@timestamp": stamp, "service.name": log.model}, "log.level", "message", "error.stack_trace"),
        ({"timestamp": stamp}, "severity", "message", "message"),
    )[style]
    said = ("unhandled error", "model failed", last, text)[style]
    benign = [{**fixed, level: "INFO", message: log.say(_STARTED)} for _ in range(log.rng.randint(0, 2))]
    return [*benign, {**fixed, level: "error" if style == 1 else "ERROR", message: said, trace: text}]


def _json(log: Log) -> Log:
    """A JSON logger holds the whole text in one line, or one object a line."""
    if (
        log.framed
        or log.rng.random() > 0.1
        or len(log.lines) > 120
        or any("Traceback" in line for line in log.lines[1:3])
    ):
        return log
    text = "\n".join(log.lines)
    style = log.rng.randrange(5)
    if style == 4:  # the container engine's own files
        rows = [
            {"log": line + "\n", "stream": "stderr", "time": log.clock(i).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")}
            for i, line in enumerate(log.lines)
        ]
    else:
        rows = _objects(log, text, style)
    return replace(log, lines=tuple(json.dumps(row) for row in rows), framed=True, writers=())


def _colour(log: Log) -> Log:
    """Colours of a terminal that nobody looks at."""
    if log.framed or log.rng.random() > 0.08:
        return log
    marks = (("ERROR", "\x1b[31mERROR\x1b[0m"), ("WARNING", "\x1b[33mWARNING\x1b[0m"), ("INFO", "\x1b[32mINFO\x1b[0m"))
    lines = []
    for line in log.lines:
        for plain, painted in marks:
            line = line.replace(plain, painted, 1)
        lines.append(f"\x1b[1m{line}\x1b[0m" if line.startswith("Traceback") else line)
    return replace(log, lines=tuple(lines))


def _newlines(log: Log) -> Log:
    """Line ends of another system."""
    return replace(log, crlf=log.rng.random() < 0.04)


STEPS: tuple[Callable[[Log], Log], ...] = (
    _cut_head,
    _repeat,
    _surround,
    _json,
    _interleave,
    _prefix,
    _colour,
    _newlines,
)
