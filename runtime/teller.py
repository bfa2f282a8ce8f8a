"""Hands a session's events to its listeners; a listener that raises is counted and harms nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from crashpath.runtime.events import Cohort, Event, Listener, Told


class Teller:
    """Callable with an event. ``now`` gives seconds since the epoch for the events' stamps."""

    def __init__(self, listeners: Sequence[Listener], cohort: Cohort, session: str, now: Callable[[], float]) -> None:
        self._listeners = tuple(listeners)
        self._lock = threading.Lock()
        self.cohort = cohort
        self.session = session
        self.now = now
        self.dropped = 0

    def __call__(self, event: Event) -> None:
        """Tell every listener; what one raises is dropped and counted."""
        for listener in self._listeners:
            try:
                listener(Told(event, self.cohort, self.session))
            except (Exception, SystemExit):  # noqa: BLE001  # a listener is not ours: it must harm no request or thread
                with self._lock:
                    self.dropped += 1
