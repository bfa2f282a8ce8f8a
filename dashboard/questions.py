"""What a policy asks of the rates of a release, each question with its evidence in both directions.

A question that is *bad* is a NO-GO once that is shown; one that has to be shown *good* is a HOLD until it is. Both are
log e-values, so it does not matter how often they were looked at. What stands on no denominator is counted against
the release where good has to be shown, and left out where bad has to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from crashpath.dashboard.class_questions import class_questions
from crashpath.dashboard.evalues import (
    above_limit,
    attempts_to_compare,
    attempts_to_decide,
    below_limit,
    either,
    no_worse_than,
    worse_than,
)
from crashpath.dashboard.evidence import Evidence
from crashpath.dashboard.figures import percent
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.question import (
    BUDGET,
    Family,
    Question,
    margin_words,
    measured_words,
    of_words,
    rate_of,
    trends_command,
)
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.sides import CohortTally, Side, Tally

LIMITED = (Measure.UNANSWERED, Measure.PRIMARY)
"""Measures that a policy may limit, in the order in which they are asked."""
_DOING = {Measure.UNANSWERED: "were not answered", Measure.PRIMARY: "failed on the main path"}


def questions(evidence: Evidence, policy: Policy, *, compare: bool) -> Iterator[Question]:
    """Ask everything. ``compare``: the baseline can be trusted, so that the release may be set against it."""
    for side in evidence.release.sides:
        apart = side.bare + side.phaseless + evidence.nameless.get(side.unit, 0)
        yield from _limits(side, policy, apart)
        yield from _cohorts(side, policy)
        if _has_rate(side.tally):
            before = evidence.baseline.side(side.unit) if evidence.baseline is not None and compare else None
            base = before if before is not None and _has_rate(before.tally) else None
            if base is not None:
                yield from _baseline(side, base, policy, apart)
            yield from class_questions(side, base, evidence.clusters, policy)


def _has_rate(tally: Tally) -> bool:
    """Whether anything was tried, and no more failed than that."""
    return tally.attempts > 0 and tally.primary <= tally.tried


def _limits(side: Side, policy: Policy, apart: int) -> Iterator[Question]:
    for measure in LIMITED:
        limit = policy.limits.of(side.unit, measure)
        if limit is not None:
            yield _limit(side, measure, limit, apart, policy)


def _limit(side: Side, measure: Measure, limit: float, apart: int, policy: Policy) -> Question:
    failures, attempts = side.tally.of(measure)
    return Question(
        family=Family.OVERALL,
        rule=f"limits.{measure}",
        unit=side.unit,
        subject="",
        limit=f"at most {percent(limit)}",
        measured=measured_words(failures, attempts, apart),
        said=f"{of_words(failures, attempts, side.unit)} {_DOING[measure]}",
        bad=above_limit(failures, attempts, limit),
        good=below_limit(failures + apart, attempts, limit),
        needed=attempts_to_decide(failures, attempts, limit, _alpha(policy, failures < limit * attempts, 1), apart),
        command=f"crashpath clusters --release {quote(side.release)}",
        limit_rate=limit,
    )


def _cohorts(side: Side, policy: Policy) -> Iterator[Question]:
    for one in side.cohorts:
        for measure in LIMITED:
            limit: float | None = getattr(policy.cohorts, measure)
            if limit is not None and one.told:
                yield _cohort(side, one, measure, limit, policy)


def _cohort(side: Side, one: CohortTally, measure: Measure, limit: float, policy: Policy) -> Question:
    failures, attempts = one.tally.of(measure)
    small = side.tally.attempts > 0 and one.tally.attempts < policy.cohorts.min_share * side.tally.attempts
    return Question(
        family=Family.COHORT,
        rule=f"cohorts.{measure}",
        unit=side.unit,
        subject=str(one.cohort),
        limit=f"at most {percent(limit)}",
        measured=measured_words(failures, attempts, side.stray),
        said=f"{of_words(failures, attempts, side.unit)} of {one.cohort} {_DOING[measure]}",
        bad=above_limit(failures, attempts, limit),
        good=None if small else below_limit(failures + side.stray, attempts, limit),
        needed=attempts_to_decide(
            failures, attempts, limit, _alpha(policy, failures < limit * attempts, len(side.cohorts)), side.stray
        ),
        command=f"{trends_command(side)} --platform {quote(one.cohort.platform)}",
        limit_rate=limit,
    )


def _baseline(side: Side, base: Side, policy: Policy, apart: int) -> Iterator[Question]:
    before = {one.cohort: one.tally for one in base.cohorts}
    for measure in LIMITED:
        ratio: float | None = getattr(policy.baseline, measure)
        if ratio is None:
            continue
        yield _compared(Family.OVERALL, side, "", measure, side.tally, base.tally, ratio, policy, apart)
        for one in side.cohorts:
            then = before.get(one.cohort)
            if one.told and then is not None and _has_rate(then):
                yield _compared(
                    Family.COHORT, side, str(one.cohort), measure, one.tally, then, ratio, policy, None
                )  # fmt: skip


def _compared(
    family: Family,
    side: Side,
    subject: str,
    measure: Measure,
    tally: Tally,
    then: Tally,
    ratio: float,
    policy: Policy,
    apart: int | None,
) -> Question:
    """Ask whether a rate is worse than the baseline's by more than the margin. Without ``apart``: nothing to show."""
    (failures, attempts), (base_failures, base_attempts) = tally.of(measure), then.of(measure)
    floor = policy.baseline.floor
    held = apart or 0
    who = f" of {subject}" if subject else ""
    return Question(
        family=family,
        rule=f"baseline.{measure}",
        unit=side.unit,
        subject=subject,
        limit=margin_words(ratio, base_failures, base_attempts, floor),
        measured=measured_words(failures, attempts, held),
        said=(
            f"{of_words(failures, attempts, side.unit)}{who} {_DOING[measure]}, "
            f"against {rate_of(base_failures, base_attempts)} in the baseline"
        ),
        bad=min(
            worse_than(failures, attempts, base_failures, base_attempts, ratio),
            above_limit(failures, attempts, floor),
        ),
        good=None
        if apart is None
        else either(
            no_worse_than(failures + held, attempts, base_failures, base_attempts, ratio),
            below_limit(failures + held, attempts, floor),
        ),
        needed=_needed(tally.of(measure), then.of(measure), ratio, policy, held),
        command=trends_command(side),
    )


