"""The runtime's events as ingest reads them: one JSON object a line, schema ``crashpath.event/1``.

The runtime owns the schema; a contract test holds this reader to it. A ``failure`` is a crash, ``attempts`` are counts
for the denominators of rates, the rest tells how the runtime fared and gives no crash. Keys that are not known are
left alone; a kind that is not known, a missing key, a value of another type or counts that cannot be is a
``BadEventError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from crashpath.ingest.classes import CLASSES
from crashpath.ingest.facts import make_facts
from crashpath.ingest.model import Facts

NAME = "crashpath.event/"
SCHEMA = f"{NAME}1"
#: Kinds that tell of the runtime and are no crash.
INFORMATIVE = frozenset({"breaker", "lane", "probe", "compare", "answered", "domain"})
UNITS = frozenset({"deployment", "load", "request"})
_CLASS_IDS = frozenset(one.id for one in CLASSES)
MOST_COUNT = 1 << 40  # of one batch: a million a second for twelve days


class BadEventError(ValueError):
    """A line that should be an event and is none; the text says why, in a few words."""


@dataclass(frozen=True, slots=True)
class FailureEvent:
    """A path failed. ``failure_class`` is ``None`` where the runtime knew no reason.

    ``process`` is the id of the worker that failed, where the path had one, else that of the process that served.

    ``answered`` says whether the caller got an answer all the same, ``None`` where the event does not say.
    """

    at: datetime
    facts: Facts
    process: str | None
    unit: str | None
    failure_class: str | None
    type: str
    message: str
    answered: bool | None
    route: str


@dataclass(frozen=True, slots=True)
class AttemptsEvent:
    """How often ``unit`` was tried since the last such event: counts that add up, each ``batch_id`` once.

    ``unanswered`` are some of the ``failures``; these, and ``rerouted``, are some of the ``attempts``.

    ``day`` is the UTC day on which the counts were written down, which is within one flush of every attempt in them.
    """

    batch_id: str
    unit: str
    day: date
    facts: Facts
    attempts: int
    failures: int
    unanswered: int
    rerouted: int


@dataclass(frozen=True, slots=True)
class Informative:
    """An event that is no crash and no count."""

    kind: str


Event = FailureEvent | AttemptsEvent | Informative


def read_event(document: Mapping[str, object]) -> Event:
    """Read one object whose ``schema`` begins with ``NAME``. Raises ``BadEventError``."""
    if document.get("schema") != SCHEMA:
        raise BadEventError(
            f"schema {str(document.get('schema'))[:40]} is not {SCHEMA}: this crashpath is older than it"
        )
    kind = _text(document, "event")
    at = _moment(document, "at")
    if kind == "failure":
        return _failure(document, at)
    if kind == "attempts":
        return _attempts(document, at)
    if kind in INFORMATIVE:
        return Informative(kind)
    raise BadEventError(f"an event of the unknown kind {kind[:40]}")


def _failure(document: Mapping[str, object], at: datetime) -> FailureEvent:
    failure_class = _optional(document, "class")
    answered = document.get("answered")
    if answered is not None and not isinstance(answered, bool):
        raise BadEventError("answered is neither true nor false")
    unit = _optional(document, "unit")
    if unit is not None and unit not in UNITS:
        raise BadEventError(f"unit {unit[:40]} is none of {', '.join(sorted(UNITS))}")
    pid = next((one for key in ("worker_pid", "pid") if _is_pid(one := document.get(key))), None)
    return FailureEvent(
        at=at,
        facts=_facts(document),
        process=None if pid is None else str(pid),
        unit=unit,
        failure_class=failure_class if failure_class in _CLASS_IDS else None,
        type=_optional(document, "type") or failure_class or "Failure",
        message=_optional(document, "message") or "",
        answered=answered,
        route=_optional(document, "route") or "",
    )


def _is_pid(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _attempts(document: Mapping[str, object], at: datetime) -> AttemptsEvent:
    unit = _text(document, "unit")
    if unit not in UNITS:
        raise BadEventError(f"unit {unit[:40]} is none of {', '.join(sorted(UNITS))}")
    written = _moment(document, "to") if document.get("to") is not None else at
    counts = {name: _count(document, name) for name in ("attempts", "failures", "unanswered")}
    counts["rerouted"] = _count(document, "rerouted") if "rerouted" in document else 0
    for part, whole in (("failures", "attempts"), ("unanswered", "failures"), ("rerouted", "attempts")):
        if counts[part] > counts[whole]:
            raise BadEventError(f"{part} {counts[part]} of {whole} {counts[whole]}: a part is larger than the whole")
    return AttemptsEvent(
        batch_id=_text(document, "batch_id"),
        unit=unit,
        day=written.date(),
        facts=_facts(document),
        attempts=counts["attempts"],
        failures=counts["failures"],
        unanswered=counts["unanswered"],
        rerouted=counts["rerouted"],
    )


def _facts(document: Mapping[str, object]) -> Facts:
    names = ("release", "platform", "host", "model", "path", "phase", "attempt_id")
    return make_facts({name: _optional(document, name) or "" for name in names})


def _text(document: Mapping[str, object], key: str) -> str:
    value = _optional(document, key)
    if not value:
        raise BadEventError(f"{key} is missing")
    return value


def _optional(document: Mapping[str, object], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise BadEventError(f"{key} is no text")
    return value


def _count(document: Mapping[str, object], key: str) -> int:
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadEventError(f"{key} is not a whole number from 0")
    if value > MOST_COUNT:
        raise BadEventError(f"{key} is above {MOST_COUNT}, the most of one batch")
    return value


def _moment(document: Mapping[str, object], key: str) -> datetime:
    text = _text(document, key)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadEventError(f"{key} is not a time like 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise BadEventError(f"{key} has no zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadEventError(f"{key} is not a time that can be stored") from None
