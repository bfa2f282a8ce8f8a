"""A lane that keeps what a request was told of it: whether a request met a failed load is seen, not guessed by time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crashpath.runtime.lane import Lane, LaneFacts


class HeardLane:
    """All that ``lane`` is, and `looks`. The session under a drill is made of it."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._of_thread = threading.local()

    def facts(self) -> LaneFacts:
        """As `Lane.facts`, kept for a `looks` of the same thread."""
        facts = self._lane.facts()
        kept: list[LaneFacts] | None = getattr(self._of_thread, "looks", None)
        if kept is not None:
            kept.append(facts)
        return facts

    @contextmanager
    def looks(self) -> Iterator[list[LaneFacts]]:
        """Give a list that fills with what this thread is told, in order, while the block runs.

        A session looks at its main path in the thread of the request, once before it decides where to send it.
        """
        self._of_thread.looks = kept = list[LaneFacts]()
        try:
            yield kept
        finally:
            self._of_thread.looks = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lane, name)
