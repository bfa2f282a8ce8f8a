"""Separate failures of one writer kept apart, and single failures kept whole, per format of the log and gap.

The failures of the corpus (files that hold exactly one) are put one behind the other under one writer: in each FORMAT,
with GAPS of seconds and 0, 3 or 40 ordinary lines between them. What is told in the first lines of a failure is
stamped, as loggers do; where a format stamps entries only, the lines of a trace are bare. A border between two
failures counts as kept where a record ends between the start of the one and the start of the next.

The other way round, each failure alone, in each format, must be one record; and so must each of the cascades of
``cascades.toml``: failures of several stages whose lines are seconds apart (a kill, what times out on it, exit codes,
restart notices, retries of one attempt, noise of NCCL and Ray).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import product
from pathlib import Path

from results_file import write_results
from tables import ROOT, table

from crashpath.ingest.model import Record
from crashpath.ingest.opening import Kind, kind_of
from crashpath.ingest.read import open_source, split_lines
from crashpath.ingest.rules import Rules, load_rules
from crashpath.ingest.split import SplitOptions, split

SEED = 20_251_119
START = datetime(2025, 11, 19, 8, tzinfo=UTC)
GAPS = (1, 2, 5, 30, 120)
BETWEEN = (0, 3, 40)
FAILURES = 60
MOST_LINES = 200
CASCADES = Path(__file__).with_name("cascades.toml")
_ORDINARY = (
    "POST /v1/predict 200 {n}ms",
    "GET /healthz 200 {n}ms",
    "request {n} finished in {n} ms",
    "queue depth {n}",
    "cache hit ratio 0.{n}",
)


@dataclass(frozen=True, slots=True)
class Said:
    """A line: seconds after the start of its failure, its level or ``None`` (it continues the one before), words."""

    seconds: float
    level: str | None
    text: str


Failure = tuple[Said, ...]
Write = Callable[[datetime, Said], str]


def _logger(at: datetime, said: Said) -> str:
    return said.text if said.level is None else f"{at:%Y-%m-%d %H:%M:%S},{_ms(at)} {said.level} serve.main: {said.text}"


def _gunicorn(at: datetime, said: Said) -> str:
    return said.text if said.level is None else f"[{at:%Y-%m-%d %H:%M:%S} +0000] [7] [{said.level}] {said.text}"


def _collector(at: datetime, said: Said) -> str:
    level = "" if said.level is None else f"{said.level}: "
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z stderr F {level}{said.text}"


def _syslog(at: datetime, said: Said) -> str:
    level = "" if said.level is None else f"{said.level}: "
    return f"{at:%b %d %H:%M:%S} infer-04 serve[1400]: {level}{said.text}"


def _engine(at: datetime, said: Said) -> str:
    return f"(EngineCore pid=2107) {said.level or 'ERROR'} {at:%m-%d %H:%M:%S} [core.py:708] {said.text}"


def _json(at: datetime, said: Said) -> str:
    row = {"timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{_ms(at)}Z", "level": said.level or "ERROR", "message": said.text}
    return json.dumps(row)


def _ms(at: datetime) -> str:
    return f"{at.microsecond // 1000:03d}"


FORMATS: dict[str, Write] = {
    "logger": _logger,
    "gunicorn": _gunicorn,
    "collector": _collector,
    "syslog": _syslog,
    "engine": _engine,
    "json": _json,
}


class Log:
    """A log of one writer; ``starts`` are the offsets of its failures."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._parts: list[bytes] = []
        self._size = 0
        self.starts: list[int] = []

    def fail(self, at: datetime, failure: Failure) -> datetime:
        """Add a failure; return the time of its last line."""
        self.starts.append(self._size)
        lines = _whole_entries(failure) if self._form == "json" else failure
        for said in lines:
            self.say(at + timedelta(seconds=said.seconds), said)
        return at + timedelta(seconds=failure[-1].seconds)

    def say(self, at: datetime, said: Said) -> None:
        """Add a line."""
        data = FORMATS[self._form](at, said).encode("utf-8", "replace") + b"\n"
        self._parts.append(data)
        self._size += len(data)

    def records(self, options: SplitOptions) -> list[Record]:
        """Split it."""
        lines = split_lines(iter([b"".join(self._parts)]))
        return [item for item in split(lines, "bench", options) if isinstance(item, Record)]


def _whole_entries(failure: Failure) -> Failure:
    """Put what continues an entry into it: a JSON logger writes a trace into one line."""
    entries: list[Said] = []
    for said in failure:
        if said.level is None and entries:
            entries[-1] = Said(entries[-1].seconds, entries[-1].level, f"{entries[-1].text}\n{said.text}")
        else:
            entries.append(said)
    return tuple(entries)


@dataclass(frozen=True, slots=True)
class Border:
    """How the borders of one log went: ``kept`` of ``all``; ``hidden`` are the failures behind those that were not."""

    kept: int
    all: int
    records: int
    hidden: tuple[int, ...]


def borders(log: Log, records: Sequence[Record]) -> Border:
    """Hold the ends of the records against the starts of the failures."""
    ends = sorted(record.end for record in records)
    hidden = [
        n
        for n, (start, stop) in enumerate(zip(log.starts, log.starts[1:], strict=False), start=1)
        if not any(start < end <= stop for end in ends)
    ]
    total = len(log.starts) - 1
    return Border(total - len(hidden), total, len(records), tuple(hidden))


