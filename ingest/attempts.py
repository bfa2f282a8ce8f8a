"""Attempts: how often something was tried, from CSV, JSONL or Parquet into the store.

Columns: ``unit`` (deployment, load, request), ``day`` (ISO date, UTC), ``attempts``; optional ``release``,
``platform``, ``model``, ``path`` (else ``unknown``), ``failures``, ``unanswered``, ``users``, ``devices``. One row a
unit, day and cohort; loading the same file again changes nothing, other numbers replace the old ones, which are kept in
the row's history. What cannot be (more failures than attempts) or may be a slip (a day to come, no attempts at all) is
stored as it is told, and a review speaks of it. A column of another name is refused: it may be a slip, and its row
would be another cohort's.
"""

from __future__ import annotations

import csv
import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.event_attempts import FILE
from crashpath.ingest.schema import Json
from crashpath.ingest.storable import clean, fact
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import BadAttempts
from crashpath.ingest.tables_evidence import Attempts

UNITS = ("deployment", "load", "request")
_NEEDED = ("unit", "day", "attempts")
_COHORT = ("release", "platform", "model", "path")
_OPTIONAL = ("failures", "unanswered", "users", "devices")
_COUNTS = ("attempts", *_OPTIONAL)
_KNOWN = (*_NEEDED, *_COHORT, *_OPTIONAL)
_INDEX = re.compile(r"(?:__index_level_\d+__)?")  # what a data frame calls its index in CSV and Parquet
_ADVICE = f"Columns are {', '.join(_NEEDED)}, and optionally {', '.join((*_COHORT, *_OPTIONAL))}."

Key = tuple[str, date, str, str, str, str]
Counts = tuple[int, int | None, int | None, int | None, int | None]
Raw = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One row: how often ``unit`` was tried on one UTC day in one cohort; counts that were not given are ``None``."""

    unit: str
    day: date
    release: str
    platform: str
    model: str
    path: str
    attempts: int
    failures: int | None = None
    unanswered: int | None = None
    users: int | None = None
    devices: int | None = None

    @property
    def key(self) -> Key:
        """What makes two rows the same."""
        return (self.unit, self.day, self.release, self.platform, self.model, self.path)

    @property
    def counts(self) -> Counts:
        """What a correction changes."""
        return (self.attempts, self.failures, self.unanswered, self.users, self.devices)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loading did: rows in the file, of them new, and of them changed."""

    rows: int
    new: int
    changed: int


def load_attempts(store: Store, path: str, *, now: datetime) -> Loaded:
    """Read a file of attempts and store all of it or, raising ``BadAttempts``, nothing of it."""
    rows = read_attempts(path)
    with store.write() as session:
        return save_attempts(session, rows, origin=clean(Path(path).name), now=now)


def read_attempts(path: str) -> tuple[AttemptRow, ...]:
    """Read a CSV, JSONL or Parquet file. Raises ``BadAttempts`` with the number of the first bad row (from 1)."""
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS:
        raise BadAttempts(f"{path} is no file of attempts by its name.", "Use .csv, .jsonl or .parquet.")
    try:
        rows = tuple(_row(path, number, raw) for number, raw in enumerate(_READERS[suffix](path), start=1))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadAttempts(
            f"{path} cannot be read ({error}).", "Check the name, the permissions and the encoding."
        ) from error
    seen: dict[Key, int] = {}
    for number, row in enumerate(rows, start=1):
        if row.key in seen:
            raise BadAttempts(
                f"{path}, rows {seen[row.key]} and {number}: the same unit, day and cohort twice.", "Add them up first."
            )
        seen[row.key] = number
    return rows


def save_attempts(session: Session, rows: Sequence[AttemptRow], *, origin: str, now: datetime) -> Loaded:
    """Store rows by key; numbers that differ replace the old ones and put them into the row's history."""
    stored = _stored(session, {row.day for row in rows})
    new, changed = [], []
    for row in rows:
        old = stored.get(row.key)
        if old is None:
            new.append(_values(row, origin, now) | {"via": FILE, "history": []})
        elif old.counts != row.counts:
            changed.append((old.id, _values(row, origin, now)))
    if new:
        session.connection().execute(insert(Attempts.__table__), new)  # type: ignore[arg-type]  # a Table
    for number, values in changed:
        was = session.get_one(Attempts, number)
        before = {name: getattr(was, name) for name in (*_COUNTS, "origin")}
        was.history = [*was.history, before | {"recorded_at": was.recorded_at.isoformat()}]
        for name in (*_COUNTS, "origin", "recorded_at"):
            setattr(was, name, values[name])
    return Loaded(len(rows), len(new), len(changed))


class _Stored(NamedTuple):
    id: int
    counts: Counts


