"""Seconds by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds by stage, in the order in which the stages first ran."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what the block takes to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a stage."""
        self._spent[name] = self._spent.get(name, 0.0) + seconds

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count seconds that were measured inside one stage under another."""
        self.add(source, -seconds)
        self.add(target, seconds)

    @property
    def spent(self) -> tuple[tuple[str, float], ...]:
        """Seconds of each stage."""
        return tuple(self._spent.items())
