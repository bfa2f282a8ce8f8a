"""The process behind a `WorkerLane`: ``python -m crashpath.runtime.worker SPEC``. It loads, warms up, and serves.

One request at a time: tensors come and go in shared memory, words over a socket. It ends when its parent does.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path as FilePath

from crashpath.runtime import strikes
from crashpath.runtime.backends import open_backend
from crashpath.runtime.channel import Channel, GoneError
from crashpath.runtime.errors import Failure, InputError, ServingError
from crashpath.runtime.folder import open_folder
from crashpath.runtime.lane import Backend
from crashpath.runtime.messages import TRACEBACK, Ask, Reply, Trouble, WorkerSpec
from crashpath.runtime.reason import bounded
from crashpath.runtime.reasons import recognise
from crashpath.runtime.segment import Segment
from crashpath.runtime.values import Path, Phase

_PR_SET_PDEATHSIG = 1
_LIBRARIES = {"ort": "onnxruntime", "torchscript": "torch"}
_PATHS = {"ort": Path.MAIN, "torchscript": Path.FALLBACK}


def main(argument: str) -> int:
    """Serve until the parent closes its end; ``argument`` is a `WorkerSpec` as JSON."""
    raw = json.loads(argument)
    spec = WorkerSpec(**(raw | {"providers": tuple(raw["providers"])}))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the whole group; the parent decides
    end = socket.socket(fileno=spec.socket)
    _end_with_parent(end, spec.parent)
    channel = Channel(end)
    worker = _Worker(spec)
    try:
        while True:
            ask = Ask.from_json(channel.receive())
            channel.send(worker.reply(ask).to_json())
    except GoneError:
        return 0


class _Worker:
    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._feed = Segment(spec.feed)
        self._answer = Segment(spec.answer)
        self._backend: Backend | None = None

    def reply(self, ask: Ask) -> Reply:
        try:
            return self._load(ask) if ask.phase is Phase.LOAD else self._run(ask)
        except Exception as error:  # noqa: BLE001 - the process's boundary: it is raised in the parent
            return Reply(ask.id, size=self._answer.size, trouble=_trouble(error, ask.phase, _PATHS[self._spec.backend]))

    def _load(self, ask: Ask) -> Reply:
        spec = self._spec
        importlib.import_module(_LIBRARIES[spec.backend])
        if spec.memory_mib:
            limit_memory(spec.memory_mib)
        _strike(ask)
        folder = open_folder(FilePath(spec.folder))
        self._backend = open_backend(spec.backend, folder, threads=spec.threads, providers=spec.providers)
        told = self._backend.signature()
        return Reply(ask.id, inputs=told.inputs, outputs=told.outputs, versions=self._backend.versions())

    def _run(self, ask: Ask) -> Reply:
        if self._backend is None:
            raise ServingError("a worker was asked before it had loaded")
        self._feed.fit(ask.size)
        _strike(ask)
        placed = self._answer.write(self._backend.run(self._feed.views(ask.tensors)))
        return Reply(ask.id, placed, self._answer.size)


def limit_memory(mib: int) -> None:
    """Limit the address space of this process to ``mib`` MiB more than it has now, where such limits are."""
    try:
        import resource

        pages = int(FilePath("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (mib << 20), resource.RLIM_INFINITY))


def _strike(ask: Ask) -> None:
    if ask.strike is not None:
        strikes.call(*ask.strike)


def _trouble(error: Exception, phase: Phase, path: Path) -> Trouble:
    found = recognise(error, phase, path)
    kind = type(error) if found is None else type(found)
    return Trouble(
        kind.__name__ if issubclass(kind, ServingError) else "",
        bounded(found.detail if isinstance(found, Failure) else str(error if found is None else found)),
        found.evidence if isinstance(found, Failure) else "",
        found.input if isinstance(found, InputError) else "",
        f"{type(error).__module__}.{type(error).__qualname__}",
        "".join(traceback.format_exception(error))[-TRACEBACK:],
    )


def _end_with_parent(end: socket.socket, parent: int) -> None:
    """See to it that this process ends with its parent, also while native code runs and holds the interpreter."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):  # not Linux: the thread below is what there is
        pass
    if os.getppid() != parent:
        os._exit(0)
    threading.Thread(target=_watch, args=(end.fileno(),), name="parent", daemon=True).start()


def _watch(file: int) -> None:
    poll = select.poll()
    poll.register(file, 0)  # hang-up alone: what can be read is for the other thread
    poll.poll()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
