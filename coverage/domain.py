"""Shapes of feeds in buckets: what production asks for against what was exercised.

A bucket has, for each dimension that the model leaves open, the power of two that holds it: ``batch<=8 tokens<=64``;
``batch<=0`` is a batch of nothing, which no other bucket has.
Shapes that differ within a bucket take the same kernels nearly always; a bucket that production asks for and no traced
run has seen is where a fallback may be slow, or answer otherwise, with nobody knowing.
"""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from crashpath.coverage.runfile import MALFORMED
from crashpath.runtime.folder import TensorSpec
from crashpath.runtime.folder_read import open_plain
from crashpath.runtime.values import Arrays

FIXED = "the one shape that the model takes"
_SCHEMA = "crashpath.event/1"


@dataclass(frozen=True, slots=True)
class Asked:
    """What production asked for: requests a bucket, and how many lines of the event files were no events."""

    requests: Mapping[str, int]
    unreadable: int


def bucket(inputs: Sequence[TensorSpec], shapes: Mapping[str, Sequence[int]]) -> str:
    """Return the bucket of a feed's shapes, by the words that ``model.toml`` has for open dimensions."""
    sizes: dict[str, int] = {}
    for spec in inputs:
        for declared, size in zip(spec.shape, shapes.get(spec.name, ()), strict=False):
            if isinstance(declared, str):
                sizes.setdefault(declared, size)
    return " ".join(f"{word}<={_power(size)}" for word, size in sizes.items()) or FIXED


def bucket_of(inputs: Sequence[TensorSpec], feed: Arrays) -> str:
    """Return the bucket of a feed."""
    return bucket(inputs, {name: array.shape for name, array in feed.items()})


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length() if size > 0 else 0


def asked_for(files: Iterable[Path], inputs: Sequence[TensorSpec], model_hash: str) -> Asked:
    """Count what the event files say was asked of this very model. Raises `OSError` for a file that cannot be read."""
    requests: Counter[str] = Counter()
    unreadable = 0
    for file in files:
        with _opened(file) as lines:
            for line in lines:
                if b'"domain"' not in line:
                    continue
                try:
                    requests.update(_buckets(line, inputs, model_hash))
                except MALFORMED:
                    unreadable += 1
    return Asked(dict(requests), unreadable)


def _opened(file: Path) -> BinaryIO:
    try:
        return open_plain(file)
    except OSError as error:  # whoever is told needs the file's name, and why
        raise OSError(error.errno or errno.EINVAL, error.strerror or str(error), str(file)) from error


def _buckets(line: bytes, inputs: Sequence[TensorSpec], model_hash: str) -> Counter[str]:
    """Return the requests a bucket of one event, none of other models. Raises those of `MALFORMED`."""
    event = json.loads(line)
    if event.get("schema") != _SCHEMA or event.get("event") != "domain" or event.get("model_hash") != model_hash:
        return Counter()
    buckets: Counter[str] = Counter()
    for text, count in event["shapes"].items():
        if type(count) is not int or count < 0:
            raise ValueError(f"{count!r:.40} is no count")
        buckets[_bucket_of_text(text, inputs)] += count
    return buckets


def _bucket_of_text(text: str, inputs: Sequence[TensorSpec]) -> str:
    """Read ``input_ids=8x64 attention_mask=8x64``, as `events.shapes_text` writes it."""
    shapes: dict[str, Sequence[int]] = {}
    for part in text.split():
        name, _, dims = part.rpartition("=")
        shapes[name] = [_size(one) for one in dims.split("x")] if dims else []
    return bucket(inputs, shapes)


def _size(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{text:.40} is no size")
    return int(text)
