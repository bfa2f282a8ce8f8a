"""What the page Review reads: releases that may be reviewed, a review as it would stand, all releases side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from shlex import quote

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.dashboard.intervals import rate
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.review import review_as_counted
from crashpath.dashboard.review_looks import as_it_would_stand
from crashpath.dashboard.review_model import Review, Verdict
from crashpath.dashboard.review_tables import MOST_NAME, Column, Table
from crashpath.dashboard.review_words import (
    NONE,
    clean,
    counts_words,
    days_words,
    interval_words,
    rate_words,
    stamp,
)
from crashpath.ingest.failed_read import releases
from crashpath.ingest.reviews import Overridden, Seen, looks, newest_looks, overrides
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables_evidence import Attempts

SIGNS = {Verdict.GO: "✓", Verdict.NO_GO: "✗", Verdict.HOLD: "‖"}
"""Signs of verdicts in tables, where there is no colour."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A release that may be reviewed, and the UTC days of which attempts are told; ``None`` where none are."""

    release: str
    first_day: date | None
    last_day: date | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Which review. ``rules`` are the policy as JSON, ``source`` is where they come from."""

    release: str
    baseline: str | None
    unit: str | None
    rules: str
    source: str

    @property
    def policy(self) -> Policy:
        """The rules."""
        return Policy.model_validate_json(self.rules)

    @property
    def command(self) -> str:
        """The same review on the command line."""
        given = (("--release", self.release), ("--baseline", self.baseline), ("--unit", self.unit))
        return "crashpath review" + "".join(f" {flag} {quote(value)}" for flag, value in given if value is not None)


@dataclass(frozen=True, slots=True)
class Shown:
    """A review as it would stand if it were a look; ``kept``: it is one, recorded before and unchanged since."""

    review: Review
    kept: bool


def offers(session: Session) -> tuple[Offer, ...]:
    """Return every release that something is known of: the ones tried last come first, those never tried at the end."""
    first, last = func.min(Attempts.day), func.max(Attempts.day)
    query = select(Attempts.release, first, last).where(Attempts.attempts > 0).group_by(Attempts.release)
    tried = [Offer(*row) for row in session.execute(query) if row[0] != UNKNOWN]
    tried.sort(key=lambda one: (one.last_day, one.first_day, one.release), reverse=True)
    known = {one.release for one in tried} | {UNKNOWN}
    return (*tried, *(Offer(name, None, None) for name in reversed(releases(session)) if name not in known))


def before(offered: Sequence[Offer], release: str) -> str | None:
    """Return the release to set another one against: the one that was tried last before it, if any was."""
    begun = {one.release: (one.first_day, one.release) for one in offered if one.first_day is not None}
    mine = begun.pop(release, None)
    earlier = [when for when in begun.values() if mine is not None and when < mine]
    return max(earlier)[1] if earlier else None


def reviewed(session: Session, asked: Asked, at: datetime) -> Shown:
    """Return a review at ``at`` (now) as it would stand. Nothing is counted anew, and it is no look."""
    rules = asked.policy
    made = review_as_counted(
        session, asked.release, asked.baseline, rules, policy_name=asked.source, unit=asked.unit, at=at
    )
    shown = as_it_would_stand(session, made, rules)
    return Shown(shown, kept=any(one.number == shown.looks for one in looks(session, made.release)))


def all_releases(session: Session) -> Table:
    """Return every release of the store with its newest look that was kept: verdict, when, and the rate it had."""
    seen = {one.release: one for one in newest_looks(session)}
    rows = tuple(
        _row(one, seen.get(one.release), overrides(session, one.release) if one.release in seen else ())
        for one in offers(session)
    )
    columns = (
        Column("release"),
        Column("verdict"),
        Column("looked at"),
        Column("against"),
        Column("unanswered", True),
        Column("95 % interval", True),
        Column("failed of", True),
        Column("last override"),
        Column("attempts of"),
    )
    return Table("All releases, the one tried last first, each with its newest recorded look", columns, rows)


def _row(offer: Offer, seen: Seen | None, words: Sequence[Overridden]) -> tuple[str, ...]:
    name, days = clean(offer.release, MOST_NAME), days_words(offer.first_day, offer.last_day)
    told = days if offer.first_day is not None else "no attempts told"
    if seen is None:
        return name, "never recorded", NONE, NONE, NONE, NONE, NONE, NONE, told
    found = rate(seen.failures, seen.attempts) if seen.unit is not None else None
    against = NONE if seen.baseline is None else clean(seen.baseline, MOST_NAME)
    counts = f"{counts_words(found)} {seen.unit}s" if found is not None else NONE
    standing = [one for one in words if not one.undone]
    word = f"{standing[-1].verdict} by {clean(standing[-1].who, 80)}" if standing else NONE
    return (
        name, f"{SIGNS[Verdict(seen.verdict)]} {seen.verdict}", stamp(seen.at), against, rate_words(found),
        interval_words(found) or NONE, counts, word, told,
    )  # fmt: skip
