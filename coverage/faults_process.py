"""Faults of processes: interpreter dumps, kills, memory limits, worker pools, supervisors, full and closed disks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import become, run_script, write_script

_CGROUP = Path("/sys/fs/cgroup/memory")
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


def _killed_in_cgroup(quiet: bool) -> Callable[[Arena], None]:
    """A loader outgrows its memory cgroup and the kernel kills it; bash, and the kernel's own log, tell."""

    def run(arena: Arena) -> None:
        if not _CGROUP.is_dir():
            return  # no control groups of version 1: nothing is printed, and nothing kept
        group = _CGROUP / f"serve-{os.getpid()}"
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(64 << 20), encoding="ascii")
        loader = arena.path(arena.rng.choice(("load_model.py", "serve.py", "warm.py")))
        loader.write_text(
            'print("loading weights", flush=True)\nweights = [bytearray(b"w") * (8 << 20) for _ in range(64)]\n',
            encoding="utf-8",
        )
        tail = (
            ""
            if quiet
            else "\nsleep 0.3\ndmesg | grep -A40 'invoked oom-killer' | tail -n 30 | grep -E 'oom|Memory cgroup|memory: usage|Killed'"
        )
        ending = arena.rng.choice(("", "echo exit $?", 'echo "process exited with 137, restarting"'))
        script = write_script(arena, f"echo $$ > {group}/cgroup.procs\n{sys.executable} {loader.name}\n{ending}{tail}")
        os.chdir(arena.root)
        subprocess.run(["bash", str(script)], check=False)
        (group / "cgroup.procs").exists() and group.rmdir()

    return run


def _limit(body: str, imports: str = "") -> Callable[[Arena], None]:
    """An app that allocates past its address-space limit."""

    def run(arena: Arena) -> None:
        setup = "import resource\n\nresource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))\n"
        arena.serve(
            Code.of(
                body, setup + imports, phase="load", mib=arena.variation.mib * 8, path=arena.path("models/{model}.bin")
            ),
            fresh=True,
        )

    return run


def _pool(body: str, definitions: str, phase: str = "infer") -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        imports = "import ctypes\nimport faulthandler\nimport multiprocessing\nimport os\nimport signal\nimport time\nfrom concurrent.futures import ProcessPoolExecutor"
        arena.serve(
            Code.of(body, imports, definitions=definitions, phase=phase, once=True, width=arena.variation.width)
        )

    return run


