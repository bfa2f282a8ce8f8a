"""Strikes: functions that really fail in the process that runs a path, called through `strike` from a guarded call.

A `Strike` of the runtime names ``crashpath.coverage.strikes:strike``; its argument is `packed`: the strike's name, a
file to leave marks in, and the strike's own argument. The marks (who, and whether it came back) are how a drill
observes that the fault was raised, and in which process.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from crashpath.coverage import (
    strikes_code,
    strikes_device,
    strikes_graph,
    strikes_host,
    strikes_memory,
    strikes_process,
    strikes_waiting,
)

FUNCTION = "crashpath.coverage.strikes:strike"
"""What a `Strike` of the runtime has to name."""

WORDS = 1000
"""Characters of an error's message that a mark keeps."""

MODULES: tuple[ModuleType, ...] = (
    strikes_process,
    strikes_memory,
    strikes_waiting,
    strikes_graph,
    strikes_host,
    strikes_device,
    strikes_code,
)


@dataclass(frozen=True, slots=True)
class Marks:
    """What the mark file of a strike says: the processes that it hit, and how it came back there, if it did.

    ``ended`` are ``Type: message`` of what was raised, in the words of who refused, or ``without an error``.
    """

    pids: tuple[int, ...]
    ended: tuple[str, ...]


def named(name: str) -> Callable[[str], None]:
    """Return the strike of this name (``module.function``, the module without ``strikes_``). Raises `KeyError`."""
    part, _, function = name.partition(".")
    for module in MODULES:
        if module.__name__.endswith(f"strikes_{part}"):
            found: Callable[[str], None] | None = getattr(module, function, None)
            if found is not None:
                return found
    raise KeyError(name)


def module_of(name: str) -> ModuleType:
    """Return the module of a strike; it stands alone, so its source can be written into an app."""
    return next(module for module in MODULES if module.__name__ == named(name).__module__)


def packed(name: str, marks: Path, argument: str) -> str:
    """Put a strike's name, mark file and argument into one text."""
    return "\t".join((name, str(marks), argument))


def strike(argument: str) -> None:
    """Mark that the strike was reached, let it fail, and mark how it ended where this process lives to tell."""
    name, marks, own = argument.split("\t", 2)
    function = named(name)
    if function.__module__.endswith("strikes_process"):
        resource.setrlimit(
            resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
        )  # leaves no core file
    _mark(marks, f"hit {os.getpid()}")
    try:
        function(own)
    except BaseException as error:
        words = " ".join(str(error).split())[:WORDS]
        _mark(marks, f"ended {type(error).__name__}: {words}")
        raise
    _mark(marks, "ended without an error")


def read_marks(marks: Path) -> Marks:
    """Read a mark file; one that is not there was never hit."""
    lines = marks.read_text(encoding="utf-8", errors="replace").splitlines() if marks.exists() else []
    return Marks(
        pids=tuple(int(line.removeprefix("hit ")) for line in lines if line.startswith("hit ")),
        ended=tuple(line.removeprefix("ended ") for line in lines if line.startswith("ended ")),
    )


def _mark(marks: str, line: str) -> None:
    file = os.open(marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(file, f"{line}\n".encode("utf-8", "backslashreplace"))
    finally:
        os.close(file)
