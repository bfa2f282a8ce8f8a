"""The turns of a path in this process: its slots, the threads that run in them, and those that were given up on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from crashpath.runtime.errors import DeadlineExceeded, Failure
from crashpath.runtime.lane import Backend
from crashpath.runtime.slots import Line
from crashpath.runtime.turn import Turn

T = TypeVar("T")
_Thread = SimpleQueue[Turn[Any] | None]


class Turns:
    """``slots`` turns run at once; ``cap`` is how many threads may be given up on. ``name`` is the path's.

    Threads stay for the next turn. One that does not come back by its turn's deadline is given up: its slot goes to
    another, and it is counted until its work ends.
    """

    def __init__(self, name: str, slots: int, cap: int) -> None:
        self.lock = threading.Lock()
        """Guards what is in here, and what the lane keeps beside it; never held while work runs."""
        self.abandoned = 0
        """Threads that were given up on and have not come back."""
        self._name = name
        self._slots = slots
        self._cap = cap
        self._out = 0  # turns that are under way and waited for
        self._idle: list[_Thread] = []
        self._line = Line(self.lock, self._unwanted)
        self._closed = False

    @property
    def spent(self) -> bool:
        """Whether as many threads as may be were given up on: each of them holds a core and memory."""
        return self.abandoned >= self._cap

    @property
    def quiet(self) -> bool:
        """Whether no work is under way."""
        return not self._out and not self.abandoned

    def perform(
        self, turn: Turn[Any], deadline: float, look: Callable[[], Backend], late: Callable[[], Failure]
    ) -> None:
        """Have ``turn`` performed with the backend that ``look`` gives, in order of arrival; return when it has ended.

        ``look`` is called under the lock, and raises where the path serves nobody now. Raises `DeadlineExceeded` where
        no slot came by ``deadline``, `RuntimeError` where the host has no thread left, and as `wait`.
        """
        with self.lock:
            while True:
                turn.backend = look()
                left = deadline - time.monotonic()
                if self._out < self._slots:
                    break
                if left <= 0:
                    raise DeadlineExceeded(f"no turn on the path {self._name} came by the deadline")
                if self._line.wait(left):
                    self._out -= 1  # it is this one's: the lock is held
            self._out += 1
            thread = self._idle.pop() if self._idle else None
        if thread is None:
            thread = self._started()
        try:
            thread.put(turn)
        except MemoryError:
            with self.lock:
                self._idle.append(thread)
                self._line.hand_on()
            raise
        # What comes between these two lines costs twice: the thread wakes, and waits for the interpreter again.
        if not turn.done.acquire(timeout=left if left > 0 else 0):
            self._give_up(turn, late)

    def wait(self, turn: Turn[Any], deadline: float, late: Callable[[], Failure]) -> None:
        """Wait for the end of a turn; give it up at ``deadline`` and raise what ``late``, under the lock, makes."""
        if not turn.done.acquire(timeout=max(deadline - time.monotonic(), 0)):
            self._give_up(turn, late)

    def _give_up(self, turn: Turn[Any], late: Callable[[], Failure]) -> None:
        with self.lock:
            if turn.over:  # in this very moment
                return
            turn.abandoned = True
            self.abandoned += 1
            if turn.backend is not None:  # it had a slot
                self._line.hand_on()
            if self.spent:
                self._line.send_home()
            raise late()

    def aside(self, turn: Turn[T], name: str, too_late: Callable[[T], None]) -> None:
        """Have ``turn`` performed on a thread of its own, beside the slots. Raises `RuntimeError` as `begin`.

        ``too_late`` gets what it gave where nobody waited for it any more.
        """
        threading.Thread(target=self._carry, args=(turn, too_late), name=f"{self._name}-{name}", daemon=True).start()

    def send_home(self) -> None:
        """Let those who wait for a slot look anew; under the lock."""
        self._line.send_home()

    def close(self) -> None:
        """End the idle threads; the others end when their work does. Under the lock."""
        self._closed = True
        self._line.send_home()
        while self._idle:
            self._idle.pop().put(None)

    def _started(self) -> _Thread:
        try:
            thread: _Thread = SimpleQueue()
            threading.Thread(target=self._serve, args=(thread,), name=f"{self._name}-run", daemon=True).start()
        except BaseException:
            with self.lock:
                self._line.hand_on()
            raise
        return thread

    def _serve(self, turns: _Thread) -> None:
        while (turn := turns.get()) is not None:
            turn.perform()
            with self.lock:
                if turn.abandoned:
                    self.abandoned -= 1
                    return
                turn.over = True
                going = not self._closed
                if going:
                    self._idle.append(turns)
                self._line.hand_on()
            turn.done.release()  # last, as above
            if not going:
                return
            turn = None  # else it is kept until the next comes

    def _carry(self, turn: Turn[T], too_late: Callable[[T], None]) -> None:
        turn.perform()
        with self.lock:
            turn.over = not turn.abandoned
            if turn.abandoned:
                self.abandoned -= 1
        if turn.over:
            turn.done.release()
        elif not turn.failed:
            too_late(turn.outcome())

    def _unwanted(self) -> None:
        self._out -= 1
