"""The failure classes: the words in which every part speaks of what went wrong.

They are data (``classes.toml``). Their order there is the order on every page.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

UNCLASSIFIED = "unclassified"
HEADLINES = ("OOM", "load timeout", "tokenizer", "ONNX shape inference", "other")


@dataclass(frozen=True, slots=True)
class FailureClass:
    """A named kind of failure: what it means, where it ends and the next begins, and what to do about it."""

    id: str
    title: str
    family: str
    headline: str
    meaning: str
    next_steps: tuple[str, ...]
    boundary: str


def _load() -> tuple[FailureClass, ...]:
    data = tomllib.loads(files("crashpath.ingest").joinpath("classes.toml").read_text(encoding="utf-8"))
    return tuple(FailureClass(**{**entry, "next_steps": tuple(entry["next_steps"])}) for entry in data["class"])


CLASSES = _load()
_HEADLINE = {c.id: c.headline for c in CLASSES}


def headline_of(class_id: str) -> str:
    """Return the headline that a class counts under; ``unclassified``, or one of another version, under ``other``."""
    return _HEADLINE.get(class_id, HEADLINES[-1])
