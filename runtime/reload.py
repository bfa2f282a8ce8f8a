"""When a lane loads again, and what it says while it is not ready."""

from __future__ import annotations

from dataclasses import dataclass

from crashpath.runtime.errors import Failure, LoadCorrupt, ModelFolderError, NativeCrash
from crashpath.runtime.messages import RemoteError


@dataclass(slots=True)
class Backoff:
    """Seconds until the next attempt: none before the first, then ``first`` doubling to ``longest``.

    `reset` is for what shows that the backend works: an answer, not only a load.
    """

    first: float = 0.1
    longest: float = 5.0
    _next: float = 0.0

    def next(self) -> float:
        """Return the wait before the coming attempt and lengthen the one after it."""
        wait, self._next = self._next, min(max(self.first, self._next * 2), self.longest)
        return wait

    def reset(self) -> None:
        """Begin again without a wait."""
        self._next = 0.0


def kept(error: BaseException) -> BaseException:
    """Return what a lane keeps of an error: a failure without its traceback, whose frames hold feeds in memory."""
    if not isinstance(error, Failure):
        return error
    copy = type(error)(error.detail, error.evidence)
    copy.phase, copy.worker_pid = error.phase, error.worker_pid
    copy.__cause__ = error.__cause__ if isinstance(error.__cause__, RemoteError) else None
    return copy


def while_away(last: BaseException | None, what: str) -> Failure:
    """Return what a request gets that meets a lane which is not ready: the class of the failure that took it down."""
    again: Failure
    if isinstance(last, Failure):
        again = type(last)(f"{what} is not ready since it failed: {last.detail}", f"earlier failure: {last.evidence}")
        again.phase = last.phase
    elif isinstance(last, ModelFolderError):
        again = LoadCorrupt(f"{what} is not ready: {last}", "model folder")
        again.phase = "load"
    else:
        again = NativeCrash(f"{what} is not ready" + (f" since: {last}" if last is not None else ""), "lane not ready")
    again.tried = False
    return again


def as_failure(error: BaseException) -> Failure | None:
    """Return what `LaneFacts.failure` says of the error that took a lane down."""
    if isinstance(error, Failure):
        return error
    return while_away(error, "the path") if isinstance(error, ModelFolderError) else None