def _stored(session: Session, days: Collection[date]) -> dict[Key, _Stored]:
    """Return what files told of these days."""
    key = (Attempts.unit, Attempts.day, Attempts.release, Attempts.platform, Attempts.model, Attempts.path)
    counts = (Attempts.attempts, Attempts.failures, Attempts.unanswered, Attempts.users, Attempts.devices)
    found: dict[Key, _Stored] = {}
    for chunk in chunks(sorted(days)):
        query = select(*key, Attempts.id, *counts).where(Attempts.via == FILE, Attempts.day.in_(chunk))
        for row in session.execute(query):
            found[row[:6]] = _Stored(row[6], row[7:])
    return found


def _values(row: AttemptRow, origin: str, now: datetime) -> Json:
    named = zip(("unit", "day", *_COHORT, *_COUNTS), (*row.key, *row.counts), strict=True)
    return dict(named) | {"origin": origin, "recorded_at": now}


def _csv(path: str) -> Iterator[Raw]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        _columns(path, reader.fieldnames or ())
        for number, raw in enumerate(reader, start=1):
            if any(raw.get(None) or ()):  # where the reader puts what is too much
                raise BadAttempts(
                    f"{path}, row {number}: more values than columns.", "Write 12000 without a comma, or quote it."
                )
            yield raw


def _jsonl(path: str) -> Iterator[Raw]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate((one for one in file if one.strip()), start=1):
            try:
                raw = json.loads(line)
            except ValueError as error:
                raise BadAttempts(f"{path}, row {number}: not a JSON object ({error}).", _ADVICE) from error
            if not isinstance(raw, dict):
                raise BadAttempts(f"{path}, row {number}: not a JSON object.", _ADVICE)
            _no_other(f"{path}, row {number}", raw)
            yield raw


def _parquet(path: str) -> Iterator[Raw]:
    import pyarrow as arrow  # slow to import, and only this format needs it
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        raise BadAttempts(f"{path} is not a Parquet file ({error}).", _ADVICE) from error
    _columns(path, table.column_names)
    for batch in table.to_batches(max_chunksize=10_000):
        try:
            rows = batch.to_pylist()
        except (arrow.ArrowException, OverflowError, ValueError) as error:  # a zone or a year that Python has not
            raise BadAttempts(f"{path} has a time that cannot be read ({error}).", "Write day as a date.") from error
        yield from rows


_READERS: dict[str, Callable[[str], Iterator[Raw]]] = {
    ".csv": _csv, ".jsonl": _jsonl, ".ndjson": _jsonl, ".parquet": _parquet,
}  # fmt: skip


def _columns(path: str, names: Sequence[str]) -> None:
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise BadAttempts(f"{path} has no column {' and no column '.join(missing)}.", _ADVICE)
    _no_other(path, names)


def _no_other(where: str, names: Iterable[str]) -> None:
    """Raise ``BadAttempts`` for the first name that is none of a column, with the one that may be meant."""
    for name in names:
        if name in _KNOWN or _INDEX.fullmatch(name):
            continue
        near = difflib.get_close_matches(name.strip().lower(), _KNOWN, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        raise BadAttempts(f"{where}: there is no column {name}{meant}", _ADVICE)


def _row(path: str, number: int, raw: Raw) -> AttemptRow:
    def bad(what: str, advice: str = _ADVICE) -> BadAttempts:
        return BadAttempts(f"{path}, row {number}: {what}.", advice)

    unit = str(raw.get("unit") or "").strip()
    if unit not in UNITS:
        raise bad(f"unit is {unit!r}, not one of {', '.join(UNITS)}")
    attempts = _whole(raw.get("attempts"), "attempts", bad)
    if attempts is None:
        raise bad("attempts is empty")
    # Cleaned as the facts of crashes are, so that nothing personal is stored and both name a cohort alike.
    release, platform, model, where = (fact(_text(raw.get(name), name, bad), clean) for name in _COHORT)
    failures, unanswered, users, devices = (_whole(raw.get(name), name, bad) for name in _OPTIONAL)
    day = _day(raw.get("day"), bad)
    return AttemptRow(unit, day, release, platform, model, where, attempts, failures, unanswered, users, devices)


def _text(value: object, name: str, bad: Callable[[str, str], BadAttempts]) -> str:
    """Return a name as it was written. A number with a point is none: 2026.10 comes as 2026.1, another release."""
    if value is None or value != value:  # a gap comes out of a data frame as NaN
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise bad(f"{name} is {value}, not a text", f'Write {name} as text: "2026.10" as a number is 2026.1.')
    return str(value).strip()


def _whole(value: object, name: str, bad: Callable[[str], BadAttempts]) -> int | None:
    text = "" if value is None else str(value).strip()
    if text in ("", "nan"):  # a column of numbers with gaps comes out of a data frame as floats
        return None
    whole = text.removesuffix(".0")
    if not (whole.isascii() and whole.isdigit() and len(whole) < 19):
        raise bad(f"{name} is {text!r}, not a whole number from 0")
    return int(whole)


def _day(value: object, bad: Callable[[str], BadAttempts]) -> date:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value or "").strip())
    except ValueError:
        raise bad(f"day is {str(value)!r}, not a date like 2026-01-31") from None
