"""Strikes in which memory is really refused. ``argument``: MiB of address space that are left, or empty for no limit.

Under a limit the request is one that a machine could grant (512 MiB); without one it is larger than any address space.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEST = 512 << 20
ABSURD = 1 << 50
"""Bytes: more than the 2**47 of a process on common processors, so refused whatever the kernel overcommits."""


@contextmanager
def limited(argument: str) -> Iterator[int]:
    """Leave this process ``argument`` MiB of address space meanwhile; yields the bytes that are too many then."""
    if not argument:
        yield ABSURD
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    wanted = pages * resource.getpagesize() + (int(argument) << 20)
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
    try:
        yield MODEST
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def bytes_refused(argument: str) -> None:
    """Ask Python for a buffer: a bare MemoryError."""
    with limited(argument) as size:
        bytearray(size)


def array_refused(argument: str) -> None:
    """Ask numpy for an array: its own error names shape and type."""
    import numpy as np

    with limited(argument) as size:
        np.ones((size // 4096, 1024), dtype=np.float32)


def mapping_refused(argument: str) -> None:
    """Ask the kernel for a mapping: ENOMEM of mmap(2)."""
    import mmap

    with limited(argument) as size:
        mmap.mmap(-1, size)


def expand_refused(argument: str) -> None:
    """Run a graph of ONNX Runtime whose Expand wants more than there is. ``argument``: file of the graph, then MiB."""
    import numpy as np
    import onnxruntime as ort

    file, _, mib = argument.partition("|")
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    with limited(mib) as size:
        session.run(None, {"shape": np.array([size // 4096, 1024], dtype=np.int64)})
