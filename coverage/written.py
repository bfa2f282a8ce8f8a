"""Logs that are written, not run: ``written.toml`` filled with values that a seed chooses.

A template has slots (``{pid}``) and choices (``{one|another}``), inner ones first; a slot keeps its value within one
text. Braces that are neither, as in JSON, stay.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files

from crashpath.coverage.written_slots import MOVING, SLOTS

_INNER = re.compile(r"\{([^{}]*)\}")
_NUMBERED = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class Written:
    """One entry: what it is labelled with and its template."""

    id: str
    failure_class: str
    phase: str
    library: str
    platform: str
    text: str


@cache
def load_written() -> tuple[Written, ...]:
    """Return the entries of ``written.toml`` in their order."""
    data = tomllib.loads(files("crashpath.coverage").joinpath("written.toml").read_text(encoding="utf-8"))
    return tuple(
        Written(e["id"], e["class"], e["phase"], e["library"], e["platform"], e["text"].strip("\n") + "\n")
        for e in data["entry"]
    )


def render(entry: Written, seed: int, at: datetime) -> str:
    """Fill the template of ``entry`` with the values of ``seed``; stamps are at and shortly after ``at`` (UTC)."""
    rng = random.Random(f"{entry.id}:{seed}")
    slots = _Slots(rng, at)
    text, start = entry.text, 0
    while found := _INNER.search(text, start):
        value = slots.fill(found.group(1))
        if value is None:  # braces of the log itself
            text = f"{text[: found.start()]}\x01{found.group(1)}\x02{text[found.end() :]}"
            continue
        text = text[: found.start()] + value + text[found.end() :]
    return text.replace("\x01", "{").replace("\x02", "}")


class _Slots:
    """The values of one rendering."""

    def __init__(self, rng: random.Random, at: datetime) -> None:
        self._rng = rng
        self._at = at
        self._known: dict[str, str] = {}

    def fill(self, inner: str) -> str | None:
        """Return what stands for ``{inner}``, or ``None`` where it is neither slot nor choice."""
        if inner in MOVING:
            self._at += timedelta(milliseconds=self._rng.randint(1, 900))
            return MOVING[inner](self._at, self._rng)
        if inner in self._known:
            return self._known[inner]
        maker = SLOTS.get(inner) or SLOTS.get(inner.removesuffix("b")) or SLOTS.get(_NUMBERED.sub("", inner))
        if maker is not None:
            return self._known.setdefault(inner, self._other(inner, maker))
        if "|" in inner:
            return self._known.setdefault(inner, self._rng.choice(inner.split("|")))
        return None

    def _other(self, name: str, maker: Callable[[random.Random], str]) -> str:
        """Return a value for ``name``, another one than that of the slot without its number."""
        taken = self._known.get(_NUMBERED.sub("", name))
        return next(value for _ in range(99) if (value := maker(self._rng)) != taken)
