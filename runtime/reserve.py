"""How much of a request's time is kept back for the fallback."""

from __future__ import annotations

import threading
from collections import deque

LEAST, MOST = 0.25, 0.5
"""Shares of the deadline between which the reserve stays; the least one also while the fallback has not answered yet.

What the fallback takes on a calm machine says little of the moment in which it is needed: the main path has just been
killed, and its restart wants the same cores.
"""


class Reserve:
    """Rolling p99 of what the fallback took, waiting for it included, in seconds."""

    def __init__(self, keep: int = 200) -> None:
        self._lock = threading.Lock()
        self._seconds: deque[float] = deque(maxlen=keep)
        self.p99: float | None = None
        self.median = 0.0
        self.quickest = 0.0

    def note(self, seconds: float) -> None:
        """Note what one answer of the fallback took."""
        with self._lock:
            self._seconds.append(seconds)
            known = sorted(self._seconds)
            self.p99 = known[min(len(known) - 1, int(0.99 * len(known)))]
            self.median, self.quickest = known[len(known) // 2], known[0]

    def of(self, deadline: float) -> float:
        """Return the seconds to keep back of a deadline of so many."""
        if self.p99 is None:
            return LEAST * deadline
        return min(max(self.p99, LEAST * deadline), MOST * deadline)
