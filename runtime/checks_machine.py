"""Checks of the machine and its libraries: Python, TorchScript, shared memory, open files."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from pathlib import Path

from crashpath.runtime import machine
from crashpath.runtime.finding import Check, Result, fail, ok, skip, warn
from crashpath.runtime.look import MIB, Look
from crashpath.runtime.wording import size

_OLDEST = (3, 11)
_NO_SCRIPT = (3, 14)
"""From this Python on, torch says that TorchScript is not supported."""
_LIBRARIES = ("numpy", "onnx", "onnxruntime", "torch")
_SHARED = 64 * MIB
_FEW_FILES, _SPARE_FILES = 256, 64


def python(look: Look) -> Result:
    """The interpreter is one that crashpath and TorchScript support."""
    version = platform.python_version()
    if sys.version_info < _OLDEST:
        return fail(f"Python {version}", "Run on Python 3.11 or newer.")
    if sys.version_info >= _NO_SCRIPT:
        return warn(f"Python {version}: torch supports TorchScript before 3.14 only", "Serve on Python 3.13 or older.")
    return ok(f"Python {version}, where torch supports TorchScript (deprecated upstream)")


def libraries(look: Look) -> Result:
    """The libraries of both paths are installed."""
    found, lacking = [], []
    for name in _LIBRARIES + (("tokenizers",) if look.folder is not None and look.folder.tokenizer else ()):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            if not (name == "onnxruntime" and _another_onnxruntime()):
                lacking.append(name)
    if lacking:
        return fail(f"not installed: {', '.join(lacking)}", f"pip install {' '.join(lacking)}")
    return ok(", ".join(found))


def _another_onnxruntime() -> bool:
    """Whether the library is there under the name of a build for a device."""
    names = {one.metadata["Name"] for one in importlib.metadata.distributions()}
    return any(str(name).startswith("onnxruntime-") for name in names)


def shared_memory(look: Look) -> Result:
    """There is room for the tensors that pass between processes."""
    path = Path("/dev/shm")
    if not path.is_dir():
        return skip("this system has no /dev/shm")
    free = machine.free_space(path)
    told = f"{size(free)} free in {path}"
    if free < _SHARED:
        return warn(told, "Give the container more: --shm-size 256m, or an emptyDir of medium Memory.")
    return ok(told)


def open_files(look: Look) -> Result:
    """A session may open the files that it needs."""
    used, most = machine.open_files()
    told = f"{used} of {most:,} open files in use"
    if most - used < _SPARE_FILES:
        return fail(told, "ulimit -n 4096")
    return warn(told, "ulimit -n 4096") if most < _FEW_FILES else ok(told)


MACHINE_CHECKS = (
    Check("machine.python", "dependency", "Python is supported", python),
    Check("machine.libraries", "dependency", "the libraries are there", libraries),
    Check("machine.shared_memory", "permission_disk", "tensors can be shared", shared_memory),
    Check("machine.open_files", "permission_disk", "files can be opened", open_files),
)
