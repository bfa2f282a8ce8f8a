"""Whether a caller's feed is one that the model declares: checked before any path sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashpath.runtime.errors import InputError
from crashpath.runtime.tensors import TensorSpec
from crashpath.runtime.values import Arrays

FEED = "feed"
"""In place of an input's name, where the whole feed is at fault."""


class FeedCheck:
    """The declared inputs, made ready to be compared with each request's feed."""

    def __init__(self, inputs: tuple[TensorSpec, ...]) -> None:
        self._names = frozenset(spec.name for spec in inputs)
        self._inputs = tuple((spec.name, np.dtype(spec.dtype), spec.shape, len(spec.shape)) for spec in inputs)

    def __call__(self, feed: Mapping[str, Any]) -> Arrays:
        """Return the arrays in the declared order. Raises `InputError` that names the input at fault.

        Values are arrays of the declared dtype and rank; fixed dimensions have the declared size, and a word has one
        size wherever it stands. A list or number is refused: what dtype it was meant to have cannot be known.
        """
        if type(feed) is not dict and not isinstance(feed, Mapping):  # the first alone is quick
            raise InputError(FEED, self._no_feed(feed))
        words: dict[str, tuple[int, str]] = {}
        arrays: dict[str, NDArray[Any]] = {}
        for name, dtype, shape, rank in self._inputs:
            array = feed.get(name)
            if not isinstance(array, np.ndarray):
                raise InputError(name, _absent(name, dtype, array))
            if array.dtype != dtype:
                raise InputError(name, f"input {name!r} is {array.dtype} where the model takes {dtype}; cast it")
            if array.ndim != rank:
                raise InputError(name, f"input {name!r} has shape {array.shape} where the model takes {_told(shape)}")
            for size, declared in zip(array.shape, shape, strict=True):
                if size != declared:
                    _dimension(name, array.shape, shape, size, declared, words)
            arrays[name] = array
        if len(feed) != len(arrays):
            unknown = min(str(name) for name in feed if name not in self._names)
            raise InputError(unknown, f"the model has no input {unknown!r}; it takes {', '.join(sorted(self._names))}")
        return arrays

    def _no_feed(self, value: object) -> str:
        names = ", ".join(sorted(self._names)) or "none"
        return f"a feed is a mapping of input names ({names}) to numpy arrays; this is a {type(value).__name__}"


def _dimension(
    name: str,
    found: tuple[int, ...],
    shape: tuple[int | str, ...],
    size: int,
    declared: int | str,
    words: dict[str, tuple[int, str]],
) -> None:
    if not isinstance(declared, str):
        raise InputError(name, f"input {name!r} has shape {found} where the model takes {_told(shape)}")
    if size == 0:
        raise InputError(name, f"input {name!r} is empty: its dimension {declared!r} has size 0")
    known, first = words.setdefault(declared, (size, name))
    if known != size:
        where = f"{known} in {first!r}" if first != name else str(known)
        raise InputError(name, f"input {name!r} has {declared!r} = {size}, which is {where}; they have to be equal")


def _absent(name: str, dtype: np.dtype[Any], value: object) -> str:
    if value is None:
        return f"input {name!r} is missing"
    return f"input {name!r} is a {type(value).__name__}, not an array; give a numpy array of {dtype}"


def _told(shape: tuple[int | str, ...]) -> str:
    return "[" + ", ".join(str(one) for one in shape) + "]"
