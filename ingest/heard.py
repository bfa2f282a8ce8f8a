"""Who was heard: which cohorts log sources told of, and when a night last looked at these sources.

A cohort of which nobody was heard has no failures that anybody would know of, which is not the same as none. A source
that once told of a cohort and is still looked at is heard, however quiet it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.model import Facts
from crashpath.ingest.named import Told, told_by
from crashpath.ingest.storable import fact
from crashpath.ingest.store import Store
from crashpath.ingest.tables_counts import Heard

_SOURCES = 2_000
"""Most sources of which one transaction tells."""
_KEY = ("origin_key", "release", "platform", "model")


@dataclass(frozen=True, slots=True)
class HeardCohort:
    """A cohort that ``origins`` log sources told of; ``last_at`` is when a night last looked at one of them."""

    release: str
    platform: str
    model: str
    first_at: datetime
    last_at: datetime
    origins: int


def heard(session: Session, releases: Collection[str]) -> tuple[HeardCohort, ...]:
    """Return the cohorts of these releases that were heard, in order."""
    cohort = (Heard.release, Heard.platform, Heard.model)
    query = (
        select(*cohort, func.min(Heard.first_at), func.max(Heard.last_at), func.count())
        .where(Heard.release.in_(sorted(releases)))
        .group_by(*cohort)
    )
    return tuple(sorted((HeardCohort(*row) for row in session.execute(query)), key=_place))


@dataclass(frozen=True, slots=True)
class Voice:
    """Cohorts (release, platform, model, cleaned) that one source told of, and when it was looked at."""

    origin_key: str
    cohorts: tuple[tuple[str, str, str], ...]
    at: datetime


class Hearing:
    """What one night hears.

    What records and other lines tell goes into the transaction that stores that they were read (``voice``, ``store``):
    the next night finds a source that was read to its end unchanged, and would not hear it again. That a source was
    looked at is kept until all are read and written then, with few statements; a night that is killed before loses it,
    and the next one looks again.

    ``clean`` cleans facts as those of crashes are, so that both name a cohort alike. ``at`` is when the night began to
    read, so no later than any look.
    """

    def __init__(self, clean: Callable[[str], str], at: datetime) -> None:
        self._clean, self._at = clean, at
        self._cleaned: dict[Told, tuple[str, str, str]] = {}
        self._looked: dict[str, set[Told]] = {}

    def voice(self, origin_key: str, told: Iterable[Told]) -> Voice:
        """Return what records and other lines of a source told."""
        return Voice(origin_key, tuple(sorted({self._cohort(one) for one in told})), self._at)

    def look(self, origin_key: str, facts: Facts) -> None:
        """Say that a source was looked at, and what its place tells."""
        self._looked.setdefault(origin_key, set()).add(told_by(facts))

    def write(self, store: Store, *, fence: Callable[[Session], None] | None = None) -> None:
        """Store, in short transactions, which sources were looked at: all that they ever told of was heard now."""
        for keys in chunks(sorted(self._looked), _SOURCES):
            with store.write() as session:
                if fence is not None:
                    fence(session)
                for few in chunks(keys):
                    quiet = update(Heard).where(Heard.origin_key.in_(few), Heard.last_at < self._at)
                    session.execute(quiet.values(last_at=self._at))
                hear(session, [self.voice(key, self._looked[key]) for key in keys])

    def _cohort(self, told: Told) -> tuple[str, str, str]:
        if told not in self._cleaned:
            release, platform, model = (fact(value, self._clean) for value in told)
            self._cleaned[told] = release, platform, model
        return self._cleaned[told]


def hear(session: Session, voices: Sequence[Voice]) -> None:
    """Store what sources told of; what is known already was heard again."""
    rows = [
        dict(zip(_KEY, (voice.origin_key, *cohort), strict=True)) | {"first_at": voice.at, "last_at": voice.at}
        for voice in voices
        for cohort in voice.cohorts
    ]
    if not rows:
        return
    dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(Heard.__table__)
    new = statement.excluded
    times = {  # a night may be run for a time that is past
        "first_at": case((new.first_at < Heard.first_at, new.first_at), else_=Heard.first_at),
        "last_at": case((new.last_at > Heard.last_at, new.last_at), else_=Heard.last_at),
    }
    session.connection().execute(statement.on_conflict_do_update(index_elements=[*_KEY], set_=times), rows)


def _place(one: HeardCohort) -> tuple[str, str, str]:
    return one.release, one.platform, one.model
