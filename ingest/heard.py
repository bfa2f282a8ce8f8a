"""Who was heard: which cohorts log sources told of, and when a night last looked at these sources.

A cohort of which nobody was heard has no failures that anybody would know of, which is not the same as none. A source
that once told of a cohort and is still looked at is heard, however quiet it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.model import Facts
from crashpath.ingest.rows import fact
from crashpath.ingest.store import Store
from crashpath.ingest.tables_counts import Heard

_ROWS = 2_000
"""Most rows in one transaction."""

Told = tuple[str | None, str | None, str | None]
"""Release, platform and model as a source tells them; ``None`` where it does not."""


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


def told_by(facts: Facts, lower: Facts | None = None) -> Told:
    """Return the cohort that facts name, gaps filled from facts of lower rank."""
    if lower is None:
        return facts.release, facts.platform, facts.model
    return facts.release or lower.release, facts.platform or lower.platform, facts.model or lower.model


class Hearing:
    """What one night heard, kept until its sources are read and then written with few statements.

    ``clean`` cleans facts as those of crashes are, so that both name a cohort alike. What a night that is killed heard
    is lost with it; the next one looks at the same sources.
    """

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._cleaned: dict[Told, tuple[str, ...]] = {}
        self._origins: dict[str, set[tuple[str, ...]]] = {}

    def look(self, origin_key: str, told: Iterable[Told]) -> None:
        """Say that a source was looked at, and which cohorts it told of."""
        cohorts = self._origins.setdefault(origin_key, set())
        cohorts.update(self._cohort(one) for one in told)

    def write(self, store: Store, *, at: datetime, fence: Callable[[Session], None] | None = None) -> int:
        """Store it in short transactions; return how many rows were told. ``at`` is no later than any of the looks."""
        rows = [
            {"origin_key": key, "release": cohort[0], "platform": cohort[1], "model": cohort[2]}
            | {"first_at": at, "last_at": at}
            for key, cohorts in sorted(self._origins.items())
            for cohort in sorted(cohorts)
        ]
        for keys in chunks(sorted(self._origins), _ROWS):
            with store.write() as session:
                if fence is not None:
                    fence(session)
                for few in chunks(keys):
                    session.execute(update(Heard).where(Heard.origin_key.in_(few)).values(last_at=at))
        for some in chunks(rows, _ROWS):
            with store.write() as session:
                if fence is not None:
                    fence(session)
                session.connection().execute(_upsert(session), some)
        return len(rows)

    def _cohort(self, told: Told) -> tuple[str, ...]:
        if told not in self._cleaned:
            self._cleaned[told] = tuple(fact(value, self._clean) for value in told)
        return self._cleaned[told]


def _upsert(session: Session) -> Any:
    dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(Heard.__table__)
    key = ["origin_key", "release", "platform", "model"]
    return statement.on_conflict_do_update(index_elements=key, set_={"last_at": statement.excluded.last_at})


def _place(one: HeardCohort) -> tuple[str, str, str]:
    return one.release, one.platform, one.model
