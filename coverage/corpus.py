"""Make the corpus of crash logs: ``python -m crashpath.coverage.corpus [--seed 1] [--only FAULT] [--force]``.

Every fault of the catalogue whose needs are met runs a few times, every written entry is filled, and each text is
dressed as the field dresses it. The files go to ``data/crashlogs/night<n>/<release>/<platform>/``, what they are to
``data/labels.csv``. A file that is there stays, so a run that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import zstandard

from crashpath.coverage.fault import Fault, missing
from crashpath.coverage.faultrun import run_fault
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.nights import Slot, slot_of
from crashpath.coverage.variation import Variation
from crashpath.coverage.vary import dress
from crashpath.coverage.written import Written, load_written, render

RUNS = {"oom_host": 3, "load_timeout": 3, "tokenizer": 4, "shape_inference": 3}
WRITTEN = {
    "device_fault": 3,
    "device_init": 3,
    "oom_device": 3,
    "unclassified": 3,
    "network_auth": 1,
    "native_crash": 2,
}
LARGEST = 120_000  # bytes of one text; a longer one is cut in its middle
_STAMP = re.compile(r"(?<!\d)(20\d\d-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)(?!\d)")
_SHORT_STAMP = re.compile(r"\b([EWIF])(\d\d)(\d\d) (\d\d:\d\d:\d\d)(?=\.\d)")  # as XLA and NCCL's callers print it
_HERE = re.compile(rf"crashpath|faultrun|/tmp/run-|{re.escape(str(Path.cwd()))}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Label:
    """One row of ``labels.csv``; ``file`` is below ``data/``, ``origin`` is ``ran`` or ``written``."""

    file: str
    failure_class: str
    fault: str
    library: str
    origin: str
    phase: str
    night: int
    release: str
    platform: str
    model: str


HEADER = ("file", "class", *(field.name for field in fields(Label)[2:]))


@dataclass(frozen=True, slots=True)
class Job:
    """One log to make."""

    label: Label
    source: Fault | Written | str
    seed: int
    slot: Slot


class CorpusError(Exception):
    """A log that must not be kept: empty, or telling of this machine."""


def plan(seed: int, gpu_logs: Iterable[tuple[str, str, str]] = ()) -> tuple[Job, ...]:
    """Return the jobs of a corpus in a fixed order. ``gpu_logs`` are (fault, class, text) of logs that ran on a GPU."""
    jobs: list[Job] = []
    for entry in load_written():
        numbers = range(1, WRITTEN.get(entry.failure_class, 2) + 1)
        jobs.extend(_job(entry, number, seed, "written", "") for number in numbers)
    for number in range(1, max(RUNS.values()) + 1):  # each fault once before any runs again
        for fault in random.Random(seed).sample(FAULTS, len(FAULTS)):  # mixed, so that a part of a run is a fair part
            if number <= RUNS.get(fault.failure_class, 2):
                model = Variation.choose(_seed(seed, number), fault.id).model
                jobs.append(_job(fault, number, seed, "ran", model))
    for name, failure, text in gpu_logs:
        slot = slot_of(f"gpu-{name}", 1, "linux-gpu")
        label = Label(
            slot.file(f"gpu-{name}-1.log"),
            failure,
            f"gpu-{name}",
            _gpu_library(name),
            "ran",
            "unknown",
            slot.night,
            slot.release,
            "linux-gpu",
            "",
        )
        jobs.append(Job(label, text, seed, slot))
    return tuple(jobs)


def _seed(seed: int, number: int) -> int:
    return seed * 1000 + number


def _job(source: Fault | Written, number: int, seed: int, origin: str, model: str) -> Job:
    platform = source.platform if isinstance(source, Written) else "linux-gpu" if "device" in source.needs else None
    slot = slot_of(source.id, number, platform)
    suffix = random.Random(f"suffix:{source.id}:{number}:{seed}").choices(("", ".gz", ".zst"), (90, 6, 4))[0]
    file = slot.file(f"{source.id}-{number}.log{suffix}")
    label = Label(
        file,
        source.failure_class,
        source.id,
        source.library,
        origin,
        source.phase,
        slot.night,
        slot.release,
        slot.platform,
        model,
    )
    return Job(label, source, _seed(seed, number), slot)


def make(job: Job) -> str:
    """Produce the log of ``job``. Raises `CorpusError` where nothing fit to keep came out."""
    rng = random.Random(f"dress:{job.label.fault}:{job.seed}")
    match job.source:
        case Written():
            text = render(job.source, job.seed, job.slot.at)
            framed = True
        case Fault():
            started = datetime.now(UTC).replace(tzinfo=None)
            outcome = run_fault(job.source, job.seed)
            text = move_stamps(outcome.text, started, job.slot.at)
            framed = False
            if outcome.timed_out:
                raise CorpusError(f"ran into its limit of {job.source.timeout_s:.0f} s")
        case _:
            text, framed = job.source, True
    if not text.strip():
        raise CorpusError("printed nothing")
    if found := _HERE.search(text):
        line = next(line for line in text.splitlines() if found.group() in line)
        raise CorpusError(f"tells of this machine: {line[:160]}")
    if len(text) > LARGEST:
        text = f"{text[: LARGEST // 3]}\n...\n{text[-LARGEST // 3 :]}"
    return dress(text, rng=rng, at=job.slot.at, model=job.label.model or "serve", framed=framed)


def move_stamps(text: str, started: datetime, at: datetime) -> str:
    """Move the stamps of a run that began at ``started`` as if it had begun at ``at``; other stamps stay."""

    def moved(found: re.Match[str]) -> str:
        stamp = datetime.fromisoformat(f"{found[1]} {found[3]}")
        if not timedelta(minutes=-1) < stamp - started < timedelta(minutes=10):
            return found.group()
        return f"{stamp - started + at:%Y-%m-%d{found[2]}%H:%M:%S}"

    def moved_short(found: re.Match[str]) -> str:
        stamp = datetime.fromisoformat(f"{started.year}-{found[2]}-{found[3]} {found[4]}")
        return f"{found[1]}{stamp - started + at:%m%d %H:%M:%S}"

    return _SHORT_STAMP.sub(moved_short, _STAMP.sub(moved, text))


def write_log(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, compressed as its name says, whole or not at all."""
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".zst":
        data = zstandard.compress(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(data)
    os.replace(partial, path)


def write_labels(path: Path, labels: Iterable[Label]) -> None:
    """Write ``labels.csv`` in the order of the files."""
    partial = path.with_suffix(".part")
    with partial.open("w", encoding="utf-8", newline="") as sink:
        rows = csv.writer(sink, lineterminator="\n")
        rows.writerow(HEADER)
        rows.writerows(astuple(label) for label in sorted(labels, key=lambda label: label.file))
    os.replace(partial, path)


def read_labels(path: Path) -> tuple[Label, ...]:
    """Read ``labels.csv``."""
    with path.open(encoding="utf-8", newline="") as source:
        rows = csv.reader(source)
        next(rows)
        return tuple(
            Label(file, failure, fault, library, origin, phase, int(night), release, platform, model)
            for file, failure, fault, library, origin, phase, night, release, platform, model in rows
        )


_GPU_LIBRARIES = {"ort": "onnxruntime", "nvcc": "cuda", "compile": "torch", "int4": "torch", "host": "python"}


def _gpu_library(name: str) -> str:
    first = name.split("_")[0]
    return _GPU_LIBRARIES.get(first, first)


def _gpu_logs(data: Path) -> list[tuple[str, str, str]]:
    """Logs that ran on a GPU elsewhere are kept as they are: read back the ones that the corpus has."""
    labels = data / "labels.csv"
    if not labels.exists():
        return []
    kept = [label for label in read_labels(labels) if label.fault.startswith("gpu-")]
    return [
        (label.fault.removeprefix("gpu-"), label.failure_class, (data / label.file).read_text(encoding="utf-8"))
        for label in kept
    ]


def run(data: Path, jobs: Sequence[Job], *, force: bool, workers: int) -> list[str]:
    """Make what is not there yet and write the labels of all that is. Returns a sentence for each log not made."""
    problems: list[str] = []
    done = 0
    started = time.monotonic()

    def one(job: Job) -> None:
        nonlocal done
        path = data / job.label.file
        if force or not path.exists():
            if isinstance(job.source, Fault) and (need := missing(job.source)):
                problems.append(f"{job.label.fault}: needs {need}")
                return
            try:
                write_log(path, make(job))
            except CorpusError as error:
                problems.append(f"{job.label.fault} seed {job.seed}: {error}")
        done += 1
        if done % 50 == 0:
            sys.stderr.write(f"{done}/{len(jobs)} logs, {time.monotonic() - started:.0f} s\n")

    with ThreadPoolExecutor(workers) as pool:
        for result in [pool.submit(one, job) for job in jobs]:
            result.result()
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Returns 0, or 5 where some logs could not be made."""
    parser = argparse.ArgumentParser(prog="corpus", description="Run the fault catalogue and keep what it prints.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="FAULT", help="only the fault or written entry whose id begins so")
    parser.add_argument("--force", action="store_true", help="make files again that are there")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_args(arguments)
    started = time.monotonic()
    jobs = plan(options.seed, _gpu_logs(options.data))
    chosen = [job for job in jobs if not options.only or job.label.fault.startswith(options.only)]
    problems = run(options.data, chosen, force=options.force, workers=options.workers)
    present = [job.label for job in jobs if (options.data / job.label.file).exists()]
    write_labels(options.data / "labels.csv", present)
    counts = Counter(label.failure_class for label in present)
    sys.stdout.write("".join(f"{name:18}{count:5}\n" for name, count in counts.most_common()))
    sys.stdout.write(
        f"{len(present)} logs, {len({label.fault for label in present})} faults, {time.monotonic() - started:.0f} s\n"
    )
    sys.stdout.write("".join(f"not made: {problem}\n" for problem in problems))
    return 5 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
