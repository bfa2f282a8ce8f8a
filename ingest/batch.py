"""The rows of one batch: prepared outside the transaction, written inside it with few statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.model import Analysis
from crashpath.ingest.rows import crash_row, pack, pack_roles, signature_row, variant_key, variant_row
from crashpath.ingest.schema import Base, Json
from crashpath.ingest.stale import mark_stale
from crashpath.ingest.storable import storable
from crashpath.ingest.tables import Crash, CrashDaily, Exemplar, Signature, Variant

_CHUNK = 1000  # most values in one IN list


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What a batch did. ``crashes`` were in it, ``new_crashes`` were not known before; counts add up over batches.

    ``attempts`` were told by events and not counted before.
    """

    crashes: int = 0
    new_crashes: int = 0
    updated: int = 0
    removed: int = 0
    new_variants: int = 0
    new_signatures: int = 0
    examples: int = 0
    quarantined: int = 0
    redactions: int = 0
    attempts: int = 0

    def __add__(self, other: BatchCounts) -> BatchCounts:
        return BatchCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class _Cell(NamedTuple):
    """Key of a row of ``crash_daily``."""

    day: date
    release: str
    platform: str
    model: str
    path: str
    phase: str
    signature_id: str


class _Attempt(NamedTuple):
    """What else decides how a crash counts as a failed attempt."""

    attempt_id: str | None
    at: datetime
    host_key: str | None
    process_key: str | None
    unit: str | None
    outcome: str | None
    format: str
    cue_class: str | None


class _Known(NamedTuple):
    """A crash that is already stored behind the old checkpoint."""

    id: int
    touched_id: int
    cell: _Cell
    attempt: _Attempt


