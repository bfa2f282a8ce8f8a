"""A listener that tells what happens on the logger ``crashpath.runtime``: failures and paths that go as warnings."""

from __future__ import annotations

import logging

from crashpath.runtime.events import BreakerEvent, CompareEvent, FailureEvent, LaneEvent, ProbeEvent, Told

LOG = logging.getLogger("crashpath.runtime")


def log_events(told: Told) -> None:
    """Log one event; counts of attempts and shapes are not logged."""
    event, model = told.event, told.cohort.model or "a model"
    match event:
        case FailureEvent():
            LOG.warning(
                "%s: %s failed in %s: %s: %s [%s, attempt %s]",
                model, event.path, event.phase, event.failure_class, event.message, event.route, event.attempt_id,
            )  # fmt: skip
        case LaneEvent():
            level = logging.INFO if event.change == "restored" else logging.WARNING
            reason = f" ({event.reason})" if event.reason else ""
            LOG.log(level, "%s: %s is %s%s", model, event.path, event.change, reason)
        case BreakerEvent():
            LOG.warning("%s: the breaker goes from %s to %s (%s)", model, event.before, event.after, event.why)
        case CompareEvent() if not event.equal:
            LOG.warning("%s: the paths answer otherwise: %s [attempt %s]", model, event.where, event.attempt_id)
        case ProbeEvent() if event.cause is not None:
            LOG.warning("%s: a probe of the main path failed: %s", model, event.cause)
        case _:
            pass
