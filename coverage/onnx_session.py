"""Opens the sessions of ONNX Runtime that coverage watches, and reads the profile that they write.

A profile holds `EVENTS` events and no more; what comes after is lost, and only a line on the standard error of the
process says so. `Profile.full` tells.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashpath.runtime.backends import CPU
from crashpath.runtime.errors import DeviceInit
from crashpath.runtime.folder import ModelFolder

EVENTS = 1_000_000
"""Events that a profile of ONNX Runtime holds."""
_SUFFIX = "_kernel_time"
_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """One run of a node, in which ``request`` of the profile (0 is the first), when (``at``) and how long: in µs."""

    node: str
    operator: str
    provider: str
    at: float
    microseconds: float
    request: int


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
    session = ort.InferenceSession(str(graph), options, providers=list(providers), enable_fallback=False)
    session.disable_fallback()
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


def end_profile(session: Any) -> Profile:
    """End the profile of a session, read it and remove its file. Raises `OSError`, `ValueError` for one cut short."""
    file = Path(session.end_profiling())
    try:
        return read_profile(file)
    finally:
        file.unlink(missing_ok=True)


def read_profile(file: Path) -> Profile:
    """Read a profile. Raises `OSError`, and `ValueError` for a file cut short."""
    with file.open(encoding="utf-8") as text:
        events = json.load(text)
    ends = sorted(event["ts"] + event["dur"] for event in events if event.get("name") == "model_run")
    sizes = Counter(bisect_left(ends, event["ts"]) for event in events if "ts" in event)
    return Profile(tuple(_nodes(events, ends)), len(ends), max(sizes.values(), default=0), len(events) >= EVENTS)


def _nodes(events: Sequence[Mapping[str, Any]], ends: Sequence[float]) -> Iterator[NodeEvent]:
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(_SUFFIX):
            told = event["args"]
            yield NodeEvent(
                event["name"].removesuffix(_SUFFIX),
                told.get("op_name", ""),
                told.get("provider", ""),
                float(event["ts"]),
                float(event["dur"]),
                bisect_left(ends, event["ts"]),
            )
