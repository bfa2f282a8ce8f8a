"""Attempts summed by the database, with what ``event_attempts`` says of the two origins: quick over very many rows.

A row of events of whose release files tell on that day, too, is looked up among theirs, part by part. One that does not
tell all parts may be in any of many: these few are read one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import Any, Literal

from sqlalchemy import BigInteger, ColumnElement, and_, case, cast, exists, false, func, or_, select, true
from sqlalchemy.orm import Session, aliased

from crashpath.ingest.event_attempts import COHORT, EVENTS, FILE, AttemptCount, Totals
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables_evidence import Attempts

By = Literal["unit", "day", "release", "platform", "model", "path"]
_COUNTS = ("attempts", "failures", "unanswered", "rerouted")
_KEY = ("unit", "day", *COHORT)
_Key = tuple[Any, ...]
_Sums = list[Any]
"""The last day, and the counts."""


def summed_attempts(
    session: Session,
    by: Sequence[By],
    *,
    releases: Collection[str] | None = None,
    since: date | None = None,
    until: date | None = None,
) -> tuple[AttemptCount, ...]:
    """Return the attempts to be counted, summed over all that ``by`` does not name, in order of ``by``.

    What was summed over is ``unknown``, or the last day of the sum. Rows that do not tell what was not answered are in
    a sum of their own. Users and devices are left out: they are no sums. Days are inclusive.
    """
    where = _asked(releases, since, until)
    columns = [getattr(Attempts, name) for name in by]
    # Grouped in the order of an index: of all releases by origin first, the two kinds of sums side by side.
    sums = [one for silent in (False, True) for one in _sums(silent)]
    order = columns if releases is not None else [Attempts.via, *columns]
    query = select(*columns, *sums).where(*where, _counts()).group_by(*order)
    found: dict[_Key, _Sums] = {}
    wide, many = len(by), 1 + len(_COUNTS)
    for row in session.connection().execute(query).all():
        for silent in (False, True):
            start = wide + many * silent
            if row[start] is not None:
                _add(found, (*row[:wide], silent), row[start : start + many])
    for row in _vague_ones(session, where):
        key = (*(getattr(row, name) for name in by), row.unanswered is None)
        _add(found, key, (row.day, *(getattr(row, name) for name in _COUNTS)))
    return tuple(_count(by, key, found[key]) for key in sorted(found))


def _asked(releases: Collection[str] | None, since: date | None, until: date | None) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if releases is not None:
        where.append(Attempts.release.in_(sorted(releases)))
    if since is not None:
        where.append(Attempts.day >= since)
    if until is not None:
        where.append(Attempts.day <= until)
    return where


def _sums(silent: bool) -> Iterator[ColumnElement[Any]]:
    own = Attempts.unanswered.is_(None) if silent else Attempts.unanswered.is_not(None)
    yield func.max(Attempts.day).filter(own)
    for name in _COUNTS:
        yield cast(func.sum(getattr(Attempts, name)).filter(own), BigInteger)


def _counts() -> ColumnElement[bool]:
    """Whether a row counts. The cheaper questions come first; one that does not tell all parts is asked apart."""
    return case(
        (Attempts.via == FILE, true()),
        (Attempts.release == UNKNOWN, ~_told()),
        (~_told("release"), true()),
        (_vague(), false()),
        else_=~_told(*COHORT),
    )


def _vague() -> ColumnElement[bool]:
    return or_(*(getattr(Attempts, name) == UNKNOWN for name in COHORT))


def _told(*parts: str) -> ColumnElement[bool]:
    """Whether a file tells of the same unit and day, and of the same in these parts or of what may be the same."""
    other = aliased(Attempts)
    same = (getattr(other, name).in_((getattr(Attempts, name), UNKNOWN)) for name in parts)
    return exists().where(other.via == FILE, other.unit == Attempts.unit, other.day == Attempts.day, *same)


def _vague_ones(session: Session, where: Sequence[ColumnElement[bool]]) -> Iterator[Any]:
    """Yield the rows that ``_counts`` leaves open and that no row of a file may include."""
    columns = (getattr(Attempts, name) for name in (*_KEY, *_COUNTS))
    told = case((Attempts.release == UNKNOWN, _told()), else_=_told("release"))
    rows = session.connection().execute(select(*columns).where(*where, and_(Attempts.via == EVENTS, _vague(), told)))
    open_ones = rows.all()
    if not open_ones:
        return
    cohorts: dict[tuple[str, date], list[tuple[str, ...]]] = defaultdict(list)
    first, last = min(row.day for row in open_ones), max(row.day for row in open_ones)
    files = select(*(getattr(Attempts, name) for name in _KEY)).where(
        Attempts.via == FILE, Attempts.day.between(first, last)
    )
    for unit, day, *cohort in session.connection().execute(files):
        cohorts[unit, day].append(tuple(cohort))
    totals = {key: Totals(told) for key, told in cohorts.items()}
    for row in open_ones:
        if not totals[row.unit, row.day].cover(tuple(row[2:6])):
            yield row


def _add(found: dict[_Key, _Sums], key: _Key, more: Sequence[Any]) -> None:
    known = found.get(key)
    if known is None:
        found[key] = list(more)
        return
    known[0] = max(known[0], more[0])
    for place, number in enumerate(more[1:], 1):
        if number is not None:
            known[place] = (known[place] or 0) + number


def _count(by: Sequence[By], key: _Key, counted: _Sums) -> AttemptCount:
    parts: dict[str, Any] = dict.fromkeys(("unit", *COHORT), UNKNOWN) | {"day": counted[0]}
    parts |= dict(zip(by, key, strict=False)) | dict(zip(_COUNTS, counted[1:], strict=True))
    return AttemptCount(**parts, users=None, devices=None, via="")