class Batch:
    """The rows of one batch, prepared before the transaction begins."""

    def __init__(
        self,
        analyses: Sequence[Analysis],
        *,
        night_id: int,
        source_id: int,
        mtime: datetime,
        redact: Callable[[str], str],
        host_key: Callable[[str], str],
        examples: int,
    ) -> None:
        self.night_id = night_id
        self.source_id = source_id
        self.examples = examples
        # A later analysis of the same offset replaces an earlier one.
        self.analyses = {a.record.offset: a for a in analyses}
        cleaned: dict[str, str] = {}

        def clean(value: str) -> str:
            if value not in cleaned:
                cleaned[value] = storable(redact(value))
            return cleaned[value]

        self.keys = {variant: variant_key(variant) for variant in {a.variant for a in self.analyses.values()}}
        self.rows = {
            offset: crash_row(a, mtime, clean, host_key)
            | {"source_id": source_id, "night_id": night_id, "touched_id": night_id}
            for offset, a in self.analyses.items()
        }

    def write(self, session: Session, old: int, checkpoint: int, at_end: bool) -> BatchCounts:
        """Write everything; ``old`` is the checkpoint so far."""
        new_signatures = self._signatures(session)
        new_variants = self._variants(session)
        known = self._known(session, old, None if at_end else checkpoint)
        fresh = [row for offset, row in self.rows.items() if offset not in known]
        again = [row | {"b_id": known[o].id} for o, row in self.rows.items() if o in known]
        gone = [
            k
            for offset, k in known.items()
            if offset >= old and (at_end or offset < checkpoint) and offset not in self.rows
            if k.touched_id != self.night_id
        ]
        if fresh:
            _insert(session, Crash, fresh)
        if again:
            _update(session, again)
        ids = [k.id for k in gone] + [row["b_id"] for row in again]
        for chunk in chunks(ids, _CHUNK):
            session.execute(delete(Exemplar).where(Exemplar.crash_id.in_(chunk)))
        for chunk in chunks([k.id for k in gone], _CHUNK):
            session.execute(delete(Crash).where(Crash.id.in_(chunk)))
        self._count_days(session, known, gone)
        self._mark_days(session, known, gone)
        kept = self._keep_examples(session)
        return BatchCounts(
            crashes=len(self.rows),
            new_crashes=len(fresh),
            updated=len(again),
            removed=len(gone),
            new_variants=new_variants,
            new_signatures=new_signatures,
            examples=kept,
            redactions=sum(a.redactions for a in self.analyses.values()),
        )

    def _signatures(self, session: Session) -> int:
        first: dict[str, Analysis] = {}
        times: dict[str, list[datetime]] = {}
        for offset, analysis in self.analyses.items():
            first.setdefault(analysis.signature.id, analysis)
            times.setdefault(analysis.signature.id, []).append(self.rows[offset]["at"])
        spans = {i: (min(t), max(t)) for i, t in times.items()}
        stored: dict[str, tuple[datetime, datetime]] = {}
        for chunk in chunks(list(first), _CHUNK):
            query = select(Signature.id, Signature.first_seen, Signature.last_seen).where(Signature.id.in_(chunk))
            stored |= {i: (since, until) for i, since, until in session.execute(query)}
        new = [
            signature_row(first[i]) | {"first_seen": since, "last_seen": until, "night_id": self.night_id}
            for i, (since, until) in sorted(spans.items())
            if i not in stored
        ]
        if new:
            _insert(session, Signature, new)
        wider = [
            {"b_id": i, "b_first": min(stored[i][0], since), "b_last": max(stored[i][1], until)}
            for i, (since, until) in spans.items()
            if i in stored and (since < stored[i][0] or until > stored[i][1])
        ]
        if wider:
            table = Signature.__table__
            statement = update(table).where(table.c.id == bindparam("b_id"))  # type: ignore[arg-type]  # a Table
            session.connection().execute(
                statement.values(first_seen=bindparam("b_first"), last_seen=bindparam("b_last")), wider
            )
        return len(new)

    def _variants(self, session: Session) -> int:
        by_key = {self.keys[a.variant]: a for a in self.analyses.values()}
        ids = _variant_ids(session, list(by_key))
        new = [variant_row(key, a) for key, a in sorted(by_key.items()) if key not in ids]
        if new:
            _insert(session, Variant, new)
            ids |= _variant_ids(session, [row["key"] for row in new])
        for offset, analysis in self.analyses.items():
            self.rows[offset]["variant_id"] = ids[self.keys[analysis.variant]]
        return len(new)

    def _known(self, session: Session, old: int, until: int | None) -> dict[int, _Known]:
        span = [Crash.offset >= min([old, *self.rows])]  # on to the end, or to where this batch reaches
        span += [] if until is None else [Crash.offset <= max([until, *self.rows])]
        query = (
            select(
                *(getattr(Crash, name) for name in _Attempt._fields), Crash.offset, Crash.id, Crash.touched_id,
                Crash.day, Crash.release, Crash.platform, Crash.model, Crash.path, Crash.phase, Variant.signature_id,
            )
            .join(Variant, Variant.id == Crash.variant_id)
            .where(Crash.source_id == self.source_id, *span)
        )  # fmt: skip
        known = {}
        for row in session.execute(query):
            attempt, (offset, number, touched_id, *cell) = row[: len(_Attempt._fields)], row[len(_Attempt._fields) :]
            known[offset] = _Known(number, touched_id, _Cell._make(cell), _Attempt._make(attempt))
        return known

    def _count_days(self, session: Session, known: dict[int, _Known], gone: list[_Known]) -> None:
        change: Counter[_Cell] = Counter()
        for offset in self.rows:
            change[self._cell(offset)] += 1
            if offset in known:
                change[known[offset].cell] -= 1
        for one in gone:
            change[one.cell] -= 1
        rows = [cell._asdict() | {"crashes": n} for cell, n in sorted(change.items()) if n]
        if not rows:
            return
        dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
        statement: Any = dialect.insert(CrashDaily.__table__)
        added = {"crashes": CrashDaily.crashes + statement.excluded.crashes}
        statement = statement.on_conflict_do_update(index_elements=list(_Cell._fields), set_=added)
        session.connection().execute(statement, rows)
        if any(row["crashes"] < 0 for row in rows):
            session.execute(delete(CrashDaily).where(CrashDaily.crashes <= 0))

    def _mark_days(self, session: Session, known: dict[int, _Known], gone: list[_Known]) -> None:
        """Mark the days of what counts in another way now; of what was read again as it was, nothing."""
        days, kept = set(), set()
        before = list(gone)
        for offset, row in self.rows.items():
            old = known.get(offset)
            if old is not None:
                if (old.cell, old.attempt) == (self._cell(offset), _Attempt(*(row[name] for name in _Attempt._fields))):
                    continue
                before.append(old)
            days.add(row["day"])
            kept.add(row["attempt_id"])
        days.update(one.cell.day for one in before)
        dropped = {one.attempt.attempt_id for one in before} - kept
        mark_stale(session, days, dropped=[one for one in dropped if one is not None])

    def _cell(self, offset: int) -> _Cell:
        row = self.rows[offset]
        return _Cell._make([*(row[name] for name in _Cell._fields[:-1]), self.analyses[offset].signature.id])

    def _keep_examples(self, session: Session) -> int:
        wanted: dict[tuple[str, str], list[int]] = {}
        for offset, analysis in self.analyses.items():
            wanted.setdefault((analysis.signature.id, self.rows[offset]["release"]), []).append(offset)
        have: dict[tuple[str, str], int] = {}
        for chunk in chunks(sorted({signature for signature, _ in wanted}), _CHUNK):
            query = select(Exemplar.signature_id, Exemplar.release, func.count()).where(
                Exemplar.signature_id.in_(chunk)
            )
            have |= {(s, r): n for s, r, n in session.execute(query.group_by(Exemplar.signature_id, Exemplar.release))}
        chosen = [o for key, offsets in wanted.items() for o in offsets[: max(0, self.examples - have.get(key, 0))]]
        ids: dict[int, int] = {}
        for part in chunks(chosen, _CHUNK):
            found = select(Crash.offset, Crash.id).where(Crash.source_id == self.source_id, Crash.offset.in_(part))
            ids |= {row[0]: row[1] for row in session.execute(found)}
        rows = [_example(ids[o], self.rows[o]["release"], self.analyses[o]) for o in chosen]
        if rows:
            _insert(session, Exemplar, rows)
        return len(rows)


