"""Sees which blocks and operators of the TorchScript fallback run, by counters, and what its operators take."""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np

from crashpath.coverage.batches import batch_of
from crashpath.coverage.experts import Chosen, Router, expert_units
from crashpath.coverage.script_units import HEARD, Counted, insert_counters
from crashpath.coverage.units import Declared, Timing, Trace
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which
from crashpath.runtime.wording import many

_MOST = 240
"""Characters of a library's error that a problem has."""
_HEARING = threading.Lock()
"""Held by a run that hears choices: `HEARD` is one a process, and the interpreter may go on on another thread."""


class FallbackTracer:
    """Runs feeds on the fallback and counts its blocks. Its answers are those of the artefact, bit for bit.

    ``timed``: run each feed once more under torch's profiler for the time that operators take, on a copy of the model
    without counters that has tensors of its own. What fails there is in ``untimed`` and harms no answer.
    ``routers`` are those of the ONNX graph, whose twins are looked for in the script. It runs one feed at a time,
    whichever thread asks: `Tracer` sees to that.
    """

    def __init__(self, folder: ModelFolder, *, timed: bool = True, routers: Sequence[Router] = ()) -> None:
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # its profiler tells on stderr that it starts and stops
        import torch

        self._torch = torch
        self._timed = timed
        self._threads = folder.limits.threads
        self._inputs = [spec.name for spec in folder.inputs]
        self._outputs = [spec.name for spec in folder.outputs]
        self._module = self._load(folder)
        self._plain = self._load(folder) if timed else None
        self._routers = tuple(routers)
        self._counted: Counted = insert_counters(self._module, self._routers)
        self._chosen = Chosen(self._routers)
        self._cut: Any = torch.zeros_like(self._counted.counts)  # blocks that runs entered and did not leave
        self._partly: Counter[str] = Counter()  # operators of those that ran
        self._spent: Counter[tuple[str, int]] = Counter()
        self._calls: Counter[tuple[str, int]] = Counter()
        self.last: tuple[tuple[str, float, float], ...] = ()
        """Operators of the request that was timed last: name, when it began and how long it took, in µs."""
        self.untimed = ""
        """Why a request could not be timed, of the last such request; `trace` says it as a problem."""
        self._untimed = 0  # such requests

    def _load(self, folder: ModelFolder) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that TorchScript is deprecated is no news here
            module = self._torch.jit.load(str(folder.fallback), map_location="cpu")  # type: ignore[no-untyped-call]
        return module.eval()

    @property
    def declared(self) -> Declared:
        """The units of the fallback."""
        declared = self._counted.declared
        return Declared(declared.path, (*declared.units, *expert_units(self._routers, self._counted.twins.reason)))

    def run(self, feed: Arrays) -> Arrays:
        """Answer a feed, counted. Raises what the interpreter raises.

        Where a run raised by a raise of the script, what it had reached is known and counts. Where an operator failed,
        the blocks that the run entered are counted, and none of their operators: which of them ran is not known.
        """
        before = self._counted.counts.clone()
        try:
            with self._heard(), self._as_served():
                given = self._named(self._module(*self._tensors(feed)))
        except BaseException:
            self._cut_short(self._counted.counts - before)
            raise
        if self._plain is not None:
            try:
                self._time(feed)
            except Exception as error:  # noqa: BLE001  # a library's: the request is answered all the same
                self.untimed = f"{type(error).__name__}: {error}"
                self._untimed += 1
        return given

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Count who was chosen meanwhile, unless the run raises."""
        if not self._counted.twins.nodes:
            yield
            return
        with _HEARING:
            try:
                yield
                for number, indices in HEARD:
                    self._chosen.add(self._routers[number].id, indices, self._counted.twins.axes[number])
            finally:
                HEARD.clear()

    def _cut_short(self, entered: Any) -> None:
        """Take off what a run that raised did not reach: of the blocks around its raise, the end of the last turn."""
        met = next((one for one in self._counted.raises if entered[one.site]), None)
        if met is None:
            self._cut += entered
            return
        for site, reached in met.reached:
            self._cut[site] += 1
            self._partly.update(reached)

    @contextmanager
    def _as_served(self) -> Iterator[None]:
        """With as many threads as the path has in production: sums of floats may depend on it."""
        torch, before = self._torch, self._torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            with torch.inference_mode():
                yield
        finally:
            torch.set_num_threads(before)

    def _tensors(self, feed: Arrays) -> list[Any]:
        """Fresh ones each time: a script may write to what it is given."""
        return [self._torch.from_numpy(np.array(feed[name], order="C")) for name in self._inputs]

    def _named(self, given: Any) -> Arrays:
        """The outputs as arrays of their own: a script may return what it was given, or its own buffer."""
        if not isinstance(given, dict):
            given = dict(zip(self._outputs, given if isinstance(given, (tuple, list)) else (given,), strict=True))
        return {name: np.array(given[name].detach().cpu().numpy()) for name in self._outputs}

    def _time(self, feed: Arrays) -> None:
        from torch.profiler import ProfilerActivity, profile

        assert self._plain is not None
        tensors = self._tensors(feed)
        with (
            self._torch.random.fork_rng(devices=[]),  # what the model draws here changes no draw of later requests
            self._as_served(),
            profile(activities=[ProfilerActivity.CPU]) as profiled,
        ):
            self._plain(*tensors)
        self.last = tuple(
            (event.name, event.time_range.start, event.time_range.elapsed_us()) for event in profiled.events() or ()
        )
        for event in profiled.key_averages():
            if event.key.startswith("aten::"):
                key = (event.key, batch_of(feed))
                self._calls[key] += event.count
                self._spent[key] += int(event.self_cpu_time_total)

    def trace(self) -> Trace:
        """Return what was seen until now."""
        counts, cut = self._counted.counts.tolist(), self._cut.tolist()
        hits = Counter(self._partly)
        for site, block in enumerate(self._counted.blocks):
            hits[block] += counts[site]
            for operator in self._counted.operators[site]:
                hits[operator] += counts[site] - cut[site]
        timings = tuple(
            Timing(Which.FALLBACK, *key, self._calls[key], self._spent[key] / 1e6) for key in sorted(self._calls)
        )
        return Trace(Which.FALLBACK, dict(+hits) | dict(self._chosen.hits), timings, problems=tuple(self._problems()))

    def _problems(self) -> Iterator[str]:
        if self._untimed:
            last = [line.strip() for line in self.untimed.splitlines() if line.strip()][-1][:_MOST]
            yield (
                f"{many(self._untimed, 'request')} of the fallback could not be timed, so its operators took "
                f"longer than is told; what ran is counted all the same (the last error: {last})"
            )

    def close(self) -> None:
        """Let go of the model."""
        self._module = self._plain = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
