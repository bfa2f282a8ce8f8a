"""Run one child that loads an artefact, with a deadline for each of its steps and a cap on its memory.

The child is `probe_child`; it tells of each step it reached on a pipe. Whatever it does (a segmentation fault, no end,
no memory) is what was found out, and never harms the caller.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import IO, Any

from crashpath.runtime.compare import Compared
from crashpath.runtime.errors import LoadTimeout
from crashpath.runtime.graph_facts import GraphFacts, graph_facts
from crashpath.runtime.reasons import recognise_death
from crashpath.runtime.values import Phase

STARTED, LOADED = "started", "loaded"
_KEEP = 600
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
_TAIL = 2000
_END_S = 10.0


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What the child does. ``cap_mib`` of address space above what it has once its library is imported; 0: none.

    ``as_worker``: the cap is put on where a worker does it, before the library is warm.
    """

    kind: str
    folder: str
    providers: tuple[str, ...]
    threads: int
    cap_mib: int
    as_worker: bool
    start_s: float
    load_s: float
    run_s: float


@dataclass(slots=True)
class Probe:
    """What a child met, up to where it came.

    ``bare``, ``base`` and ``peak`` are resident bytes: with the library imported, with the library warm and no model
    (not as a worker: as ``bare``), and the most there was. ``failure``
    is the class that the registry gives what was raised or the death, empty where nothing failed; ``phase`` where.
    """

    kind: str
    version: str = ""
    bare: int = 0
    base: int = 0
    peak: int = 0
    load_s: float | None = None
    first_ms: float | None = None
    run_ms: float | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] | None = None
    providers: tuple[str, ...] = ()
    compared: Compared | None = None
    graph: GraphFacts | None = None
    failure: str = ""
    phase: str = ""
    message: str = ""
    contacts: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """The artefact was loaded."""
        return self.load_s is not None


def probe(request: ProbeRequest) -> Probe:
    """Run the child to its end, or to the deadline of the step that it is in, and return what it met."""
    found = Probe(request.kind)
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "crashpath.runtime.probe_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | _OFFLINE | ({"MALLOC_ARENA_MAX": "2"} if request.as_worker else {}),
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdout, child.stdin as told:
            try:
                told.write(json.dumps(asdict(request)).encode())
                told.close()
                phase = _follow(child.stdout, request, found)
            except BrokenPipeError:
                phase = Phase.LOAD
            finally:
                late = _end(child)
        errors.seek(0, os.SEEK_END)
        errors.seek(max(0, errors.tell() - _TAIL))
        tail = errors.read().decode(errors="replace")
    if not found.failure and (late or child.returncode != 0):
        _died(found, child.returncode, tail, phase, killed=late)
    return found


def _follow(pipe: IO[bytes], request: ProbeRequest, found: Probe) -> Phase:
    """Take in what the child tells; return the phase it was in when it ended or its time was up."""
    phase, allowed = Phase.LOAD, [request.start_s]
    for line in _lines(pipe, lambda: allowed[0]):
        step = line.pop("step")
        _take(found, line)
        if step == STARTED:
            allowed[0] = request.load_s
        elif step == LOADED:
            phase, allowed[0] = Phase.INFER, request.run_s
        else:
            allowed[0] = request.run_s
    return phase


def _take(found: Probe, line: Mapping[str, Any]) -> None:
    for name, value in line.items():
        if name == "compared":
            value = Compared(**value)
        elif name == "graph":
            value = graph_facts(value)
        elif isinstance(value, list):
            value = tuple(value)
        setattr(found, name, value)


def _lines(pipe: IO[bytes], allowed: Any) -> Iterator[dict[str, Any]]:
    """Yield the child's lines until it closes the pipe or is silent for longer than allowed."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        until = time.monotonic() + allowed()
        while (left := until - time.monotonic()) > 0:
            if not selector.select(left):
                continue
            block = os.read(pipe.fileno(), 1 << 16)
            if not block:
                return
            *whole, rest = (rest + block).split(b"\n")
            for one in whole:
                yield json.loads(one)
                until = time.monotonic() + allowed()


def _end(child: subprocess.Popen[bytes]) -> bool:
    """Let the child end, or end it; return whether it had to be ended."""
    assert child.stdout is not None
    closed = _closed(child)
    if closed:
        try:
            child.wait(_END_S)
            return False
        except subprocess.TimeoutExpired:
            pass  # it told everything and does not end: a library's shutdown hangs
    child.kill()
    child.wait()
    return True


def _closed(child: subprocess.Popen[bytes]) -> bool:
    """Return whether the child has closed its end of the pipe."""
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        return bool(selector.select(0)) and not os.read(child.stdout.fileno(), 1)


def _died(found: Probe, code: int, tail: str, phase: Phase, *, killed: bool) -> None:
    """Name the death, as a lane would."""
    if killed and found.base == 0:
        failure: Any = LoadTimeout("the library itself was not imported in time", "deadline, SIGKILL")
    else:
        failure = recognise_death(code, tail, killed_by_us=phase if killed else None, phase=phase)
    found.failure, found.phase = failure.failure_class, phase.value
    found.message = failure.detail[:_KEEP]
