"""Values in pieces that fit into one statement: databases limit how many it may name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

CHUNK = 500

_T = TypeVar("_T")


def chunks(values: Sequence[_T], size: int = CHUNK) -> Iterator[Sequence[_T]]:
    """Cut values into pieces of at most ``size``."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
