"""Traces every request that sessions of this process get: one tracer a model, opened by its first request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from crashpath.coverage.covered import Covered, add_up
from crashpath.coverage.runfile import RunFileError, read_run, run_files
from crashpath.coverage.tracer import Tracer
from crashpath.coverage.units import Kind, Ratio
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which

SLACK_S = 1.0
"""Seconds by which a run may seem to have begun before what started it: clocks are cut to whole seconds in places."""


class Tracing:
    """Between `start` and `stop` requests to these model folders are traced, and the routes of their sessions counted.

    A request is traced once it was checked, on the thread that made it and before it is answered, so a test that ends
    has been traced. What the traced runs raise is nobody's error: the session's own answer says it.
    """

    def __init__(self, folders: Sequence[Path], *, data: Path, release: str = "") -> None:
        self._folders = {folder.hash: folder for folder in map(open_folder, folders)}
        self._data = data
        self._release = release
        self._lock = threading.Lock()
        self._tracers: dict[str, Tracer] = {}
        self._stack = ExitStack()

    def start(self) -> None:
        """Begin. Only one may trace a process at a time."""
        FallbackSession.tracing = self

    def stop(self) -> None:
        """End, and write the run files."""
        FallbackSession.tracing = None
        with self._lock:
            self._tracers = {}
            self._stack.close()

    def first(self) -> Tracer:
        """The tracer of the first folder."""
        with self._lock:
            return self._tracer(next(iter(self._folders.values())))

    def asked(self, session: FallbackSession, feed: Arrays) -> None:
        """A session got a request."""
        folder = self._folders.get(session.cohort.model_hash)
        if folder is None:
            return
        with self._lock:  # the tracers are one model each, and count one run at a time
            try:
                self._tracer(folder).run(feed)
            except Exception:  # noqa: BLE001  # the session that was asked says what is wrong with it
                return

    def closed(self, session: FallbackSession) -> None:
        """A session ended: its routes count."""
        folder = self._folders.get(session.cohort.model_hash)
        if folder is not None:
            with self._lock:
                self._tracer(folder).count_routes(dict(session.facts().figures.routes))

    def _tracer(self, folder: ModelFolder) -> Tracer:
        if folder.hash not in self._tracers:
            tracer = Tracer(folder, data=self._data, release=self._release, origin="tests", timed=False)
            self._tracers[folder.hash] = self._stack.enter_context(tracer)
        return self._tracers[folder.hash]

    def summary(self, *, since: float) -> Iterator[str]:
        """Yield a line a model over all runs that began since then (seconds since the epoch)."""
        runs, lost = [], 0
        for path in run_files([self._data] if self._data.is_dir() else []):
            try:
                run = read_run(path)
            except RunFileError:
                lost += 1
                continue
            if run.began.timestamp() >= since - SLACK_S:
                runs.append(run)
        for hash, folder in self._folders.items():
            covered = add_up([run for run in runs if run.model_hash == hash], hash, now=datetime.now(UTC))
            yield f"{folder.name}: {_told(covered)}"
        if lost:
            yield f"{lost} files in {self._data} are no run files"


def _told(covered: Covered) -> str:
    main, fallback = (covered.path(one) for one in (Which.MAIN, Which.FALLBACK))
    requests = sum(run.requests for run in covered.runs)
    if main is None or fallback is None:
        return "no request was traced"
    shares = f"main {_share(main.ratio(Kind.NODE))} · fallback {_share(fallback.ratio(Kind.OP))}"
    left = f", {len(covered.left)} runs lost" if covered.left else ""
    return f"{shares} ({requests} requests in {len(covered.runs)} runs{left})"


def _share(ratio: Ratio) -> str:
    return f"{ratio.covered} of {ratio.total}"