def stream(form: str, failures: Sequence[Failure], gap: float, between: int, rng: random.Random) -> Log:
    """One failure behind the other, ``gap`` seconds from the end of one to the start of the next."""
    log = Log(form)
    at = START
    for failure in failures:
        at = log.fail(at, failure)
        for n in range(between):
            ordinary = rng.choice(_ORDINARY).format(n=rng.randint(100, 999))
            log.say(at + timedelta(seconds=gap * (n + 1) / (between + 1)), Said(0, "INFO", ordinary))
        at += timedelta(seconds=gap)
    return log


def corpus(rules: Rules) -> Iterator[tuple[str, Failure]]:
    """Yield file and failure of each file of the corpus that holds exactly one, without the lines before it."""
    folder = ROOT / "data" / "crashlogs"
    options = SplitOptions(as_of=START, mtime=datetime(2026, 12, 31, tzinfo=UTC), is_failure=rules.is_failure)
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        with open_source(str(path)) as source:
            found = [item for item in split(source.lines(), str(path), options) if isinstance(item, Record)]
        if len(found) == 1 and found[0].text.count("\n") < MOST_LINES:
            failure = as_failure(found[0], rules)
            if failure:
                yield str(path.relative_to(folder)), failure


def as_failure(record: Record, rules: Rules) -> Failure:
    """Return the lines of a record from its first sign of failure on; 5 ms a line, in place of its own stamps."""
    lines = record.text.split("\n")
    levels = [mark.level for mark in record.marks] or [None] * len(lines)
    kinds = (kind_of(text, level, rules.is_failure) for text, level in zip(lines, levels, strict=True))
    first = next((n for n, kind in enumerate(kinds) if kind >= Kind.ERROR), None)
    if first is None:
        return ()
    said = [Said(0.005 * n, levels[n], lines[n]) for n in range(first, len(lines))]
    head = said[0]
    if kind_of(head.text, head.level, rules.is_failure) >= Kind.CONNECTOR:  # a trace: a logger's line goes before it
        return (Said(head.seconds, "ERROR", "request failed"), *said)
    return (Said(head.seconds, head.level or "ERROR", head.text), *said[1:])


def cascades() -> list[tuple[str, Failure]]:
    """Read the failures of several stages: lines are ``seconds LEVEL words``, ``-`` for no level of their own."""
    out = []
    for entry in tomllib.loads(CASCADES.read_text(encoding="utf-8"))["cascade"]:
        said = []
        for line in entry["log"].strip("\n").split("\n"):
            seconds, level, text = (*line.split(" ", 2), "")[:3]
            said.append(Said(float(seconds), None if level == "-" else level, text))
        out.append((entry["name"], tuple(said)))
    return out


def whole(failures: Sequence[tuple[str, Failure]], form: str, options: SplitOptions) -> list[str]:
    """Return the names of those that are not one record alone."""
    broken = []
    for name, failure in failures:
        log = Log(form)
        log.fail(START, failure)
        if len(log.records(options)) != 1:
            broken.append(name)
    return broken


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables and write benchmarks/results/splitting.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="name what was hidden and what was broken")
    show = parser.parse_args(arguments).show
    rules = load_rules()
    options = SplitOptions(mtime=datetime(2025, 12, 1, tzinfo=UTC), is_failure=rules.is_failure)
    units = list(corpus(rules))
    rng = random.Random(SEED)
    chosen = sorted(units, key=lambda unit: blake2b(unit[0].encode()).digest())[: FAILURES * 4]
    apart: dict[str, dict[str, float]] = {}
    hidden: Counter[str] = Counter()
    kept = total = 0
    for form, gap in product(FORMATS, GAPS):
        counted = Counter[str]()
        for between, part in product(BETWEEN, range(4)):
            names, failures = zip(*chosen[part * FAILURES : (part + 1) * FAILURES], strict=True)
            log = stream(form, failures, gap, between, rng)
            border = borders(log, log.records(options))
            counted.update(kept=border.kept, all=border.all)
            counted[f"kept {between}"] += border.kept
            counted[f"all {between}"] += border.all
            counted["records"] += border.records
            where = f"{form} {gap:>3} s, {between:>2} between"
            hidden.update(f"{where}: {names[n - 1]} | {names[n]}" for n in border.hidden)
        kept, total = kept + counted["kept"], total + counted["all"]
        apart.setdefault(form, {})[str(gap)] = round(counted["kept"] / counted["all"], 4)
    print(f"{len(units)} failures of the corpus, {len(chosen)} of them in streams")
    table(
        "Separate failures kept apart, by format and seconds between",
        ("format", *(f"{gap} s" for gap in GAPS)),
        [(form, *(f"{row[str(gap)]:.3f}" for gap in GAPS)) for form, row in apart.items()],
    )
    stages = cascades()
    single: dict[str, dict[str, float]] = {}
    broken: Counter[str] = Counter()
    for form in FORMATS:
        parts = {"corpus": units, "cascades": stages}
        for name, failures in parts.items():
            not_whole = whole(failures, form, options)
            broken.update(f"{form}: {one}" for one in not_whole)
            single.setdefault(form, {})[name] = round(1 - len(not_whole) / len(failures), 4)
    table(
        "Single failures kept whole",
        ("format", f"corpus ({len(units)})", f"cascades ({len(stages)})"),
        [(form, f"{row['corpus']:.3f}", f"{row['cascades']:.3f}") for form, row in single.items()],
    )
    if show:
        print(*sorted(hidden), *sorted(broken), sep="\n")
    print(f"\napart {kept / total:.4f}")
    figures = {"seed": SEED, "failures": len(units), "apart": apart, "apart_overall": kept / total, "whole": single}
    print(write_results("splitting", figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
