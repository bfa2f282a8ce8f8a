"""What a night costs over the number of records, where the volume grows by repetition; drawn as a curve.

The same failures come again and again, each time with another time in front: a stream of ``DISTINCT`` logs of the
corpus, repeated. *Parse* cuts the stream into records and works out root line, masks and signature of each; *night* is
the real command into a new store. Each is a process of its own on one thread. Doubling the logs by repetition must add
time of reading and storing only: the texts embedded and the seconds of clustering stay.

The figures go to ``results/curve.json`` and the drawing to ``results/curve.svg``; ``--docs`` also writes
``docs/cost-curve.svg`` and the table of ``docs/cost.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from zoneinfo import ZoneInfo

from curve_drawing import drawing
from mix import corpus
from processes import environment
from results_file import RESULTS, write_results
from tables import ROOT, table

from crashpath.dashboard.inputs import Given, given_logs
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.event_lines import split_all
from crashpath.ingest.model import Record
from crashpath.ingest.read import split_lines
from crashpath.ingest.rules import Rules, load_rules
from crashpath.ingest.whole import SplitOptions

SEED = 31
SIZES = (1_000, 10_000, 20_000, 100_000, 1_000_000)
DISTINCT = 400
LINES = 25
"""A log of the stream has at most so many lines."""
FILE_RECORDS = 1_000
"""Of one server; more records are those of more servers."""
SPACING = 40.0
"""Seconds between two failures of one server."""
FIRST = datetime(2026, 12, 1, tzinfo=UTC)
AS_OF = datetime(2026, 12, 2, 12, tzinfo=UTC)
HEADER = " ERROR server: request failed\n"
QUIET = " INFO server: ready\n"
NIGHT = (
    sys.executable,
    "-c",
    "import time; time.perf_counter = time.process_time; from crashpath.dashboard.cli import main; main()",
)
"""The command line, its stages timed by the processor: the machine may be shared."""
CLUSTERING = ("embed", "cluster", "classify", "store clusters")
MARKS = ("<!-- table -->\n", "<!-- end -->\n")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one size cost; ``parse_*`` without a store, the rest of the whole night. Sizes in MB (10^6 bytes)."""

    records: int
    lines: int
    mb: float
    parse_seconds: float
    parse_peak_mb: float
    seconds: float
    stages: dict[str, float]
    signatures: int
    embedded: int
    clusters: int
    peak_mb: float
    store_mb: float

    @property
    def clustering(self) -> float:
        """Seconds of the stages that see distinct failures only."""
        return sum(self.stages.get(stage, 0.0) for stage in CLUSTERING)


def distinct_logs(rng: random.Random) -> list[str]:
    """Return ``DISTINCT`` logs, each behind a header whose stamp is still open, of which each alone is one record."""
    rules, chosen = load_rules(), list[str]()
    for log in rng.sample(corpus(), len(corpus())):
        text = HEADER + log.text.replace("\r\n", "\n").rstrip("\n") + "\n"
        if text.count("\n") <= LINES and _one_record(_stamp(0) + text, rules):
            chosen.append(text)
        if len(chosen) == DISTINCT:
            return chosen
    raise RuntimeError("the corpus has too few short logs that are one record")


def _one_record(text: str, rules: Rules) -> bool:
    """Whether a text is cut into one record, which holds all of its lines."""
    options = SplitOptions(as_of=AS_OF, is_failure=rules.is_failure)
    found = split_all(split_lines(iter([text.encode()])), "bench", options, text.encode()[:4096])
    records = [item.text for item in found if isinstance(item, Record)]
    return len(records) == 1 and records[0].strip().count("\n") == text.strip().count("\n")


def _stamp(seconds: float) -> str:
    return f"{FIRST + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S},{round(seconds % 1 * 1000) % 1000:03d}"


def write_logs(folder: Path, repeated: Sequence[str], records: int) -> int:
    """Write a file a server into a folder; return their bytes."""
    folder.mkdir()
    size = 0
    for server, start in enumerate(range(0, records, FILE_RECORDS)):
        path = folder / f"serve-{server:04}.log"
        with path.open("w", encoding="utf-8") as file:
            size += file.write(f"{_stamp(0)} INFO server: serve-{server:04} starts\n")
            for at in range(min(FILE_RECORDS, records - start)):
                stamp = _stamp(SPACING * at)
                size += file.write(f"{stamp}{repeated[at % len(repeated)]}{stamp}{QUIET}")
        os.utime(path, (AS_OF.timestamp(), AS_OF.timestamp()))
    return size


def parse_only(folder: str) -> None:
    """Be the process of the parse stage: read, split, parse, root, mask, sign; say what came on standard output."""
    rules = load_rules()
    analyser, started, records = Analyser(rules, redacting=False), time.process_time(), 0
    for given in given_logs([folder], rules, ZoneInfo("UTC")):
        if isinstance(given, Given) and given.record is not None:
            analyser.analyse(given.record)
            records += 1
    print(json.dumps({"records": records, "seconds": time.process_time() - started}))


