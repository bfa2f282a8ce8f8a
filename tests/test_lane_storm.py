"""Many threads on one worker that is killed again and again."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path as FilePath

import numpy as np
import pytest

from crashpath.runtime.errors import DeadlineExceeded, Failure
from crashpath.runtime.lane import LaneState
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path
from crashpath.runtime.workerlane import WorkerLane

THREADS = 100
SECONDS = 6.0
LONG = 60.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_no_answer_is_lost_swapped_or_given_twice(tmp_path: FilePath) -> None:
    """Rule: under 100 threads and random kills each call ends in its own answer or a failure; nothing stays."""
    folder = tiny_folder(tmp_path, kind="echo", fallback=False)
    gc.collect()  # what other tests left open is none of this
    before, shared = len(os.listdir("/proc/self/fd")), os.listdir("/dev/shm")
    lane = WorkerLane(Path.MAIN, "ort", folder, folder.golden()[0])
    lane.load(LONG)
    serving = len(os.listdir("/proc/self/fd"))
    stop, seen, lock = threading.Event(), Counter[str](), threading.Lock()

    def ask(place: int) -> None:
        draw = random.Random(place)
        number = 0
        while not stop.is_set():
            number += 1
            feed = np.full(draw.choice((1, 100, 50_000)), place * 10_000 + number, np.float32)
            try:
                given = lane.run({"x": feed}, time.monotonic() + LONG)["y"]
                word = "right" if given.shape == feed.shape and (given == feed + 1).all() else "wrong"
            except Failure as error:
                word = type(error).__name__
                stop.wait(0.05)
            except DeadlineExceeded:
                word = "late"
            with lock:
                seen[word] += 1

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    draw, end = random.Random(0), time.monotonic() + SECONDS
    while time.monotonic() < end:
        stop.wait(draw.uniform(0.3, 2.0))
        pid = lane.facts().pid
        if pid is not None:
            os.kill(pid, draw.choice((signal.SIGKILL, signal.SIGSEGV)))
    stop.set()
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads)
    assert seen["right"] > 0
    assert set(seen) <= {"right", "HostMemory", "NativeCrash"}
    _until(lambda: lane.facts().state is LaneState.READY)
    assert lane.facts().restarts > 0
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= serving  # fewer, where what another test left was collected meanwhile
    lane.close()
    _until(lambda: len(os.listdir("/proc/self/fd")) <= before)
    assert set(os.listdir("/dev/shm")) <= set(shared)


def _until(done: Callable[[], bool]) -> None:
    by = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < by
        time.sleep(0.02)
