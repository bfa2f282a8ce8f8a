"""Name what went wrong: from a library's error to a `Failure`, and from a worker's death to one.

What no reason matches is not wrapped: `recognise` returns ``None`` and the error propagates as it is.
"""

from __future__ import annotations

import builtins
import re
import signal

from crashpath.runtime.errors import (
    DeviceFault,
    DeviceInit,
    DeviceMemory,
    Failure,
    Hang,
    HostMemory,
    InputError,
    LoadTimeout,
    NativeCrash,
    PermissionDisk,
)
from crashpath.runtime.reason import Reason, bounded, masked
from crashpath.runtime.reason_table import REASONS
from crashpath.runtime.values import Path, Phase

__all__ = ["REASONS", "recognise", "recognise_death"]

_TAIL_LINES = 40
_ERROR_LINE = re.compile(r"^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Timeout|Fail|Interrupt))(?:: (?P<text>.*))?$")
_DEATH_LINES: tuple[tuple[type[Failure], re.Pattern[str]], ...] = (
    (
        DeviceMemory,
        re.compile(r"(?:CUDA|HIP)(?: error:| failure \d+:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAll"),
    ),
    (HostMemory, re.compile(r"bad_alloc|[Cc]annot allocate memory|DefaultCPUAllocator: .*memory|[Oo]ut of memory")),
    (
        DeviceInit,
        re.compile(r"CUDA error: (?:invalid device ordinal|no kernel image|no CUDA-capable|initialization|system)"),
    ),
    (DeviceFault, re.compile(r"illegal memory access|device-side assert\b|CUDA error:|\bXid\b")),
    (PermissionDisk, re.compile(r"insufficient shared memory|No space left on device")),
)
"""What a process that dies of a signal may have said before, by which its cause is known."""


def recognise(error: BaseException, phase: Phase, path: Path) -> Failure | InputError | None:
    """Return the failure that ``error`` is in ``phase`` of ``path``, or ``None`` where no reason knows it.

    An explicit cause (``raise … from cause``) names the failure before what was raised over it. The error is the
    failure's ``__cause__``, and its ``phase`` is set.
    """
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    for one in reversed(chain):
        found = _of_error(one, phase)
        if found is None:
            continue
        if isinstance(found, Failure):
            found.phase = found.phase or phase.value
            found.evidence = f"{found.evidence} on path {path.value}" if found is not one else found.evidence
        if found is not error:
            found.__cause__ = error
        return found
    return None


def recognise_death(
    exit: int, stderr_tail: str, *, killed_by_us: Phase | None = None, oom_kills: int = 0, phase: Phase = Phase.INFER
) -> Failure:
    """Return the failure by which a worker ended.

    ``exit`` is the return code (a signal is negative), ``stderr_tail`` the last of what it wrote, ``killed_by_us`` the
    phase whose deadline made the lane kill it, ``oom_kills`` how many more out-of-memory kills the kernel counts than
    when the worker was started, ``phase`` what the worker was doing.
    """
    failure = _of_death(exit, stderr_tail, killed_by_us, oom_kills, phase)
    failure.phase = (killed_by_us or phase).value
    return failure


def _of_death(exit: int, tail: str, killed_by_us: Phase | None, oom_kills: int, phase: Phase) -> Failure:
    if killed_by_us is not None:
        kind = LoadTimeout if killed_by_us in (Phase.LOAD, Phase.WARMUP) else Hang
        return kind(f"the worker did not answer in time in phase {killed_by_us}, so it was ended", "deadline, SIGKILL")
    ended = _ending(exit)
    told = _of_tail(tail, phase)
    if told is not None:
        failure, line = told
        return failure(bounded(f"{line} (the worker ended with {ended})"), f"{ended}; stderr: {line[:200]}")
    if ended == "SIGKILL":
        why = f"the kernel counts {oom_kills} more out-of-memory kills" if oom_kills else "nothing else explains it"
        return HostMemory(f"the worker was killed; {why}", f"SIGKILL; {why}")
    if ended == "SIGXFSZ":
        return PermissionDisk("the worker wrote more than its file size limit", ended)
    lines = [line for line in tail.strip().splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("Fatal Python error")), lines[-1] if lines else "nothing")
    return NativeCrash(bounded(f"the worker ended with {ended}; it said: {said}"), ended)


def _ending(exit: int) -> str:
    number = -exit if exit < 0 else exit - 128 if 128 < exit < 193 else 0
    try:
        return signal.Signals(number).name if number else f"exit code {exit}"
    except ValueError:
        return f"signal {number}"


def _of_tail(tail: str, phase: Phase) -> tuple[type[Failure], str] | None:
    lines = tail.strip().splitlines()[-_TAIL_LINES:]
    for failure, pattern in _DEATH_LINES:
        for line in lines:
            if pattern.search(line):
                return failure, line.strip()
    for line in reversed(lines):
        match = _ERROR_LINE.match(line)
        if match is None:
            continue
        known = getattr(builtins, match["type"], None)
        names = _names(known) if isinstance(known, type) else (match["type"],)
        found = _first(names, masked(match["text"] or ""), phase)
        if found is not None and issubclass(found[0].failure, Failure):
            return found[0].failure, line.strip()
        return None  # the last error that was printed is what ended it
    return None


def _of_error(error: BaseException, phase: Phase) -> Failure | InputError | None:
    if isinstance(error, (Failure, InputError)):
        return error
    message = str(error)
    found = _first(_names(type(error)), masked(message), phase)
    if found is None:
        return None
    reason, match = found
    detail = bounded(message) or type(error).__name__
    if issubclass(reason.failure, InputError):
        groups = match.groupdict() if isinstance(match, re.Match) else {}
        return InputError(next((name for name in groups.values() if name), ""), detail)
    said = f": {match[0]!r}" if isinstance(match, re.Match) else ""
    return reason.failure(detail, f"{_names(type(error))[0]}{said}")


def _first(names: tuple[str, ...], text: str, phase: Phase) -> tuple[Reason, re.Match[str] | bool] | None:
    for reason in REASONS:
        match = reason.holds(names, text, phase)
        if match is not False:
            return reason, match
    return None


def _names(kind: type) -> tuple[str, ...]:
    return tuple(f"{one.__module__}.{one.__qualname__}" for one in kind.__mro__)
