"""The bytes of a log source, whatever packs them: plain, gzip, zstd, xz, zip, UTF-16, standard input, a pipe."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
import select
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

import zstandard

HEAD_BYTES = 1024
PIPE_WAIT_S = 10.0
"""How long a named pipe may stay without a writer before it counts as empty."""

_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"), (b"PK\x03\x04", "zip"))
_TEXT_CONTROL = frozenset(b"\t\n\r\f\b\x1b\x07")
_BINARY_SHARE = 0.3
_DAMAGE = (
    OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile, RuntimeError,
    ValueError, struct.error, MemoryError,  # names, sizes and offsets inside a damaged archive
)  # fmt: skip


class SourceError(Exception):
    """A source cannot be read; the text is one sentence with advice.

    SourceError
    ├── MissingSourceError   no such file
    ├── DeniedSourceError    no permission, or the system refuses
    ├── BinarySourceError    not a text file
    └── DamagedArchiveError  a packed file ends early or is corrupt; lines before the damage were given
    """


class MissingSourceError(SourceError):
    """No such file."""


class DeniedSourceError(SourceError):
    """The system refuses to open or read it."""


class BinarySourceError(SourceError):
    """It holds no text."""


class DamagedArchiveError(SourceError):
    """It is packed and cannot be unpacked to its end."""


class Stream:
    """Decoded bytes of one source, readable once from any offset (a plain file is sought, all else skipped)."""

    def __init__(self, path: str, raw: BinaryIO, info: os.stat_result | None) -> None:
        """Sniff the packing and the text encoding. Raises SourceError."""
        self.path = path
        self.info = info
        self._raw = raw
        self._packing = ""
        try:
            self._packing = _packing(path, _peek(raw))
            self._reader = _unpacked(raw, self._packing)
            head = _read_up_to(self._reader, HEAD_BYTES)
        except _DAMAGE as error:
            raise self._damage(error) from error
        self._encoding = _utf16(head)
        if self._encoding is None and _is_binary(head.lstrip(b"\0") or self._last(head)):
            raise BinarySourceError(f"{path} is not a text log: give log files only, or leave it out.")
        self._seekable = self._packing == "" and self._encoding is None and raw.seekable()
        self._first = head
        self.head = head.decode(self._encoding, "replace").encode() if self._encoding else head

    @property
    def packed(self) -> bool:
        """Whether offsets are not those on disk: the bytes had to be decompressed, or turned from UTF-16 to UTF-8."""
        return bool(self._packing or self._encoding)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def chunks(self, start: int, size: int) -> Iterator[bytes]:
        """Yield decoded bytes from ``start`` on, in chunks of at most ``size``. Raises SourceError."""
        if self._seekable:
            self._raw.seek(start)
            source, skip = self._packed_chunks(b"", size), 0
        else:
            source, skip = self._packed_chunks(self._first, size), start
            if self._encoding:
                source = _transcoded(source, self._encoding, size)
        for chunk in source:
            if skip >= len(chunk):
                skip -= len(chunk)
                continue
            yield chunk[skip:] if skip else chunk
            skip = 0

    def _last(self, head: bytes) -> bytes:
        """Return the last bytes of a file that begins with a hole: a log cut back under a writer that went on."""
        if self._packing or not self._raw.seekable():
            return head
        try:
            self._raw.seek(-min(HEAD_BYTES, self._raw.seek(0, os.SEEK_END)), os.SEEK_END)
            return self._raw.read(HEAD_BYTES).lstrip(b"\0") or head
        except OSError as error:
            raise self._damage(error) from error

    def _packed_chunks(self, first: bytes, size: int) -> Iterator[bytes]:
        if first:
            yield first
        while True:
            try:
                chunk = self._reader.read(size)
            except _DAMAGE as error:
                raise self._damage(error) from error
            if not chunk:
                return
            yield chunk

    def _damage(self, error: Exception) -> SourceError:
        if not self._packing:
            return DeniedSourceError(f"{self.path} cannot be read ({error}): check the disk and its permissions.")
        why = str(error) or "it ends early"
        return DamagedArchiveError(
            f"{self.path} is a damaged {self._packing} file ({why}): copy it again from its source."
        )


def open_stream(path: str) -> Stream:
    """Open a path or ``-``. Raises SourceError."""
    if path == "-":
        return Stream("standard input", cast("BinaryIO", sys.stdin.buffer), None)
    try:
        raw = _open_waiting(path)
    except FileNotFoundError as error:
        raise MissingSourceError(f"{path} does not exist: check the path.") from error
    except IsADirectoryError as error:
        raise DeniedSourceError(f"{path} is a folder: its files are read one by one.") from error
    except PermissionError as error:
        raise DeniedSourceError(f"{path} may not be read: change its permissions.") from error
    except OSError as error:
        raise DeniedSourceError(f"{path} cannot be opened ({error.strerror}): check the path.") from error
    try:
        return Stream(path, raw, os.fstat(raw.fileno()))
    except SourceError:
        raw.close()
        raise


def _open_waiting(path: str) -> BinaryIO:
    """Open a file; a pipe without a writer is waited for, at most PIPE_WAIT_S, instead of blocking for ever."""
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        return open(path, "rb")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    poller.poll(PIPE_WAIT_S * 1000)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")


def _peek(raw: BinaryIO) -> bytes:
    if raw.seekable():
        magic = raw.read(6)
        raw.seek(0)
        return magic
    return cast("io.BufferedReader", raw).peek(6)[:6]


def _packing(path: str, magic: bytes) -> str:
    for start, name in _MAGIC:
        if magic.startswith(start):
            return name
    ends = {".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".zip": "zip"}
    # A file that is named like an archive but holds plain text is read as text: loggers do rename without packing.
    return ends.get(os.path.splitext(path)[1], "") if magic and _is_binary(magic) else ""


def _unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    if packing == "gzip":
        return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
    if packing == "zstd":
        return cast("BinaryIO", _ZstdFrames(raw))
    if packing == "xz":
        return cast("BinaryIO", lzma.LZMAFile(raw))
    if packing == "zip":
        return cast("BinaryIO", _ZipMembers(raw))
    return raw


class _ZstdFrames:
    """The frames of a zstd file one after the other. Unlike the library's reader it tells where a frame ends early."""

    _FEED = 512  # a block of 4 bytes can unpack to 128 KiB: small bites keep memory bounded

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._packed = b""
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._ready = b""

    def read(self, size: int) -> bytes:
        while not self._ready:
            bite = self._packed or self._raw.read(self._FEED)
            self._packed = b""
            if not bite:
                if self._begun:
                    raise EOFError("it ends early")
                return b""
            self._begun = True
            self._ready = self._frame.decompress(bite)
            if self._frame.eof:
                self._packed = self._frame.unused_data
                self._frame = zstandard.ZstdDecompressor().decompressobj()
                self._begun = False
        chunk, self._ready = self._ready[:size], self._ready[size:]
        return chunk


