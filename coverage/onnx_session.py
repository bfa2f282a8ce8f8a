"""Opens the sessions of ONNX Runtime that coverage watches, and reads the profile that they write.

A profile holds `EVENTS` events and no more; what comes after is lost, and only a line on the standard error of the
process says so. `Profile.full` tells.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any
from weakref import WeakSet

from crashpath.runtime.backends import CPU
from crashpath.runtime.errors import DeviceInit
from crashpath.runtime.folder import ModelFolder

EVENTS = 1_000_000
"""Events that a profile of ONNX Runtime holds."""
_SUFFIX = "_kernel_time"
_ERRORS_ONLY = 3
_FAILED = re.compile(r"while running \S+ node\. Name:'([^']*)'")
_OPEN: WeakSet[Any] = WeakSet()
"""Sessions that write a profile."""


def _keep() -> None:
    """In a fork: never let go of a session, for its end would write the profile a second time, into the same file."""
    for session in _OPEN:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)


@dataclass(slots=True)
class NodeEvent:
    """One run of a node, in which ``request`` of the profile (0 is the first), when (``at``) and how long: in µs."""

    node: str
    operator: str
    provider: str
    at: float
    microseconds: float
    request: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """What a session did. ``requests`` are those that were answered; ``largest`` is the most events of one of them.

    ``full``: the profile held no more, so nodes may have run that it does not know.
    """

    nodes: tuple[NodeEvent, ...]
    requests: int
    largest: int
    full: bool


def open_watched(
    folder: ModelFolder, graph: Path, providers: Sequence[str], *, plain: bool, saved: Path | None = None
) -> Any:
    """Open a session on ``graph`` that writes a profile into the folder of ``graph``, or of ``saved``.

    ``plain`` is at no optimisation, else as production has it; the rest is always as in production. ``saved`` gets
    the graph that the session has. Raises what ``InferenceSession`` raises.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = folder.limits.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.enable_profiling = True
    options.profile_file_prefix = str((saved or graph).with_name("profile"))
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if saved is not None:
        options.optimized_model_filepath = str(saved)
        beside = saved.with_suffix(".weights").name  # one file holds no more than two gigabytes
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", beside)
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    session = ort.InferenceSession(str(graph), options, providers=list(providers), enable_fallback=False)
    session.disable_fallback()
    _OPEN.add(session)
    return session


def there(providers: Sequence[str]) -> tuple[str, ...]:
    """Return those of the providers that can be used here, the processor where none can."""
    import onnxruntime as ort

    return tuple(one for one in providers if one in ort.get_available_providers()) or (CPU,)


def check_providers(wanted: Sequence[str], found: Sequence[str]) -> None:
    """Hold providers to those that are there. Raises `DeviceInit`, as production does."""
    lacking = [one for one in wanted if one not in found]
    if lacking:
        raise DeviceInit(
            f"{', '.join(lacking)} was requested and is not usable here; there is {', '.join(found)}",
            "providers of the session",
        )


def failed_in(error: BaseException) -> tuple[str, ...]:
    """Return the names of the nodes that a run failed in, outer ones first, as the error of ONNX Runtime tells them."""
    return tuple(_FAILED.findall(str(error)))


def end_profile(session: Any, called: Callable[[str], str] = str) -> Profile:
    """End the profile of a session, read it and remove its file. Raises `OSError`, `ValueError` for one cut short."""
    file = Path(session.end_profiling())
    try:
        return read_profile(file, called)
    finally:
        file.unlink(missing_ok=True)


def read_profile(file: Path, called: Callable[[str], str] = str) -> Profile:
    """Read a profile; ``called`` says what a node of that name is called. Raises `OSError`, `ValueError`."""
    ends: list[float] = []
    starts: list[float] = []
    nodes: list[NodeEvent] = []
    for event in _events(file):
        starts.append(event["ts"])
        if event["name"] == "model_run":
            ends.append(event["ts"] + event["dur"])
        if event["cat"] == "Node" and event["name"].endswith(_SUFFIX):
            nodes.append(_node(event, called))
    ends.sort()
    sizes = Counter(bisect_left(ends, start) for start in starts)
    for node in nodes:
        node.request = bisect_left(ends, node.at)
    return Profile(tuple(nodes), len(ends), max(sizes.values(), default=0), len(starts) >= EVENTS)


def _events(file: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the events, which stand a line each between brackets: a full profile as one value would take gigabytes."""
    with file.open(encoding="utf-8") as text:
        for line in text:
            event = line.strip().rstrip(",")
            if event not in ("[", "]", ""):
                yield json.loads(event)


def _node(event: Mapping[str, Any], called: Callable[[str], str]) -> NodeEvent:
    told = event["args"]
    return NodeEvent(
        intern(called(event["name"].removesuffix(_SUFFIX))),
        intern(told.get("op_name", "")),
        intern(told.get("provider", "")),
        float(event["ts"]),
        float(event["dur"]),
    )