def _needed(counts: tuple[int, int], before: tuple[int, int], ratio: float, policy: Policy, apart: int) -> int | None:
    """Return how many attempts more would settle a comparison: either test shows it good, both show it bad."""
    (failures, attempts), (base_failures, base_attempts) = counts, before
    floor = policy.baseline.floor
    good = (failures * base_attempts < ratio * base_failures * attempts, failures < floor * attempts)
    alpha = policy.alpha / 2 if any(good) else _alpha(policy, False, 1)
    needs = (
        attempts_to_compare(failures, attempts, base_failures, base_attempts, ratio, alpha, apart),
        attempts_to_decide(failures, attempts, floor, alpha, apart),
    )
    if any(good):
        return min((need for need, below in zip(needs, good, strict=True) if below and need is not None), default=None)
    first, second = needs
    return None if first is None or second is None else max(first, second)


def _alpha(policy: Policy, below: bool, cohorts: int) -> float:
    """Return the chance at which a question will be answered: a GO's, or about what Holm leaves a NO-GO's.

    A few questions about the whole release share half of alpha, those about cohorts a quarter.
    """
    if below:
        return policy.alpha
    return policy.alpha * BUDGET[Family.OVERALL] / 4 if cohorts == 1 else policy.alpha * BUDGET[Family.COHORT] / cohorts
