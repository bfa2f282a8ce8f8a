"""Traces every request that sessions of this process get: one tracer a model, opened by its first request."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from crashpath.coverage.artefacts import undeclared
from crashpath.coverage.covered import Covered, PathCoverage, add_up
from crashpath.coverage.runfile import Run, RunFileError, State, read_run, run_files
from crashpath.coverage.tracer import FolderError, Tracer, in_short
from crashpath.coverage.units import Kind
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Arrays
from crashpath.runtime.values import Path as Which
from crashpath.runtime.wording import many

SLACK_S = 1.0
"""Seconds by which a run may seem to have begun before what started it: clocks are cut to whole seconds in places."""


class Tracing:
    """Between `start` and `stop` requests to these model folders are traced, and the routes of their sessions counted.

    A request is traced once it was checked, on the thread that made it and before it is answered, so a test that ends
    has been traced. Routes count of every session that was asked or closed meanwhile, from when it was opened, however
    it ends. What goes wrong here is nobody's error: a folder that cannot be traced is tried once, `troubles` says it,
    and its sessions answer as ever.

    Raises `ModelFolderError`, and `FolderError` for a folder that says no digests of its artefacts.
    """

    def __init__(self, folders: Sequence[Path], *, data: Path, release: str = "") -> None:
        opened = [open_folder(folder) for folder in folders]
        if wrong := next(filter(None, map(undeclared, opened)), ""):
            raise FolderError(wrong)
        self._folders = {folder.hash: folder for folder in opened}
        self._data = data
        self._release = release
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._stopped = False
        self._tracers: dict[str, Tracer | None] = {}
        self._failed: Counter[str] = Counter()
        self.troubles: list[str] = []
        """What could not be traced, a sentence each."""

    def start(self) -> None:
        """Begin. Only one may trace a process at a time."""
        FallbackSession.tracing = self

    def stop(self) -> None:
        """End, and write the run files."""
        FallbackSession.tracing = None
        with self._lock:
            self._stopped = True
            for hash, tracer in self._tracers.items():
                if tracer is not None:
                    self._end(self._folders[hash], tracer)
            self._tracers = {}

    def _end(self, folder: ModelFolder, tracer: Tracer) -> None:
        try:
            tracer.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001  # whatever became of it: the other models' runs are written, too
            self.troubles.append(f"{folder.name}: the run could not be written ({in_short(error)})")
        if failed := self._failed[folder.hash]:
            self.troubles.append(f"{folder.name}: {many(failed, 'request')} failed on a path while traced")

    def first(self) -> Tracer:
        """The tracer of the first folder. Raises `FolderError`."""
        folder = next(iter(self._folders.values()))
        with self._lock:
            tracer = self._tracer(folder)
        if tracer is None:
            raise FolderError("; ".join(self.troubles) or f"{folder.name}: tracing has ended")
        return tracer

    def asked(self, session: FallbackSession, feed: Arrays) -> None:
        """A session got a request."""
        if os.getpid() != self._pid:  # a fork has neither the tracers' threads nor a lock that anybody lets go
            return
        with self._lock:  # the tracers are one model each, and count one run at a time
            tracer = self._tracer_of(session)
            if tracer is None:
                return
            tracer.watch(session, whole=True)
            try:
                tracer.run(feed)
            except Exception:  # noqa: BLE001  # the session that was asked says what is wrong with it
                self._failed[session.cohort.model_hash] += 1

    def closed(self, session: FallbackSession) -> None:
        """A session ended: its routes count, once."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            tracer = self._tracer_of(session)
            try:
                if tracer is not None:
                    tracer.watch(session, whole=True)
                    tracer.unwatch(session)
            except AttributeError:  # it was never whole: what its opening raised is on its way to the caller
                return

    def _tracer_of(self, session: FallbackSession) -> Tracer | None:
        folder = self._folders.get(session.cohort.model_hash)
        return None if folder is None else self._tracer(folder)

    def _tracer(self, folder: ModelFolder) -> Tracer | None:
        """Return the folder's tracer; ``None`` where there is none: tracing has ended, or it cannot be opened."""
        if self._stopped:
            return None
        if folder.hash not in self._tracers:
            self._tracers[folder.hash] = self._open(folder)
        return self._tracers[folder.hash]

    def _open(self, folder: ModelFolder) -> Tracer | None:
        try:
            tracer = Tracer(folder, data=self._data, release=self._release, origin="tests", timed=False)
            return tracer.__enter__()
        except Exception as error:  # noqa: BLE001  # a library's, or a disk's: the tests go on without evidence
            self.troubles.append(f"{folder.name} cannot be traced ({in_short(error)}); its requests count nothing")
            return None

    def summary(self, *, since: float) -> Iterator[str]:
        """Yield a line a model over all runs that began since then (seconds since the epoch), and the troubles."""
        runs, unread = [], 0
        for path in run_files([self._data] if self._data.is_dir() else []):
            try:
                run = read_run(path)
            except RunFileError:
                unread += 1
                continue
            if run.began.timestamp() >= since - SLACK_S:
                runs.append(run)
        for hash, folder in self._folders.items():
            mine = [run for run in runs if run.model_hash == hash]
            yield f"{folder.name}: {_told(mine, add_up(mine, hash, now=datetime.now(UTC)))}"
        yield from self.troubles
        if unread:
            yield f"{many(unread, 'file')} in {self._data} could not be read as run files"


def _told(runs: Sequence[Run], covered: Covered) -> str:
    main = covered.path(Which.MAIN)
    requests = sum(run.requests for run in covered.runs)
    states = Counter(run.state for run in runs)
    apart = [
        f"{many(states[state], 'run')} {what}"
        for state, what in ((State.LOST, "lost"), (State.RUNNING, "not ended yet"))
        if states[state]
    ]
    if main is None:
        return f"no run told what it saw ({', '.join(apart)})" if apart else "no request was traced"
    shares = f"main {_share(main, Kind.NODE)} · fallback {_share(covered.path(Which.FALLBACK), Kind.OP)}"
    counted = f"{many(requests, 'request')} in {many(len(covered.runs), 'run')}"
    return f"{shares} ({', '.join([counted, *apart])})"


def _share(path: PathCoverage | None, kind: Kind) -> str:
    if path is None:
        return "none"
    ratio = path.ratio(kind)
    return f"{ratio.covered} of {ratio.total}"