_POOL = """
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    return list(pool.map(score, range(width)))
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
    """A supervisor that kills a worker which does not report in time."""

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


def _full(body: str, imports: str, size: str = "64k", where: str = "cache") -> Callable[[Arena], None]:
    """An app whose cache is a tmpfs that is too small."""

    def run(arena: Arena) -> None:
        folder = arena.path(f"{where}/.keep").parent
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
        arena.serve(Code.of(body, imports, phase="prepare", once=True, folder=folder, kib=arena.variation.mib))

    return run


def _readonly(body: str, imports: str) -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        folder = arena.path("models/.keep").parent
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)], check=True)
        arena.serve(Code.of(body, imports, phase="load", folder=folder, model=arena.variation.model))

    return run


def _nobody(body: str) -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        folder = arena.path("models/{model}/.keep").parent
        (folder / "config.json").write_text("{}", encoding="ascii")
        (folder / "config.json").chmod(0)
        arena.serve(Code.of(body, _BECOME_NOBODY, phase="load", folder=folder))

    return run


_BECOME_NOBODY = "import os\n\nif os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)"


def _small_shm(arena: Arena) -> None:
    """Shared memory is a mount that is too small, as in a container that kept the default."""
    script = arena.path("share.py")
    script.write_text(
        "import faulthandler\nfrom multiprocessing import shared_memory\n\nfaulthandler.enable()\n\n\n"
        "def share_batch(size):\n    block = shared_memory.SharedMemory(create=True, size=size)\n"
        "    block.buf[:] = bytes(size)\n    return block\n\n\n"
        f"share_batch({arena.variation.mib << 10})\n",
        encoding="utf-8",
    )
    said = arena.rng.choice(
        (
            "batch worker died with bus error: /dev/shm is too small ($(df -h /dev/shm | tail -1))",
            "worker lost, shared memory: $(df -h --output=size,avail /dev/shm | tail -1)",
        )
    )
    inner = write_script(arena, f'mount -t tmpfs -o size=64k tmpfs /dev/shm\n{sys.executable} {script}\necho "{said}"')
    become(arena, "unshare", "-m", "bash", inner)


def _torch_shm(arena: Arena) -> None:
    script = arena.path("loader.py")
    script.write_text(
        "import torch\n\n\ndef share(rows):\n    return torch.ones(rows, 1024).share_memory_()\n\n\n"
        f"share({arena.variation.mib * 4})\n",
        encoding="utf-8",
    )
    inner = write_script(arena, f"mount -t tmpfs -o size=64k tmpfs /dev/shm\n{sys.executable} {script}")
    become(arena, "unshare", "-m", "bash", inner)


_WRITE = (
    'with open(os.path.join(folder, "weights.bin"), "wb") as file:\n    file.write(bytes(kib << 10))\nreturn folder'
)
_COPY = 'source = "/usr/bin/bash"\nreturn shutil.copy(source, folder)'
_SAVE = 'np.save(os.path.join(folder, "embeddings.npy"), np.ones((kib, 1024), dtype="float32"))\nreturn folder'
_MAKE = 'cache = os.path.join(folder, "hub", "snapshots")\nos.makedirs(cache)\nreturn cache'
_TOUCH = 'return open(os.path.join(folder, "refresh.lock"), "w")'
_READ = 'return open(os.path.join(folder, "config.json")).read()'
_MOVE = 'os.replace(os.path.join(folder, "config.json"), os.path.join(folder, "config.old"))\nreturn folder'


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


NATIVE, HANG, DISK = "native_crash", "hang", "permission_disk"
ROOT = ("linux", "root")
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
        "cgroup-killed",
        "oom_host",
        "load",
        "bash",
        "the kernel kills a loader, bash tells",
        _killed_in_cgroup(True),
        *ROOT,
        "bash",
    ),
    _fault(
        "cgroup-killed-kernel",
        "oom_host",
        "load",
        "linux",
        "the kernel kills a loader and logs it",
        _killed_in_cgroup(False),
        *ROOT,
        "bash",
        "dmesg",
    ),
    _fault(
        "limit-bytearray",
        "oom_host",
        "load",
        "python",
        "a buffer past the limit",
        _limit("return bytearray(mib << 20)"),
    ),
    _fault(
        "limit-mmap",
        "oom_host",
        "load",
        "python",
        "a mapping past the limit",
        _limit("return mmap.mmap(-1, mib << 20)", "import mmap"),
    ),
    _fault(
        "limit-fork",
        "oom_host",
        "load",
        "python",
        "a list that grows past the limit",
        _limit("kept = []\nwhile True:\n    kept.append([0.0] * 1_000_000)"),
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
    _fault(
        "tmpfs-write", DISK, "prepare", "python", "write past a full disk", _full(_WRITE, "import os"), *ROOT, "mount"
    ),
    _fault(
        "tmpfs-copy", DISK, "prepare", "python", "copy past a full disk", _full(_COPY, "import shutil"), *ROOT, "mount"
    ),
    _fault(
        "tmpfs-numpy",
        DISK,
        "prepare",
        "numpy",
        "save an array past a full disk",
        _full(_SAVE, "import os\n\nimport numpy as np"),
        *ROOT,
        "mount",
    ),
    _fault(
        "readonly-make",
        DISK,
        "load",
        "python",
        "make a folder on a read-only disk",
        _readonly(_MAKE, "import os"),
        *ROOT,
        "mount",
    ),
    _fault(
        "readonly-write",
        DISK,
        "load",
        "python",
        "write on a read-only disk",
        _readonly(_TOUCH, "import os"),
        *ROOT,
        "mount",
    ),
    _fault("nobody-read", DISK, "load", "python", "read a file of mode 000", _nobody(_READ), *ROOT),
    _fault("nobody-make", DISK, "load", "python", "make a folder in another user's", _nobody(_MAKE), *ROOT),
    _fault("nobody-move", DISK, "load", "python", "rename in another user's folder", _nobody(_MOVE), *ROOT),
    _fault(
        "shm-small",
        DISK,
        "infer",
        "multiprocessing",
        "shared memory that is too small",
        _small_shm,
        *ROOT,
        "unshare",
        "mount",
    ),
    _fault(
        "shm-small-torch",
        DISK,
        "infer",
        "torch",
        "a tensor shared in too small a memory",
        _torch_shm,
        *ROOT,
        "unshare",
        "mount",
        limit=60.0,
    ),
)
