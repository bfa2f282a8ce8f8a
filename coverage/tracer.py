"""Traces a model on both of its paths: what runs of nodes, blocks and operators, for which shapes, along which routes.

A traced run is a run beside production, not in it: ONNX Runtime at no optimisation, TorchScript with counters. Answers
of the session that ships are not touched; routes are read from its own counts, which it keeps anyway.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from crashpath.coverage.domain import bucket_of
from crashpath.coverage.onnx_shipped import shipped
from crashpath.coverage.onnx_trace import MainTracer
from crashpath.coverage.runfile import Run, RunFile, Seen, new_id
from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.units import Shipped
from crashpath.runtime.backends import CPU
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Arrays

_SHIPPED_FEEDS = 32
"""The first feeds of a run, which the optimised session gets, too."""
FOLDER = Path(".crashpath-coverage")
"""Where run files go unless told otherwise, below the working folder."""


def _now() -> datetime:
    return datetime.now(UTC)


class Tracer:
    """Open it (``with``), `run` feeds, `watch` sessions; at the end the run file says what was seen.

    ``providers`` are those that production asks for. ``data`` is the folder of the run files. A process that dies in
    the midst leaves a run file that says so. Raises `ModelFolderError`, and what the libraries raise of an artefact
    that cannot be loaded.
    """

    def __init__(
        self,
        folder: ModelFolder | Path | str,
        *,
        providers: Sequence[str] = (CPU,),
        data: Path | str = FOLDER,
        release: str = "",
        origin: str = "trace",
        timed: bool = True,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.folder = folder if isinstance(folder, ModelFolder) else open_folder(folder)
        self._providers = tuple(providers)
        self._data = Path(data)
        self._timed = timed
        self._now = now
        self._routes: Counter[str] = Counter()
        self._domain: Counter[str] = Counter()
        self._watched: list[tuple[FallbackSession, dict[str, int]]] = []
        self._file: RunFile | None = None
        self._main: MainTracer | None = None
        self._fallback: FallbackTracer | None = None
        self._feeds: list[Arrays] = []
        self.requests = 0
        self.begun = Run(
            new_id(), origin, self.folder.name, self.folder.hash, release, now(), versions=_versions(),
            asked=self._providers,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._file = RunFile(self._data, self.begun)
        self._main = MainTracer(self.folder, self._providers)
        self._fallback = FallbackTracer(self.folder, timed=self._timed, routers=self._main.declared.routers)
        return self

    def run(self, feed: Arrays) -> tuple[Arrays, Arrays]:
        """Run a feed on both paths, traced, and return both answers. Raises what either raises; both are tried."""
        assert self._main is not None, "a tracer is opened by `with`"
        assert self._fallback is not None
        feed = {name: np.array(array, order="C") for name, array in feed.items()}
        if len(self._feeds) < _SHIPPED_FEEDS:
            self._feeds.append(feed)
        self.requests += 1
        self._domain[bucket_of(self.folder.inputs, feed)] += 1
        try:
            main = self._main.run(feed)
        finally:
            fallback = self._fallback.run(feed)
        return main, fallback

    def watch(self, session: FallbackSession) -> None:
        """Count the routes that this session takes from now until the tracer, or the session, is closed."""
        self._watched.append((session, dict(session.facts().figures.routes)))

    def count_routes(self, routes: dict[str, int]) -> None:
        """Add routes that were counted elsewhere."""
        self._routes.update({route: count for route, count in routes.items() if count})

    def result(self) -> Run:
        """Return what was seen until now, as a finished run."""
        assert self._main is not None
        assert self._fallback is not None
        routes = Counter(self._routes)
        for session, before in self._watched:
            after = session.facts().figures.routes
            routes.update({route: count - before.get(route, 0) for route, count in after})
        return replace(
            self.begun,
            ended=self._now(),
            requests=self.requests,
            seen=(
                Seen(self._main.declared.declared, replace(self._main.trace(), shipped=self._shipped())),
                Seen(self._fallback.declared, self._fallback.trace()),
            ),
            routes={route: count for route, count in sorted(routes.items()) if count},
            domain=dict(sorted(self._domain.items())),
        )

    def _shipped(self) -> Shipped | None:
        try:
            return shipped(self.folder, self._providers, self._feeds) if self._timed and self._feeds else None
        except Exception:  # noqa: BLE001  # a feed that the model refuses is told by the traced run
            return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        try:
            self._file.finish(self.result())
        finally:
            for one in (self._main, self._fallback):
                if one is not None:
                    one.close()


def _versions() -> tuple[tuple[str, str], ...]:
    import onnxruntime
    import torch

    return (
        ("onnxruntime", onnxruntime.__version__), ("python", platform.python_version()), ("torch", torch.__version__),
    )  # fmt: skip
