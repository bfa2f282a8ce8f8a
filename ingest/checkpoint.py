"""Where reading can start again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A splitter started afresh at this offset goes on exactly as this one."""

    offset: int
