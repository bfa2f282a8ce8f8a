"""Which figures of the account hold together: the arithmetic of ``docs/claims.md``, and its two runs (``--drill``).

Every claim is worked out here from the figures in `replay_truth`; each of its figures has to stand in the document, or
this ends with 1. Two claims are not arithmetic: a child that is killed inside a ``try`` (run always), and the account's
fallback under a drill (``--drill``, half a minute).
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from processes import crashpath
from replay_truth import (
    CRASH_LOGS,
    FALLBACK_PATH,
    MAIN_PATH,
    RATE_AFTER,
    RATE_BEFORE,
    REDUCTION,
    SHAPE_INFERENCE,
    THREE_AFTER,
    THREE_BEFORE,
    THREE_LARGEST,
)
from tables import ROOT

DOCUMENT = ROOT / "docs" / "claims.md"
DRILL = ("drill", "--fault", "model-request-memory", "--isolation", "process", "--policy")
_TENTH, _HUNDREDTH = 0.0005, 0.00005  # what one decimal of a percent hides, each way, and what two hide
_KILLED = "import os\ntry:\n    os.kill(os.getpid(), 9)\nexcept BaseException:\n    print('the fallback answers')\n"
_GREEN, _RED = 0, 6


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim with the figures that the document has to give for it; ``holds``: whether the account is right."""

    name: str
    holds: bool
    figures: tuple[str, ...]


def percent(share: float, digits: int = 1) -> str:
    """Return a share as the document writes it: ``92.7 %``."""
    return f"{100 * share:.{digits}f} %"


def claims() -> tuple[Claim, ...]:
    """Work out every claim that needs no drill."""
    return (*_rates(), *_shares(), *_logs(), *_paths(), *_inside_run())


def _rates() -> Iterator[Claim]:
    fewer = 1 - RATE_AFTER / RATE_BEFORE
    yield Claim("fewer failures", round(fewer, 3) == REDUCTION, (percent(fewer), percent(fewer, 2)))
    failures = least_total(THREE_AFTER["oom_host"], THREE_AFTER["load_timeout"])
    attempts = round(failures / (RATE_AFTER + _HUNDREDTH))
    yield Claim("denominators", False, (f"{failures:,}", f"{attempts:,}"))


def _shares() -> Iterator[Claim]:
    before, after = sum(THREE_BEFORE.values()), sum(THREE_AFTER.values())
    room = len(THREE_BEFORE) * _TENTH
    most = room * (RATE_BEFORE + _TENTH)
    yield Claim("three before leave room", False, (percent(before), percent(room, 2), percent(most, 3)))
    unnamed = 1 - after
    figures = (percent(after), percent(unnamed), percent(unnamed * RATE_AFTER, 3))
    yield Claim("three after name the failures", False, figures)
    yield Claim("the others grew", False, (f"at least {least_growth()} times",))
    for name, share in THREE_BEFORE.items():
        then, now = RATE_BEFORE * share, RATE_AFTER * THREE_AFTER[name]
        yield Claim(f"{name} in deployments", True, (percent(then, 2), percent(now, 4)))


def _logs() -> Iterator[Claim]:
    of_all, of_three = SHAPE_INFERENCE * CRASH_LOGS, SHAPE_INFERENCE * THREE_LARGEST * CRASH_LOGS
    readings = (f"{of_all:,.0f}", percent(SHAPE_INFERENCE * THREE_LARGEST), f"{of_three:,.0f}")
    yield Claim("63.1 % of what", False, (*readings, percent(THREE_LARGEST - SHAPE_INFERENCE)))
    seen = 1 - THREE_BEFORE["oom_host"]
    yield Claim("kills that leave no log", False, (percent(seen), percent(SHAPE_INFERENCE * seen)))
    yield Claim("12,843 logs", False, (f"{CRASH_LOGS / RATE_BEFORE:,.0f}", f"{CRASH_LOGS / RATE_AFTER:,.0f}"))


def _paths() -> Iterator[Claim]:
    main, fallback = least_total(*MAIN_PATH), least_total(FALLBACK_PATH[1])
    yield Claim("units of coverage", False, (str(main), str(fallback)))


def _inside_run() -> Iterator[Claim]:
    child = subprocess.run([sys.executable, "-c", _KILLED], capture_output=True, text=True, check=False)
    yield Claim("a branch contains a kill", child.stdout != "" or child.returncode != -9, (f"`{child.returncode}`",))
    phases = _phases()
    figures = []
    for name in ("load_timeout", "tokenizer"):
        all_of = phases[name].total()
        figures.append(f"{all_of - phases[name]['infer']} of {all_of}")
    yield Claim("a branch inside run sees load and tokenizer failures", False, tuple(figures))


def _phases() -> Mapping[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    with (ROOT / "data" / "labels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["class"], Counter())[row["phase"]] += 1
    return found


def least_growth() -> int:
    """Return how many times as frequent failures outside the three became at least, with every figure at the edge of
    its rounding that makes this least: a lower bound, so rounded down."""
    most_before = len(THREE_BEFORE) * _TENTH * (RATE_BEFORE + _TENTH)
    least_unnamed = 1 - sum(THREE_AFTER.values()) - len(THREE_AFTER) * _TENTH
    return math.floor(least_unnamed * (RATE_AFTER - _HUNDREDTH) / most_before)


def least_total(*shares: float) -> int:
    """Return the smallest total of which whole numbers are, rounded to a tenth of a percent, all these shares."""

    def is_share(share: float, total: int) -> bool:
        return abs(round(share * total) / total - share) < _TENTH

    return next(total for total in count(1) if all(is_share(share, total) for share in shares))


def drilled() -> Iterator[Claim]:
    """Drive one fault through the account's fallback, and through the default one."""
    account, default = crashpath(*DRILL, "account", "--no-store"), crashpath(*DRILL, "breaker", "--no-store")
    once = account.returncode == _RED and gives(account.stdout, "1 unanswered")
    better = default.returncode == _GREEN and gives(default.stdout, "0 unanswered")
    figures = ("1 unanswered",) if once else ("(the drill did not show it)",)
    yield Claim("the printed fallback answers more than once", not once, figures)
    yield Claim("the default policy answers both", better, ("0 unanswered",) if better else ("(the drill was red)",))


def gives(text: str, figure: str) -> bool:
    """Whether a text gives a figure as a whole: ``37`` is not in ``7,237``, nor in ``37.5``."""
    return re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d|[.,]\d)", text) is not None


def missing(found: Sequence[Claim], document: Path = DOCUMENT) -> tuple[str, ...]:
    """Return the figures that the document does not give."""
    text = document.read_text(encoding="utf-8")
    return tuple(f"{one.name}: {figure}" for one in found for figure in one.figures if not gives(text, figure))


def main(arguments: Sequence[str] = ()) -> int:
    """Print every claim; 1 where the document does not give one of its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drill", action="store_true", help="also drive the account's fallback")
    options = parser.parse_args(arguments)
    found = (*claims(), *(drilled() if options.drill else ()))
    for one in found:
        print(f"{'holds' if one.holds else 'not so':7} {one.name}: {' · '.join(one.figures)}")
    gaps = missing(found)
    for gap in gaps:
        print(f"not in {DOCUMENT.name}: {gap}")
    return int(bool(gaps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
