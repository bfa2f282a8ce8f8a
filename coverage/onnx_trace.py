"""Sees which nodes of the main path run: ONNX Runtime's profile of a copy whose nodes are named by their place.

The copy runs at no optimisation, so that a node of the graph is a node of the session. Some are not, all the same: an
operator that ONNX Runtime has no kernel for (Mish, GroupNormalization) is dissolved into others that have no name.
Behind such a node the copy has a marker, an ``Identity`` that runs when what the node makes is there; so a node that is
replaced counts as often as it is answered. What is removed instead is in no denominator. A node that raised has not
completed and does not count, nor does the branch, the loop or the call around it.

The profile is written when it ends, holds a million events and takes two kilobytes of memory for each. So a tracer
renews its session after as many requests as make a tenth of that, each as large as the largest before. No renewal
helps where one request alone is larger than a profile, or ten times as large as any before: the trace says so.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from crashpath.coverage.batches import batch_of
from crashpath.coverage.experts import Chosen
from crashpath.coverage.onnx_graph import MARK, mark, place_of, present
from crashpath.coverage.onnx_session import EVENTS, NodeEvent, end_profile, failed_in, open_watched, there
from crashpath.coverage.onnx_units import MODEL, Named, write_named
from crashpath.coverage.scratch import Scratch
from crashpath.coverage.units import Kind, Placed, Timing, Trace, Unit
from crashpath.runtime.backends import CPU
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

REMOVED = "ONNX Runtime removes it when it loads, at no optimisation, too"
FULL = (
    f"the profile of ONNX Runtime was full ({EVENTS:,} events): counts of nodes of the main path are too low, and "
    "nodes that ran late may be missing; trace feeds that take fewer turns"
)


class MainTracer:
    """Runs feeds on the main path and sees every node. Open it, `run`, and close it: `trace` is what was seen.

    ``providers`` are asked for as in production. ``limit`` is the number of events after which the session is renewed.
    It runs one feed at a time, whichever thread asks: `Tracer` sees to that. Raises `OutsideError`, `OSError`, and what
    the format's library raises of a file that is no model.
    """

    def __init__(self, folder: ModelFolder, providers: Sequence[str], *, limit: int = EVENTS // 10) -> None:
        self._folder = folder
        self._providers = tuple(providers)
        self._limit = limit
        self._pid = os.getpid()
        self._scratch = Scratch("trace")
        self._named = self._write()
        self._session: Any = None
        self._batches: list[int] = []  # of the requests that the profile under way holds
        self._per_run = 0
        self._hits: Counter[str] = Counter()  # how often a node began
        self._failed: Counter[str] = Counter()  # of that: how often it, or a node in it, raised
        self._providers_of: dict[str, str] = {}
        self._assigned: dict[str, str] = {}
        self._spent: Counter[tuple[str, int]] = Counter()
        self._calls: Counter[tuple[str, int]] = Counter()
        self._marked: frozenset[str] = frozenset()
        self._gone: frozenset[str] = frozenset()
        self._full = False
        self.last: tuple[NodeEvent, ...] = ()
        """The profile that ended last."""
        self._outputs = [spec.name for spec in folder.outputs]
        self._choices = [one.indices for one in self._named.routers if one.indices not in self._outputs]
        self._chosen = Chosen(self._named.routers)

    def _write(self) -> Named:
        """Write the named copy, or nothing. Raises what `write_named` raises."""
        try:
            return write_named(self._folder.main, self._scratch.path)
        except BaseException:
            self._scratch.close()
            raise

    @property
    def declared(self) -> Named:
        """The units of the main path."""
        return self._named

    def run(self, feed: Arrays) -> Arrays:
        """Answer a feed, traced. Raises what ``InferenceSession.run`` raises; what completed till then is seen."""
        if self._session is None:
            self._open()
        self._batches.append(batch_of(feed))
        try:
            answered = self._session.run([*self._outputs, *self._choices], dict(feed))
        except BaseException as error:
            self._end(failed=True)
            self._failed.update(self._not_completed({place_of(name) for name in failed_in(error)}))
            raise
        if not self._per_run or len(self._batches) * self._per_run > self._limit:  # unknown until one has ended
            self._end()
        outputs = dict(zip((*self._outputs, *self._choices), answered, strict=True))
        for router in self._named.routers:
            self._chosen.add(router.id, outputs[router.indices])
        return {name: outputs[name] for name in self._outputs}

    def _open(self) -> None:
        if not self._assigned:
            self._first()
        else:
            self._session = self._watched(None)
        self._batches = []

    def _watched(self, saved: Path | None) -> Any:
        graph = self._scratch.path / MODEL
        return open_watched(self._folder, graph, there(self._providers), plain=True, saved=saved)

    def _first(self) -> None:
        """Open the first session, and look up in its graph what became of each declared node; mark those replaced."""
        import onnx

        graph, saved = self._scratch.path / MODEL, self._scratch.path / "session.onnx"
        session = self._watched(saved)
        gone = self._lacking(present(onnx.load(str(saved), load_external_data=False))[0])
        if gone:
            end_profile(session)
            model = onnx.load(str(graph), load_external_data=False)
            mark(model, gone)
            onnx.save(model, str(graph))
            session = self._watched(saved)
            places, waiting = present(onnx.load(str(saved), load_external_data=False))
            gone = self._lacking(places)
            self._marked = gone & waiting
            self._gone = gone - waiting
        for file in self._scratch.path.glob("session.*"):
            file.unlink()
        self._session = session
        for group in session.get_provider_graph_assignment_info():
            self._assigned |= {place_of(node.name): group.ep_name for node in group.get_nodes()}

    def _lacking(self, places: set[str]) -> frozenset[str]:
        """Return the counted nodes that are not at their place. A call never is: its function is."""
        nodes = {unit.id for unit in self._named.declared.units if unit.kind is Kind.NODE and unit.counted}
        return frozenset(nodes - places - {*self._named.calls})

    def _end(self, *, failed: bool = False) -> None:
        if self._session is None:
            return
        session, self._session = self._session, None
        profile = end_profile(session, place_of)
        self._full |= profile.full or (not failed and profile.requests < len(self._batches))
        self._per_run = max(self._per_run, profile.largest, 1)
        for event in profile.nodes:
            self._hits[event.node] += 1
            self._providers_of[event.node] = event.provider
        self.last = tuple(event for event in profile.nodes if not event.node.endswith(MARK))
        for event in self.last:
            key = (event.operator, self._batches[min(event.request, len(self._batches) - 1)])
            self._calls[key] += 1
            self._spent[key] += int(event.microseconds)

    def _not_completed(self, places: Collection[str]) -> Iterator[str]:
        """Yield the nodes at these places, and those that they stand in: branches, loops and calls."""
        for unit in self._named.declared.units:
            if any(place == unit.id or place.startswith(f"{unit.id}/") for place in places):
                yield unit.id

    def trace(self) -> Trace:
        """Return what was seen until now."""
        self._end()
        nodes = {unit.id: unit for unit in self._named.declared.units if unit.kind is Kind.NODE}
        hits = {unit: self._hits[unit] for unit in nodes} | {unit: self._hits[unit + MARK] for unit in self._marked}
        gone = dict.fromkeys(sorted(self._gone), REMOVED)
        inside: dict[str, list[str]] = {call: [] for call in self._named.calls}
        for unit in nodes.values():
            if unit.counted and unit.parent in inside:
                inside[unit.parent].append(unit.id)
        for call, members in reversed(inside.items()):  # it ran as often as what it calls; inner calls first
            if running := [hits[unit] for unit in members if unit not in gone]:
                hits[call] = max(running)
            else:
                gone[call] = REMOVED
        timings = tuple(
            Timing(Which.MAIN, *key, self._calls[key], self._spent[key] / 1e6) for key in sorted(self._calls)
        )
        for name in self._failed.keys() - self._marked:  # a marker runs behind what completed, and not else
            hits[name] = hits.get(name, 0) - self._failed[name]
        seen = {unit: count for unit, count in hits.items() if count > 0} | dict(self._chosen.hits)
        return Trace(
            Which.MAIN, seen, timings, (*self._placed(nodes, {*gone, *inside}), *self._undeclared(nodes)), gone,
            problems=(FULL,) if self._full else (),
        )  # fmt: skip

    def _placed(self, nodes: Mapping[str, Unit], nowhere: Collection[str]) -> Iterator[Placed]:
        for unit in nodes.values():
            if unit.counted and unit.id not in nowhere:
                name = unit.id + MARK if unit.id in self._marked else unit.id
                yield Placed(unit.id, unit.label, self._assigned.get(name, ""), self._providers_of.get(name, ""))

    def _undeclared(self, nodes: Mapping[str, Unit]) -> Iterator[Placed]:
        """Yield what ran on the processor in the place of other nodes, or between them, where that is not asked for."""
        if self._providers[:1] in ((), (CPU,)):
            return
        operators = {event.node: event.operator for event in self.last}
        for name, provider in sorted(self._providers_of.items()):
            if provider == CPU and name not in nodes and not name.endswith(MARK):
                yield Placed(name, operators.get(name, name.rpartition("_")[0]), "", provider)

    def close(self) -> None:
        """End the session and remove the copy; in a fork of the process that opened this, neither."""
        if os.getpid() == self._pid:
            self._end()
            self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