class _ZipMembers:
    """The members of a zip file one after the other, each ended by a newline, so that no line spans two."""

    def __init__(self, raw: BinaryIO) -> None:
        if not raw.seekable():
            raise zipfile.BadZipFile("a zip file cannot be read from a pipe")
        archive = zipfile.ZipFile(raw)
        self._parts = self._read_all(archive)

    @staticmethod
    def _read_all(archive: zipfile.ZipFile) -> Iterator[bytes]:
        for member in sorted(archive.infolist(), key=lambda info: info.filename):
            if member.is_dir():
                continue
            last = b"\n"
            with archive.open(member) as file:
                while chunk := file.read(HEAD_BYTES if last == b"\n" else 65536):
                    last = chunk[-1:]
                    yield chunk
            if last != b"\n":
                yield b"\n"

    def read(self, _size: int) -> bytes:
        return next(self._parts, b"")


def _read_up_to(reader: BinaryIO, size: int) -> bytes:
    head = b""
    while len(head) < size:
        chunk = reader.read(size - len(head))
        if not chunk:
            break
        head += chunk
    return head


def _utf16(head: bytes) -> str | None:
    """Name the UTF-16 flavour: by its mark, or by NULs in every other byte, as Windows tools write without one."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    pairs = len(head) // 2
    if pairs >= 8:
        high, low = head[1::2].count(0), head[0::2].count(0)
        if high > 0.7 * pairs and low == 0:
            return "utf-16-le"
        if low > 0.7 * pairs and high == 0:
            return "utf-16-be"
    return None


def _transcoded(chunks: Iterator[bytes], encoding: str, size: int) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        data = decoder.decode(chunk).encode()
        for at in range(0, len(data), size):
            yield data[at : at + size]
    yield decoder.decode(b"", final=True).encode()


def _is_binary(head: bytes) -> bool:
    """Tell text from the rest: NULs, control characters and bytes that are no UTF-8 make up 30 % or more."""
    if head.startswith((b"\x7fELF", b"\x89PNG", b"\xff\xd8\xff", b"%PDF-", b"\x80\x02", b"\xcf\xfa\xed\xfe")):
        return True
    text = head.decode("utf-8", "replace")
    strange = sum(1 for c in text if c == "\ufffd" or (c < " " and ord(c) not in _TEXT_CONTROL))
    return bool(text) and strange >= _BINARY_SHARE * len(text)
