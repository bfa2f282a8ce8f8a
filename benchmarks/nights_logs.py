"""Logs of many nights whose truth is known: failures of the corpus that come and go and drift, and planted stories.

A failure is one fault of the corpus, at most one for each class and library, so that no two are one. Every crash has
other values, paths and ids; now and then a failure changes its wording, as a release does. Three stories are told on
top: a library upgrade rewords one failure, one turns out to be two, and two turn out to be one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from crashpath.clustering.corpus import Labelled, read_corpus

SEED = 60
FIRST = datetime(2026, 9, 1)
FAILURES, NEWCOMERS, VANISH = 110, 25, 25
REWORD, SPLIT, MERGE = "story-reword", "story-split", "story-merge"
SIDES = (f"{SPLIT}-a", f"{SPLIT}-b")
PARTS = (f"{MERGE}-a", f"{MERGE}-b")
STORIES = (REWORD, SPLIT, *SIDES, MERGE, *PARTS)
_RELEASE = 0.06
"""Chance that a failure changes its wording in a night."""
_WORDS = (
    (r"\bcannot\b", "can not"), (r"\b[Ff]ailed to\b", "could not"), (r"\b[Uu]nable to\b", "failed to"),
    (r"\bis not\b", "isn't"), (r"\bdoes not\b", "doesn't"), (r"\bnot found\b", "was not found"),
    (r"\binvalid\b", "not valid"), (r"\berror\b", "problem"), (r"\bwhile\b", "when"), (r"\bmust be\b", "has to be"),
    (r"\bexpected\b", "wanted"), (r"\bduring\b", "in"), (r"\bgot\b", "was given"), (r"\bfile\b", "the file"),
)  # fmt: skip
_NAMES = ("atlas", "borealis", "comet", "dune", "elm", "fjord", "grove", "heron", "iris", "juniper", "krill", "lark")
_PLACE = re.compile(r"(?<=/)(srv|opt|data|models|home|app|mnt)/([\w.-]+)")
_HEX = re.compile(r"\b0x[0-9a-f]{9,16}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_NUMBER = re.compile(r"(?<![\w.:-])\d{5,12}(?![\w.:-])")
_DAY = re.compile(r"\b2026-1[12]-\d\d\b")
_SPLITTING = {
    SIDES[0]: ("tenant", "credit", "expired", "before", "midnight"),
    SIDES[1]: ("replica", "lease", "moved", "after", "failover"),
}


@dataclass(frozen=True, slots=True)
class Made:
    """One crash of a night: which failure it is in truth, and its log."""

    truth: str
    text: str


@dataclass(frozen=True, slots=True)
class Night:
    """One night: its crashes, and the failures that were planted to be new in it."""

    number: int
    at: datetime
    crashes: tuple[Made, ...]
    new: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure with its logs, nights (from, to), and how often it comes beside others."""

    name: str
    texts: tuple[str, ...]
    since: int
    until: int
    weight: float


def nights(data: Path, count: int, crashes: int) -> list[Night]:
    """Return ``count`` nights with about ``crashes`` crashes each, always the same ones."""
    rng = random.Random(SEED)
    failures = _failures(read_corpus(data), count, rng)
    wording: dict[str, frozenset[int]] = {failure.name: frozenset() for failure in failures}
    told: set[str] = set()
    out = []
    for number in range(1, count + 1):
        at = FIRST + timedelta(days=number - 1, hours=23)
        for name in wording:
            if number > 1 and rng.random() < _RELEASE:
                wording[name] = wording[name] ^ {rng.randrange(len(_WORDS)) for _ in range(3)}
        here = [one for one in failures if one.since <= number <= one.until]
        drawn = rng.choices(here, [one.weight for one in here], k=crashes - 2)
        drawn += [one for one in here if one.since == number > 1]  # a new failure is seen on its first night
        made = [Made(one.name, vary(rng.choice(one.texts), wording[one.name], at, rng)) for one in drawn]
        made += _stories(number / count, at, rng)
        truths = {one.truth for one in made if one.truth not in STORIES}
        planted = {one.name for one in failures if one.since == number > 1}
        out.append(Night(number, at, tuple(made), frozenset(planted & truths - told)))
        told |= truths
    return out


