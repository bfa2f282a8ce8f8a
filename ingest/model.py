"""The values that ingest hands from stage to stage.

Every value is frozen: a stage returns new ones and edits none. Line numbers count from 0 within
``Record.text``, so a role, a frame or a root line can always be shown where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Phase(StrEnum):
    """What a deployment was doing when it failed."""

    PREPARE = "prepare"
    LOAD = "load"
    WARMUP = "warmup"
    INFER = "infer"
    SHUTDOWN = "shutdown"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """What a line of a record tells: see the words in docs/words.md."""

    ROOT = "root"
    CASCADE = "cascade"
    CONFIRMATION = "confirmation"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Facts:
    """Where a crash belongs. ``None`` means that nothing said so; it is stored and shown as ``unknown``."""

    release: str | None = None
    platform: str | None = None
    host: str | None = None
    model: str | None = None
    path: str | None = None
    phase: str | None = None
    attempt_id: str | None = None

    def over(self, lower: Facts) -> Facts:
        """Return these facts with their gaps filled from a source of lower rank."""
        if lower == _NO_FACTS:
            return self
        return Facts(*(getattr(self, f.name) or getattr(lower, f.name) for f in fields(self)))


_NO_FACTS = Facts()


class Mark(NamedTuple):
    """What stood in front of one line before it was stripped: level (``ERROR`` …), writer, UTC time."""

    level: str | None = None
    writer: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One raw piece of log that tells of one failure.

    ``text`` is clean: decoded, without colours and prefixes, the lines of one writer contiguous.
    ``marks`` has one entry a line of ``text``, or none at all where no line had a prefix.
    ``offset`` and ``end`` are bytes of the decompressed source.
    """

    source: str
    offset: int
    end: int
    text: str
    marks: tuple[Mark, ...] = ()
    facts: Facts = _NO_FACTS
    at: datetime | None = None
    truncated: bool = False


class Frame(NamedTuple):
    """One stack frame. ``module`` is a dotted or library name, without build paths and line numbers."""

    function: str
    module: str
    in_project: bool


@dataclass(frozen=True, slots=True)
class Thrown:
    """One exception of a chain: its type, message, frames (innermost last) and the line it stands on."""

    type: str
    message: str
    line: int
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser read from a record. ``chain`` has the first cause first, whatever order the format prints.

    Only the runtime's events say what was tried (``unit``) and whether it was answered all the same (``outcome``:
    ``contained`` or ``unanswered``).
    """

    format: str
    chain: tuple[Thrown, ...] = ()
    signal: str | None = None
    exit_code: int | None = None
    facts: Facts = _NO_FACTS
    unit: str | None = None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """The line that states the cause, why it was chosen, and the role of each line of the record.

    ``failure_class`` is what the rule that chose the line knows about the class, ``None`` where it knows nothing.
    """

    type: str
    message: str
    line: int
    rule: str
    failure_class: str | None
    roles: tuple[Role, ...]
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """The redacted input of a signature: a new signature algorithm re-keys these, never raw text."""

    chain: tuple[str, ...]
    root_type: str
    root_message: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A node of the tree that explains a signature: what went in, under which name, with what below it."""

    name: str
    value: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """Key of a variant (``sig2-`` and 16 hex digits), the text that is embedded, and the tree of its parts."""

    id: str
    text: str
    tree: Part


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that ingest knows of one record."""

    record: Record
    parsed: Parsed
    root: Root
    variant: Variant
    signature: Signature
    redactions: int = 0
