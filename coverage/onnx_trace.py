"""Sees which nodes of the main path run: ONNX Runtime's profile of a copy whose nodes are named by their place.

The copy runs at no optimisation, so that a node of the graph is a node of the session. What ONNX Runtime replaces all
the same is looked up in the graph that the session says it has: by what makes the same tensor, else as removed. The
profile is written when it ends, and knows at most a million events; a tracer therefore renews its session before that.
"""

from __future__ import annotations

import json
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from crashpath.coverage.batches import batch_of
from crashpath.coverage.experts import Chosen
from crashpath.coverage.onnx_units import MODEL, Named, makers, present, write_named
from crashpath.coverage.units import Kind, Placed, Timing, Trace
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

EVENTS = 1_000_000
"""Events that a profile of ONNX Runtime holds; what comes after is lost without a word."""
REMOVED = "ONNX Runtime removes it when it loads, at no optimisation, too"
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


class MainTracer:
    """Runs feeds on the main path and sees every node. Open it, `run`, and close it: `trace` is what was seen.

    ``providers`` are asked for as in production. ``limit`` is the number of events after which the session is renewed.
    """

    def __init__(self, folder: ModelFolder, providers: Sequence[str], *, limit: int = EVENTS // 2) -> None:
        self._folder = folder
        self._providers = tuple(providers)
        self._limit = limit
        self._scratch = tempfile.TemporaryDirectory(prefix="crashpath-trace-")
        self._named: Named = write_named(folder.main, Path(self._scratch.name))
        self._session: Any = None
        self._batches: list[int] = []  # of the requests that the profile under way holds
        self._per_run = 0
        self._hits: Counter[str] = Counter()
        self._providers_of: dict[str, str] = {}
        self._assigned: dict[str, str] = {}
        self._spent: Counter[tuple[str, int]] = Counter()
        self._calls: Counter[tuple[str, int]] = Counter()
        self._gone: dict[str, str] = {}
        self.last: tuple[NodeEvent, ...] = ()
        """The profile that ended last."""
        self._outputs = [spec.name for spec in folder.outputs]
        self._choices = [one.indices for one in self._named.routers if one.indices not in self._outputs]
        self._chosen = Chosen(self._named.routers)

    @property
    def declared(self) -> Named:
        """The units of the main path."""
        return self._named

    def run(self, feed: Arrays) -> Arrays:
        """Answer a feed, traced. Raises what ``InferenceSession.run`` raises; what ran until then is seen, too."""
        if self._session is None:
            self._open()
        self._batches.append(batch_of(feed))
        try:
            answered = self._session.run([*self._outputs, *self._choices], dict(feed))
        except BaseException:
            self._end()
            raise
        if not self._per_run or len(self._batches) * self._per_run > self._limit:  # unknown until one has ended
            self._end()
        outputs = dict(zip((*self._outputs, *self._choices), answered, strict=True))
        for router in self._named.routers:
            self._chosen.add(router.id, outputs[router.indices])
        return {name: outputs[name] for name in self._outputs}

    def _open(self) -> None:
        import onnxruntime as ort

        folder = Path(self._scratch.name)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = self._folder.limits.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        first = not self._assigned
        if first:
            options.optimized_model_filepath = str(folder / "session.onnx")
        there = [one for one in self._providers if one in ort.get_available_providers()]
        self._session = ort.InferenceSession(
            str(folder / MODEL), options, providers=there or ["CPUExecutionProvider"], enable_fallback=False
        )
        if first:
            self._compare(folder / "session.onnx")
            for group in self._session.get_provider_graph_assignment_info():
                self._assigned |= {node.name: group.ep_name for node in group.get_nodes()}
        self._batches = []

    def _compare(self, graph: Path) -> None:
        """Look up what became of each declared node in the graph that the session has."""
        import onnx

        model = onnx.load(str(graph), load_external_data=False)
        graph.unlink()
        there, by_tensor = present(model), makers(model)
        for (_, tensor), unit in self._named.outputs.items():
            if unit in there or unit in self._gone:
                continue
            maker = by_tensor.get(tensor)
            self._gone[unit] = REMOVED if maker is None else f"ONNX Runtime puts {maker} in its place"
            if maker is not None:
                self._gone[unit] = f"={maker}"

    def _end(self) -> None:
        if self._session is None:
            return
        file = Path(self._session.end_profiling())
        self._session = None
        try:
            events = tuple(read_profile(file))
        finally:
            file.unlink(missing_ok=True)
        self._per_run = max(self._per_run, len(events) // max(len(self._batches), 1), 1)
        self.last = events
        for event in events:
            self._hits[event.node] += 1
            self._providers_of[event.node] = event.provider
            key = (event.operator, self._batches[min(event.request, len(self._batches) - 1)])
            self._calls[key] += 1
            self._spent[key] += int(event.microseconds)

    def trace(self) -> Trace:
        """Return what was seen until now."""
        self._end()
        units = {unit.id: unit for unit in self._named.declared.units if unit.kind is Kind.NODE}
        hits = {unit: self._hits[unit] for unit in units if self._hits[unit]} | dict(self._chosen.hits)
        replaced = {}
        for unit, how in self._gone.items():
            if not units[unit].counted:
                continue
            if how.startswith("="):  # another node makes its tensor: it ran if that did
                if count := self._hits[how[1:]]:
                    hits[unit] = count
                replaced[unit] = f"ONNX Runtime runs {how[1:]} in its place"
            else:
                replaced[unit] = how
        placed = tuple(
            Placed(unit, units[unit].label, self._assigned.get(unit, ""), self._providers_of.get(unit, ""))
            for unit in units
            if units[unit].counted and unit not in self._gone
        )
        timings = tuple(
            Timing(Which.MAIN, *key, self._calls[key], self._spent[key] / 1e6) for key in sorted(self._calls)
        )
        return Trace(Which.MAIN, hits, timings, placed, replaced)

    def close(self) -> None:
        """End the session and remove the copy."""
        self._end()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_profile(file: Path) -> Iterator[NodeEvent]:
    """Yield the runs of nodes in a profile of ONNX Runtime. Raises `OSError`, and `ValueError` for a file cut short."""
    with file.open(encoding="utf-8") as text:
        events = json.load(text)
    ends = sorted(event["ts"] + event["dur"] for event in events if event.get("name") == "model_run")
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
