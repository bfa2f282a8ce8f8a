"""A lane: one path of a session, wherever its backend runs; and the Protocol of the backend itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from crashpath.runtime.errors import Failure
from crashpath.runtime.values import Arrays, Path, Strike


class Backend(Protocol):
    """A loaded model of one library. What it raises is the library's own error; `reasons.recognise` names it."""

    def run(self, feed: Arrays) -> Arrays:
        """Answer a feed that was checked before; outputs by name."""

    def cancel(self, thread: int | None = None) -> None:
        """Ask the run that is going on in ``thread`` (an ident; ``None``: in any) to stop, where the library can."""

    def signature(self) -> LaneSignature:
        """Return what the artefact takes and gives."""

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return names and versions of what runs it."""

    def close(self) -> None:
        """Let go of the model."""


class LaneState(StrEnum):
    """``loading``: not ready yet, or again. ``ready``. ``down``: the last load failed, another is scheduled or not."""

    LOADING = "loading"
    READY = "ready"
    DOWN = "down"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """What a lane says of itself. ``pid`` is the worker's; ``rss`` its resident bytes, 0 where not known.

    ``abandoned``: threads that still run a request whose caller was answered or told otherwise (in process only).
    ``loads``: how often a load was tried, in the background included, and ``failed_loads`` how many of them failed.
    ``failure``: why it is not ready, where that is known; its ``phase`` is ``load`` or ``warmup`` where a load failed.
    ``failed_load``: how the last load that failed did, also when a later one has succeeded. ``idle_deaths``: workers
    that died while nobody was asking them, and ``idle_death`` how the last of them did.
    """

    state: LaneState
    pid: int | None
    rss: int
    restarts: int
    abandoned: int
    versions: tuple[tuple[str, str], ...]
    loads: int = 0
    failed_loads: int = 0
    failure: Failure | None = None
    failed_load: Failure | None = None
    idle_deaths: int = 0
    idle_death: Failure | None = None


@dataclass(frozen=True, slots=True)
class LaneSignature:
    """Names in order of what the loaded artefact itself takes and gives (TorchScript names no outputs: ``None``)."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | None


LoadCheck = Callable[[LaneSignature, Arrays | None], Failure | None]
"""What a load is held to: it gets what the artefact takes and what it answered to its warm-up."""
Clock = Callable[[], float]
"""Monotonic seconds, as `time.monotonic`."""


class Lane(Protocol):
    """One path: a backend in this process or in a worker of its own. All methods may be called from any thread."""

    path: Path

    def load(self, timeout: float) -> None:
        """Load and warm the backend up, within ``timeout`` seconds. Raises `Failure`, or the unknown error as it is."""

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Answer by ``deadline`` (monotonic seconds), waiting for a free turn included.

        Raises `Failure` (a deadline that passed while running is `Hang`), `DeadlineExceeded` where the turn never
        came, `InputError` for what the library says of the caller's feed, and an unknown error as it is. Where the
        backend is gone for good after a failure (a dead worker), the state is no longer ``ready`` when this returns.
        """

    def signature(self) -> LaneSignature:
        """Return what the artefact of the last load takes and gives."""

    def warm(self) -> Arrays | None:
        """Return what the last load's warm-up answered to the golden feed; ``None`` where there was none."""

    def check_with(self, check: LoadCheck) -> None:
        """Hold every later load to ``check``, after its warm-up and before the lane is ``ready``.

        What it returns fails that load, as an artefact that cannot be read would: no request reaches it.
        """

    def arm(self, strike: Strike | None) -> None:
        """Arm one strike, or disarm. A strike in phase ``load`` or ``warmup`` hits the next load."""

    def facts(self) -> LaneFacts:
        """Return state and figures; cheap enough for each request's event."""

    def kill(self) -> None:
        """Take the backend down at once, as a crash would (drills; a poisoned device context)."""

    def close(self) -> None:
        """End the worker or let go of the model; waits for nothing longer than a second."""
