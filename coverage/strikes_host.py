"""Strikes of the host: rights, space, limits, libraries, networks. What fails is the real call."""

from __future__ import annotations

import ctypes
import importlib
import os
import resource
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.request import Request, urlopen


def not_executable(argument: str) -> None:
    """Start a helper program that has lost its execute bit: refused even to root."""
    with tempfile.TemporaryDirectory() as folder:
        helper = Path(folder, "convert-weights")
        helper.write_text("#!/bin/sh\necho done\n", encoding="ascii")
        helper.chmod(0o644)
        subprocess.run([str(helper)], check=True)


def unreadable(argument: str) -> None:
    """Open a file of mode 000 as a user whom it does not belong to. ``argument``: the file."""
    owner, nobody = os.geteuid(), 65534
    if owner == 0:
        os.seteuid(nobody)
    try:
        Path(argument).read_bytes()
    finally:
        if owner == 0:
            os.seteuid(owner)


def no_space(argument: str) -> None:
    """Write a cache file until the disk is full. ``argument``: a folder of a small file system, or empty: /dev/full."""
    target = Path(argument, f"optimized-{os.getpid()}.bin") if argument else Path("/dev/full")
    try:
        with target.open("wb", buffering=0) as file:
            for _ in range(1024):
                file.write(bytes(1 << 20))
    finally:
        if argument:
            target.unlink(missing_ok=True)


def read_only(argument: str) -> None:
    """Write into a file system that is mounted read-only. ``argument``: a folder of it."""
    Path(argument, "timing.cache").write_bytes(b"x")


def too_many_files(argument: str) -> None:
    """Open files up to the limit of the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, len(os.listdir("/proc/self/fd")) + 64), hard))
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def module_missing(argument: str) -> None:
    """Import a package that is not installed."""
    importlib.import_module(argument or "sentence_features_ext")


def library_missing(argument: str) -> None:
    """Load a shared library that is not there."""
    ctypes.CDLL(argument or "libmkl_rt.so.7")


def extension_broken(argument: str) -> None:
    """Import an extension module whose file is no whole library."""
    import sys
    import sysconfig

    with tempfile.TemporaryDirectory() as folder:
        name = "fast_features"
        Path(folder, name + sysconfig.get_config_var("EXT_SUFFIX")).write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9))
        sys.path.insert(0, folder)
        try:
            importlib.invalidate_caches()
            importlib.import_module(name)
        finally:
            sys.path.remove(folder)


def symbol_missing(argument: str) -> None:
    """Load a library that was linked against another version of its neighbour. ``argument``: the library."""
    ctypes.CDLL(argument, mode=os.RTLD_NOW)


def driver_missing(argument: str) -> None:
    """Load the driver's library on a host without the driver."""
    ctypes.CDLL("libcuda.so.1")


def provider_broken(argument: str) -> None:
    """Register an execution provider whose vendor library is absent. ``argument``: the provider's library."""
    import onnxruntime as ort

    ort.register_execution_provider_library("CudaOnThisHost", argument)


def fetch(argument: str) -> None:
    """Fetch a file over HTTP. ``argument``: its address; what the server, or nobody, says is the failure."""
    request = Request(argument, headers={"User-Agent": "model-fetch/1"})
    with urlopen(request, timeout=10) as answer:
        answer.read()


def connect(argument: str) -> None:
    """Open a connection. ``argument``: ``host:port``."""
    host, _, port = argument.rpartition(":")
    socket.create_connection((host, int(port)), timeout=10).close()
