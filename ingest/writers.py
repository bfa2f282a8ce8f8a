"""Who wrote a line: which of the parts of a writer name a container or a service, and which only a process of it."""

from __future__ import annotations

import re
from functools import lru_cache

_PROCESS = re.compile(
    r"\d+$|\d+,\d+$|(?:rank|worker|local_rank|default)[-: ]*\d+$|W-\d+-|(?:[^ ]+[ ,]+)*(?:pid|ip|rank)=|kernel$"
)
_SERVICE = re.compile(r"([\w./@()-]+)(?:\[[\w.-]+\]| (?:\d+|-))$")


@lru_cache(maxsize=1024)
def container_of(writer: str | None) -> str | None:
    """Return the container or pod that a line came from, ``None`` for what is all one stream."""
    if writer is None:
        return None
    outer = writer.partition(" > ")[0]
    return None if _PROCESS.match(outer) or _SERVICE.match(outer) else outer


@lru_cache(maxsize=1024)
def service_of(writer: str | None) -> str | None:
    """Return the container, or the program that a system log names; its processes are one service."""
    if writer is None:
        return None
    outer = writer.partition(" > ")[0]
    if (named := _SERVICE.match(outer)) is not None:
        return named[1]
    return None if _PROCESS.match(outer) else outer
