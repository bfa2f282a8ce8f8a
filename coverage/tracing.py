"""Traces every request that sessions of this process get: one tracer a model, opened by its first request."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue

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

LIMIT_S = 30.0
"""Seconds that tracing one request may take, unless told otherwise."""
_MORE = 10
"""So many times as long a tracer may take to be opened, or to write what it saw."""


class _Aside:
    """A thread of its own that does one thing after the other. Whoever waits for it may give up; then it goes on."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], threading.Event] | None] = SimpleQueue()
        self._last = threading.Event()
        self._last.set()
        threading.Thread(target=self._work, name="crashpath-tracing", daemon=True).start()

    def do(self, job: Callable[[], None], seconds: float) -> bool:
        """Do this after all that came before; false where it has not ended in so many seconds. It must not raise."""
        self._last = threading.Event()
        self._jobs.put((job, self._last))
        return self._last.wait(seconds)

    @property
    def idle(self) -> bool:
        """Whether all is done."""
        return self._last.is_set()

    def end(self) -> None:
        """Let the thread end when all is done."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (one := self._jobs.get()) is not None:
            job, done = one
            try:
                job()
            finally:
                done.set()


@dataclass(slots=True)
class _Traced:
    """A folder, the thread that traces it, its tracer once there is one, and how many requests failed on a path."""

    folder: ModelFolder
    aside: _Aside = field(default_factory=_Aside)
    tracer: Tracer | None = None
    tried: bool = False
    given_up: bool = False
    failed: int = 0


class Tracing:
    """Between `start` and `stop` requests to these model folders are traced, and the routes of their sessions counted.

    A request is traced once it was checked and before it is answered, so a test that ends has been traced. That may
    take ``limit_s`` seconds; a folder of which a request takes longer is traced no more, as nothing cuts native code.
    Routes count of every session that was asked or closed meanwhile, from when it was opened, however it ends. What
    goes wrong here is nobody's error: a folder that cannot be traced is tried once, `troubles` says it, and its
    sessions answer as ever.

    Raises `ModelFolderError`, and `FolderError` for a folder that says no digests of its artefacts.
    """

    def __init__(self, folders: Sequence[Path], *, data: Path, release: str = "", limit_s: float = LIMIT_S) -> None:
        opened = [open_folder(folder) for folder in folders]
        if wrong := next(filter(None, map(undeclared, opened)), ""):
            raise FolderError(wrong)
        self._traced = {folder.hash: _Traced(folder) for folder in opened}
        self._data = data
        self._release = release
        self._limit = limit_s
        self._lock = threading.Lock()  # the tracers are one model each, and count one run at a time
        self._pid = os.getpid()
        self._stopped = False
        self.troubles: list[str] = []
        """What could not be traced, a sentence each."""

    def start(self) -> None:
        """Begin. Only one may trace a process at a time."""
        FallbackSession.tracing = self

    def stop(self) -> None:
        """End, and write the run files."""
        if self._forked():
            return
        FallbackSession.tracing = None
        with self._lock:
            self._stopped = True
            for one in self._traced.values():
                if one.given_up and not one.aside.idle:
                    self.troubles.append(f"{one.folder.name}: that request still runs, so all of this run is lost")
                    continue
                if one.tracer is not None:
                    self._aside(one, partial(self._end, one, one.tracer), self._limit * _MORE)
                one.aside.end()

    def _end(self, one: _Traced, tracer: Tracer) -> None:
        try:
            tracer.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001  # whatever became of it: the other models' runs are written, too
            self.troubles.append(f"{one.folder.name}: the run could not be written ({in_short(error)})")
        if one.failed:
            self.troubles.append(f"{one.folder.name}: {many(one.failed, 'request')} failed on a path while traced")

    def first(self) -> Tracer:
        """The tracer of the first folder. Raises `FolderError`."""
        one = next(iter(self._traced.values()))
        with self._lock:
            tracer = self._tracer(one)
        if tracer is None:
            raise FolderError("; ".join(self.troubles) or f"{one.folder.name}: tracing has ended")
        return tracer

    def asked(self, session: FallbackSession, feed: Arrays) -> None:
        """A session got a request."""
        one = self._traced.get(session.cohort.model_hash)
        if one is None or self._forked():
            return
        with self._lock:
            if (tracer := self._tracer(one)) is not None:
                tracer.watch(session, whole=True)
                self._aside(one, partial(self._run, one, tracer, feed), self._limit)

    def _run(self, one: _Traced, tracer: Tracer, feed: Arrays) -> None:
        try:
            tracer.run(feed)
        except Exception:  # noqa: BLE001  # the session that was asked says what is wrong with it
            one.failed += 1

    def closed(self, session: FallbackSession) -> None:
        """A session ended: its routes count, once."""
        one = self._traced.get(session.cohort.model_hash)
        if one is None or self._forked():
            return
        with self._lock:
            try:
                if (tracer := self._tracer(one)) is not None:
                    tracer.watch(session, whole=True)
                    tracer.unwatch(session)
            except AttributeError:  # it was never whole: what its opening raised is on its way to the caller
                return

    @property
    def stuck(self) -> bool:
        """Whether this process is in native code that nobody waits for any more."""
        return not self._forked() and not all(one.aside.idle for one in self._traced.values())

    def _forked(self) -> bool:
        """Whether this is a fork, which has neither the threads nor a lock that anybody lets go."""
        return os.getpid() != self._pid

    def _tracer(self, one: _Traced) -> Tracer | None:
        """Return the folder's tracer; ``None`` where there is none: tracing has ended, or it cannot be opened."""
        if self._stopped or one.given_up:
            return None
        if not one.tried:
            one.tried = True
            self._aside(one, partial(self._open, one), self._limit * _MORE)
        return None if one.given_up else one.tracer

    def _open(self, one: _Traced) -> None:
        try:
            tracer = Tracer(one.folder, data=self._data, release=self._release, origin="tests", timed=False)
            one.tracer = tracer.__enter__()
        except Exception as error:  # noqa: BLE001  # a library's, or a disk's: the tests go on without evidence
            self.troubles.append(f"{one.folder.name} cannot be traced ({in_short(error)}); its requests count nothing")

    def _aside(self, one: _Traced, job: Callable[[], None], seconds: float) -> None:
        """Do something with a folder's tracer, and give the folder up where that takes longer, or is cut."""
        why = "tracing was cut short by whoever ended the test"
        try:
            if one.aside.do(job, seconds):
                return
            why = f"tracing took more than {seconds:g} s (--crashpath-limit sets the seconds of a request)"
        finally:
            if not one.aside.idle:
                one.given_up = True
                self.troubles.append(f"{one.folder.name}: {why}; what comes after counts nothing")

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
        for hash, one in self._traced.items():
            mine = [run for run in runs if run.model_hash == hash]
            yield f"{one.folder.name}: {_told(mine, add_up(mine, hash, now=datetime.now(UTC)))}"
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
