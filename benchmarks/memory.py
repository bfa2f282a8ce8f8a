"""Memory while a big log is read: how far the process grows above itself with the encoder loaded, and how fast it is.

The log is made from a seed. A process of its own loads the encoder, waits for the baseline to be taken, and feeds the
log into a new store; its resident set is sampled from outside five times a second, beside how far it has read.
A second log is one single line. Red where the growth reaches ``LIMIT`` MB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from biglog import write_log
from processes import environment
from results_file import write_results
from tables import table

from crashpath.clustering.encoder import open_encoder
from crashpath.ingest.feed import Feeder, FeedOptions
from crashpath.ingest.nights import start_night
from crashpath.ingest.read import Found
from crashpath.ingest.rules import load_rules
from crashpath.ingest.storable import clean
from crashpath.ingest.store import open_store
from crashpath.ingest.write import Writer

LIMIT = 400
EVERY = 0.2
QUARTERS = (0.25, 0.5, 0.75, 1.0)
MB = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """One log: sizes in MB (10^6 bytes), seconds of reading; ``growth`` at each quarter of the file, and its peak."""

    name: str
    size: float
    lines: int
    records: int
    seconds: float
    baseline: float
    growth: tuple[float, ...]
    peak: float

    def speed(self) -> tuple[str, ...]:
        """A line of the table of speeds."""
        rate = f"{self.lines / self.seconds:,.0f}" if self.lines > 1 else "-"
        return self.name, f"{self.size:,.0f}", f"{self.lines:,}", f"{self.records:,}", f"{self.seconds:.0f}", rate

    def memory(self) -> tuple[str, ...]:
        """A line of the table of memory."""
        return self.name, f"{self.baseline:.0f}", *(f"{mb:+.0f}" for mb in self.growth), f"{self.peak:+.0f}"


SPEED = ("log", "MB", "lines", "records", "s", "lines/s")
MEMORY = ("log", "before", "at 25 %", "50 %", "75 %", "100 %", "peak")


def read(log: str, url: str) -> None:
    """Be the measured process: load the encoder, wait for a line on standard input, read the log, say what came."""
    open_encoder().encode(["RuntimeError: CUDA out of memory"])

    def clock() -> datetime:
        return datetime.now(UTC)

    with open_store(url) as store:
        with store.write() as session:
            night = start_night(session, versions={}, now=clock())
        feeder = Feeder(store, Writer(store, night, clean), load_rules(), FeedOptions(), clock)
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.perf_counter()
        fed = feeder.feed(Found(log))
        seconds = time.perf_counter() - started
    document = {"lines": fed.lines, "records": fed.records, "seconds": seconds, "problem": fed.problem}
    print(json.dumps(document), flush=True)


def measure(name: str, log: Path, folder: Path) -> Measured:
    """Read one log in a process of its own and sample it."""
    size = log.stat().st_size
    command = [sys.executable, __file__, "--read", str(log), f"sqlite:///{folder}/{name.replace(' ', '-')}.db"]
    child = subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert child.stdin is not None
    assert child.stdout is not None
    if child.stdout.readline() != "ready\n":
        raise RuntimeError("the reading process did not get ready")
    process = psutil.Process(child.pid)
    baseline = process.memory_info().rss
    high_before = _high_water(child.pid)
    child.stdin.write("go\n")
    child.stdin.flush()
    peak, growth = baseline, [0] * len(QUARTERS)
    high = 0
    while child.poll() is None:
        try:
            rss = process.memory_info().rss
            done = max((f.position for f in process.open_files() if f.path == str(log)), default=0) / size
        except psutil.Error:
            break
        high = _high_water(child.pid) or high
        peak = max(peak, rss)
        for i, quarter in enumerate(QUARTERS):
            if done and done <= quarter + 1e-9:
                growth[i] = rss - baseline
                break
        time.sleep(EVERY)
    said = json.loads(child.stdout.readline())
    if child.wait() or said["problem"]:
        raise RuntimeError(f"{log} was not read: {said['problem']}")
    peak = max(peak, high if high > high_before else 0)  # between two samples, where the system tells
    return Measured(
        name,
        size / MB,
        said["lines"],
        said["records"],
        said["seconds"],
        baseline / MB,
        tuple(g / MB for g in growth),
        (peak - baseline) / MB,
    )


def _high_water(pid: int) -> int:
    """Return the most that a process ever had resident, in bytes; 0 where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def one_line(path: Path, size: int) -> None:
    """Write a log that is one line of ``size`` bytes, a failure at its beginning."""
    words = b"RuntimeError: cannot decode tensor: " + b" ".join(b"%d" % (i * 7919 % 255) for i in range(200_000))
    with path.open("wb") as file:
        file.write(b"2026-03-01 10:00:00,000 ERROR loader: ")
        while file.tell() < size:
            file.write(words[: size - file.tell()])
        file.write(b"\n")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table and write the figures; 1 where the growth reaches the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=2.0, help="size of the log")
    parser.add_argument("--line-mb", type=int, default=300, help="size of the single line")
    options = parser.parse_args(arguments)
    found = []
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        folder = Path(name)
        log = folder / "big.log"
        lines = write_log(log, int(options.gib * 2**30))
        found.append(measure(f"{options.gib:g} GiB", log, folder))
        if found[0].lines != lines:
            print(f"{lines} lines were written, {found[0].lines} were read")
        log.unlink()
        line = folder / "line.log"
        one_line(line, options.line_mb * 10**6)
        found.append(measure(f"one line of {options.line_mb} MB", line, folder))
    table("Read, split, analysed and stored", SPEED, [one.speed() for one in found])
    table("Resident set in MB with the encoder loaded, and above that", MEMORY, [one.memory() for one in found])
    peak = max(one.peak for one in found)
    print(f"peak {peak:.0f} MB above, limit {LIMIT}")
    figures = {
        one.name: {
            "mb": round(one.size), "lines": one.lines, "records": one.records, "seconds": round(one.seconds, 1),
            "baseline_mb": round(one.baseline), "growth_mb": [round(g) for g in one.growth], "peak_mb": round(one.peak),
        }
        for one in found
    }  # fmt: skip
    write_results("memory", {"limit_mb": LIMIT, **figures})
    return int(peak >= LIMIT or found[0].lines != lines or found[1].records != 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main(sys.argv[1:]))
