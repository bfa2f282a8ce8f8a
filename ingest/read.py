"""Find log sources and read them line by line in bounded memory, whatever packs them.

Offsets are bytes of the *decoded* source: decompressed, and for UTF-16 turned into UTF-8. Bytes of plain files are
their own offsets, so an append-only file is followed by a seek.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import NamedTuple

from crashpath.ingest.unpack import HEAD_BYTES, SourceError, Stream, open_stream

LINE_BYTES = 256 * 1024
"""A longer line is cut: its head and its tail stay, with a note of how many bytes went."""

_CHUNK = 256 * 1024
_LONGEST_WORD = 8 * 1024
_SIDECAR = ".meta.json"


class RawLine(NamedTuple):
    """One line without its end of line. ``end`` is where the next line starts; a cut line has ``cut`` set."""

    offset: int
    end: int
    data: bytes
    cut: bool = False


class Found(NamedTuple):
    """A path to read, or the sentence that says why it cannot be read."""

    path: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class OpenSource:
    """An open log source. ``head`` (first KiB, decoded) identifies it with ``inode``, whatever it is named today.

    ``size`` is in bytes as stored and ``mtime`` is UTC; both are ``None`` for a pipe. ``compressed``: bytes as stored
    are not those decoded, by compression or encoding.
    """

    path: str
    head: bytes
    size: int | None
    inode: int
    mtime: datetime | None
    compressed: bool
    _stream: Stream

    def __enter__(self) -> OpenSource:
        """Return the source; leaving the block closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files below."""
        self.close()

    def close(self) -> None:
        """Close the files below; a second call does nothing."""
        self._stream.close()

    def lines(self, start: int = 0) -> Iterator[RawLine]:
        """Yield the lines from byte ``start`` on. Raises SourceError where the rest cannot be read."""
        return split_lines(self._stream.chunks(start, _CHUNK), start)


def open_source(path: str) -> OpenSource:
    """Open a file, or standard input for ``-``. Raises SourceError, whose text is a sentence with advice."""
    stream = open_stream(path)
    info = stream.info
    regular = info is not None and stat.S_ISREG(info.st_mode)
    return OpenSource(
        path=path,
        head=stream.head[:HEAD_BYTES],
        size=info.st_size if info is not None and regular else None,
        inode=info.st_ino if info is not None and regular else 0,
        mtime=datetime.fromtimestamp(info.st_mtime, UTC) if info is not None and regular else None,
        compressed=stream.packed,
        _stream=stream,
    )


def _whole_words(first: bytes, last: bytes) -> tuple[bytes, bytes]:
    """Drop the words that a cut goes through: half a secret is still one, and redaction would not know it."""
    begun = first[-_LONGEST_WORD:].rfind(b" ")
    ended = last[:_LONGEST_WORD].find(b" ")
    kept = first if begun < 0 else first[: max(0, len(first) - _LONGEST_WORD) + begun]
    return kept, last if ended < 0 else last[ended + 1 :]


class _Kept:
    """The unfinished line at the end of a chunk, cut to its head and tail once it is longer than LINE_BYTES."""

    __slots__ = ("head", "size", "tail")

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = LINE_BYTES - len(self.head)
        self.head += data[:room]
        if len(data) > room:
            self.tail += data[room:]
            del self.tail[: -LINE_BYTES // 2]

    def take(self, offset: int, end: int) -> RawLine:
        if self.size <= LINE_BYTES:
            line = RawLine(offset, end, bytes(self.head))
        else:
            half = LINE_BYTES // 2
            first, last = _whole_words(bytes(self.head[:half]), bytes(self.head + self.tail)[-half:])
            note = b" ... [%d bytes cut] ... " % (self.size - len(first) - len(last))
            hole = not first.strip(b"\0")  # of a log that was cut back under its writer: what follows is the line
            line = RawLine(offset, end, last.lstrip(b"\0") if hole else first + note + last, cut=True)
        self.__init__()  # type: ignore[misc]  # starts over in place: one object a source
        return line


def split_lines(chunks: Iterator[bytes], start: int = 0) -> Iterator[RawLine]:
    """Cut chunks of at most LINE_BYTES into lines; the last one may lack its newline."""
    offset = start
    kept = _Kept()
    for chunk in chunks:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and kept.size:
            kept.add(lines.pop(0))
            end = offset + kept.size + 1
            yield kept.take(offset, end)
            offset = end
        for data in lines:
            end = offset + len(data) + 1
            yield RawLine(offset, end, data)
            offset = end
        if rest:
            kept.add(rest)
    if kept.size:
        yield kept.take(offset, offset + kept.size)


def expand(paths: Sequence[str]) -> tuple[Found, ...]:
    """Return every source that files, folders (recursive, sorted), globs and ``-`` name, each once, in order.

    What cannot be read stays in the result with its problem in a sentence, so that it is counted, never lost.
    """
    seen: set[str] = set()
    found: list[Found] = []
    for path in paths:
        for item in _expand_one(path):
            key = item.path if item.path == "-" else os.path.realpath(item.path)
            if key not in seen:
                seen.add(key)
                found.append(item)
    return tuple(found)


def _expand_one(path: str) -> Iterator[Found]:
    if path == "-":
        yield Found(path)
    elif os.path.lexists(path):
        yield from _expand_path(path)
    elif glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))
        for match in matches:
            yield from _expand_path(match)
        if not matches:
            yield Found(path, f"No file matches {path}: check the pattern, or quote it for the shell.")
    else:
        yield Found(path, f"{path} does not exist: check the path.")


def _expand_path(path: str) -> Iterator[Found]:
    if os.path.isdir(path):
        yield from _expand_folder(path)
        return
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        yield Found(path, f"{path} cannot be looked at ({error.strerror}): check the path and its permissions.")
        return
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        yield Found(path, f"{path} is not a file or a pipe: give a log file, a folder or - for standard input.")
    elif not os.access(path, os.R_OK):
        yield Found(path, f"{path} may not be read: change its permissions or run as its owner.")
    else:
        yield Found(path)


def _expand_folder(folder: str) -> Iterator[Found]:
    """Yield a folder's regular files in sorted order; pipes, sockets, hidden files and sidecars are no logs."""
    refused: list[Found] = []

    def refuse(error: OSError) -> None:
        where = str(error.filename)
        refused.append(
            Found(where, f"The folder {where} may not be listed ({error.strerror}): change its permissions.")
        )

    for here, folders, files in os.walk(folder, onerror=refuse):
        yield from refused
        refused.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = os.path.join(here, name)
            if name.startswith(".") or name.endswith(_SIDECAR) or not _regular_or_broken(path):
                continue
            yield from _expand_path(path)
    yield from refused


def _regular_or_broken(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True  # a dangling link or a file without permission is reported, not skipped


__all__ = ["Found", "LINE_BYTES", "OpenSource", "RawLine", "SourceError", "expand", "open_source", "split_lines"]
