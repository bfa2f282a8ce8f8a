"""Generate what a fleet of known failure rates would have logged: ``replay_make.py OUT [--seed N]``.

Everything here is generated. The texts are those of ``data/crashlogs``, drawn by a seed among the logs labelled with
the class that is wanted, each with other values (clocks, process ids, addresses, hosts, paths, ids); how often a class
fails is the truth of ``replay_truth``. The form is that of a controller of deployments: one JSON line a failed
deployment, with the program's output inside. ``header.json`` says all this beside the files; ``truth.json`` and
``truth.csv`` say what is in them, and only the comparison reads those.

Of the failed deployments, some are told more than once: by retries (records of one attempt), or by the kernel's line
beside the program's own (a second witness). Of some that were killed only the kernel tells.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
from mix import clocked, corpus, varied
from replay_truth import CRASH_LOGS, Release, Truth, truth_of
from tables import ROOT

ATTEMPTS = 160_000
HUNDREDTH = 100
DAYS = 5
RETRIED, KERNEL_TOO, KERNEL_ONLY = 0.04, 0.10, 0.15
"""Shares: of failed attempts that retry, of OOM kills that the kernel tells too, of those that only it tells."""

PHASES = ("prepare", "load", "warmup")
"""What a deployment does until it is up; what fails later is no failed deployment."""

_HOSTS = re.compile(r"\b(infer|node|gpu|edge)-\d\d\b")
_PODS = re.compile(r"(?<=-)(?:x7k2p|q9d4z|hjw2v|m4x8t)\b")
_DATES = re.compile(r"\b20\d\d-\d\d-\d\d(?=[T ])")
_POD_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Cohort:
    """A platform and a model: its share of the attempts, and its rate as a multiple of the whole release's."""

    platform: str
    model: str
    share: float
    times: float


