"""The end of what was read of a source: whether a file that begins like one read before still holds its content.

Many programs print the same KiB when they start, so a head alone does not tell a restarted log from one that has grown.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crashpath.ingest.read import OpenSource, RawLine
from crashpath.ingest.unpack import SourceError, open_stream

#: Most bytes of a tail.
TAIL = 1024
#: Lines from which a tail is put together; a tail of shorter lines has fewer bytes.
_LINES = 128
_CHUNK = 256 * 1024
#: What stands for a character of which only a part was there yet.
_HALF = "\ufffd".encode()


class Place(NamedTuple):
    """The ``length`` bytes of a decoded source that end at byte ``end``."""

    end: int
    length: int


class Tail(NamedTuple):
    """A place and the hash of its bytes."""

    end: int
    length: int
    hash: str


class Follower:
    """Reads a source's lines from an offset on and knows the tail of what it gave so far."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._last: deque[RawLine] = deque(maxlen=_LINES)

    def lines(self, source: OpenSource) -> Iterator[RawLine]:
        """Yield the lines from the offset on. Raises SourceError where the rest cannot be read."""
        offset, last = self._offset, self._last
        # What stands just before is read as well, so that the tail is a long one however little is new.
        for raw in source.lines(max(0, offset - TAIL)):
            if len(raw.data) > TAIL:
                last.clear()
            last.append(raw)
            if raw.offset >= offset:
                yield raw
            elif raw.end > offset:
                yield RawLine(offset, raw.end, raw.data[offset - raw.offset :], raw.cut)

    def tail(self) -> Tail | None:
        """Return the tail of the lines given so far; ``None`` where their exact bytes are not known."""
        data = b""
        for raw in reversed(self._last):
            if raw.cut or len(data) >= TAIL:
                break
            data = raw.data + b"\n" * (raw.end - raw.offset - len(raw.data)) + data
        data = data[-TAIL:]
        if not data or data.endswith(_HALF):
            return None
        return Tail(self._last[-1].end, len(data), tail_hash(data))


def tail_hash(data: bytes) -> str:
    """Hash the bytes of a tail."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def tails_of(path: str, places: Iterable[Place], *, decoded: bool) -> frozenset[Tail] | None:
    """Hash places of a file as it is now, leaving out those past its end; ``None`` if it cannot be read that far.

    ``decoded``: offsets are not those on disk (compressed, UTF-16), so the file is read from its beginning.
    """
    try:
        return frozenset(_decoded(path, places) if decoded else _plain(path, places))
    except (OSError, SourceError):
        return None


def _plain(path: str, places: Iterable[Place]) -> Iterator[Tail]:
    with open(path, "rb") as file:
        for end, length in places:
            file.seek(end - length)
            data = file.read(length)
            if len(data) == length:
                yield Tail(end, length, tail_hash(data))


def _decoded(path: str, places: Iterable[Place]) -> Iterator[Tail]:
    todo = sorted(places, reverse=True)
    stream = open_stream(path)
    try:
        position, kept = 0, b""
        for chunk in stream.chunks(0, _CHUNK):
            kept = kept[-TAIL:] + chunk
            position += len(chunk)
            while todo and todo[-1].end <= position:
                end, length = todo.pop()
                stop = len(kept) - (position - end)
                yield Tail(end, length, tail_hash(kept[stop - length : stop]))
            if not todo:
                return
    finally:
        stream.close()
