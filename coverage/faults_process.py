"""Faults of processes: interpreter dumps, worker pools, supervisors, deadlines at start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from crashpath.coverage.app import Code
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import become, run_script

_PRELUDE = "import faulthandler\n\nfaulthandler.enable()\n"


def _dump(body: str, imports: str = "", phase: str = "infer", definitions: str = "") -> Callable[[Arena], None]:
    """An app whose interpreter dies and dumps its threads."""

    def run(arena: Arena) -> None:
        code = Code.of(
            body, _PRELUDE + imports, definitions=definitions, phase=phase, once=True, width=arena.variation.width
        )
        arena.serve(code, fresh=True)

    return run


def _dump_and_tell(body: str, imports: str) -> Callable[[Arena], None]:
    """The same under a shell that tells of the signal."""

    def run(arena: Arena) -> None:
        script = arena.path("worker_main.py")
        source = f"{_PRELUDE}{imports}\n\n\ndef handle(width):\n    {body}\n\n\nhandle({arena.variation.width})\n"
        script.write_text(source, encoding="utf-8")
        run_script(arena, f'{sys.executable} {script}\necho "worker stopped with status $?"')

    return run


_TRAP = """
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\\x0f\\x0b")
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
return ctypes.CFUNCTYPE(ctypes.c_int)(address)()
"""
_BUS = """
with tempfile.TemporaryFile() as file:
    file.truncate(1 << 20)
    weights = mmap.mmap(file.fileno(), 1 << 20)
    file.truncate(0)
    return sum(weights[:width])
"""
_LOCKS = """
first, second = threading.Lock(), threading.Lock()


def other():
    with second:
        time.sleep(0.2)
        with first:
            pass
"""
_STUCK = """
faulthandler.dump_traceback_later(1.5, exit=True)
worker = threading.Thread(target=other, name="batcher", daemon=True)
worker.start()
with first:
    time.sleep(0.2)
    with second:
        return width
"""


_POOL_IMPORTS = """
import ctypes
import faulthandler
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
"""


def _pool(body: str, definitions: str, phase: str = "infer") -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        arena.serve(
            Code.of(body, _POOL_IMPORTS, definitions=definitions, phase=phase, once=True, width=arena.variation.width),
            fresh=True,
        )

    return run


_POOL = """
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
    return list(pool.map(score, range(min(width, 3))))
"""
_SUPERVISOR = """
import logging
import os
import signal
import subprocess
import sys
import time

logging.basicConfig(level=logging.INFO, format="{format}")
log = logging.getLogger("supervisor")
worker = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE, text=True)
log.info("started worker pid=%d", worker.pid)
os.set_blocking(worker.stdout.fileno(), False)
last = time.monotonic()
ready = False
while True:
    time.sleep(0.1)
    line = worker.stdout.readline()
    if line:
        last = time.monotonic()
        if not ready:
            ready = True
            log.info("worker pid=%d is ready", worker.pid)
    if time.monotonic() - last > {limit}:
        log.error({sentence!r}, worker.pid, {limit})
        os.kill(worker.pid, signal.SIGKILL)
        log.error("worker pid=%d exited with %d", worker.pid, worker.wait())
        sys.exit(1)
"""


def _supervised(child: str, sentences: tuple[str, ...]) -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        script = arena.path("supervisor.py")
        source = _SUPERVISOR.format(
            format=arena.variation.log_format, child=child, limit=1.5, sentence=arena.rng.choice(sentences)
        )
        script.write_text(source.lstrip(), encoding="utf-8")
        become(arena, sys.executable, script)

    return run


_NOT_READY = (
    "worker pid=%d did not report ready within %.1f s, killing it",
    "startup of worker pid=%d timed out after %.1f s; sending SIGKILL",
    "worker %d: model not loaded after %.1fs, giving up",
)
_NO_HEARTBEAT = (
    "worker pid=%d missed its heartbeat for %.1f s, killing it with signal 9",
    "watchdog: worker %d has not answered for %.1fs, sending SIGKILL",
    "health check of worker pid=%d got no reply in %.1f s; restarting it",
)


def _fifo(arena: Arena) -> None:
    """The model comes through a pipe that nobody feeds; the loader has a deadline."""
    path = arena.path("run/{model}.onnx")
    os.mkfifo(path)
    body = """
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        job = pool.submit(read, path)
        try:
            return job.result(timeout=1.5)
        finally:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    """
    definitions = 'def read(path):\n    with open(path, "rb") as file:\n        return file.read()'
    arena.serve(Code.of(body, "import concurrent.futures\nimport os", definitions=definitions, once=True, path=path))


def _timed_command(arena: Arena) -> None:
    """A start-up step under coreutils' timeout."""
    step = arena.rng.choice(("wait-for-weights", "convert-model", "fetch-and-load", "compile-engine"))
    tool = arena.path(f"bin/{step}")
    tool.write_text("#!/bin/bash\nexec sleep 60\n", encoding="ascii")
    tool.chmod(0o755)
    ending = arena.rng.choice(
        ('echo "startup step failed with status $?"', 'echo "server did not become ready: $?"; exit 1')
    )
    run_script(arena, f"echo 'starting {arena.variation.model}'\ntimeout -v -k 1 1 {tool}\n{ending}")


