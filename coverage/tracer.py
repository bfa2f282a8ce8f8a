"""Traces a model on both of its paths: what runs of nodes, blocks and operators, for which shapes, along which routes.

A traced run is a run beside production, not in it: ONNX Runtime at no optimisation, TorchScript with counters. Answers
of the session that ships are not touched; routes are read from its own counts, which it keeps anyway.
"""

from __future__ import annotations

import os
import platform
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from crashpath.coverage.artefacts import differing
from crashpath.coverage.domain import bucket_of
from crashpath.coverage.onnx_shipped import shipped
from crashpath.coverage.onnx_trace import MainTracer
from crashpath.coverage.runfile import Run, RunFile, Seen, new_id
from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.units import Shipped
from crashpath.runtime.backends import CPU
from crashpath.runtime.folder import FALLBACK_FILE, ModelFolder, open_folder
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

_SHIPPED_FEEDS = 32
"""The first feeds of a run, which the optimised session gets, too."""
FOLDER = Path(".crashpath-coverage")
"""Where run files go unless told otherwise, below the working folder."""


_PATIENCE_S = 30
"""Seconds that the end of a tracer waits for a feed that another thread runs."""
_MOST = 240
"""Characters of a library's error that a message has."""


class TraceError(Exception):
    """Root of what a tracer raises: `FeedError`, `FolderError`."""


class FeedError(TraceError):
    """A path failed on a feed, or both did: ``errors`` are those of the libraries, by path."""

    def __init__(self, errors: Mapping[Which, Exception]) -> None:
        self.errors = dict(errors)
        named = {Which.MAIN: "main path", Which.FALLBACK: "fallback"}
        super().__init__("; ".join(f"the {named[path]} raised {in_short(error)}" for path, error in errors.items()))


class FolderError(TraceError):
    """A model folder cannot be traced; the message says why."""


