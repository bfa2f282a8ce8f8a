"""Nights of logs that drift, from a seed, with the truth of every log.

Failures are faults of the corpus that anybody tells apart by their plain words: two that print a telling line with the
same words, or mostly the same telling words, are not both taken, and a fault's logs that say other words are left out.
Neither masks nor root lines nor vectors of the product have a say in that; only logs are taken that hold one failure
each however often they are repeated. Every night some failures occur on some hosts, a log file each: values, paths and
ids are drawn anew, and most occurrences repeat one of the same host word for word but for the clock. New failures
appear, old ones vanish and some return; each release moves the numbers of lines and words a tenth of the failures in
another way. One of the new failures is an old one with a second cause in its last words. ``stories`` come on top.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from mix import clocked, corpus, varied
from stories import stories

from crashpath.dashboard.errors import InputError
from crashpath.dashboard.inputs import given_logs
from crashpath.ingest.rules import load_rules

SEED, NIGHTS, RELEASE = 60, 60, 12
FIRST = datetime(2026, 9, 1, 23, tzinfo=UTC)
OLD, NEW = 90, 30
"""Failures that are there from the first week on, and those that appear later, one a night at most."""
HOSTS, MOST = 48, 12
"""Log files a night, and most occurrences in one of them."""
SECOND = "second cause"
SECOND_AT = 24
ALIKE = 0.5
COMMON = 8
"""Words in telling lines of more faults than this are how servers talk, and tell nothing."""

_TELLING = re.compile(
    r"error|exception|fatal|fail|kill|cannot|can't|could not|couldn't|unable|not found|no such|abort|signal|denied"
    r"|refused|timed? ?out|invalid|unexpected|unsupported|mismatch|missing|corrupt|expected|must"
    r"|out of memory|allocate",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\S*[/\\]\S*|\S*\d\S*|\"[^\"]*\"|'[^']*'")
_PHRASES = (
    ("could not", "was unable to"), ("Could not", "Was unable to"), ("cannot", "can not"), ("failed to", "did not"),
    ("Failed to", "Did not"), ("not found", "does not exist"), ("No such file", "There is no such file"),
    ("does not match", "is not equal to"), ("invalid", "illegal"), ("Invalid", "Illegal"), ("expected", "wanted"),
    ("unexpected", "unforeseen"), ("missing", "absent"), ("unable to", "not able to"), ("Unable to", "Not able to"),
    ("not supported", "unsupported"), ("not implemented", "unimplemented"), ("mismatch", "disagreement"),
    ("must be", "has to be"), ("should be", "ought to be"), ("because", "since"), ("while", "during"),
)  # fmt: skip
_LINE = re.compile(r"(?<=, line )\d+|(?<=\.py:)\d+|(?<=\.js:)\d+|(?<=\.java:)\d+|(?<=\.cpp:)\d+")
_CAUSE = re.compile(r"^[\w.]*(?:Error|Exception): .+$")
SECOND_CAUSE = ": the licence server took back the seat, because the budget of the tenant is exhausted"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in truth: its logs, how frequent it is, the nights in which it occurs, whether it is new to all."""

    label: str
    texts: tuple[str, ...]
    weight: float
    nights: tuple[range, ...]
    planted: bool = False

    def lives(self, night: int) -> bool:
        """Whether it occurs in a night."""
        return any(night in span for span in self.nights)

    @property
    def first(self) -> int:
        """Its first night."""
        return self.nights[0].start


@dataclass(frozen=True, slots=True)
class HostLog:
    """A file of a night, and the failure that all its records are of."""

    truth: str
    text: str


@dataclass(frozen=True, slots=True)
class Night:
    """A night: its files, and the failures that were planted to be new in it."""

    number: int
    at: datetime
    logs: tuple[HostLog, ...]
    new: frozenset[str]


def drift(nights: int = NIGHTS, hosts: int = HOSTS, seed: int = SEED) -> tuple[Night, ...]:
    """Return so many nights with so many log files each, beside those of the stories; always the same ones."""
    rng = random.Random(seed)
    failures = _failures(universe(rng), rng, nights)
    return tuple(_night(failures, n, nights, hosts, random.Random(f"{seed}/{n}")) for n in range(1, nights + 1))


def universe(rng: random.Random) -> list[tuple[str, tuple[str, ...]]]:
    """Return faults that differ in plain words, with their logs, in random order."""
    logs: dict[str, list[str]] = {}
    for log in _single():
        logs.setdefault(log[0], []).append(log[1])
    lines = {fault: [_telling(text) for text in texts] for fault, texts in logs.items()}
    spread = Counter(line for several in lines.values() for line in set().union(*several))
    words = Counter(word for several in lines.values() for word in {w for line in set().union(*several) for w in line})
    order = sorted(logs)
    rng.shuffle(order)
    kept: list[tuple[str, tuple[str, ...]]] = []
    seen: list[tuple[frozenset[frozenset[str]], frozenset[str]]] = []
    for fault in order:
        own = [frozenset(line for line in one if spread[line] <= COMMON) for one in lines[fault]]
        said = [frozenset(w for line in one for w in line if words[w] <= 10 * COMMON) for one in own]
        if not said[0] or any(own[0] & other or alike(said[0], its) > ALIKE for other, its in seen):
            continue
        kept.append((fault, tuple(t for t, w in zip(logs[fault], said, strict=True) if alike(said[0], w) >= ALIKE)))
        seen.append((frozenset().union(*own), said[0]))
    return kept


