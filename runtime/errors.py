"""What the runtime raises, and what it catches.

Error tree::

    ServingError                 root of everything that this part raises
    ├── ModelFolderError         a model folder cannot be served as it is: found at construction
    ├── ExportError              a model cannot be written as a model folder
    ├── InputError               the caller's feed is wrong: no fallback, the breaker does not move
    ├── DeadlineExceeded         nobody answered within the request's deadline
    ├── Saturated                the fallback is at its concurrency limit
    ├── NoAnswer                 both paths failed; ``main`` and ``fallback`` hold the two causes
    ├── SessionClosed            the session was closed before or while the request ran
    └── Failure                  a path failed for a reason that the registry knows (`reasons.REASONS`)
        ├── HostMemory           oom_host
        ├── DeviceMemory         oom_device
        ├── LoadTimeout          load_timeout
        ├── LoadCorrupt          load_corrupt
        ├── TokenizerBroken      tokenizer
        ├── ShapeInference       shape_inference
        ├── UnsupportedOp        unsupported_op
        ├── DeviceInit           device_init
        ├── DeviceFault          device_fault
        ├── NativeCrash          native_crash
        ├── Hang                 hang
        ├── PermissionDisk       permission_disk
        ├── Dependency           dependency
        └── NetworkAuth          network_auth

A `Failure` is one reason; its ``failure_class`` is the id of the failure class that field crashes are put into, so
that what a drill proves and what the field shows are counted in the same words. An error that no reason matches is
not wrapped: it propagates as it is.
"""

from __future__ import annotations

from typing import ClassVar


class ServingError(Exception):
    """Root of everything that the runtime raises."""


class ModelFolderError(ServingError):
    """A model folder cannot be served as it is; the message is one sentence with advice."""


class ExportError(ServingError):
    """A model cannot be written as a model folder; the message is one sentence with advice."""


class InputError(ServingError):
    """The caller's feed is wrong. ``input`` names the input at fault."""

    def __init__(self, input: str, message: str) -> None:
        super().__init__(message)
        self.input = input

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str]]:
        return (type(self), (self.input, str(self)))


class DeadlineExceeded(ServingError):
    """Nobody answered within the deadline; ``__cause__`` is what the main path had failed with, if it had."""


class Saturated(ServingError):
    """The fallback is at its concurrency limit; ``__cause__`` is why the main path did not answer."""


class NoAnswer(ServingError):
    """Both paths failed: one error that holds both causes."""

    def __init__(self, main: BaseException, fallback: BaseException) -> None:
        super().__init__(f"both paths failed: main: {_brief(main)}; fallback: {_brief(fallback)}")
        self.main = main
        self.fallback = fallback


class SessionClosed(ServingError):
    """The session was closed before or while the request ran."""


class Failure(ServingError):
    """A path failed for a known reason.

    ``detail`` is what the library or the dying process said, bounded; ``evidence`` says how the reason was
    recognised (exception type, ORT code, signal, the line that matched). The library's own error, where there
    was one in this process, is ``__cause__``. ``phase`` is the word of `values.Phase`, where whoever raised it knew.
    ``tried`` is false where the path was known to be away and the request never reached it: no failure of its own.
    ``worker_pid`` is the process that died of it, where one did.
    """

    failure_class: ClassVar[str] = "unclassified"
    name: ClassVar[str] = "failure"
    phase: str | None = None
    tried: bool = True
    worker_pid: int | None = None

    def __init__(self, detail: str, evidence: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.evidence = evidence

    def __reduce__(self) -> tuple[type[Failure], tuple[str, str]]:
        return (type(self), (self.detail, self.evidence))


class HostMemory(Failure):
    """Host memory: an allocation was refused, or the process was killed for its memory."""

    failure_class = "oom_host"
    name = "host memory"


class DeviceMemory(Failure):
    """Memory of a GPU or another device."""

    failure_class = "oom_device"
    name = "device memory"


class LoadTimeout(Failure):
    """The path was not ready within its load deadline."""

    failure_class = "load_timeout"
    name = "load timeout"


class LoadCorrupt(Failure):
    """The artefact is missing, cut short, of another format or version, or its graph is invalid."""

    failure_class = "load_corrupt"
    name = "corrupt artefact"


class TokenizerBroken(Failure):
    """The tokenizer or its vocabulary cannot be built."""

    failure_class = "tokenizer"
    name = "tokenizer"


class ShapeInference(Failure):
    """The graph's shapes or types do not fit, at load or inside a run that had a valid feed."""

    failure_class = "shape_inference"
    name = "shapes of the graph"


class UnsupportedOp(Failure):
    """An operator, kernel or type is not implemented by this runtime or device."""

    failure_class = "unsupported_op"
    name = "unsupported operator"


class DeviceInit(Failure):
    """A driver or execution provider cannot start."""

    failure_class = "device_init"
    name = "device start"


class DeviceFault(Failure):
    """The device failed while it computed; its context is poisoned, so the worker must go."""

    failure_class = "device_fault"
    name = "device fault"


class NativeCrash(Failure):
    """The worker died of a signal without a more specific cause."""

    failure_class = "native_crash"
    name = "native crash"


class Hang(Failure):
    """The path did not answer in its share of the deadline while running."""

    failure_class = "hang"
    name = "hang"


class PermissionDisk(Failure):
    """Permission denied, no space left, a read-only file system, shared memory too small."""

    failure_class = "permission_disk"
    name = "permission or disk"


class Dependency(Failure):
    """A library is absent, or two of them do not go together."""

    failure_class = "dependency"
    name = "dependency"


class NetworkAuth(Failure):
    """Refused, unauthorised or unreachable while fetching."""

    failure_class = "network_auth"
    name = "network or authorisation"


FAILURES: tuple[type[Failure], ...] = (
    HostMemory,
    DeviceMemory,
    LoadTimeout,
    LoadCorrupt,
    TokenizerBroken,
    ShapeInference,
    UnsupportedOp,
    DeviceInit,
    DeviceFault,
    NativeCrash,
    Hang,
    PermissionDisk,
    Dependency,
    NetworkAuth,
)


def _brief(error: BaseException, limit: int = 300) -> str:
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return text if len(text) <= limit else text[: limit - 1] + "…"
