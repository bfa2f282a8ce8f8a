"""Read a model folder's files without trusting them: none is opened but a plain file, no array is loaded unseen.

To open a named pipe waits for somebody who writes, a device may have no end, and the header of an array can announce
more than there is memory. Each is told before it is touched.
"""

from __future__ import annotations

import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

FILE, FOLDER, ABSENT = "file", "folder", ""
MOST_TEXT = 4 << 20
"""Bytes of a ``model.toml``; one with thousands of files stays far below."""
MOST_ARRAYS = 4 << 30
"""Bytes of all arrays that are read: a golden feed is an example, not a data set."""
_SPECIAL = (
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)
_HEADERS: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}
DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    SyntaxError,
    ArithmeticError,
    RuntimeError,  # an archive with a password, or nested beyond all measure
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)
"""What reading a damaged archive of arrays raises, by the place of the damage."""


def kind_of(path: Path) -> str:
    """Return ``file``, ``folder``, what else it is, or ``""`` where there is nothing (or nothing that can be named)."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ABSENT
    if stat.S_ISREG(mode):
        return FILE
    return FOLDER if stat.S_ISDIR(mode) else next((name for test, name in _SPECIAL if test(mode)), "special file")


def special(folder: Path, names: Collection[str]) -> tuple[str, str] | None:
    """Return the first of these, or of whatever lies in the folder, that is no file and no folder: name and kind.

    Weights beside a graph are named by the graph alone, so every entry is looked at.
    """
    try:
        there = os.listdir(folder)
    except OSError:  # may be entered and not listed
        there = []
    for name in sorted({*names, *there}):
        if (kind := kind_of(folder / name)) not in (FILE, FOLDER, ABSENT):
            return name, kind
    return None


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file to be read, without waiting. Raises `OSError`, also for what is no plain file."""
    kind = kind_of(path)
    if kind not in (FILE, ABSENT):
        raise OSError(f"it is a {kind} where a file belongs")
    # It can have been replaced since: so no waiting, and a second look at what was really opened.
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError("it is not a plain file")
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_text(path: Path) -> str:
    """Return the text of a small file. Raises `OSError` or `ValueError`, also where it is too large or not UTF-8."""
    with open_plain(path) as file:
        content = file.read(MOST_TEXT + 1)
    if len(content) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT:,} bytes")
    return content.decode()


def read_arrays(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return those of the named arrays that an ``.npz`` has. Raises one of `DAMAGE`, or `MemoryError`.

    The header of each is read before any array is loaded, and what it announces must be there.
    """
    with open_plain(path) as file, zipfile.ZipFile(file) as archive:
        entries = {one.filename: one for one in archive.infolist()}
        wanted = {name: entries[f"{name}.npy"] for name in names if f"{name}.npy" in entries}
        total = 0
        for name, entry in wanted.items():
            with archive.open(entry) as member:
                size = _announced(member)
            total += size
            if size > entry.file_size or total > MOST_ARRAYS:
                there = f"{entry.file_size:,} bytes are there" if size > entry.file_size else f"{MOST_ARRAYS:,} at most"
                raise ValueError(f"the array {name} announces {size:,} bytes, {there}")
        found: dict[str, NDArray[Any]] = {}
        for name, entry in wanted.items():
            with archive.open(entry) as member:
                found[name] = npy.read_array(member, allow_pickle=False)
        return found


def _announced(member: IO[bytes]) -> int:
    """Return how many bytes an array has by its header."""
    version = npy.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"an array has the unknown format {version}")
    shape, _, dtype = _HEADERS[version](member)
    if dtype.hasobject:
        raise ValueError("an array holds Python objects, which are not loaded")
    count = 1
    for size in shape:
        if size < 0:
            raise ValueError(f"an array has the shape {shape}")
        count *= int(size)
    return count * dtype.itemsize
