"""A night's mix from a seed: logs of the corpus again and again, each time with other values; the truth is the fault.

What another run of the same failure would have written differently is drawn anew, the same for the whole log: process
ids and other long numbers, addresses, hashes, clocks, IPs, the names of models, hosts and deployment folders. Short
numbers stay, because exit codes, signals, statuses and versions are among them. Faults are as frequent as Zipf has it.
"""

from __future__ import annotations

import csv
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tables import ROOT

from crashpath.clustering.corpus import Labelled, read_corpus

SEED = 20_261_201
LOGS = 12_843
_NAMES = tuple(
    f"{a}-{b}" for a in ("bert", "swin", "gpt", "clip", "nomic") for b in ("small", "base", "rank", "intent")
)
_FOLDERS = ("/srv/", "/opt/", "/data/deploy/", "/var/lib/", "/mnt/releases/")
_IDS = re.compile(
    r"(?P<address>\b0x[0-9a-f]{6,16}\b)"
    r"|(?P<clock>(?<!\d)[0-2]\d:[0-5]\d:[0-5]\d(?!\d))"
    r"|(?P<ip>\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)"
    r"|(?P<hex>(?<![\w.])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}(?!\w))"
    r"|(?P<folder>(?:/srv|/opt|/data/deploy|/var/lib|/mnt/releases)/(?=[a-z])(?!venv|models\b)[\w.-]+(?=/))"
    r"|(?P<model>(?<![\w.-])[a-z0-9]+(?:-[a-z0-9]+)+(?![\w.]))"
    r"|(?P<number>(?<![\w.,:+-])\d{4,12}(?![\w,:-]|\.\d))"
    r"|(?P<fraction>(?<=[,.])\d{3}(?:\d{3})*Z?(?=[\s\]]))"
)


@dataclass(frozen=True, slots=True)
class MixedLog:
    """One log of the mix."""

    id: str
    text: str
    fault: str


@lru_cache(maxsize=1)
def corpus(data: Path = ROOT / "data") -> tuple[Labelled, ...]:
    """Read the corpus once a process."""
    return read_corpus(data)


@lru_cache(maxsize=1)
def models() -> frozenset[str]:
    """Return the names that the models of the corpus have."""
    with (ROOT / "data" / "labels.csv").open(encoding="utf-8", newline="") as file:
        return frozenset(row["model"] for row in csv.DictReader(file))


def mixed(logs: int = LOGS, seed: int = SEED, repeated: float = 0.0) -> list[MixedLog]:
    """Return so many logs; a share of ``repeated`` are an earlier one word for word but for the clock."""
    rng = random.Random(seed)
    by_fault: dict[str, list[Labelled]] = {}
    for log in corpus():
        by_fault.setdefault(log.fault, []).append(log)
    faults = sorted(by_fault)
    rng.shuffle(faults)
    weights = [1 / (rank + 10) for rank in range(len(faults))]
    fresh = max(1, round(logs * (1 - repeated)))
    out: list[MixedLog] = []
    for number in range(logs):
        if number < fresh:
            fault = rng.choices(faults, weights)[0]
            text = varied(rng.choice(by_fault[fault]).text, rng)
        else:
            earlier = out[rng.randrange(fresh)]
            fault, text = earlier.fault, clocked(earlier.text, rng)
        out.append(MixedLog(f"m{number:06}", text, fault))
    rng.shuffle(out)
    return out


def varied(text: str, rng: random.Random) -> str:
    """Return a log with other values; one value of the log becomes one other value, wherever it stands."""
    known: dict[str, str] = {}

    def other(match: re.Match[str]) -> str:
        found, kind = match[0], match.lastgroup or ""
        if kind == "clock":
            return _clock(found, known, rng)
        if kind == "model" and found not in models():
            return found
        if found not in known:
            known[found] = _MAKE[kind](found, rng)
        return known[found]

    return _IDS.sub(other, text)


def clocked(text: str, rng: random.Random) -> str:
    """Return a log with another clock and else word for word."""
    known: dict[str, str] = {}
    return _IDS.sub(lambda m: _clock(m[0], known, rng) if m.lastgroup == "clock" else m[0], text)


def _clock(found: str, known: dict[str, str], rng: random.Random) -> str:
    """Move all clocks of a log by the same, within the minutes and seconds, so that their order mostly stays."""
    if "clock" not in known:
        known["clock"] = str(rng.randrange(3600))
    hour, minute, second = map(int, found.split(":"))
    at = (hour * 3600 + minute * 60 + second + int(known["clock"])) % 86_400
    return f"{at // 3600:02}:{at % 3600 // 60:02}:{at % 60:02}"


def _hex(found: str, rng: random.Random) -> str:
    return "".join(rng.choice("0123456789abcdef") for _ in found)


def _address(found: str, rng: random.Random) -> str:
    return "0x" + _hex(found[2:], rng)


def _number(found: str, rng: random.Random) -> str:
    return str(rng.randrange(10 ** (len(found) - 1), 10 ** len(found)))


def _fraction(found: str, rng: random.Random) -> str:
    return "".join(rng.choice(string.digits) if letter.isdigit() else letter for letter in found)


def _ip(found: str, rng: random.Random) -> str:
    return f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"


def _folder(found: str, rng: random.Random) -> str:
    return f"{rng.choice(_FOLDERS)}{rng.choice(_NAMES)}-{rng.randrange(100)}"


def _model(found: str, rng: random.Random) -> str:
    return f"{rng.choice(_NAMES)}-v{rng.randrange(1, 10)}"


_MAKE: dict[str, Callable[[str, random.Random], str]] = {
    "address": _address,
    "ip": _ip,
    "hex": _hex,
    "folder": _folder,
    "model": _model,
    "number": _number,
    "fraction": _fraction,
}
