"""Strikes that do not come back. ``argument``: seconds after which they do (a thread cannot be cut), or empty."""

from __future__ import annotations

import ctypes
import os
import threading
import time

FOR_EVER = 86400.0


def sleeps(argument: str) -> None:
    """Wait, as for an answer that never comes."""
    time.sleep(float(argument or FOR_EVER))


def spins(argument: str) -> None:
    """Compute without end, in Python."""
    end = time.monotonic() + float(argument or FOR_EVER)
    while time.monotonic() < end:
        pass


def holds_the_interpreter(argument: str) -> None:
    """Wait in native code that does not let go of the interpreter's lock: no other Python thread can run."""
    ctypes.PyDLL(None).sleep(ctypes.c_uint(int(float(argument or FOR_EVER))))


def deadlocks(argument: str) -> None:
    """Take a lock that nobody will release."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=float(argument or FOR_EVER))


def reads_a_pipe(argument: str) -> None:
    """Read what a helper should send through a pipe and does not. ``argument``: seconds, for `select`."""
    import select

    reading, writing = os.pipe()
    try:
        select.select([reading], [], [], float(argument or FOR_EVER))
    finally:
        os.close(reading)
        os.close(writing)


def waits_for_a_server(argument: str) -> None:
    """Fetch from a server that takes the request and never answers. ``argument``: its address, then seconds."""
    from urllib.request import urlopen

    address, _, seconds = argument.partition("|")
    with urlopen(address, timeout=float(seconds or FOR_EVER)) as answer:
        answer.read()


def graph_without_end(argument: str) -> None:
    """Run a graph of ONNX Runtime whose Loop goes on. ``argument``: file of the graph, then seconds.

    With seconds, the run is ended between two turns as a watchdog would; without, only a kill ends it.
    """
    import numpy as np
    import onnxruntime as ort

    file, _, seconds = argument.partition("|")
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    options = ort.RunOptions()
    watchdog = threading.Timer(float(seconds or FOR_EVER), setattr, (options, "terminate", True))
    watchdog.daemon = True
    watchdog.start()
    try:
        session.run(None, {"input": np.zeros((8, 8), dtype=np.float32)}, options)
    finally:
        watchdog.cancel()
