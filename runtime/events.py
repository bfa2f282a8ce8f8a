"""What a session tells its listeners. This part owns the schema; `as_json` is what an event file holds.

One object an event; its keys::

    schema   "crashpath.event/1"          event    the kind, below
    at       UTC, ISO 8601                release platform model model_hash host pid session

    failure  one witness of a failed attempt of one path: attempt_id unit ("request", "load", or null for a worker that
             died while nobody was asking it) phase path class type message route answered by milliseconds breaker
             worker_pid (of the worker that died, else null)
    attempts how often something was tried since the last such event, the denominator of every rate: unit from to
             attempts failures unanswered rerouted batch_id (unique: a batch that was read before is not read again)
    breaker  before after why             lane     path change route reason worker_pid restarts
    probe    route cause                  compare  route equal worst_abs worst_rel where
    domain   from to shapes: how often each shape of feed was asked for since the last such event, as
             {"input_ids=8x64 attention_mask=8x64": 12}

``failures`` counts attempts with at least one ``failure`` event, ``unanswered`` those that nobody answered, and
``rerouted`` those that were sent to the fallback without a try of the main path. Requests that were answered by the
main path are counted, not written.
"""

from __future__ import annotations

import json
import os
import platform as machine
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar

SCHEMA = "crashpath.event/1"
MESSAGE_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Cohort:
    """What is served where: the same on every event of a session. An empty word is unknown."""

    release: str = ""
    platform: str = field(default_factory=lambda: f"{machine.system()}-{machine.machine()}".lower())
    model: str = ""
    model_hash: str = ""
    host: str = field(default_factory=machine.node)
    pid: int = field(default_factory=os.getpid)


@dataclass(frozen=True, slots=True)
class FailureEvent:
    """One path failed in one attempt. ``by`` is who answered in the end; ``breaker`` its state after that.

    ``answered`` is ``None`` where nobody had asked.
    """

    kind: ClassVar[str] = "failure"
    at: float
    attempt_id: str
    unit: str | None
    phase: str
    path: str
    failure_class: str
    type: str
    message: str
    route: str
    answered: bool | None
    by: str | None
    milliseconds: float
    breaker: str
    worker_pid: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptsEvent:
    """Counts between two moments (seconds since the epoch), of requests or loads."""

    kind: ClassVar[str] = "attempts"
    at: float
    unit: str
    since: float
    until: float
    attempts: int
    failures: int
    unanswered: int
    rerouted: int
    batch_id: str


@dataclass(frozen=True, slots=True)
class BreakerEvent:
    """The breaker moved."""

    kind: ClassVar[str] = "breaker"
    at: float
    before: str
    after: str
    why: str
    route: str


@dataclass(frozen=True, slots=True)
class LaneEvent:
    """A path was loaded, went down or came back; ``reason`` is the failure class where there is one."""

    kind: ClassVar[str] = "lane"
    at: float
    path: str
    change: str
    route: str
    reason: str | None
    worker_pid: int | None
    restarts: int


@dataclass(frozen=True, slots=True)
class ProbeEvent:
    """A probe of the main path in shadow ended."""

    kind: ClassVar[str] = "probe"
    at: float
    route: str
    attempt_id: str
    cause: str | None


@dataclass(frozen=True, slots=True)
class CompareEvent:
    """A sampled request was answered by both paths."""

    kind: ClassVar[str] = "compare"
    at: float
    route: str
    attempt_id: str
    equal: bool
    worst_abs: float
    worst_rel: float
    where: str


@dataclass(frozen=True, slots=True)
class DomainEvent:
    """How often each shape of feed (`shapes_text`) was asked for between two moments."""

    kind: ClassVar[str] = "domain"
    at: float
    since: float
    until: float
    shapes: Mapping[str, int]


Event = FailureEvent | AttemptsEvent | BreakerEvent | LaneEvent | ProbeEvent | CompareEvent | DomainEvent


@dataclass(frozen=True, slots=True)
class Told:
    """An event with the session that it is of: what a listener gets."""

    event: Event
    cohort: Cohort
    session: str


Listener = Callable[[Told], None]
"""The only seam. It is called on the thread of whoever caused the event, so it has to be quick."""

_RENAMED = {"failure_class": "class", "since": "from", "until": "to"}
_TIMES = frozenset({"at", "since", "until"})


def as_json(told: Told) -> Mapping[str, Any]:
    """Return the object of an event, in the order of the schema."""
    event = told.event
    out: dict[str, Any] = {"schema": SCHEMA, "at": _utc(event.at), "event": event.kind}
    for one in fields(event):
        if one.name != "at":
            value = getattr(event, one.name)
            out[_RENAMED.get(one.name, one.name)] = _utc(value) if one.name in _TIMES else _plain(value)
    for one in fields(told.cohort):
        out[one.name] = getattr(told.cohort, one.name)
    out["session"] = told.session
    return out


def as_line(told: Told) -> bytes:
    """Return one line of an event file, its end included."""
    return json.dumps(as_json(told), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n"


def shapes_text(inputs: Sequence[str], shapes: Sequence[Sequence[int]]) -> str:
    """Return shapes as an event holds them: ``input_ids=8x64 attention_mask=8x64``; a scalar has none (``x=``)."""
    return " ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in zip(inputs, shapes, strict=True))


def shortened(message: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return a message of bounded length; head and tail are kept, for the cause is at either."""
    if len(message) <= limit:
        return message
    half = (limit - 5) // 2
    return f"{message[:half]} […] {message[-half:]}"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """JSON has no infinity: a difference that cannot be told is ``null``."""
    if isinstance(value, float):
        return round(value, 9) if abs(value) < float("inf") else None
    return value
