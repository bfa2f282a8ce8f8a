"""What the faults of a device share: a host without a library or without the device, programs that nvcc builds.

What is hidden is hidden in a mount namespace of the one process that fails: nothing of the host changes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from crashpath.coverage.app import Code, write_app
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import NAMES, PROGRAMS, become, write_script

NEEDS_HIDING = ("device", "linux", "root", "unshare", "mount")

TORCH = "import torch"
NN = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F"

_CLASSES = {
    "memory": "oom_device",
    "fault": "device_fault",
    "init": "device_init",
    "op": "unsupported_op",
    "shape": "shape_inference",
}
_TOOLS = {"cuda": "nvcc", "nccl": "module:torch"}
_NODES = "null zero full random urandom tty shm"


def on_device(
    name: str, kind: str, library: str, phase: str, title: str, run: Callable[[Arena], None], *needs: str
) -> Fault:
    """Make an entry of the catalogue that needs a device; its id says ``kind`` (the class, in one word) and library."""
    tool = _TOOLS.get(library, f"module:{library}")
    fault_id = f"cuda-{kind}-{name}" if library == "torch" else f"cuda-{kind}-{library}-{name}"
    return Fault(fault_id, _CLASSES[kind], phase, library, title, run, ("device", tool, *needs), 240.0)


def around(
    phase: str,
    *bodies: str,
    imports: str = TORCH,
    definitions: str = "",
    fresh: bool = False,
    env: Mapping[str, str] | None = None,
    numbers: Mapping[str, float] | None = None,
) -> Callable[[Arena], None]:
    """An app around one of ``bodies``, with ``env`` set.

    A body is given what it names of ``batch``, ``width``, ``other``, ``big`` (tokens, rows) and ``numbers``.
    """

    def run(arena: Arena) -> None:
        os.environ |= env or {}
        v = arena.variation
        body = arena.rng.choice(bodies)
        big = arena.rng.choice((24, 32, 48, 64, 96)) << 10
        sizes = {"batch": v.batch + 1, "width": v.width, "other": v.other, "big": big, **(numbers or {})}
        given: dict[str, object] = {name: size for name, size in sizes.items() if re.search(rf"\b{name}\b", body)}
        code = Code.of(body, imports, definitions=definitions, phase=phase, once=True, **given)
        arena.serve(code, fresh=fresh)

    return run


def without_libraries(arena: Arena, code: Code, *names: str) -> None:
    """Run an app as on a host that lacks the libraries whose file names begin so (``libcudnn``, ``libcuda.so``)."""
    steps = ["set -e"]
    for number, folder in enumerate(sorted({path.parent for name in names for path in found_libraries(name)})):
        there, shown = arena.folder / f"lib-{number}", arena.folder / f"shown-{number}"
        steps += [
            f"mkdir {there} {shown}",
            f"mount --bind {folder} {there}",
            f"ln -s {there}/* {shown}/",
            *(f"rm -f {shown}/{name}*" for name in names),
            f"mount --bind {shown} {folder}",
        ]
    _in_namespace(arena, code, steps)


def without_device(arena: Arena, code: Code) -> None:
    """Run an app as in a container into which the device was not handed: its driver's nodes are not there."""
    nodes = arena.folder / "nodes"
    steps = [
        "set -e",
        f"mkdir {nodes}",
        f"mount -t tmpfs none {nodes}",
        f"for name in {_NODES}; do [ ! -e /dev/$name ] || cp -a /dev/$name {nodes}/; done",
        f"mount --bind {nodes} /dev",
        "mount -o remount,bind,ro /dev",  # the driver's library makes missing nodes itself where it may
    ]
    _in_namespace(arena, code, steps)


def _in_namespace(arena: Arena, code: Code, steps: list[str]) -> None:
    entry = write_app(arena.root, arena.variation, code)
    run = f"cd {entry.parent}\nexec {sys.executable} -u {entry}"
    script = write_script(arena, "\n".join((*steps, run)))
    become(arena, "unshare", "--mount", "bash", script)


def found_libraries(name: str) -> list[Path]:
    """Return the shared libraries whose file names begin with ``name``, wherever a loader of this host may look."""
    spec = importlib.util.find_spec("nvidia")
    packages = (spec.submodule_search_locations or ()) if spec is not None else ()
    found = [path for root in packages for path in Path(root).rglob(f"{name}*")]
    cache = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    lines = [line.strip() for line in cache.splitlines() if line.strip().startswith(name)]
    found += [Path(line.rpartition(" => ")[2]) for line in lines]
    for folder in ("/usr/local/cuda/lib64", *os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        found += Path(folder).glob(f"{name}*") if folder else ()
    return sorted({path.parent.resolve() / path.name for path in found})


def build_cuda(arena: Arena, *flags: str) -> Path:
    """Compile the packaged CUDA program under names that vary and return its path."""
    program = arena.path(f"bin/{arena.rng.choice(PROGRAMS)}")
    code = arena.path(f"src/{program.name.replace('-', '_')}.cu")
    source = files("crashpath.coverage").joinpath("native_device.cpp").read_text(encoding="utf-8")
    code.write_text(source, encoding="utf-8")
    keys = ("FN_OUTER", "FN_MIDDLE", "FN_INNER", "FN_TYPE")
    names = [f"-D{key}={name}" for key, name in zip(keys, arena.rng.choice(NAMES), strict=True)]
    style = f"-DSTYLE={arena.rng.randint(0, 3)}"
    where = arena.root  # assertions show the file as the compiler was given it
    short = str(code.relative_to(where))
    subprocess.run(["nvcc", "-w", *names, style, *flags, "-o", str(program), short], check=True, cwd=where)
    return program
