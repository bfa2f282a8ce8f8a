"""Generate what a fleet of known failure rates would have logged: ``replay_make.py OUT [--seed N]``.

Everything here is generated. The texts are those of ``data/crashlogs``, drawn by a seed among the logs labelled with
the class that is wanted, each with other values (clocks, process ids, addresses, hosts, paths, ids); how often a class
fails is the truth of ``replay_truth``. The form is that of a controller of deployments: one JSON line a failed
deployment, with the program's output inside (`replay_texts`). ``header.json`` says all this beside the files;
``truth.json`` and ``truth.csv`` say what is in them, and only the comparison reads those.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
from replay_texts import COHORTS, PHASES, Cohort, Failure, Teller, Told, kernel_lines, pools
from replay_truth import CRASH_LOGS, Release, Truth, truth_of
from tables import ROOT

ATTEMPTS = 160_000
HUNDREDTH = 100
DAYS = 5
_MAKERS = ("replay_make", "replay_texts", "mix")


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
    _clear(folder)
    numbers = np.random.default_rng([seed, attempts])
    teller = Teller(pools(PHASES), kernel_lines(), random.Random(f"texts:{seed}:{attempts}"))
    drawn = [(release, cells(release, attempts, numbers)) for release in releases]
    rows: list[tuple[object, ...]] = []
    for release, parts in drawn:
        for cell in parts:
            name = f"logs/{release.name}/{cell.cohort.platform}/{cell.day}.jsonl"
            told = [
                line
                for one in _failures(cell, release, teller.rng)
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
    _clear(folder)
    names = list(truth.logs)
    numbers = np.random.default_rng([truth.seed, logs])
    drawn = dict(zip(names, (int(n) for n in numbers.multinomial(logs, list(truth.logs.values()))), strict=True))
    teller = Teller(pools(None), (), random.Random(f"texts:{truth.seed}:{logs}"))
    rng = teller.rng
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
    for file in (*(Path(__file__).with_name(f"{name}.py") for name in _MAKERS), ROOT / "data" / "labels.csv"):
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


def _clear(folder: Path) -> None:
    """Remove logs that another generator wrote, or one that was stopped.

    The header goes first: where this is stopped in turn, what is left must not be taken for a whole data set.
    """
    (folder / "header.json").unlink(missing_ok=True)
    if (folder / "logs").is_dir():
        shutil.rmtree(folder / "logs")


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