def _fault(
    name: str,
    failure: str,
    phase: str,
    library: str,
    title: str,
    run: Callable[[Arena], None],
    *needs: str,
    limit: float = 20.0,
) -> Fault:
    return Fault(
        name, failure, phase, library, title, run, needs, limit, "a mount or control group is removed at the end"
    )


NATIVE, HANG = "native_crash", "hang"
FAULTS: tuple[Fault, ...] = (
    _fault(
        "faulthandler-segv",
        NATIVE,
        "infer",
        "faulthandler",
        "read address 8",
        _dump("return ctypes.string_at(8)", "import ctypes"),
    ),
    _fault(
        "faulthandler-segv-told",
        NATIVE,
        "infer",
        "faulthandler",
        "read address 8 under a shell",
        _dump_and_tell("return ctypes.string_at(8)", "import ctypes"),
    ),
    _fault("faulthandler-abort", NATIVE, "infer", "faulthandler", "abort", _dump("os.abort()", "import os")),
    _fault(
        "faulthandler-trap",
        NATIVE,
        "infer",
        "faulthandler",
        "run an illegal instruction",
        _dump(_TRAP, "import ctypes\nimport mmap"),
        "linux",
    ),
    _fault(
        "faulthandler-bus",
        NATIVE,
        "load",
        "faulthandler",
        "read a mapped file that was cut",
        _dump(_BUS, "import mmap\nimport tempfile", "load"),
        "linux",
    ),
    _fault(
        "faulthandler-fpe",
        NATIVE,
        "infer",
        "faulthandler",
        "raise an arithmetic signal",
        _dump_and_tell("signal.raise_signal(signal.SIGFPE)", "import signal"),
    ),
    _fault(
        "python-no-gil",
        NATIVE,
        "infer",
        "python",
        "call the interpreter without its lock",
        _dump("return ctypes.CDLL(None).PyThreadState_Get()", "import ctypes"),
        "linux",
    ),
    _fault(
        "faulthandler-stuck",
        HANG,
        "infer",
        "faulthandler",
        "a dump of threads that wait for each other",
        _dump(_STUCK, "import threading\nimport time", definitions=_LOCKS.strip()),
    ),
    _fault(
        "pool-segv",
        NATIVE,
        "infer",
        "multiprocessing",
        "a pool's worker that crashes",
        _pool(_POOL, "def score(row):\n    faulthandler.enable()\n    return ctypes.string_at(row)"),
    ),
    _fault(
        "pool-lost",
        "unclassified",
        "infer",
        "multiprocessing",
        "a pool's worker that vanishes without a word",
        _pool(_POOL, "def score(row):\n    os._exit(1)"),
    ),
    _fault(
        "supervisor-not-ready",
        "load_timeout",
        "load",
        "supervisor",
        "a worker that is not ready in time",
        _supervised("import time; time.sleep(60)", _NOT_READY),
    ),
    _fault(
        "supervisor-silent",
        HANG,
        "infer",
        "supervisor",
        "a worker whose heartbeat stops",
        _supervised("import time; print('ready', flush=True); time.sleep(60)", _NO_HEARTBEAT),
    ),
    _fault("fifo-unfed", "load_timeout", "load", "python", "a pipe that never delivers the model", _fifo, "linux"),
    _fault(
        "timeout-startup",
        "load_timeout",
        "load",
        "coreutils",
        "a start-up step that takes too long",
        _timed_command,
        "bash",
        "timeout",
    ),
)
