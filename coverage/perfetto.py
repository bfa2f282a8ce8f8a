"""One request over both paths, as a trace that Perfetto and Chrome's tracing page open.

The session is asked twice: once as it is, once with a strike on its main path, so that the routes of both answers are
spans with the milliseconds that the session itself told. Below each stand the operators of that path, from a traced run
of the same feed; they are drawn from the start of their span and may be longer than it, for tracing costs time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crashpath.coverage.onnx_trace import MainTracer
from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.wholefile import write_whole
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.opening import open_session
from crashpath.runtime.values import Answer, Arrays, Phase, Strike
from crashpath.runtime.values import Path as Which

Span = tuple[str, float, float]
"""Name, beginning and length, in µs."""

REFUSED = Strike("crashpath.coverage.strikes_memory:array_refused", Phase.INFER)
"""What turns the second request to the fallback: an array that numpy refuses."""
_GAP_US = 1000.0
_ROUTES, _OPERATORS = 1, 2


def request_trace(folder: ModelFolder, feed: Arrays, providers: Sequence[str]) -> dict[str, Any]:
    """Ask a session on both paths and trace both. Raises what opening or tracing raises."""
    with open_session(folder, providers=providers, sample=0.0, log=False) as session:
        session.run(feed)  # the first run of a path is not what later ones are
        answers = [session.run(feed)]
        with session.armed(Which.MAIN, REFUSED):
            answers.append(session.run(feed))
    with MainTracer(folder, providers) as main, FallbackTracer(folder) as fallback:
        main.run(feed)
        main.trace()
        fallback.run(feed)
        operators = {
            Which.MAIN: [(f"{one.operator} {one.node}", one.at, one.microseconds) for one in main.last],
            Which.FALLBACK: list(fallback.last),
        }
    return compose([(answer, operators[answer.path]) for answer in answers])


def compose(requests: Iterable[tuple[Answer, Sequence[Span]]]) -> dict[str, Any]:
    """Put routes and operators on one time line, the requests one after the other."""
    events: list[dict[str, Any]] = [_name(_ROUTES, "routes")]
    at = 0.0
    for number, (answer, spans) in enumerate(requests):
        thread = _OPERATORS + number
        events.append(_name(thread, f"operators, {answer.path}"))
        told = {"path": answer.path, "request": answer.request_id, "breaker": answer.breaker}
        purpose = " (failure raised on purpose)" if answer.path is Which.FALLBACK else ""
        events.append(_span(f"{answer.route}{purpose}", "route", at, answer.milliseconds * 1000, _ROUTES, told))
        first = min((began for _, began, _ in spans), default=0.0)
        events += [
            _span(name, str(answer.path), at + began - first, length, thread, {}) for name, began, length in spans
        ]
        longest = max((began - first + length for _, began, length in spans), default=0.0)
        at += max(answer.milliseconds * 1000, longest) + _GAP_US
    return {"displayTimeUnit": "ms", "traceEvents": events}


def write_trace(target: Path, trace: dict[str, Any]) -> None:
    """Write a trace whole. Raises `OSError`."""
    write_whole(target, json.dumps(trace))


def _span(name: str, kind: str, at: float, length: float, thread: int, told: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cat": kind, "ph": "X", "ts": at, "dur": length, "pid": 1, "tid": thread, "args": told}


def _name(thread: int, name: str) -> dict[str, Any]:
    return {"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}
