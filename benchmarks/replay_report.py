"""What a replay gives, and how it is printed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from replay_compare import Reading, Row, few_hold, plain
from replay_truth import Truth, largest
from tables import ROOT, table

POLICY = ROOT / "benchmarks" / "replay_policy.toml"


def limit_of(policy: Path) -> float:
    """Return the share of deployments that may fail under a policy, from 0 to 1."""
    with policy.open("rb") as file:
        return float(tomllib.load(file)["limits"]["deployment"]["unanswered"])


LIMIT = limit_of(POLICY)
VERDICTS = ("GO", "HOLD", "NO-GO")


@dataclass(frozen=True, slots=True)
class Judged:
    """A review: which data set, the verdicts that may come, the one that came, and its first reason.

    ``right`` is ``False`` also where the exit code is another one, or where a reason that has to be there is not.
    """

    name: str
    expected: tuple[str, ...]
    verdict: str
    right: bool
    reason: str
    needed: int | None

    @property
    def only_told(self) -> bool:
        """Whether any verdict may come, so that none is wrong."""
        return set(self.expected) == set(VERDICTS)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One seed, replayed. ``counted`` are failed deployments as the review counts them, and as they were drawn."""

    truth: Truth
    deployments: tuple[Row, ...]
    logs: tuple[Row, ...]
    readings: Mapping[str, Reading]
    judged: tuple[Judged, ...]
    counted: tuple[int, int]
    before: tuple[str, ...]
    after: tuple[str, ...]
    largest_logs: tuple[str, ...]
    seconds: float

    @property
    def red(self) -> tuple[str, ...]:
        """What is not as it has to be."""
        found = [f"the verdict on {one.name} is {one.verdict}" for one in self.judged if not one.right]
        if self.counted[0] != self.counted[1]:
            found.append(f"{self.counted[0]:,} failed deployments were counted, {self.counted[1]:,} there were")
        for name, rows in (("deployments", self.deployments), ("crash logs", self.logs)):
            if few_hold(rows):
                found.append(f"of {name}, only {_holding(rows)} intervals hold the truth")
        if self.before != self.truth.before.largest() or self.largest_logs != largest(self.truth.logs):
            found.append("the three largest classes are others")
        return tuple(found)


def _holding(rows: Sequence[Row]) -> str:
    return f"{sum(row.holds for row in rows)} of {len(rows)}"


def print_replay(done: Replayed) -> None:
    """Print the tables of one seed."""
    source = "the account" if done.truth.seed == 0 else f"moved, seed {done.truth.seed}"
    _print_rows(f"Deployments: {source}, against what a review found", done.deployments)
    print(f"largest before: {', '.join(done.before)} · after: {', '.join(done.after)}")
    print(f"failed deployments counted: {done.counted[0]:,}, drawn: {done.counted[1]:,}")
    _print_rows(f"Crash logs: {source}, against what a night found", done.logs)
    for name, one in done.readings.items():
        attempts = f" of {one.failed:,} failed attempts" if one.failed else ""
        said = f"{name}: {one.lines:,} log lines{attempts} ({one.retries:,} retries, {one.kernel:,} by the kernel) "
        said += f"gave {one.crashes:,} crashes; {one.share:.2%} have the class of their label."
        worst = sorted(one.mistaken.items(), key=lambda pair: -pair[1])[:3]
        if worst:
            said += " Most mistaken: " + ", ".join(f"{a} as {b} ({n:,})" for (a, b), n in worst) + "."
        print("\n" + fill(said, 80))
    rows = [
        (
            one.name,
            "any" if one.only_told else " or ".join(one.expected),
            one.verdict,
            "-" if one.needed is None else f"{one.needed:,}",
        )
        for one in done.judged
    ]
    title = f"Verdicts: limit {LIMIT:.1%} of deployments, where no other policy is named"
    table(title, ("data", "expected", "verdict", "attempts needed"), rows)
    for one in done.judged:
        print(fill(f"{one.name}: {one.reason or 'no reason against it.'}", 80))


def _print_rows(title: str, rows: Sequence[Row]) -> None:
    lines = [
        (row.name, f"{row.truth:.2%}", f"{row.drawn:.2%}", f"{row.found:.2%}", f"{row.low:.2%} – {row.high:.2%}",
         "yes" if row.holds else "NO")
        for row in rows
    ]  # fmt: skip
    table(title, ("", "truth", "drawn", "found", "95 % interval", "holds it"), lines)


def print_seeds(all_done: Sequence[Replayed]) -> None:
    """Print one line a seed: truth → found, and the verdicts that can be wrong."""

    def pair(row: Row) -> str:
        return f"{100 * row.truth:.1f}→{100 * row.found:.1f}"

    rows = []
    for one in all_done:
        before, after, fewer = one.deployments[:3]
        rows.append((
            str(one.truth.seed), pair(before), f"{100 * after.truth:.2f}→{100 * after.found:.2f}", pair(fewer),
            pair(one.logs[0]), pair(one.logs[1]), _holding((*one.deployments, *one.logs)).replace(" of ", "/"),
            "/".join(j.verdict for j in one.judged if not j.only_told),
        ))  # fmt: skip
    head = ("seed", "before", "after", "fewer", "shape", "three", "hold", "verdicts")
    table("Truth → found in %, by seed", head, rows)


def document(done: Replayed) -> dict[str, Any]:
    """Return what is kept in the results of one seed."""
    return {
        "seed": done.truth.seed,
        "seconds": round(done.seconds),
        "deployments": plain(done.deployments),
        "crash_logs": plain(done.logs),
        "largest": {"before": done.before, "after": done.after, "logs": done.largest_logs},
        "counted": {"found": done.counted[0], "drawn": done.counted[1]},
        "same_class": {name: round(one.share, 5) for name, one in done.readings.items()},
        "mistaken": {
            name: {f"{a} as {b}": n for (a, b), n in one.mistaken.items()} for name, one in done.readings.items()
        },
        "verdicts": [
            {"data": j.name, "expected": j.expected, "verdict": j.verdict, "right": j.right, "needed": j.needed,
             "reason": j.reason}
            for j in done.judged
        ],
        "red": done.red,
    }  # fmt: skip
