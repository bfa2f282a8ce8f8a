"""Attempts of cohorts that no log source was looked at since: nobody would know of their failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy.orm import Session

from crashpath.dashboard.review_model import Cohort
from crashpath.ingest.attempts_summed import summed_attempts
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.heard import HeardCohort
from crashpath.ingest.schema import may_be


@dataclass(frozen=True, slots=True)
class Unheard:
    """Attempts of a cohort from days on which no log source of it was looked at; ``since``: the last look, if any."""

    cohort: Cohort
    unit: str
    attempts: int
    since: date | None


def unheard(
    session: Session, release: str, homes: Sequence[AttemptCount], ears: Sequence[HeardCohort], today: date
) -> tuple[Unheard, ...]:
    """Return the attempts of days behind the last look at a cohort. ``homes`` are the attempts by cohort."""
    last: dict[Cohort, date | None] = {}
    missed: Counter[tuple[Cohort, str, date | None]] = Counter()
    for row in homes:
        cohort = Cohort(row.platform, row.model)
        if cohort not in last:
            last[cohort] = _last_look(cohort, ears)
        if last[cohort] is None:
            missed[cohort, row.unit, None] += row.attempts
    looks = [since for row in homes if (since := last[Cohort(row.platform, row.model)]) is not None and row.day > since]
    if looks:  # a few days, as a rule
        some = summed_attempts(
            session, ("unit", "day", "platform", "model"), releases=(release,), since=min(looks), until=today
        )
        for row in some:
            since = last.get(Cohort(row.platform, row.model))
            if since is not None and row.day > since:
                missed[Cohort(row.platform, row.model), row.unit, since] += row.attempts
    found = sorted(((key, attempts) for key, attempts in missed.items() if attempts), key=str)
    return tuple(Unheard(cohort, unit, attempts, since) for (cohort, unit, since), attempts in found)


def _last_look(cohort: Cohort, ears: Iterable[HeardCohort]) -> date | None:
    looks = (
        ear.last_at.date() for ear in ears if may_be(ear.platform, cohort.platform) and may_be(ear.model, cohort.model)
    )
    return max(looks, default=None)
