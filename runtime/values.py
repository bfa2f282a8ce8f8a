"""The values that the parts of the runtime hand to each other. Arrays are numpy's; times are seconds unless named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from crashpath.runtime.errors import Failure

Arrays = Mapping[str, NDArray[Any]]
"""Tensors by name: a feed (inputs) or what a path answered (outputs)."""


class Path(StrEnum):
    """Which path ran: the words of a crash's ``path``."""

    MAIN = "ort"
    FALLBACK = "torchscript"


class Phase(StrEnum):
    """Where in a path's life something happened: the words of a crash's ``phase``."""

    PREPARE = "prepare"
    LOAD = "load"
    WARMUP = "warmup"
    INFER = "infer"
    SHUTDOWN = "shutdown"


class BreakerState(StrEnum):
    """``closed``: the main path answers. ``open``: the fallback does. ``half_open``: so it does, and main is probed."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request got. ``cause`` is why the main path did not answer (``None``: it did).

    ``route`` is the id of the declared edge that was taken (`routes.ROUTES`).
    """

    outputs: Arrays
    path: Path
    cause: Failure | None
    route: str
    breaker: BreakerState
    milliseconds: float
    request_id: str


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault to be raised inside the guarded call of a path: for drills. It disarms itself after ``times`` hits.

    ``function`` is ``module:name``, a callable of one text argument, called in the process that runs the path, in
    ``phase``, before the backend is. It hits from the ``nth`` call on (1 is the next), each with ``probability`` drawn
    from ``seed``.
    """

    function: str
    phase: Phase
    argument: str = ""
    nth: int = 1
    times: int = 1
    probability: float = 1.0
    seed: int = 0
