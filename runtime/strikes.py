"""Strikes: faults that are raised inside the guarded call of a path.

Whether a call is hit is decided where the lane is, so that a strike that ends the worker counts as a hit and is not
armed anew in the next one; what it does happens where the backend is.
"""

from __future__ import annotations

import importlib
import random
import threading
from collections.abc import Callable

from crashpath.runtime.values import Phase, Strike


class Armed:
    """Counts the calls of a lane and says which are hit. At most one strike at a time; any thread may ask."""

    def __init__(self, strike: Strike | None = None) -> None:
        self._lock = threading.Lock()
        self._strike: Strike | None = None
        self._calls = 0
        self._hits = 0
        self._random = random.Random(0)
        self.set(strike)

    def set(self, strike: Strike | None) -> None:
        """Arm ``strike`` in place of the one before, with counts from zero; ``None`` disarms."""
        with self._lock:
            self._strike, self._calls, self._hits = strike, 0, 0
            self._random = random.Random(strike.seed if strike is not None else 0)

    @property
    def strike(self) -> Strike | None:
        """What is armed still."""
        return self._strike

    def due(self, phase: Phase) -> Strike | None:
        """Count a call in ``phase`` and return the strike that hits it; after its last hit it is disarmed."""
        if self._strike is None:  # the common case takes no lock
            return None
        with self._lock:
            strike = self._strike
            if strike is None or strike.phase is not phase:
                return None
            self._calls += 1
            if self._calls < strike.nth or self._random.random() >= strike.probability:
                return None
            self._hits += 1
            if self._hits >= strike.times:
                self._strike = None
            return strike

    def fire(self, phase: Phase) -> None:
        """Call the strike that is due in ``phase``, in this thread. Raises what it raises."""
        strike = self.due(phase)
        if strike is not None:
            call(strike.function, strike.argument)


def call(function: str, argument: str) -> None:
    """Call ``module:name`` with ``argument``. Raises `ValueError` where there is no such function."""
    module, _, name = function.partition(":")
    try:
        target: Callable[[str], object] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"strike {function!r} cannot be resolved ({error}); write it as module:function") from error
    target(argument)
