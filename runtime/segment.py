"""Memory that two processes share, for tensors: an unnamed file, mapped by both.

The parent makes it and hands it over as an open file. It has no name, so nothing can be left behind: the kernel frees
it when the last of the two has gone, however that one went.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crashpath.runtime.errors import InputError
from crashpath.runtime.values import Arrays

ALIGNMENT = 64
SMALLEST = 1 << 16
KEPT = 64 << 20
"""Bytes that a segment keeps from one request to the next; what a large one needed above them is given back."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where in a segment a tensor lies. ``dtype`` is numpy's text with byte order, ``offset`` counts bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


class Segment:
    """One side's view of the shared memory. Not for two threads at once.

    Both sides may make it larger: `size` tells the other, which calls `fit` before it reads.
    """

    def __init__(self, file: int | None = None) -> None:
        self.file = unnamed_file("tensors") if file is None else file
        self._map: mmap.mmap | None = None
        self.size = 0
        if file is None:
            self._resize(SMALLEST)
        else:
            self._remap(os.fstat(file).st_size)

    def write(self, arrays: Arrays) -> tuple[Placed, ...]:
        """Copy the arrays in and return where they lie.

        Raises `InputError` for an array that has no bytes of its own (text, objects), `OSError` where there is no
        memory for it.
        """
        placed, end = [], 0
        for name, array in arrays.items():
            if array.dtype.hasobject or array.dtype.kind in "USV":
                raise InputError(name, f"{name} has dtype {array.dtype}, which no worker can be handed: use in_process")
            placed.append(Placed(name, array.dtype.str, array.shape, end))
            end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        if end > self.size:
            self._resize(max(end, 2 * self.size if end <= KEPT else end))
        elif self.size > KEPT >= end:
            self._resize(KEPT)
        for at, array in zip(placed, arrays.values(), strict=True):
            self._view(at)[...] = array
        return tuple(placed)

    def views(self, placed: Sequence[Placed]) -> Arrays:
        """Return the tensors without a copy: they change when the other side writes again."""
        return {at.name: self._view(at) for at in placed}

    def copies(self, placed: Sequence[Placed]) -> Arrays:
        """Return the tensors as arrays of their own."""
        return {at.name: self._view(at).copy() for at in placed}

    def fit(self, size: int) -> None:
        """Map what the other side says that there is."""
        if size != self.size:
            self._remap(size)

    def close(self) -> None:
        """Let go of the memory and the file; arrays from `views` keep theirs while they live."""
        self._map = None
        self.size = 0
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _view(self, at: Placed) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        end = at.offset + math.prod(at.shape) * np.dtype(at.dtype).itemsize
        if self._map is None or end > self.size:
            raise ValueError(f"tensor {at.name} ends at byte {end} of a segment of {self.size}")
        return np.ndarray(at.shape, np.dtype(at.dtype), buffer=self._map, offset=at.offset)

    def _resize(self, size: int) -> None:
        os.ftruncate(self.file, size)
        if size > self.size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self.file, 0, size)  # an error here, not a bus error at the first touch
        self._remap(size)

    def _remap(self, size: int) -> None:
        self._map, self.size = None, 0  # unmapped now, or with the last array that still looks into it
        self._map = mmap.mmap(self.file, size)
        self.size = size


def unnamed_file(what: str) -> int:
    """Open a file for reading and writing that has no name in any folder, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(f"crashpath-{what}", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
