"""What a lane and its worker tell each other, as values, and their form in JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crashpath.runtime.errors import FAILURES, InputError, ModelFolderError, ServingError
from crashpath.runtime.segment import Placed
from crashpath.runtime.values import Phase

TRACEBACK = 4000


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a worker is started with. ``socket``, ``feed`` and ``answer`` are open files that it inherits."""

    socket: int
    feed: int
    answer: int
    parent: int
    backend: str
    folder: str
    threads: int
    providers: tuple[str, ...]
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a worker: load, or run the tensors that lie in the feed segment. ``id`` comes back with the reply.

    ``strike`` is function and argument of what to call before the backend.
    """

    id: int
    phase: Phase
    tensors: tuple[Placed, ...] = ()
    size: int = 0
    strike: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the form for the channel."""
        return {
            "id": self.id,
            "phase": self.phase.value,
            "tensors": _listed(self.tensors),
            "size": self.size,
            "strike": self.strike,
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Ask:
        """Read it back."""
        strike = raw["strike"]
        called = None if strike is None else (strike[0], strike[1])
        return cls(raw["id"], Phase(raw["phase"]), _placed(raw["tensors"]), raw["size"], called)


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error on its way from a worker. ``kind`` is the class in this package; ``""`` is an error that nobody knows.

    ``type`` is the dotted name of the library's error, ``trace`` its traceback there.
    """

    kind: str
    message: str
    evidence: str
    input: str
    type: str
    trace: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answers: tensors in the answer segment, or ``trouble``; after a load also what it loaded."""

    id: int
    tensors: tuple[Placed, ...] = ()
    size: int = 0
    trouble: Trouble | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] | None = None
    versions: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the form for the channel."""
        message: dict[str, Any] = {"id": self.id, "tensors": _listed(self.tensors), "size": self.size}
        if self.trouble is not None:
            told = self.trouble
            message["trouble"] = [told.kind, told.message, told.evidence, told.input, told.type, told.trace]
        if self.versions:
            message |= {"inputs": self.inputs, "outputs": self.outputs, "versions": self.versions}
        return message

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Reply:
        """Read it back."""
        trouble, outputs = raw.get("trouble"), raw.get("outputs")
        return cls(
            raw["id"],
            _placed(raw["tensors"]),
            raw["size"],
            None if trouble is None else Trouble(*trouble),
            tuple(raw.get("inputs", ())),
            None if outputs is None else tuple(outputs),
            tuple((name, version) for name, version in raw.get("versions", ())),
        )


class RemoteError(Exception):
    """An error that no reason knows, raised in a worker: ``type`` is its dotted name, ``trace`` where it was raised."""

    def __init__(self, type: str, message: str, trace: str) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type
        self.trace = trace

    def __reduce__(self) -> tuple[type[RemoteError], tuple[str, str, str]]:
        return (RemoteError, (self.type, str(self).removeprefix(f"{self.type}: "), self.trace))


_KINDS = {kind.__name__: kind for kind in FAILURES}


def to_error(trouble: Trouble, phase: Phase) -> Exception:
    """Return the error to raise in the lane for what happened in the worker; its cause is a `RemoteError`."""
    remote = RemoteError(trouble.type, trouble.message, trouble.trace)
    error: ServingError
    if trouble.kind in _KINDS:
        error = failure = _KINDS[trouble.kind](trouble.message, trouble.evidence)
        failure.phase = phase.value
    elif trouble.kind == InputError.__name__:
        error = InputError(trouble.input, trouble.message)
    elif trouble.kind == ModelFolderError.__name__:
        error = ModelFolderError(trouble.message)
    else:
        return remote
    error.__cause__ = remote
    return error


def _listed(tensors: tuple[Placed, ...]) -> list[list[object]]:
    return [[at.name, at.dtype, list(at.shape), at.offset] for at in tensors]


def _placed(raw: list[list[Any]]) -> tuple[Placed, ...]:
    return tuple(Placed(name, dtype, tuple(shape), offset) for name, dtype, shape, offset in raw)