def _failures(corpus: Sequence[Labelled], count: int, rng: random.Random) -> list[_Failure]:
    by_fault: dict[str, list[Labelled]] = {}
    for log in corpus:
        if log.failure_class != "unclassified":
            by_fault.setdefault(log.fault, []).append(log)
    best: dict[tuple[str, str], str] = {}
    for fault in sorted(by_fault):
        best.setdefault((by_fault[fault][0].failure_class, by_fault[fault][0].library), fault)
    chosen = rng.sample(sorted(best.values()), min(FAILURES, len(best)))
    out = []
    for i, fault in enumerate(chosen):
        since = 1 if i >= NEWCOMERS else rng.randint(2, max(2, count - 1))
        gone = NEWCOMERS <= i < NEWCOMERS + VANISH
        until = rng.randint(max(2, count // 4), count) if gone else count
        texts = tuple(log.text for log in by_fault[fault])
        out.append(_Failure(fault, texts, since, until, rng.paretovariate(1.2)))
    return out


def vary(text: str, wording: frozenset[int], at: datetime, rng: random.Random) -> str:
    """Return the log with other values, places and ids, on another day, in the wording of its release."""
    for number in sorted(wording):
        text = re.sub(*_WORDS[number], text)
    names = dict[str, str]()
    text = _PLACE.sub(lambda m: f"{m[1]}/{names.setdefault(m[2], rng.choice(_NAMES))}", text)
    text = _HEX.sub(lambda m: _other(m[0], rng), text)
    text = _NUMBER.sub(lambda m: _other(m[0], rng), text)
    return _DAY.sub(f"{at:%Y-%m-%d}", text)


def _other(value: str, rng: random.Random) -> str:
    head, rest = (value[:2], value[2:]) if value.startswith("0x") else ("", value)
    digits = "0123456789abcdef" if head or "-" in rest else "0123456789"
    return head + "".join(one if one == "-" else rng.choice(digits[1:]) for one in rest)


def _stories(time: float, at: datetime, rng: random.Random) -> list[Made]:
    """The planted stories at a time of 0 … 1: what each prints tonight."""
    out = []
    shard = rng.randrange(10_000, 99_999)
    old = f"checkpoint shard {shard} does not match the index that the exporter wrote"
    new = f"the index that the exporter wrote differs from checkpoint shard {shard}"
    out.append(Made(REWORD, _trace("RuntimeError", new if time > 0.5 else old, "read_shard", at, rng)))
    step = min(5, int(max(0.0, time - 0.3) / 0.1))  # one more word is another from night 24, 30, 36 … of 60
    for side in SIDES:
        words = ["scheduler", "refused", "this", "batch", "because", "queue", "quota", "was", "spent", "already"]
        words[5 : 5 + step] = _SPLITTING[side][:step]
        name = side if step > 2 else SPLIT
        out.append(Made(name, _trace("SchedulerError", " ".join(words), "submit", at, rng)))
    one = f"tensor arena of {shard} bytes exhausted while planning the decoder graph"
    two = f"planner of the decoder graph ran out of arena space for tensors ({shard} bytes)"
    both = f"tensor arena exhausted: planner of the decoder graph needs space for {shard} bytes"
    if time > 0.6:
        out.append(Made(MERGE, _trace("PlanError", both, "plan", at, rng)))
    else:
        out.append(Made(PARTS[0], _trace("PlanError", one, "plan", at, rng)))
        if time > 0.15:
            out.append(Made(PARTS[1], _trace("PlanError", two, "plan", at, rng)))
    return out


def _trace(kind: str, message: str, function: str, at: datetime, rng: random.Random) -> str:
    line, name = rng.randint(10, 400), rng.choice(_NAMES)
    return (
        f"{at:%Y-%m-%d %H:%M:%S},{rng.randint(100, 999)} ERROR {name}: request failed\n"
        f'Traceback (most recent call last):\n  File "/srv/{name}/engine/core.py", line {line}, in {function}\n'
        f"    return self.backend.{function}(batch)\nengine.errors.{kind}: {message}\n"
    )


def truths_at_the_end(truth: str) -> str:
    """Return which failure a crash is, seen from the end: the two that became one are one."""
    return MERGE if truth in PARTS else truth


def counted(night: Night) -> Counter[str]:
    """Return how many crashes each failure has in a night."""
    return Counter(one.truth for one in night.crashes)
