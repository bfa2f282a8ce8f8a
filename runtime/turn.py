"""One piece of work that a thread does for another, which may stop waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from crashpath.runtime.lane import Backend

T = TypeVar("T")


class Turn(Generic[T]):
    """One piece of work on a thread: who waits for it learns of its end by the lock ``done``, which is released then.

    An event would do the same at several times the cost: a thread and back takes some 30 µs this way. ``backend`` is
    what a run is given to work with, ``ident`` the thread that it got. Whether its end (``over``) or that of the
    waiting (``abandoned``) came first, the lock of whoever hands turns out decides.
    """

    __slots__ = ("_error", "_result", "abandoned", "backend", "done", "ident", "over", "work")

    def __init__(self, work: Callable[[Turn[T]], T]) -> None:
        self.work = work
        self.done = threading.Lock()
        self.done.acquire()
        self.backend: Backend | None = None
        self.ident: int | None = None
        self.abandoned = False
        self.over = False
        self._result: T | None = None
        self._error: BaseException | None = None

    def perform(self) -> None:
        """Do the work and keep how it ended; whoever called this then releases ``done``, or lets it be."""
        self.ident = threading.get_ident()
        try:
            self._result = self.work(self)
        except BaseException as error:  # noqa: BLE001 - the thread's boundary: it is raised where the caller waits
            self._error = error

    @property
    def failed(self) -> bool:
        """Whether the work raised."""
        return self._error is not None

    def outcome(self) -> T:
        """Return what the work gave, or raise what it raised; once only."""
        if self._error is None:
            return cast(T, self._result)
        error, self._error = self._error, None
        try:
            raise error
        finally:
            del error  # else its traceback and this frame keep each other, and the feed, alive
