"""Writes a file whole: whoever reads it finds what was there before, or all of what is new."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(target: Path, content: str | bytes) -> None:
    """Write beside the target and put it in its place; nothing is left beside it on failure. Raises `OSError`."""
    part = part_of(target)
    try:
        part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def part_of(target: Path) -> Path:
    """Return a name beside the target that nobody else writes to."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
