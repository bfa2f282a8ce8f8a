"""Writes a file whole: whoever reads it finds what was there before, or all of what is new."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

_SQLITE = b"SQLite format 3\0"


def write_whole(target: Path, content: str | bytes) -> None:
    """Write beside the target and put it in its place; nothing is left beside it on failure. Raises `OSError`.

    A link is followed, and what is no regular file (a pipe, a device) is written to as it is. A database is never
    replaced: whoever names one has mistaken it for the report.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = target.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb", buffering=0) as opened:
            opened.write(data)
        return
    if _is_database(target):
        raise OSError(errno.EEXIST, "there is a database", str(target))
    part = part_of(target)
    try:
        part.write_bytes(data)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def part_of(target: Path) -> Path:
    """Return a name beside the target that nobody else writes to."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")


def _is_database(target: Path) -> bool:
    try:
        with target.open("rb") as opened:
            return opened.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
