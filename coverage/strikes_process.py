"""Strikes that end or freeze the process that runs a path. Each takes one text; this module needs the stdlib alone.

Only a path in a worker of its own can be struck so: in the serving process they would end the service.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import signal
import tempfile
from pathlib import Path

ILLEGAL = {"x86_64": b"\x0f\x0b\xc3", "aarch64": b"\x00\x00\x00\x00"}
"""Machine code that no processor of that kind executes: ``ud2`` and ``udf #0``."""


def killed(argument: str) -> None:
    """Be killed as by the kernel or an operator: a bare SIGKILL, with no word about why."""
    os.kill(os.getpid(), signal.SIGKILL)


def segmentation_fault(argument: str) -> None:
    """Read address 0."""
    ctypes.string_at(0)


def abort(argument: str) -> None:
    """Call abort(3), as a failed assertion of native code does."""
    os.abort()


def bus_error(argument: str) -> None:
    """Read a page of a mapped file that was cut short meanwhile."""
    with tempfile.TemporaryFile() as file:
        file.truncate(2 * mmap.PAGESIZE)
        pages = mmap.mmap(file.fileno(), 2 * mmap.PAGESIZE)
        file.truncate(0)
        bytes(pages[mmap.PAGESIZE : mmap.PAGESIZE + 8])


def illegal_instruction(argument: str) -> None:
    """Run machine code that this processor does not have, as a binary that was built for another one."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(ILLEGAL[platform.machine()])
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(None)(address)()


def uncaught_bad_alloc(argument: str) -> None:
    """Ask the C++ allocator for more than there is, with nobody to catch what it throws: the runtime aborts."""
    allocate = ctypes.CDLL("libstdc++.so.6")["_Znwm"]  # operator new(unsigned long)
    allocate.argtypes = (ctypes.c_size_t,)
    allocate(1 << 62)


def outgrow_group(argument: str) -> None:
    """Enter the memory group (a folder of the cgroup file system) and grow until the kernel kills for it."""
    Path(argument, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    held = []
    while True:
        held.append(b"x" * (1 << 20))


def stopped(argument: str) -> None:
    """Be frozen: every thread stands, no signal handler runs, nothing is answered."""
    os.kill(os.getpid(), signal.SIGSTOP)


def leaves(argument: str) -> None:
    """End with an exit code and no word, as a library that calls exit(3) does."""
    os._exit(int(argument or "3"))
