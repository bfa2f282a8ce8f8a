"""A failure event as the text of a record: a head line that says what the runtime recognised, then the error.

    crashpath.event/1 failure class=oom_host unit=request phase=infer path=ort outcome=contained route=[…]
    HostMemory: the worker was killed while it ran

The text is all that the store keeps of an event, so what is read from an example later is what was read on the night.
The class is believed: the runtime held the exception itself, where a log has only its words. It also stands in the
chain, as what the error was wrapped in: the same words at another time may be another class, and then are another
signature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.model import Parsed, Role, Root, Thrown
from crashpath.ingest.parse_exit import parse_exit
from crashpath.ingest.parse_ort import canonical
from crashpath.ingest.piece import Format
from crashpath.ingest.runtime_events import SCHEMA, FailureEvent
from crashpath.ingest.wording import meaningful

RULE = "runtime-event"
CONTAINED, UNANSWERED = "contained", "unanswered"
_UNKNOWN = "unknown"
_MESSAGE = 16 * 1024
_ROUTE = 200
_HEAD = re.compile(
    rf"{re.escape(SCHEMA)} failure class=(\w+) unit=(\w+) phase=(\w+) path=(\w+) outcome=(\w+) route=\[[^\n]*\]\n"
    r"([^\n:]+): ?"
)
_BLANKS = re.compile(r"[\s:]+")
_OUTCOME = {True: CONTAINED, False: UNANSWERED, None: _UNKNOWN}


@dataclass(frozen=True, slots=True)
class Head:
    """What the head line says, and the error's type and message; what was not known is ``None``."""

    failure_class: str | None
    unit: str | None
    phase: str | None
    outcome: str | None
    type: str
    message: str


def event_text(event: FailureEvent) -> str:
    """Return the text of the record that a failure event is."""
    facts = event.facts
    return (
        f"{SCHEMA} failure class={event.failure_class or UNCLASSIFIED} unit={event.unit or _UNKNOWN}"
        f" phase={facts.phase or _UNKNOWN} path={facts.path or _UNKNOWN} outcome={_OUTCOME[event.answered]}"
        f" route=[{' '.join(event.route.split())[:_ROUTE]}]\n"
        f"{_BLANKS.sub('_', event.type)[:_ROUTE] or 'Failure'}: {event.message[:_MESSAGE]}".rstrip()
    )


def told_by_event(text: str) -> Head | None:
    """Return what an event's text says; ``None`` for every other text."""
    found = _HEAD.match(text) if text.startswith(SCHEMA) else None
    if found is None:
        return None
    failure_class, unit, phase, _, outcome, kind = found.groups()
    return Head(
        None if failure_class == UNCLASSIFIED else failure_class,
        None if unit == _UNKNOWN else unit,
        None if phase == _UNKNOWN else phase,
        None if outcome == _UNKNOWN else outcome,
        kind,
        text[found.end() :],
    )


def event_parsed(head: Head) -> Parsed:
    """Return what an event says, parsed."""
    wrapped_in = () if head.failure_class is None else (Thrown(head.failure_class, "", 0),)
    ends = parse_exit(head.message)
    return Parsed(
        format=Format.EVENT,
        chain=(canonical(Thrown(head.type, head.message, 1)), *wrapped_in),
        signal=next((piece.signal for piece in ends if piece.signal), None),
        exit_code=next((piece.exit_code for piece in ends if piece.exit_code is not None), None),
        unit=head.unit,
        outcome=head.outcome,
    )


def event_root(text: str) -> Root | None:
    """Return the root of an event that names its class; ``None`` where the rules are to be asked."""
    head = told_by_event(text)
    if head is None or head.failure_class is None:
        return None
    rest = text.count("\n") - 1
    return Root(
        type=canonical(Thrown(head.type, head.message, 1)).type,
        message=meaningful(head.message),
        line=1,
        rule=RULE,
        failure_class=head.failure_class,
        roles=(Role.CONFIRMATION, Role.ROOT, *[Role.CONTEXT] * rest),
        phase=head.phase,
    )
