"""Slots that are given in the order in which they were asked for."""

from __future__ import annotations

import threading
from collections import deque


class FairSlots:
    """A semaphore without overtaking: under load each waits its turn, where a plain one lets some wait for ever.

    A slot that is given back goes to whoever waits longest, not to whoever asks next.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"{count} slots would let nobody in")
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        """Take a slot; ``False`` where none came in ``timeout`` seconds."""
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return True
            if timeout <= 0:
                return False
            given = threading.Lock()
            given.acquire()
            self._waiting.append(given)
        if given.acquire(timeout=timeout):
            return True
        with self._lock:
            try:
                self._waiting.remove(given)
            except ValueError:  # it was given in this very moment
                return True
        return False

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
