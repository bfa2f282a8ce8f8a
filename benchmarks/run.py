"""Run the benchmarks one after the other, each in a process of its own, and say at the end how each went.

A benchmark that fails does not stop the others. What needs something that is not there is skipped, with the reason.
``--only NAME`` (more than once) runs some; ``--after NAME`` goes on behind one, after a run that was stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from results_file import RESULTS, write_results
from tables import EVALUATION, table

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A module beside this one. ``data``: folders of the evaluation data, one of which it needs."""

    name: str
    proves: str
    data: tuple[str, ...] = ()
    module: str | None = None

    def missing(self) -> str | None:
        """Why it cannot be run here, or ``None``."""
        if self.module is not None and importlib.util.find_spec(self.module) is None:
            return f"the package {self.module} is not installed"
        if self.data and not any((EVALUATION / folder).is_dir() for folder in self.data):
            return f"no {' or '.join(self.data)} in {EVALUATION} (CRASHPATH_EVAL_DATA names the folder)"
        return None


BENCHMARKS = (
    Benchmark("redaction", "recall on planted secrets, false positives on clean logs"),
    Benchmark("speed", "lines a second beside Drain3 with the same masks", module="drain3"),
    Benchmark("frames", "how many frames belong into a signature", data=("defects4j",)),
    Benchmark("loghub", "masked lines as templates", data=("loghub-2k",), module="drain3"),
    Benchmark("classes", "class accuracy on faults and libraries held out, and on real cases"),
    Benchmark("tiers", "what signature and embedding add, alone and together", data=("real-cases", "defects4j")),
    Benchmark("keys", "native stacks beside plain keys", data=("casr", "clusterfuzz")),
    Benchmark("peers", "the same logs through crashpath, BERTopic, TF-IDF + HDBSCAN and Drain3", module="bertopic"),
    Benchmark("curve", "what a night costs over its records, grown by repetition"),
    Benchmark("splitting", "failures of one writer kept apart, failures of several stages kept whole"),
    Benchmark("nights", "60 nights of drifting logs: ids, births, decisions; formed anew never, nightly, weekly"),
    Benchmark("inputs", "wrong input: exit code, sentence, nothing lost"),
    Benchmark("invariance", "order, day, threads and process change nothing, over nights and in group"),
    Benchmark("intervals", "how often the intervals of a review hold the truth, from 0.1 to 20 % in 50 to 20,000"),
    Benchmark(
        "verdicts", "false verdicts with a look each night for 60 nights, and what is found, beside Fisher's test"
    ),
    Benchmark("reviews", "what a release review costs over 0.1 to 1 M crashes, and how it grows"),
    Benchmark("exactly_once", "killed anywhere and run again: nothing lost, nothing twice"),
    Benchmark("memory", "growth of the process while a big log is read"),
    Benchmark("peak", "predicted against measured peak memory of both paths"),
    Benchmark("encoder", "the encoder on the runtime beside sentence-transformers"),
    Benchmark("failover", "from a killed main worker to the fallback's answer"),
    Benchmark("overhead", "what a session costs over the bare run, and a worker at 1 MB"),
    Benchmark("tracing", "what a traced run costs on tiny and heavy nodes, and the routes-only mode"),
    Benchmark("storm", "100 threads for a minute while workers are killed: nothing lost, swapped or left"),
)
NAMES = tuple(one.name for one in BENCHMARKS)


@dataclass(frozen=True, slots=True)
class Done:
    """How one went: ``ok``, ``RED`` (with its exit code) or ``skipped`` (with the reason)."""

    name: str
    status: str
    seconds: float = 0.0


def run(one: Benchmark, arguments: Sequence[str]) -> Done:
    """Run one benchmark, its tables going to standard output."""
    if reason := one.missing():
        print(f"\n══ {one.name}: skipped, {reason}")
        return Done(one.name, f"skipped: {reason}")
    print(f"\n══ {one.name}: {one.proves}", flush=True)
    started = time.perf_counter()
    environment = os.environ | {"CRASHPATH_EVAL_DATA": str(EVALUATION.resolve())}
    command = [sys.executable, HERE / f"{one.name}.py", *arguments]
    code = subprocess.run(command, env=environment, check=False).returncode
    return Done(one.name, "ok" if code == 0 else f"RED (exit {code})", time.perf_counter() - started)


def chosen(only: Sequence[str], after: str | None) -> Sequence[Benchmark]:
    """Return the benchmarks to run, in their order."""
    if only:
        return [one for one in BENCHMARKS if one.name in only]
    return BENCHMARKS[NAMES.index(after) + 1 :] if after else BENCHMARKS


def remember(done: Sequence[Done]) -> None:
    """Write how each went beside what is known of those that did not run now."""
    file = RESULTS / "summary.json"
    known = json.loads(file.read_text(encoding="utf-8")).get("benchmarks", {}) if file.is_file() else {}
    done = [one for one in done if one.seconds or one.name not in known]  # a skip does not hide what was measured
    known |= {one.name: {"status": one.status, "seconds": round(one.seconds)} for one in done}
    write_results("summary", {"benchmarks": {name: known[name] for name in NAMES if name in known}})


def main(arguments: Sequence[str] = ()) -> int:
    """Run what was chosen; 1 where something is red. What stands behind ``--`` goes to the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--after", choices=NAMES, metavar="NAME", help="those behind this one")
    parser.add_argument("rest", nargs="*", help="behind --: arguments of the one benchmark that --only names")
    options = parser.parse_args(arguments)
    if options.rest and len(options.only) != 1:
        parser.error("arguments behind -- need exactly one --only NAME")
    done = []
    for one in chosen(options.only, options.after):
        done.append(run(one, options.rest))
        remember(done[-1:])
    table("Benchmarks", ("name", "seconds", "status"), [(d.name, f"{d.seconds:.0f}", d.status[:60]) for d in done])
    return int(any(d.status.startswith("RED") for d in done))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
