"""Who is inside a session: the last one out, once it is closed, ends it, so that no count is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Inside:
    """Counts requests that are under way. ``last`` is called once: when it is closed and nobody is inside any more."""

    def __init__(self, last: Callable[[], None]) -> None:
        self._last = last
        self._change = threading.Condition(threading.Lock())
        self._count = 0
        self.closed = False

    def enter(self) -> bool:
        """Go in; false where it is closed."""
        with self._change:
            if self.closed:
                return False
            self._count += 1
            return True

    def leave(self) -> None:
        """Go out. Each that entered does it once."""
        with self._change:
            self._count -= 1
            ends = self.closed and not self._count
        if ends:
            self._end()

    def shut(self) -> bool:
        """Let nobody in any more; false where that was so before."""
        with self._change:
            before, self.closed = self.closed, True
            return not before

    def wait(self, timeout: float) -> None:
        """End it where nobody is inside; else wait so long for the last one to do it."""
        with self._change:
            ends = not self._count
            if not ends:
                self._change.wait_for(lambda: not self._count, timeout)
        if ends:
            self._end()

    def _end(self) -> None:
        with self._change:
            last, self._last = self._last, _nothing
            self._change.notify_all()
        last()


def _nothing() -> None:
    """It was ended before."""
