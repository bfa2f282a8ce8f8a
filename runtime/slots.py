"""Turns that are given in the order in which they were asked for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Line:
    """Those who wait for a turn, in the order in which they came. All of it is called with ``lock`` held.

    A turn is handed to whoever waits longest, not to whoever asks next, so nobody is overtaken; ``unwanted`` is called
    for a turn that nobody waits for.
    """

    def __init__(self, lock: threading.Lock, unwanted: Callable[[], None]) -> None:
        self._lock = lock
        self._unwanted = unwanted
        self._waiting: deque[_Place] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, timeout: float) -> bool:
        """Wait, with the lock let go, for a turn; ``False`` where none came in time, or all were sent home.

        A turn that comes too late, or meets an interrupt, goes to the next.
        """
        place = _Place()
        self._waiting.append(place)
        in_time = False
        self._lock.release()
        try:
            in_time = place.woken.acquire(timeout=timeout)
        finally:
            self._lock.acquire()
            if place in self._waiting:
                self._waiting.remove(place)
            elif place.given and not in_time:
                self.hand_on()
        return in_time and place.given

    def hand_on(self) -> None:
        """Give a turn to whoever waits longest."""
        if not self._waiting:
            self._unwanted()
            return
        place = self._waiting.popleft()
        place.given = True
        place.woken.release()

    def send_home(self) -> None:
        """Let everybody look anew, without a turn."""
        while self._waiting:
            self._waiting.popleft().woken.release()


class _Place:
    __slots__ = ("given", "woken")

    def __init__(self) -> None:
        self.given = False
        self.woken = threading.Lock()
        self.woken.acquire()


class FairSlots:
    """A semaphore without overtaking: under load each waits its turn, where a plain one lets some wait for ever."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"{count} slots would let nobody in")
        self._lock = threading.Lock()
        self._free = count
        self._line = Line(self._lock, self._unwanted)

    def acquire(self, timeout: float) -> bool:
        """Take a slot; ``False`` where none came in ``timeout`` seconds."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            return timeout > 0 and self._line.wait(timeout)

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._line.hand_on()

    def _unwanted(self) -> None:
        self._free += 1
