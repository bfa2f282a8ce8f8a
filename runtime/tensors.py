"""What ``model.toml`` says of one input or output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, numpy dtype and shape of an input or output; a word in the shape is a free dimension."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