COHORTS = (
    Cohort("k8s", "bert-intent", 0.5, 1.0),
    Cohort("linux-gpu", "llama-guard-mini", 0.3, 1.2),
    Cohort("linux-cpu", "fraud-scorer", 0.2, 0.7),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A log of the corpus that may be drawn."""

    text: str
    phase: str
    fault: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed deployment or crash that is to be written. ``attempt`` is empty where nobody counts attempts."""

    at: datetime
    failure_class: str
    attempt: str


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a log file, and what it truly is. ``role``: own, retry, kernel."""

    at: datetime
    line: bytes
    attempt: str
    failure_class: str
    role: str
    fault: str


Pools = Mapping[str, Sequence[Sample]]


def pools(phases: Sequence[str] | None) -> Pools:
    """Return the corpus by class; with ``phases`` only what failed in one of them, or in one that nobody knows."""
    with (ROOT / "data" / "labels.csv").open(encoding="utf-8", newline="") as file:
        phase_of = {row["file"]: row["phase"] for row in csv.DictReader(file)}
    out: dict[str, list[Sample]] = {}
    for log in corpus():
        phase = phase_of[log.file]
        if phases is None or phase in phases or phase == "unknown":
            out.setdefault(log.failure_class, []).append(Sample(log.text, phase, log.fault))
    return out


def kernel_lines() -> Sequence[Sample]:
    """Return the logs in which the kernel names what it killed for memory."""
    killed = re.compile(r"ut of memory: Kill|Killed process \d+")
    return [sample for sample in pools(None)["oom_host"] if killed.search(sample.text)]


class Teller:
    """Writes failures as the lines that a controller of deployments would collect of them."""

    def __init__(self, samples: Pools, kernel: Sequence[Sample], rng: random.Random) -> None:
        """``kernel`` are logs of OOM kills by the kernel."""
        self._samples = samples
        self._kernel = kernel
        self._rng = rng

    def deployment(self, failure: Failure, release: str, cohort: Cohort) -> Iterator[Told]:
        """Yield the lines of one failed deployment, the earliest first."""
        rng = self._rng
        killed = failure.failure_class == "oom_host"
        only_kernel = killed and rng.random() < KERNEL_ONLY
        sample = rng.choice(self._kernel if only_kernel else self._samples[failure.failure_class])
        fields = self._fields(release, cohort, failure.attempt)
        fields["phase"] = sample.phase if sample.phase in PHASES else "load"
        text = self._text(sample, failure.at)
        yield _told(failure, failure.at, fields, text, "kernel" if only_kernel else "own", sample)
        if rng.random() < RETRIED:
            at = failure.at
            for _ in range(rng.randint(1, 5)):
                at += timedelta(seconds=rng.uniform(2, 30))
                yield _told(failure, at, fields, clocked(text, rng), "retry", sample)
        if killed and not only_kernel and rng.random() < KERNEL_TOO:
            witness = rng.choice(self._kernel)
            at = failure.at + timedelta(seconds=rng.uniform(0.1, 2))
            fields = {**fields, "logger": "node-agent"}
            yield _told(failure, at, fields, self._text(witness, at), "kernel", witness)

    def crash(self, failure: Failure, cohort: Cohort, release: str) -> Told:
        """Return the line of one crash log."""
        sample = self._rng.choice(self._samples[failure.failure_class])
        fields = self._fields(release, cohort, "")
        return _told(failure, failure.at, fields, self._text(sample, failure.at), "own", sample)

    def _fields(self, release: str, cohort: Cohort, attempt: str) -> dict[str, str]:
        rng = self._rng
        pod = f"{cohort.model}-{rng.getrandbits(36):09x}-{''.join(rng.choices(_POD_LETTERS, k=5))}"
        fields = {"level": "error", "logger": "deploy-controller", "release": release, "platform": cohort.platform}
        fields |= {"model": cohort.model, "host": f"node-{rng.randint(1, 96):02}", "pod": pod}
        return fields | ({"attempt_id": attempt} if attempt else {})

    def _text(self, sample: Sample, at: datetime) -> str:
        rng = self._rng
        text = _DATES.sub(f"{at:%Y-%m-%d}", varied(sample.text, rng))
        node, pod = f"{rng.randint(1, 96):02}", "".join(rng.choices(_POD_LETTERS, k=5))
        return _PODS.sub(pod, _HOSTS.sub(lambda found: f"{found[1]}-{node}", text))


def _told(failure: Failure, at: datetime, fields: Mapping[str, str], text: str, role: str, sample: Sample) -> Told:
    document = {"time": at.isoformat(timespec="milliseconds"), **fields, "message": text}
    line = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    return Told(at, line, failure.attempt, failure.failure_class, role, sample.fault)


@dataclass(frozen=True, slots=True)
class Cell:
    """Attempts of one day and cohort, and how many failed by class."""

    day: date
    cohort: Cohort
    attempts: int
    failed: Mapping[str, int]


def cells(release: Release, attempts: int, rng: np.random.Generator) -> tuple[Cell, ...]:
    """Draw the attempts of each day and cohort, which of them fail, and of what."""
    names = list(release.shares)
    places = [(release.first_day + timedelta(days=n), cohort) for n in range(DAYS) for cohort in COHORTS]
    shares = np.array([cohort.share for _, cohort in places]) / DAYS
    out = []
    for (day, cohort), count in zip(places, rng.multinomial(attempts, shares / shares.sum()), strict=True):
        failed = rng.binomial(count, release.rate * cohort.times)
        classes = rng.multinomial(failed, list(release.shares.values()))
        out.append(Cell(day, cohort, int(count), {n: int(c) for n, c in zip(names, classes, strict=True) if c}))
    return tuple(out)


def write_deployments(folder: Path, releases: Sequence[Release], attempts: int, seed: int) -> None:
    """Write logs, attempts and truth of some releases, and the header last; what is there already stays."""
    header = _header("deployments", seed, {"attempts": attempts, "releases": [_plain(one) for one in releases]})
    if _is_there(folder, header):
        return
    numbers = np.random.default_rng([seed, attempts])
    teller = Teller(pools(PHASES), kernel_lines(), random.Random(f"texts:{seed}:{attempts}"))
    drawn = [(release, cells(release, attempts, numbers)) for release in releases]
    rows: list[tuple[object, ...]] = []
    for release, parts in drawn:
        for cell in parts:
            name = f"logs/{release.name}/{cell.cohort.platform}/{cell.day}.jsonl"
            told = [
                line
                for one in _failures(cell, release, teller._rng)
                for line in teller.deployment(one, release.name, cell.cohort)
            ]
            rows += _write_lines(folder, name, told)
    _write_attempts(folder / "attempts.csv", drawn)
    _write_truth(folder, header, rows, {release.name: _sums(parts) for release, parts in drawn})


def write_crash_logs(folder: Path, truth: Truth, logs: int) -> None:
    """Write so many crash logs, with their truth and header; what is there already stays."""
    header = _header("crash logs", truth.seed, {"logs": logs, "shares": dict(truth.logs)})
    if _is_there(folder, header):
        return
    names = list(truth.logs)
    numbers = np.random.default_rng([truth.seed, logs])
    drawn = dict(zip(names, (int(n) for n in numbers.multinomial(logs, list(truth.logs.values()))), strict=True))
    teller = Teller(pools(None), (), random.Random(f"texts:{truth.seed}:{logs}"))
    rng = teller._rng
    classes = [name for name, count in drawn.items() for _ in range(count)]
    rng.shuffle(classes)
    rows: list[tuple[object, ...]] = []
    files = [(truth.before.first_day + timedelta(days=n), cohort) for n in range(DAYS) for cohort in COHORTS]
    for number, (day, cohort) in enumerate(files):
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        part = classes[number :: len(files)]
        failures = [Failure(start + timedelta(seconds=rng.uniform(0, 86_000)), one, "") for one in part]
        told = [teller.crash(failure, cohort, truth.before.name) for failure in failures]
        rows += _write_lines(folder, f"logs/{truth.before.name}/{cohort.platform}/{day}.jsonl", told)
    _write_truth(folder, header, rows, {truth.before.name: {"logs": logs, "failed": drawn}})


def _failures(cell: Cell, release: Release, rng: random.Random) -> list[Failure]:
    start = datetime(cell.day.year, cell.day.month, cell.day.day, tzinfo=UTC)
    classes = [name for name, count in cell.failed.items() for _ in range(count)]
    times = [start + timedelta(seconds=rng.uniform(0, 86_000)) for _ in classes]
    place = f"{release.name[:7]}-{cell.day:%m%d}-{cell.cohort.platform}"
    return [Failure(at, name, f"{place}-{n:05}") for n, (at, name) in enumerate(zip(times, classes, strict=True))]


def _write_lines(folder: Path, name: str, told: Iterable[Told]) -> list[tuple[object, ...]]:
    """Write a log file in the order of its times, and return its rows of truth."""
    rows: list[tuple[object, ...]] = []
    lines = sorted(told, key=lambda line: line.at)
    offset = 0
    for line in lines:
        rows.append((name, offset, line.attempt, line.failure_class, line.role, line.fault))
        offset += len(line.line)
    _replace(folder / name, b"".join(line.line for line in lines))
    return rows


def _write_attempts(path: Path, drawn: Sequence[tuple[Release, Sequence[Cell]]]) -> None:
    lines = ["unit,day,release,platform,model,attempts"]
    for release, parts in drawn:
        lines += [f"deployment,{c.day},{release.name},{c.cohort.platform},{c.cohort.model},{c.attempts}" for c in parts]
    _replace(path, ("\n".join(lines) + "\n").encode())


def _sums(parts: Sequence[Cell]) -> dict[str, object]:
    failed: dict[str, int] = {}
    for cell in parts:
        for name, count in cell.failed.items():
            failed[name] = failed.get(name, 0) + count
    return {"attempts": sum(cell.attempts for cell in parts), "failed": failed}


def _header(what: str, seed: int, drawn_from: dict[str, object]) -> dict[str, object]:
    here = hashlib.sha256()
    for file in (Path(__file__), ROOT / "data" / "labels.csv", Path(__file__).with_name("mix.py")):
        here.update(file.read_bytes())
    return {
        "what": f"generated {what}: no deployment of anybody failed so",
        "texts": "logs of data/crashlogs, drawn by the seed, with other values (benchmarks/mix.py, replay_make.py)",
        "seed": seed,
        "generator": here.hexdigest()[:16],
        "drawn_from": drawn_from,
    }


def _plain(release: Release) -> dict[str, object]:
    return asdict(release) | {"first_day": str(release.first_day), "shares": dict(release.shares)}


def _is_there(folder: Path, header: dict[str, object]) -> bool:
    file = folder / "header.json"
    return file.is_file() and json.loads(file.read_text(encoding="utf-8")) == json.loads(json.dumps(header))


def _write_truth(
    folder: Path, header: dict[str, object], rows: Sequence[tuple[object, ...]], drawn: dict[str, object]
) -> None:
    text = "file,offset,attempt,class,role,fault\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    _replace(folder / "truth.csv", text.encode())
    _replace(folder / "truth.json", json.dumps({"lines": len(rows), "releases": drawn}, indent=1).encode())
    _replace(folder / "header.json", json.dumps(header, indent=1).encode())


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(data)
    os.replace(partial, path)


def make(truth: Truth, out: Path, attempts: int = ATTEMPTS, logs: int = CRASH_LOGS) -> None:
    """Write all data sets of a truth below ``out``."""
    releases = (truth.before, truth.after)
    write_deployments(out / "deployments", releases, attempts, truth.seed)
    write_deployments(out / "planted", (truth.planted,), attempts, truth.seed)
    write_deployments(out / "hundredth", releases, attempts // HUNDREDTH, truth.seed)
    write_crash_logs(out / "crash-logs", truth, logs)


def main(arguments: Sequence[str] = ()) -> int:
    """Write the data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--seed", type=int, default=0, help="0: the account's figures; else each moved by up to a third"
    )
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="attempts a release")
    parser.add_argument("--logs", type=int, default=CRASH_LOGS)
    options = parser.parse_args(arguments)
    make(truth_of(options.seed), options.out, options.attempts, options.logs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