def _example(crash_id: int, release: str, analysis: Analysis) -> Json:
    return {
        "crash_id": crash_id,
        "signature_id": analysis.signature.id,
        "release": release,
        "root_line": analysis.root.line,
        "text": pack(analysis.record.text),
        "roles": pack_roles(analysis.root.roles),
    }


def _insert(session: Session, table: type[Base], rows: list[Json]) -> None:
    """Insert rows past the unit of work, which would cost twice the time."""
    session.connection().execute(insert(table.__table__), rows)  # type: ignore[arg-type]  # a Table


def _update(session: Session, rows: list[Json]) -> None:
    """Write known crashes again; the night that found them first stays."""
    table = Crash.__table__
    columns = [name for name in rows[0] if name not in ("b_id", "night_id", "source_id", "offset")]
    statement = update(table).where(table.c.id == bindparam("b_id"))  # type: ignore[arg-type]  # a Table
    values = [{"b_id": row["b_id"]} | {f"b_{name}": row[name] for name in columns} for row in rows]
    session.connection().execute(statement.values({name: bindparam(f"b_{name}") for name in columns}), values)


def _variant_ids(session: Session, keys: list[str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for chunk in chunks(keys, _CHUNK):
        query = select(Variant.key, Variant.id).where(Variant.key.in_(chunk))
        ids |= {row[0]: row[1] for row in session.execute(query)}
    return ids
