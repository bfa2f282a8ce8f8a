"""A storm: 100 threads on one session in workers, for a minute, while its workers are killed at random moments.

Every request has numbers of its own, so an answer that went to another caller, came twice or was made up is seen. Kills
are SIGKILL and SIGSEGV from outside: one in ``FALLBACK_EVERY`` of the fallback, the others of the main worker. Told:
what the requests got, how long the longest took, and what is left of memory, files, shared memory and processes. Red
where a request was not answered, got another's answer, or something grew.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from results_file import write_results
from tables import table

from crashpath.coverage.claims import lower_bound, shown
from crashpath.runtime import FallbackSession, ServingError, open_session
from crashpath.runtime.testing import tiny_folder

FALLBACK_EVERY = 8
GROWTH_MIB = 40
"""Resident memory that the serving process may have gained after the storm: allocators keep what they once had."""
SIZES = (1, 100, 50_000)


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds: resident MiB, open files, entries of the shared memory folder, children."""

    rss_mib: float
    files: int
    shared: int
    children: int


def main(arguments: Sequence[str] = ()) -> int:
    """Run it; 1 where something was lost, swapped or left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--deadline-s", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        folder = tiny_folder(Path(name) / "echo", kind="echo", deadline_ms=1000 * options.deadline_s)
        before = held()
        session = open_session(folder, isolation="process", sample=0.0)
        storm = Storm(session, options.seed)
        storm.blow(3.0, options.threads, kills=False)  # what threads and buffers cost once is none of the growth
        calm, counted = held(), Counter(storm.seen)
        storm.blow(options.seconds, options.threads, kills=True)
        after = held()
        restarts = session.facts().main.restarts, session.facts().fallback.restarts
        session.close()
    left = _settled(before)
    seen = Counter(storm.seen) - counted
    asked = sum(seen.values())
    good = seen["right, ort"] + seen["right, torchscript"]
    table(f"{options.threads} threads, {options.seconds:g} s, {storm.kills} kills", ("requests", "n"),
          [(word, f"{n:,}") for word, n in seen.most_common()])  # fmt: skip
    table("Held by the serving process", ("", "MiB", "files", "shared", "children"),
          [(name, f"{one.rss_mib:.0f}", str(one.files), str(one.shared), str(one.children)) for name, one in
           (("before", before), ("serving, calm", calm), ("after the storm", after), ("closed", left))])  # fmt: skip
    print(f"restarts: main {restarts[0]}, fallback {restarts[1]}; the longest request took {storm.longest:.2f} s")
    print(f"{asked - good} of {asked:,} requests without the right answer; at least "
          f"{shown(lower_bound(asked, asked - good))} of such requests get it (95 %)")  # fmt: skip
    grew = [
        name
        for name, found in (
            ("memory", after.rss_mib - calm.rss_mib > GROWTH_MIB),
            ("shared memory", left.shared > before.shared),
            ("open files", left.files > before.files),
            ("processes", left.children > before.children),
            ("stuck threads", storm.stuck > 0),
        )
        if found
    ]
    print("grew: " + (", ".join(grew) or "nothing"))
    write_results("storm", {
        "threads": options.threads, "seconds": options.seconds, "kills": storm.kills, "requests": dict(seen),
        "longest_s": round(storm.longest, 2), "rss_mib": [round(calm.rss_mib), round(after.rss_mib)],
        "files": [before.files, calm.files, after.files, left.files], "grew": grew,
    })  # fmt: skip
    return int(good < asked or bool(grew))


class Storm:
    """Asks from many threads and kills meanwhile. ``seen`` counts how requests ended."""

    def __init__(self, session: FallbackSession, seed: int) -> None:
        self.seen: Counter[str] = Counter()
        self.kills = 0
        self.longest = 0.0
        self.stuck = 0
        self._session = session
        self._draw = random.Random(seed)
        self._lock = threading.Lock()

    def blow(self, seconds: float, threads: int, *, kills: bool) -> None:
        """Ask for so long, and wait until every request has ended."""
        stop = threading.Event()
        asking = [threading.Thread(target=self._ask, args=(place, stop), daemon=True) for place in range(threads)]
        for thread in asking:
            thread.start()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            stop.wait(min(left, self._draw.uniform(0.3, 2.5)))
            if kills and time.monotonic() < end:
                self._kill()
        stop.set()
        for thread in asking:
            thread.join(120)
        self.stuck += sum(thread.is_alive() for thread in asking)

    def _kill(self) -> None:
        facts = self._session.facts()
        lane = facts.fallback if self.kills % FALLBACK_EVERY == FALLBACK_EVERY - 1 else facts.main
        if lane.pid is not None and lane.state == "ready":
            self.kills += 1
            os.kill(lane.pid, self._draw.choice((signal.SIGKILL, signal.SIGSEGV)))

    def _ask(self, place: int, stop: threading.Event) -> None:
        draw = random.Random(place)
        number = 0
        while not stop.is_set():
            number += 1
            feed = np.full(draw.choice(SIZES), place * 50_000 + number, np.float32)
            began = time.monotonic()
            try:
                answer = self._session.run({"x": feed})
                given = answer.outputs["y"]
                right = given.shape == feed.shape and bool((given == feed + 1).all())
                word = f"right, {answer.path}" if right else "WRONG"
            except ServingError as error:
                word = type(error).__name__
            took = time.monotonic() - began
            with self._lock:
                self.seen[word] += 1
                self.longest = max(self.longest, took)


def _settled(before: Held) -> Held:
    """Look again until the workers' processes are gone, a few seconds at most."""
    by = time.monotonic() + 5.0
    while (left := held()).children > before.children and time.monotonic() < by:
        time.sleep(0.05)
    return left


def held() -> Held:
    """Look at this process now."""
    me = psutil.Process()
    shared = len(list(Path("/dev/shm").iterdir())) if Path("/dev/shm").is_dir() else 0
    return Held(me.memory_info().rss / 2**20, me.num_fds(), shared, len(me.children(recursive=True)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
