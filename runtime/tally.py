"""Counts of what a session did: bounded, quick to add to, read as a whole."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass

from crashpath.runtime.routes import MAIN_ANSWERED, ROUTES
from crashpath.runtime.values import Path

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the latency histogram, in seconds; one more bucket holds what is above."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Answers of one path: counts a bucket of `BUCKETS` and above it, and the sum of seconds."""

    path: Path
    counts: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Count:
    """How often something was tried since the session began, as in `events.AttemptsEvent`."""

    attempts: int = 0
    failures: int = 0
    unanswered: int = 0
    rerouted: int = 0

    def plus(self, other: Count) -> Count:
        """Return both together."""
        return Count(
            self.attempts + other.attempts,
            self.failures + other.failures,
            self.unanswered + other.unanswered,
            self.rerouted + other.rerouted,
        )

    def minus(self, other: Count) -> Count:
        """Return what came since ``other``."""
        return Count(
            self.attempts - other.attempts,
            self.failures - other.failures,
            self.unanswered - other.unanswered,
            self.rerouted - other.rerouted,
        )


Shapes = tuple[tuple[int, ...], ...]
"""The shapes of a feed, in the order of the declared inputs; empty where they are not known or not told apart."""

MOST_SHAPES = 1024
"""Different shapes that are counted apart; what comes after is counted together, under none."""


@dataclass(frozen=True, slots=True)
class Figures:
    """All counts at one moment. ``routes`` holds every declared route, also those never taken."""

    requests: Count
    loads: Count
    routes: tuple[tuple[str, int], ...]
    latencies: tuple[Latency, ...]
    shapes: tuple[tuple[Shapes, int], ...] = ()


class Tally:
    """Adds up. One short lock; no request waits for a model under it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._routes = dict.fromkeys((route.id for route in ROUTES), 0)
        self._counts = {path: [0] * (len(BUCKETS) + 1) for path in Path}
        self._seconds = dict.fromkeys(Path, 0.0)
        self._main = self._counts[Path.MAIN]
        self._main_answers = 0
        self._requests = Count()
        self._loads = Count()
        self._shapes: dict[Shapes, int] = {}

    def main_answered(self, seconds: float, shapes: Shapes = ()) -> None:
        """Count a request that the main path answered without a failure anywhere: the hot path."""
        bucket = bisect_left(BUCKETS, seconds)
        with self._lock:
            self._routes[MAIN_ANSWERED] += 1
            self._main[bucket] += 1
            self._seconds[Path.MAIN] += seconds
            self._main_answers += 1
            self._shape(shapes)

    def _shape(self, shapes: Shapes) -> None:
        if shapes not in self._shapes and len(self._shapes) >= MOST_SHAPES:
            shapes = ()
        self._shapes[shapes] = self._shapes.get(shapes, 0) + 1

    def request(self, route: str, by: Path | None, seconds: float, counts: Count, shapes: Shapes = ()) -> None:
        """Count any other request; ``by`` is who answered. Raises `KeyError` for a route that is not declared."""
        with self._lock:
            self._shape(shapes)
            self._routes[route] += 1
            self._requests = self._requests.plus(counts)
            if by is not None:
                self._counts[by][bisect_left(BUCKETS, seconds)] += 1
                self._seconds[by] += seconds

    def route(self, route: str) -> None:
        """Count an edge that ends no attempt. Raises `KeyError` for one that is not declared."""
        with self._lock:
            self._routes[route] += 1

    def load(self, route: str, counts: Count) -> None:
        """Count a load of a path."""
        with self._lock:
            self._routes[route] += 1
            self._loads = self._loads.plus(counts)

    def figures(self) -> Figures:
        """Return all counts of this moment."""
        with self._lock:
            return Figures(
                self._requests.plus(Count(self._main_answers)),
                self._loads,
                tuple(self._routes.items()),
                tuple(Latency(path, tuple(self._counts[path]), self._seconds[path]) for path in Path),
                tuple(self._shapes.items()),
            )
