"""Stretches of a log that are no text, for the quarantine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashpath.ingest.read import RawLine

_PREVIEW_BYTES = 200


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Lines that are no text: where, why, their hash, and their first bytes for a preview."""

    offset: int
    end: int
    reason: str
    sha256: str
    preview: bytes


class NotText:
    """Lines in a row that are no text."""

    def __init__(self, line: RawLine) -> None:
        """Start with the first of them."""
        self.offset = line.offset
        self.end = line.end
        self.preview = line.data[:_PREVIEW_BYTES]
        self.hash = hashlib.sha256(line.data)

    def add(self, line: RawLine) -> None:
        """Take the next of them."""
        self.end = line.end
        self.hash.update(b"\n" + line.data)

    def item(self) -> Undecodable:
        """Return the whole stretch as one item."""
        return Undecodable(self.offset, self.end, "not text", self.hash.hexdigest(), self.preview)
