"""Write one batch: crashes, attempts, quarantine, and how far the source was read, in one transaction.

Killed before the commit, nothing of a batch is there and the next night reads it again from the old checkpoint;
killed after it, all of it is. What lies behind the last checkpoint is written too (a record that was open at the end
of the file), and written again in place when the source has grown: a crash is known by source and offset.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.batch import Batch, BatchCounts
from crashpath.ingest.event_attempts import add_attempts
from crashpath.ingest.heard import Voice, hear
from crashpath.ingest.ledger import SourceState
from crashpath.ingest.model import Analysis
from crashpath.ingest.runtime_events import AttemptsEvent
from crashpath.ingest.schema import Json
from crashpath.ingest.storable import storable
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Crash, Quarantine, Source
from crashpath.ingest.tail import Tail

#: Redacted texts kept a signature and release.
EXAMPLES = 20
#: Seconds between two batches in which a person's write finds the store free.
_GAP = 0.005


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Bytes that gave no record: where, why, their hash, and a preview that is already redacted."""

    offset: int
    end: int
    reason: str
    sha256: str
    preview: str


@dataclass(frozen=True, slots=True)
class EndOfSource:
    """The source was read to its end, and was this big (bytes on disk) and this old then."""

    size: int
    mtime: datetime


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the batches of one night. ``redact`` cleans the facts; hosts are stored as the store's keyed hashes.

    ``fence`` is asked inside each transaction and raises when this night may no longer write (``Lease.fence``).
    """

    store: Store
    night_id: int
    redact: Callable[[str], str]
    fence: Callable[[Session], None] | None = None
    examples: int = EXAMPLES

    def write_batch(
        self,
        source: SourceState,
        analyses: Sequence[Analysis],
        quarantined: Sequence[Quarantined] = (),
        attempts: Sequence[AttemptsEvent] = (),
        voice: Voice | None = None,
        *,
        checkpoint: int,
        seen: int,
        at_end: EndOfSource | None = None,
        tail: Tail | None = None,
        now: datetime,
    ) -> BatchCounts:
        """Store one batch of a source, and that all before ``checkpoint`` is stored and all before ``seen`` was read.

        ``voice`` is what they told of cohorts. The source's time dates records without a stamp. Offsets are bytes of
        the decompressed source. Writing the same batch again changes nothing. With ``at_end``, what an earlier night
        wrote behind the checkpoint and this one did not find again is removed, crashes and quarantine alike. By its
        ``tail`` the next night knows the content again.
        """
        batch = Batch(
            analyses,
            night_id=self.night_id,
            source_id=source.id,
            mtime=source.mtime,
            redact=self.redact,
            host_key=self.store.key,
            examples=self.examples,
        )
        with self.store.write() as session:
            if self.fence is not None:
                self.fence(session)
            row = session.get_one(Source, source.id)
            old = row.offset
            if row.inode is None:
                _keep_times(session, source.id, batch.rows, old)
            counts = batch.write(session, old, checkpoint, at_end is not None)
            again_to = checkpoint if at_end is None else math.inf
            held = _hold(session, self.night_id, source.id, quarantined, now, old, again_to)
            tried = add_attempts(session, attempts, night_id=self.night_id, redact=self.redact, now=now)
            if voice is not None:
                hear(session, [voice])
            row.offset = max(old, checkpoint)
            row.seen = max(row.seen, seen, checkpoint)
            row.last_night_id = self.night_id
            if tail is not None and tail.end >= (row.tail_end or 0):
                row.tail_end, row.tail_len, row.tail_hash = tail
            if at_end is not None:
                row.size, row.mtime, row.problem = at_end.size, at_end.mtime, None
        time.sleep(_GAP)
        return counts + BatchCounts(quarantined=held, attempts=tried)


def _hold(
    session: Session,
    night_id: int,
    source_id: int,
    quarantined: Sequence[Quarantined],
    now: datetime,
    old: int,
    read_again_to: float,
) -> int:
    """Put into quarantine what is not there yet, renew what is, and remove what is not found again.

    What lies from ``old`` to before ``read_again_to`` was read again. Returns how many are new.
    """
    found = {q.offset: q for q in quarantined}
    known = set()
    since = min([old, *found])
    for row in session.scalars(select(Quarantine).where(Quarantine.source_id == source_id, Quarantine.offset >= since)):
        again = found.get(row.offset)
        if again is not None:
            known.add(row.offset)
            row.end, row.sha256, row.touched_id = again.end, again.sha256, night_id
            row.reason, row.preview = storable(again.reason), storable(again.preview)
        elif old <= row.offset < read_again_to and row.touched_id != night_id:
            session.delete(row)
    new = [held for offset, held in found.items() if offset not in known]
    for held in new:
        session.add(
            Quarantine(
                source_id=source_id,
                offset=held.offset,
                end=held.end,
                night_id=night_id,
                touched_id=night_id,
                at=now,
                reason=storable(held.reason),
                sha256=held.sha256,
                preview=storable(held.preview),
            )
        )
    return len(new)


def _keep_times(session: Session, source_id: int, rows: dict[int, Json], old: int) -> None:
    """Leave crashes without a stamp at the time that they were given first: a stream has no time of its own."""
    undated = {offset for offset, row in rows.items() if row["at_inferred"]}
    if not undated:
        return
    query = select(Crash.offset, Crash.at, Crash.day).where(
        Crash.source_id == source_id, Crash.offset >= min([old, *undated]), Crash.at_inferred
    )
    for offset, at, day in session.execute(query):
        if offset in undated:
            rows[offset] |= {"at": at, "day": day}
