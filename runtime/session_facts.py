"""What a session says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from crashpath.runtime.lane import LaneFacts
from crashpath.runtime.tally import Figures
from crashpath.runtime.values import BreakerState


@dataclass(frozen=True, slots=True)
class Readiness:
    """``ready``: requests are answered. ``degraded``: without one of the paths; ``why`` says it."""

    ready: bool
    degraded: bool
    why: str


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """State and figures of a session.

    ``dropped_events``: listeners raised on them. ``skipped``: samples that were not compared. ``missed_looks``: times
    at which looking after the paths failed.
    """

    main: LaneFacts
    fallback: LaneFacts
    breaker: BreakerState
    switched: bool
    figures: Figures
    dropped_events: int
    skipped: int
    missed_looks: int
