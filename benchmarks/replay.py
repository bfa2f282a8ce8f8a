"""Replay the account that this project starts from: known rates in, and what the pipeline makes of them out.

`replay_make` writes the logs and attempts of a fleet whose failure rates are known; `crashpath nightly` and
`crashpath review` read them as they would read anybody's, in processes that know nothing of those rates; then what
they found is set beside the truth. Without ``--seed`` the truth are the account's figures, with one every rate and
share is moved at random by up to a third, and what is found has to follow.

What this shows: that failed deployments are counted once whatever told of them, that counts become rates, intervals
and a verdict, that a small night is a HOLD and a regression is found. What it does not show: how good the classes are.
The classifier was trained on the very texts that the generator varies; `make bench` measures it on texts it never saw.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from processes import crashpath
from replay_compare import counts, deployment_rows, log_rows, reading
from replay_make import ATTEMPTS, make
from replay_paths import Paths, PathsError, measure_paths, print_paths
from replay_report import LIMIT, POLICY, VERDICTS, Judged, Replayed, document, print_replay, print_seeds
from replay_truth import CRASH_LOGS, PLANTED, PLANTED_TIMES, largest, truth_of
from results_file import write_results
from tables import ROOT

OUT = ROOT / "replay-out"
NEXT_POLICY = ROOT / "benchmarks" / "replay_next_policy.toml"
SURELY = 0.9 * LIMIT
"""Up to this rate `ATTEMPTS` have to show that a release is under the limit; nearer to it, HOLD is right too."""

GO, NO_GO, HOLD = "GO", "NO-GO", "HOLD"
CODES = {GO: 0, NO_GO: 1, HOLD: 3}


class ReplayError(Exception):
    """A command of the pipeline did not end as it should; the message has what it said."""


def url(folder: Path) -> str:
    """The store of a data set."""
    return f"sqlite:///{folder / 'crashpath.db'}"


def night(folder: Path) -> dict[str, Any]:
    """Let a night read the logs of a data set, and its attempts where it has some."""
    attempts = ("--attempts", "attempts.csv") if (folder / "attempts.csv").is_file() else ()
    _say(f"a night over {folder.name}")
    return _json(0, "nightly", "logs", *attempts, "--db", url(folder), "--json", cwd=folder)


def review(folder: Path, release: str, baseline: str, policy: Path | None = POLICY) -> dict[str, Any]:
    """Review a release, under the default policy where none is given.

    The exit code has to be the one of the verdict that is given.
    """
    under = () if policy is None else ("--policy", policy)
    arguments = ("review", "--release", release, "--baseline", baseline, *under, "--db", url(folder))
    _say(f"the review of {release} in {folder.name}")
    return _json(None, *arguments, "--json", cwd=folder)


def _json(code: int | None, *arguments: object, cwd: Path) -> dict[str, Any]:
    done = crashpath(*arguments, cwd=cwd)
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        document = {}
    wanted = CODES.get(document.get("verdict", ""), -1) if code is None else code
    if done.returncode != wanted:
        said = (done.stderr.strip() or done.stdout.strip())[-600:]
        raise ReplayError(f"crashpath {arguments[0]} ended with {done.returncode}: {said}")
    return document


def judge(
    name: str, document: Mapping[str, Any], expected: Sequence[str], names: str = "", needed: bool = False
) -> Judged:
    """Hold a review to what it has to say: a verdict, a NO-GO that names a class, a HOLD that says how many more."""
    reasons = document["reasons"]
    named = [one for one in reasons if one["subject"] == names and one["verdict"] == NO_GO] if names else reasons
    right = document["verdict"] in expected and (bool(named) or not names)
    right = right and (document["attempts_needed"] or 0) > 0 if needed else right
    first = (named or reasons)[0]["sentence"] if (named or reasons) else ""
    return Judged(name, tuple(expected), document["verdict"], right, first, document["attempts_needed"])


def replay(seed: int, out: Path = OUT, attempts: int = ATTEMPTS, logs: int = CRASH_LOGS) -> Replayed:
    """Generate what is not there yet, run the nights and reviews on new stores, and compare."""
    started = time.perf_counter()
    truth = truth_of(seed)
    place = out / f"seed-{seed}-{attempts}-{logs}"
    _say(f"the logs of seed {seed}")
    make(truth, place, attempts, logs)
    whole, regressed, small, crash_logs = (place / one for one in ("deployments", "planted", "hundredth", "crash-logs"))
    before, after = truth.before.name, truth.after.name
    for one in (whole, regressed, small, crash_logs):
        remove_store(one)

    night(whole)
    main = review(whole, after, before)
    copy_store(whole, regressed)
    night(regressed)
    night(small)
    told = night(crash_logs)
    judged = (
        judge("all attempts", main, (GO,) if truth.after.rate <= SURELY else (GO, HOLD)),
        judge(
            "the planted regression", review(regressed, truth.planted.name, after, NEXT_POLICY), (NO_GO,), names=PLANTED
        ),
        judge("a hundredth of them", review(small, after, before), (HOLD,), needed=True),
        judge("all attempts, under the default policy", review(whole, after, before, policy=None), VERDICTS),
    )
    drawn = json.loads((whole / "truth.json").read_text(encoding="utf-8"))["releases"]
    primary = main["rates"]["primary"]
    return Replayed(
        truth=truth,
        deployments=deployment_rows(truth, whole, main),
        logs=log_rows(truth, crash_logs, told),
        readings={one.name: reading(one, url(one)) for one in (whole, crash_logs)},
        judged=judged,
        counted=(
            primary["failures"] + primary["baseline"]["failures"],
            sum(sum(one["failed"].values()) for one in drawn.values()),
        ),
        before=largest(counts(main, "baseline")),
        after=largest(counts(main, "release")),
        largest_logs=largest(told["classes"]),
        seconds=time.perf_counter() - started,
    )


def remove_store(folder: Path) -> None:
    """Remove the store of a data set, with its journals: an earlier run's was filled by the code of that day."""
    for file in folder.glob("crashpath.db*"):
        file.unlink()