def alike(left: frozenset[str], right: frozenset[str]) -> float:
    """Return the share of words that two sets share, of all that they have (Jaccard)."""
    return len(left & right) / len(left | right) if left or right else 0.0


def _telling(text: str) -> frozenset[frozenset[str]]:
    """The telling lines of a log, each as its words of letters alone."""
    out = set()
    for line in text.splitlines():
        if _TELLING.search(line) and not line.lstrip().startswith(("File ", "at ", "^")):
            found = frozenset(re.findall(r"[a-z]{3,}", _VALUE.sub(" ", line).lower()))
            if len(found) > 1:
                out.add(found)
    return frozenset(out)


def _single() -> list[tuple[str, str]]:
    """Logs of the corpus that hold one record, and three when they stand three times in a file."""
    logs = corpus()
    with TemporaryDirectory(prefix="crashpath-bench-") as name:
        paths = []
        for number, log in enumerate(logs):
            paths.append(Path(name) / f"{number:05}.log")
            paths[-1].write_text("".join(_closed(log.text) for _ in range(3)), encoding="utf-8")
        given = given_logs([str(path) for path in paths], load_rules(), ZoneInfo("UTC"))
        found = Counter(str(one.id).rpartition(":")[0] for one in given if not isinstance(one, InputError))
        return [(log.fault, log.text) for log, path in zip(logs, paths, strict=True) if found[str(path)] == 3]


def _closed(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _failures(known: Sequence[tuple[str, tuple[str, ...]]], rng: random.Random, nights: int) -> tuple[Failure, ...]:
    """Plan when each occurs: some from the first week on, some later, one of them an old one with a second cause."""
    weights = [1 / (rank + 6) for rank in range(OLD)]
    rng.shuffle(weights)
    out = []
    for (fault, texts), weight in zip(known, weights, strict=False):
        first, last = rng.randrange(1, 8), nights + 1
        spans = [range(first, last)]
        if rng.random() < 0.25:
            last = rng.randrange(12, max(13, nights - 5))
            spans = [range(first, last)]
            if rng.random() < 0.4:
                spans.append(range(min(last + 14, nights), nights + 1))
        out.append(Failure(fault, texts, weight, tuple(spans)))
    rest = list(known[OLD:])
    whole = next(texts for _, texts in rest if all(_CAUSE.match(_last(text)) for text in texts))
    rest = [one for one in rest if one[1] is not whole]
    out.append(Failure("first cause", whole, 0.08, (range(2, nights + 1),)))
    second = tuple(text.rstrip() + SECOND_CAUSE + "\n" for text in whole)
    out.append(Failure(SECOND, second, 0.06, (range(min(SECOND_AT, nights), nights + 1),), planted=True))
    for number, (fault, texts) in enumerate(rest[:NEW]):
        start = 9 + number * (nights - 10) // NEW
        if start < nights:
            out.append(Failure(fault, texts, 0.03, (range(start, nights + 1),), planted=True))
    return tuple(out)


def _last(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def _night(failures: Sequence[Failure], night: int, nights: int, hosts: int, rng: random.Random) -> Night:
    alive = [one for one in failures if one.lives(night)]
    new = [one for one in alive if one.planted and one.first == night]
    drawn = rng.choices(alive, [one.weight for one in alive], k=max(0, hosts - len(new)))
    at = FIRST + timedelta(days=night - 1)
    logs = [HostLog(one.label, _log(one, night, rng)) for one in (*new, *drawn)]
    logs += [HostLog(truth, text) for truth, text in stories(night / nights, at, rng)]
    return Night(night, at, tuple(logs), frozenset(one.label for one in new))


def _log(failure: Failure, night: int, rng: random.Random) -> str:
    """One host: one or two distinct occurrences, repeated."""
    count = min(MOST, 1 + int(rng.expovariate(0.3)))
    fresh = [varied(_worded(rng.choice(failure.texts), failure, night), rng) for _ in range(1 if count < 4 else 2)]
    texts = fresh[:count] + [clocked(rng.choice(fresh), rng) for _ in range(count - len(fresh))]
    return "".join(map(_closed, texts))


def _worded(text: str, failure: Failure, night: int) -> str:
    """A log as the release of that night words it."""
    release = (night - 1) // RELEASE
    for each in range(1, release + 1):
        drawn = random.Random(f"{failure.label}/{each}")
        if drawn.random() < 0.1:
            for old, new in drawn.sample(_PHRASES, len(_PHRASES) // 2):
                text = text.replace(old, new)
    moved = random.Random(f"{failure.label}/lines/{release}").randrange(0, 40)
    return _LINE.sub(lambda found: str(int(found[0]) + moved), text) if release else text
