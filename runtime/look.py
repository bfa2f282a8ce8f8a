"""What the checks of `diagnose` look at: the folder, what was asked for, and children that load the artefacts."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from crashpath.runtime import machine
from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.folder_read import FILE, kind_of, special
from crashpath.runtime.graph_facts import GraphFacts
from crashpath.runtime.probe import Probe, ProbeRequest, probe
from crashpath.runtime.probe_child import GRAPH, MAIN, PROVIDER, TOKENIZER, TORCHSCRIPT

CPU = "CPUExecutionProvider"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be served: the execution providers of the main path, in order.

    ``start_s`` and ``run_s`` are how long a child may take to import its library, and to answer the golden feed.
    """

    providers: tuple[str, ...] = (CPU,)
    start_s: float = 120.0
    run_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Ask:
    """Which child: its kind, and whether under the folder's own memory limit."""

    kind: str
    capped: bool = False


@dataclass(slots=True)
class Look:
    """One look at a folder. A child runs once, two at a time; with ``ahead`` all start when the first is asked for."""

    path: Path
    wanted: Wanted
    folder: ModelFolder | None = None
    problem: ModelFolderError | None = None
    ahead: bool = True
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "diagnose"))
    _running: dict[Ask, Future[Probe]] = field(default_factory=dict)

    @property
    def model(self) -> ModelFolder:
        """The folder; only for checks that need ``folder.spec``."""
        if self.folder is None:
            raise self.problem or ModelFolderError(f"{self.path} was not read")
        return self.folder

    @property
    def export(self) -> str:
        """The command that writes the folder anew; what the model was exported from is not kept."""
        return f"crashpath export MODEL {self.path} --force"

    def probe(self, kind: str, *, capped: bool = False) -> Probe:
        """Return what a child of this kind met; ``capped`` puts the folder's own memory limit on it."""
        if self.ahead and not self._running and self.folder is not None:
            for ask in self._worth():
                self._running[ask] = self._pool.submit(probe, self._request(ask))
        ask = Ask(kind, capped)
        if ask not in self._running:
            self._running[ask] = self._pool.submit(probe, self._request(ask))
        return self._running[ask].result()

    def graph(self) -> GraphFacts:
        """Return what the child that reads the graph found; only for checks that need ``graph.parses``."""
        facts = self.probe(GRAPH).graph
        if facts is None:
            raise ModelFolderError(f"the graph of {self.path} was not read")
        return facts

    def close(self) -> None:
        """Wait for the children that still run; each has its deadline."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _worth(self) -> tuple[Ask, ...]:
        """Children that can tell something, the slowest first; none where one would wait for ever for a file."""
        model = self.model
        if special(model.path, model.named) is not None:
            return ()
        found: list[Ask] = []
        kinds = ((TORCHSCRIPT, model.fallback), (MAIN, model.main), (GRAPH, model.main))
        found += [Ask(kind) for kind, file in kinds if kind_of(file) == FILE]
        if model.tokenizer is not None and kind_of(model.path / model.tokenizer.file) == FILE:
            found.append(Ask(TOKENIZER))
        return tuple(found)

    def _request(self, ask: Ask) -> ProbeRequest:
        if ask.kind == PROVIDER:  # needs no folder
            return ProbeRequest(PROVIDER, "", self.wanted.providers, 1, 0, False, *(self.wanted.start_s,) * 3)
        model = self.model
        cap = model.limits.memory_mib if ask.capped else machine.memory_free() // MIB
        return ProbeRequest(
            kind=ask.kind,
            folder=str(model.path.resolve()),
            providers=self.wanted.providers,
            threads=model.limits.threads,
            cap_mib=cap,
            as_worker=ask.capped,
            start_s=self.wanted.start_s,
            load_s=model.limits.load_s if ask.kind in (MAIN, TORCHSCRIPT) else self.wanted.start_s,
            run_s=self.wanted.run_s,
        )