def in_short(error: BaseException) -> str:
    """Return the type and the last line of an error: of a traceback in the message that is the line that matters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1] if lines else ""
    name = type(error).__name__
    said = said if said.startswith(f"{name}:") else f"{name}: {said}" if said else name
    return said if len(said) <= _MOST else f"{said[:_MOST]}…"


def _now() -> datetime:
    return datetime.now(UTC)


class Tracer:
    """Open it (``with``), `run` feeds, `watch` sessions; at the end the run file says what was seen.

    ``providers`` are those that production asks for. ``data`` is the folder of the run files. A process that dies in
    the midst leaves a run file that says so. Threads may share it: feeds run one after the other. A model that declares
    no fallback is traced on its main path alone.
    Raises `ModelFolderError`, `FolderError` where a file is not the one that the folder's hash is of, and what the
    libraries raise of an artefact that cannot be loaded; then there is no run.
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
        self._pid = os.getpid()
        self._running = threading.RLock()
        self._counting = threading.Lock()  # never held for long: who watches does not wait for a feed
        self._providers = tuple(providers)
        self._data = Path(data)
        self._timed = timed
        self._now = now
        self._routes: Counter[str] = Counter()
        self._domain: Counter[str] = Counter()
        self._watched: dict[FallbackSession, dict[str, int]] = {}
        self._file: RunFile | None = None
        self._main: MainTracer | None = None
        self._fallback: FallbackTracer | None = None
        self._feeds: list[Arrays] = []
        self._shipped: tuple[int, Shipped | None] = (0, None)
        """Of how many feeds it was found out last, and what."""
        self.requests = 0
        self.begun = Run(
            new_id(), origin, self.folder.name, self.folder.hash, release, now(), versions=_versions(),
            asked=self._providers,
        )  # fmt: skip

    def __enter__(self) -> Self:
        if wrong := differing(self.folder):
            raise FolderError(wrong)
        with ExitStack() as opened:
            file = RunFile(self._data, self.begun)
            opened.callback(file.remove)
            self._main = opened.enter_context(MainTracer(self.folder, self._providers))
            if FALLBACK_FILE in dict(self.folder.files):
                self._fallback = opened.enter_context(
                    FallbackTracer(self.folder, timed=self._timed, routers=self._main.declared.routers)
                )
            opened.pop_all()  # from here on the run has begun
        self._file = file
        return self

    def run(self, feed: Arrays) -> tuple[Arrays, Arrays | None]:
        """Run a feed on both paths, traced, and return both answers; ``None`` is that of a fallback there is not.

        Both are tried. Raises `FeedError`, which names the path, and `TraceError` in a fork of the process.
        """
        if os.getpid() != self._pid:
            raise TraceError("this tracer is of the process that was forked; open one in the fork")
        assert self._main is not None, "a tracer is opened by `with`"
        feed = {name: np.array(array, order="C") for name, array in feed.items()}
        with self._running:
            return self._run(feed)

    def _run(self, feed: Arrays) -> tuple[Arrays, Arrays | None]:
        assert self._main is not None
        if self._timed and len(self._feeds) < _SHIPPED_FEEDS:
            self._feeds.append(feed)
        self.requests += 1
        answers: dict[Which, Arrays] = {}
        errors: dict[Which, Exception] = {}
        for path, tracer in ((Which.MAIN, self._main), (Which.FALLBACK, self._fallback)):
            try:
                if tracer is not None:
                    answers[path] = tracer.run(feed)
            except Exception as error:  # noqa: BLE001  # a library's: raised below, with that of the other path
                errors[path] = error
        if answers:  # a shape that no path answers is not exercised
            self._domain[bucket_of(self.folder.inputs, feed)] += 1
        if errors:
            raise FeedError(errors) from next(iter(errors.values()))
        return answers[Which.MAIN], answers.get(Which.FALLBACK)

    def watch(self, session: FallbackSession, *, whole: bool = False) -> None:
        """Count the routes that this session takes from now (``whole``: took since it was opened) until the end.

        The end is that of the tracer, or `unwatch`. Of a session that is watched already nothing changes.
        """
        with self._counting:
            if session in self._watched:
                return
            self._watched[session] = {} if whole else dict(session.facts().figures.routes)

    def unwatch(self, session: FallbackSession) -> None:
        """Keep what a watched session took until now, and let go of it."""
        with self._counting:
            if session in self._watched:
                self._routes.update(_taken(session, self._watched.pop(session)))

    def count_routes(self, routes: Mapping[str, int]) -> None:
        """Add routes that were counted elsewhere."""
        with self._counting:
            self._routes.update({route: count for route, count in routes.items() if count})

    def result(self) -> Run:
        """Return what was seen until now, as a finished run."""
        with self._running:
            return self._result()

    def _result(self) -> Run:
        assert self._main is not None
        with self._counting:
            routes = Counter(self._routes)
            for session, before in self._watched.items():
                routes.update(_taken(session, before))
        seen = [Seen(self._main.declared.declared, replace(self._main.trace(), shipped=self._ships()))]
        if self._fallback is not None:
            seen.append(Seen(self._fallback.declared, self._fallback.trace()))
        return replace(
            self.begun,
            ended=max(self._now(), self.begun.began),  # the clock may have been set back meanwhile
            requests=self.requests,
            seen=tuple(seen),
            routes={route: count for route, count in sorted(routes.items()) if count},
            domain=dict(sorted(self._domain.items())),
        )

    def _ships(self) -> Shipped | None:
        """Ask the session that ships once for the same feeds, however often the result is taken."""
        if self._shipped[0] != len(self._feeds):
            try:
                found = shipped(self.folder, self._providers, self._feeds)
            except Exception as error:  # noqa: BLE001  # a library's, or a disk's: what was traced counts all the same
                found = Shipped(0, 0, (), (f"what the session that ships runs is not known ({in_short(error)})",))
            self._shipped = (len(self._feeds), found)
        return self._shipped[1]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:  # a fork: the run, its files and its sessions are those of the process that opened
            return
        assert self._file is not None
        if not self._running.acquire(timeout=_PATIENCE_S):
            self._file.leave()
            raise TraceError(f"a feed still runs {_PATIENCE_S} s after the end, so what was seen is lost; end it first")
        with ExitStack() as opened:
            opened.callback(self._running.release)
            opened.callback(self._file.leave)
            for one in (self._main, self._fallback):
                if one is not None:
                    opened.callback(one.close)
            self._file.finish(self.result())
            self._watched.clear()


def _taken(session: FallbackSession, before: Mapping[str, int]) -> dict[str, int]:
    return {route: count - before.get(route, 0) for route, count in session.facts().figures.routes}


def _versions() -> tuple[tuple[str, str], ...]:
    import onnxruntime
    import torch

    return (
        ("onnxruntime", onnxruntime.__version__), ("python", platform.python_version()), ("torch", torch.__version__),
    )  # fmt: skip
