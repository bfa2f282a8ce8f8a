"""What one format parser hands to the dispatcher, and the names of the formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from crashpath.ingest.model import Thrown


class Format(StrEnum):
    """The formats a record can be in; of several in one record, ``Parsed.format`` is the first in ``PARSERS``."""

    PYTHON = "python_traceback"
    TORCHSCRIPT = "torchscript"
    FAULTHANDLER = "faulthandler"
    JAVA = "java"
    NODE = "node"
    DOTNET = "dotnet"
    GO = "go"
    RUST = "rust"
    SANITIZER = "sanitizer"
    GDB = "gdb"
    ORT = "ort"
    NATIVE = "native"
    KERNEL_OOM = "kernel_oom"
    EVENT = "runtime_event"
    PLAIN = "plain"


class Piece(NamedTuple):
    """A stretch of the text (character offsets) that one parser understood, its chain first cause first."""

    format: Format
    start: int
    end: int
    chain: tuple[Thrown, ...] = ()
    signal: str | None = None
    exit_code: int | None = None


class Parser(NamedTuple):
    """One format: RE2 patterns of which a text in it has at least one, and the function that reads it."""

    read: Callable[[str], Sequence[Piece]]
    cues: tuple[str, ...]


#: How many exceptions one parser reads of one record; more of them are a retry storm's repeats.
MAX_PIECES = 64


def line_at(text: str, position: int) -> int:
    """Return the line, from 0, on which a character offset stands."""
    return text.count("\n", 0, position)
