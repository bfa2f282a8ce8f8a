"""Big logs from a seed, written as a stream: healthy lines of several writers, failures among them, some huge lines.

The same size and seed give the same bytes. One line in about ``QUIET_LINES`` begins a failure, as a log of a deployment
that mostly works; every failure has values of its own, and some come while another writer is talking.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from traces import distinct

SEED = 20_260_301
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
WRITERS = ("web-1", "web-2", "triton-0", "loader-1")
QUIET_LINES = 700
PER_SECOND = 200
LONG_EVERY = 100_000
_POOL = 400
_BLOCK = 1_000


def blocks(
    seed: int = SEED, quiet_lines: int = QUIET_LINES, per_second: int = PER_SECOND, long_every: int = LONG_EVERY
) -> Iterator[bytes]:
    """Yield blocks of about a thousand lines without end. ``per_second``: lines that are stamped with one second."""
    rng = random.Random(seed)
    traces = distinct(rng, _POOL)
    number, due, huge = 0, rng.randrange(quiet_lines), long_every // 2
    while True:
        lines = []
        for _ in range(_BLOCK):
            if number % per_second == 0:
                stamp = f"{BEGIN + timedelta(seconds=number // per_second):%Y-%m-%d %H:%M:%S}"
            now = f"{stamp},{number % per_second * 1000 // per_second:03d}"
            number += 1
            writer = WRITERS[number * 7 % 11 % 4]
            lines.append(f"{writer} | {now} INFO server: request {number} took {number % 97} ms, status 200")
            due -= 1
            huge -= 1
            if due <= 0:
                due = 1 + rng.randrange(2 * quiet_lines)
                lines += _failure(rng, writer, now, rng.choice(traces), number)
            if huge <= 0:
                huge = long_every
                lines.append(f"{writer} | {now} DEBUG server: payload {'0123456789abcdef' * 30_000}")
        yield ("\n".join(lines) + "\n").encode()


def write_log(
    path: Path, size: int, seed: int = SEED, quiet_lines: int = QUIET_LINES, per_second: int = PER_SECOND
) -> int:
    """Write a log of ``size`` bytes and a few more, to the end of a block; return how many lines it has."""
    written = lines = 0
    with path.open("wb") as file:
        for block in blocks(seed, quiet_lines, per_second):
            file.write(block)
            written += len(block)
            lines += block.count(b"\n")
            if written >= size:
                return lines
    raise AssertionError("blocks() never ends")


def _failure(rng: random.Random, writer: str, stamp: str, trace: str, number: int) -> list[str]:
    """A failure as a server logs it; in one of three, another writer's healthy line stands in the midst of it."""
    lines = [f"{writer} | {stamp} ERROR server: request {number} failed"]
    lines += [f"{writer} | {line}" for line in trace.rstrip("\n").split("\n")]
    if rng.random() < 0.33:
        other = WRITERS[(WRITERS.index(writer) + 1) % len(WRITERS)]
        lines.insert(3, f"{other} | {stamp} INFO server: health check passed")
    return lines
