"""What rotation makes of a log file's name, and what is beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

#: What rotation puts behind a name, or between stem and suffix: .1, -20260131, .2026-01-31_12, compression.
_COMPRESSED = re.compile(r"\.(gz|zst|xz|zip|bz2)$", re.IGNORECASE)
_ROTATION = re.compile(
    r"(\.\d{1,3}|[._-](\d{8}([-_T]?\d{2,6})?|\d{4}-\d\d-\d\d([-_T]\d{2}([-:]?\d{2}){0,2})?|old|prev|bak))$"
)


def stem_of(path: str) -> str:
    """Return a file's name without what rotation and compression add: ``app-20260131.log.2.gz`` → ``app.log``."""
    name = _COMPRESSED.sub("", os.path.basename(path))
    while (shorter := _ROTATION.sub("", name)) != name and shorter:
        name = shorter
    stem, suffix = os.path.splitext(name)
    while suffix and (shorter := _ROTATION.sub("", stem)) != stem and shorter:
        stem = shorter
    return stem + suffix


def siblings(path: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is in the folder of a path; nothing where it cannot be listed."""
    try:
        with os.scandir(Path(path).parent) as entries:
            yield from entries
    except OSError:
        return
