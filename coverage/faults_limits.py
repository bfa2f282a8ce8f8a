"""Faults of limits: memory groups and address space, full, closed and read-only disks, too little shared memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.drillplan import ENDS_SERVICE, DrillPlan
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import become, write_script

_CGROUP = Path("/sys/fs/cgroup/memory")


_KERNEL_LOG = """
sleep 0.3
dmesg | grep -A60 'invoked oom-killer' | tail -n 50 | grep -E 'oom|Memory cgroup out|memory: usage|Killed'"""


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
        tail = "" if quiet else _KERNEL_LOG
        ending = arena.rng.choice(("", "echo exit $?", 'echo "process exited with 137, restarting"'))
        script = write_script(arena, f"echo $$ > {group}/cgroup.procs\n{sys.executable} {loader.name}\n{ending}{tail}")
        os.chdir(arena.root)
        subprocess.run(["bash", str(script)], check=False)
        if group.exists():
            group.rmdir()

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


DISK = "permission_disk"
ROOT = ("linux", "root")
FAULTS: tuple[Fault, ...] = (
    replace(
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
        drill=DrillPlan(
            ("load", "warmup", "infer"),
            "oom_kill [1-9]",
            "process.outgrow_group",
            "{memory-group}",
            process_only=ENDS_SERVICE,
            needs=("memory-group",),
        ),
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
