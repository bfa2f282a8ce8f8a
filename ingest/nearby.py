"""Which open record the first line of another process belongs to: one that it adds to, or one that announced it."""

from __future__ import annotations

from collections.abc import Mapping

from crashpath.ingest.assemble import Kept
from crashpath.ingest.gather import MOST_SECONDS, Gathering
from crashpath.ingest.opening import Kind
from crashpath.ingest.told import MOST_IDLE, OTHER_SECONDS
from crashpath.ingest.writers import container_of, service_of

SILENT_LINES = 512
"""Lines of others after which a record is closed whose writer says nothing."""

_MOST_BEFORE = 10
"""Lines that may stand between an error line of one process and the trace of another that it announced."""

Open = Mapping[str | None, Gathering]


def neighbour(records: Open, key: str | None, kept: Kept, kind: Kind, count: int) -> Gathering | None:
    """Return the record that another process of the same container has open: its death is told by others.

    ``count`` is the number of the line. What only its level marks joins a record of the same service that is fresh.
    """
    place, seconds, lines = container_of, MOST_SECONDS, SILENT_LINES
    if kind is Kind.ERROR:
        place, seconds, lines = service_of, OTHER_SECONDS, MOST_IDLE
    here = place(key)
    best: Gathering | None = None
    for other, gathering in records.items():
        if place(other) != here or count - gathering.marked > lines or gathering.later(kept) > seconds:
            continue
        if best is None or gathering.touched > best.touched:
            best = gathering
    return best


def announced(records: Open, key: str | None, kept: Kept, kind: Kind, count: int) -> Gathering | None:
    """Return what other processes of the same service have just said of a failure whose trace begins now."""
    service = service_of(key)
    for other, gathering in records.items():
        if not gathering.traceless or count - gathering.marked > _MOST_BEFORE or service_of(other) != service:
            continue
        if gathering.later(kept) <= OTHER_SECONDS and not gathering.is_another(kept, kind):
            return gathering
    return None
