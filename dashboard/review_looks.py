"""A review as one look at a release: kept in the store, counted, and set beside what people decided of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from crashpath.dashboard.evalues import worse_than
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.review_json import document
from crashpath.dashboard.review_model import Look, Measure, Override, Reason, Review, Verdict
from crashpath.dashboard.review_word import Word
from crashpath.ingest.decisions import By
from crashpath.ingest.reviews import Counts, Overridden, Seen, looks, number_of, override, overrides, record_look

WORSE = 1.25
"""How many times the rate at which a person said GO a release may fail since, until that word holds no more."""
_STRICTER = (Verdict.GO, Verdict.HOLD, Verdict.NO_GO)
_OF_THE_MOMENT = ("at", "looks", "earlier", "overrides", "outcome", "notes")
"""What a document says of when it was made: the same evidence a minute later is no new look."""


def look(session: Session, review: Review, policy: Policy) -> tuple[Review, Seen]:
    """Keep a review as a look, where anything changed since the last one; return it with its number and that look."""
    shown = document(review)
    unanswered = None if review.main is None else review.main.rates[Measure.UNANSWERED].release
    seen = record_look(
        session,
        at=review.at,
        release=review.release,
        baseline=review.baseline,
        unit=review.unit,
        verdict=str(review.verdict),
        fingerprint=_fingerprint(shown, policy),
        failures=0 if unanswered is None else unanswered.failures,
        attempts=0 if unanswered is None else unanswered.attempts,
        keys=keys(review.reasons),
        counts=counts(review),
        policy=policy.model_dump(mode="json"),
        report={key: value for key, value in shown.items() if key != "earlier"},
    )
    return with_looks(session, replace(review, looks=seen.number)), seen


def keep(session: Session, review: Review, policy: Policy, word: Word | None, now: datetime) -> Review:
    """Keep a review as a look, with a person's word on it where there is one; return it as it stands then.

    Raises ``Refused`` for a word that changes nothing.
    """
    kept, seen = look(session, review, policy)
    if word is None:
        return kept
    override(session, seen.id, str(word.verdict), By(word.who, now, word.why))
    return with_looks(session, kept)


def as_it_would_stand(session: Session, review: Review, policy: Policy) -> Review:
    """Return a review as ``look`` would, and keep nothing: whoever shows it has not looked yet."""
    number = number_of(session, review.release, _fingerprint(document(review), policy))
    return with_looks(session, replace(review, looks=number))


def with_looks(session: Session, review: Review) -> Review:
    """Return the review with earlier looks, and with the outcome that the last word of a person puts in its place."""
    earlier = tuple(_look(one) for one in looks(session, review.release) if one.number < review.looks)
    words = tuple(_override(one, review) for one in overrides(session, review.release))
    holding = [one for one in words if one.holds]  # a milder one that lapsed does not end a stricter one before it
    outcome = holding[-1].verdict if holding else review.verdict
    return replace(review, earlier=earlier, overrides=words, outcome=outcome)


def keys(reasons: Collection[Reason]) -> frozenset[str]:
    """Return what each reason is about, without its figures: the same reason of tomorrow has the same key."""
    return frozenset(
        " · ".join((one.verdict, one.rule, one.unit, about)) for one in reasons for about in one.about or (one.subject,)
    )


def counts(review: Review) -> dict[str, dict[str, tuple[int, int]]]:
    """Return failures and attempts by unit and measure."""
    return {
        unit.unit: {
            str(measure): (rates.release.failures, rates.release.attempts) for measure, rates in unit.rates.items()
        }
        for unit in review.units
    }


def _fingerprint(shown: Mapping[str, Any], policy: Policy) -> str:
    lasting = {key: value for key, value in shown.items() if key not in _OF_THE_MOMENT}
    lasting["proof"] = {key: value for key, value in lasting["proof"].items() if key != "age_days"}
    text = json.dumps([lasting, policy.model_dump(mode="json")], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _look(seen: Seen) -> Look:
    return Look(seen.number, seen.at, Verdict(seen.verdict), seen.failures, seen.attempts, seen.baseline)


def _override(one: Overridden, review: Review) -> Override:
    verdict, over = Verdict(one.verdict), Verdict(one.over)
    return Override(
        one.decision, one.at, one.who, one.why, verdict, over, not one.undone and _holds(one, review), one.undone
    )


def _holds(one: Overridden, review: Review) -> bool:
    """Whether a person's word covers what is known now.

    To be stricter than the evidence is never wrong. To be milder covers the reasons that were there, at the rates that
    were there: a reason more, a HOLD that became a NO-GO or a rate that is shown to be worse since ends it.
    """
    if _STRICTER.index(Verdict(one.verdict)) >= _STRICTER.index(review.verdict):
        return True
    return keys(review.reasons) <= one.keys and not _worse(one.counts, counts(review), review.alpha)


def _worse(then: Counts, now: Counts, alpha: float) -> bool:
    """Whether attempts since fail at more than ``WORSE`` times the rate of those before, shown at ``alpha``."""
    bar = -math.log(alpha)
    for unit, measures in now.items():
        for measure, (failures, attempts) in measures.items():
            before = then.get(unit, {}).get(measure)
            if measure == Measure.CONTAINED or before is None:
                continue
            failed, tried = failures - before[0], attempts - before[1]
            if failed < 0 or tried < 0:  # what was told before was corrected: there is no "since"
                failed, tried = failures, attempts
            # Failures of which no attempts are told yet are of that many at least.
            if worse_than(failed, max(failed, tried), *before, WORSE) >= bar:
                return True
    return False