def run(command: Sequence[str]) -> tuple[dict[str, Any], float, float]:
    """Run a command that prints one JSON document; return it, the processor seconds and the peak in MB."""
    with tempfile.TemporaryFile("w+") as errors:
        child = Popen(command, env=environment(), stdout=PIPE, stderr=errors, text=True)
        assert child.stdout is not None
        said = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"exit {child.returncode}: {errors.read()[-2000:]}")
    return json.loads(said), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def cost(folder: Path, repeated: Sequence[str], records: int) -> Cost:
    """Measure one size."""
    logs, db = folder / f"logs-{records}", folder / f"{records}.db"
    size = write_logs(logs, repeated, records)
    parsed, _, parse_peak = run([sys.executable, __file__, "--parse", str(logs)])
    night, seconds, peak = run(
        [*NIGHT, "nightly", str(logs), "--db", f"sqlite:///{db}", "--as-of", AS_OF.isoformat(), "--json"]
    )
    stored = sum(path.stat().st_size for path in folder.glob(f"{db.name}*"))
    for path in (*logs.iterdir(), *folder.glob(f"{db.name}*")):
        path.unlink()
    assert parsed["records"] == night["records"], "both stages read the same records"
    return Cost(
        records=night["records"],
        lines=night["lines"],
        mb=size / 1e6,
        parse_seconds=parsed["seconds"],
        parse_peak_mb=parse_peak,
        seconds=seconds,
        stages=night["seconds"],
        signatures=night["signatures"],
        embedded=night["embedded"],
        clusters=night["clusters"],
        peak_mb=peak,
        store_mb=stored / 1e6,
    )


HEAD = ("records", "lines", "parse", "rec/s", "night", "read", "store", "cluster", "texts", "peak", "db")


def row(one: Cost) -> tuple[str, ...]:
    """One line of the table."""
    return (
        f"{one.records:,}",
        f"{one.lines:,}",
        f"{one.parse_seconds:.1f}",
        f"{one.records / one.parse_seconds:,.0f}",
        f"{one.seconds:.0f}",
        f"{one.stages['read']:.1f}",
        f"{one.stages['store']:.1f}",
        f"{one.clustering:.1f}",
        f"{one.embedded:,}",
        f"{one.peak_mb:,.0f}",
        f"{one.store_mb:,.1f}",
    )


def doubled(costs: Sequence[Cost]) -> Iterator[str]:
    """Say of each size that is twice the one before it what the doubling added."""
    for small, big in pairwise(costs):
        if 1.9 < big.records / small.records < 2.1:
            yield (
                f"From {small.records:,} to {big.records:,} records: {big.embedded - small.embedded:+} texts embedded, "
                f"{big.clustering - small.clustering:+.1f} s of clustering, "
                f"{big.stages['read'] - small.stages['read']:+.1f} s of reading, "
                f"{big.stages['store'] - small.stages['store']:+.1f} s of storing."
            )


def write_docs(costs: Sequence[Cost], svg: str) -> None:
    """Replace the drawing and the table of the document."""
    head = (
        "records", "lines", "parse, s", "records/s", "night, s", "of it read", "store", "cluster", "texts embedded",
        "peak MB", "store MB",
    )  # fmt: skip
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["--:"] * len(head), *map(row, costs))]
    text = "\n".join([*lines, "", *doubled(costs)]) + "\n"
    path = ROOT / "docs" / "cost.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    for target, content in (
        (path, before + MARKS[0] + text + MARKS[1] + after),
        (path.with_name("cost-curve.svg"), svg),
    ):
        unfinished = target.with_name(target.name + ".tmp")
        unfinished.write_text(content, encoding="utf-8")
        os.replace(unfinished, target)


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table, draw the curve; 1 where repetition made texts to embed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000, help="the largest number of records")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--docs", action="store_true", help="also write docs/cost-curve.svg and the table of docs/cost.md"
    )
    parser.add_argument("--parse", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.parse:
        parse_only(options.parse)
        return 0
    repeated = distinct_logs(random.Random(options.seed))
    costs = []
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as folder:
        for size in SIZES:
            if size <= options.most:
                costs.append(cost(Path(folder), repeated, size))
                print(" ".join(row(costs[-1])), file=sys.stderr)
    table("Seconds (processor), MB, by records of a night; repetition only", HEAD, [row(one) for one in costs])
    for line in doubled(costs):
        print(line)
    svg = drawing(
        [one.records for one in costs],
        {
            "whole night": [one.seconds for one in costs],
            "parse to signature": [one.parse_seconds for one in costs],
            "embed, cluster, classify": [one.clustering for one in costs],
        },
    )
    if len(costs) > 1:
        write_results("curve", {"seed": options.seed, "distinct": DISTINCT, "sizes": [asdict(one) for one in costs]})
        (RESULTS / "curve.svg").write_text(svg, encoding="utf-8")
    if options.docs:
        write_docs(costs, svg)
    return int(len({one.embedded for one in costs}) > 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
