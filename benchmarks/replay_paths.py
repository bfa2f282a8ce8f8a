"""What our own runs cover of the encoder's two paths, beside what the account says: measured, never aimed at.

Before: a store in which nothing was traced and nothing drilled, as of a team that has a fallback and never ran it.
After: one traced request on each path, and every drill. The account does not say what its percents count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from processes import crashpath
from replay_truth import FALLBACK_PATH, MAIN_PATH
from tables import table

UNITS = {"main": "nodes", "fallback": "operators", "routes": "routes", "drills": "class × phase"}
_DONE, _DRILL_RED = 0, 6


class PathsError(Exception):
    """The coverage could not be measured; the message has what the command said."""


@dataclass(frozen=True, slots=True)
class Covered:
    """``covered`` of ``total`` declared units of one kind, before and after."""

    kind: str
    before: int
    after: int
    total: int


@dataclass(frozen=True, slots=True)
class Paths:
    """The coverage of a model by kind."""

    model: str
    kinds: tuple[Covered, ...]

    def document(self) -> dict[str, Any]:
        """Return what is kept in the results."""
        return asdict(self)


def measure_paths(out: Path) -> Paths:
    """Export the encoder, then measure what is covered before and after a trace and the drills. Minutes."""
    place = out / "paths"
    folder, store = place / "minilm", place / "coverage.db"
    place.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        _run("export", "minilm", folder)
    store.unlink(missing_ok=True)
    db = ("--db", f"sqlite:///{store}")
    before = _coverage("--model", folder, *db)
    _run("coverage", "--trace", folder, *db)
    _run("drill", "--all", "--model", folder, "--isolation", "process", *db)
    after = _coverage("--model", folder, *db)
    return Paths(
        str(after["model"]),
        tuple(Covered(kind, before[kind]["covered"], after[kind]["covered"], after[kind]["total"]) for kind in UNITS),
    )


def _coverage(*arguments: object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(_run("coverage", *arguments, "--json"))
    return found


def _run(*arguments: object) -> str:
    done = crashpath(*arguments)
    if done.returncode not in (_DONE, _DRILL_RED):
        raise PathsError(f"crashpath {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def print_paths(paths: Paths | None) -> None:
    """Print what was measured, beside the account; or that it was not."""
    told = {"main": MAIN_PATH, "fallback": FALLBACK_PATH}
    if paths is None:
        main, fallback = (f"{a:.1%} → {b:.1%}" for a, b in told.values())
        print(f"\nPath coverage (the account: main {main}, fallback {fallback}): not run; --paths measures ours.")
        return
    rows = [
        (
            f"{one.kind} ({UNITS[one.kind]})",
            " → ".join(f"{share:.1%}" for share in told[one.kind]) if one.kind in told else "-",
            f"{one.before} → {one.after} of {one.total}",
        )
        for one in paths.kinds
    ]
    table(f"Path coverage of {paths.model}, measured; units of the account unknown", ("", "the account", "ours"), rows)