def copy_store(source: Path, target: Path) -> None:
    """Start a store from another one: the planted release comes after the others."""
    file = target / "crashpath.db"
    partial = file.with_suffix(".part")
    with closing(sqlite3.connect(source / "crashpath.db")) as old, closing(sqlite3.connect(partial)) as new:
        old.backup(new)
    partial.replace(file)


def _say(what: str) -> None:
    sys.stderr.write(f"{what} …\n")


def kept_as(seed: int, seeds: int) -> str | None:
    """Return the results that a replay is kept in: the account's own, or those of several seeds; one seed has none."""
    if seeds:
        return "replay_seeds"
    return "replay" if seed == 0 else None


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables, write the figures of seed 0 or of several seeds; 1 where something is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="0: the account's figures; else all are moved")
    parser.add_argument("--seeds", type=int, default=0, metavar="K", help="replay seeds 1 to K, and print one table")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="attempts a release")
    parser.add_argument("--logs", type=int, default=CRASH_LOGS, help="crash logs of the second data set")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--paths", action="store_true", help="also measure the coverage of both paths (minutes)")
    options = parser.parse_args(arguments)
    seeds = range(1, options.seeds + 1) if options.seeds else (options.seed,)
    all_done = []
    try:
        for seed in seeds:
            all_done.append(replay(seed, options.out, options.attempts, options.logs))
            print_replay(all_done[-1])
        paths: Paths | None = measure_paths(options.out) if options.paths else None
    except (ReplayError, PathsError) as error:
        print(f"RED: {error}\nWhat was generated and read is in {options.out}.")
        return 1
    if options.seeds:
        print_seeds(all_done)
    print_paths(paths)
    print("\nThe classifier was trained on these texts: that classes come back here says little about it.")
    red = [f"seed {one.truth.seed}: {what}" for one in all_done for what in one.red]
    for line in red:
        print(f"RED: {line}")
    figures = {"attempts": options.attempts, "logs": options.logs, "planted": [PLANTED, PLANTED_TIMES]}
    name = kept_as(options.seed, options.seeds)
    if name is None:
        print("Nothing is kept of a single seed: results are of seed 0, or of --seeds.")
    else:
        measured = None if paths is None else paths.document()
        write_results(name, {**figures, "paths": measured, "replays": [document(one) for one in all_done]})
    return int(bool(red))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
