"""What a policy asks of the rates of a release, each question with its evidence in both directions.

A question that is *bad* is a NO-GO once that is shown; one that has to be shown *good* is a HOLD until it is. Both are
log e-values, so it does not matter how often they were looked at. What stands on no denominator is counted against
the release where good has to be shown, and left out where bad has to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from shlex import quote

from crashpath.dashboard.evalues import (
    above_limit,
    attempts_to_compare,
    attempts_to_decide,
    below_limit,
    either,
    no_worse_than,
    worse_than,
)
from crashpath.dashboard.evidence import ClusterFacts, Evidence
from crashpath.dashboard.figures import percent, times
from crashpath.dashboard.plurals import many
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.sides import CohortTally, Side, Tally
from crashpath.ingest.clusters import cluster_id

LIMITED = (Measure.UNANSWERED, Measure.PRIMARY)
"""Measures that a policy may limit, in the order in which they are asked."""
_DOING = {Measure.UNANSWERED: "were not answered", Measure.PRIMARY: "failed on the main path"}
_SHOWN_EVIDENCE = 5
"""Most clusters named beside a class."""


class Family(StrEnum):
    """Questions whose wrong NO-GOs share one budget."""

    OVERALL = "overall"
    COHORT = "cohort"
    CLASS = "class"


@dataclass(frozen=True, slots=True)
class Question:
    """One question. ``good`` is ``None`` where nothing has to be shown good.

    ``subject`` is the cohort, class or cluster; ``rule`` the key in the policy. ``needed`` attempts more (of the
    subject) until an answer is likely, ``None`` where no number would do. ``limit_rate`` is the limit where it is a
    highest rate.
    """

    family: Family
    rule: str
    unit: str
    subject: str
    limit: str
    measured: str
    said: str
    bad: float
    good: float | None
    needed: int | None = None
    evidence: tuple[str, ...] = ()
    command: str = ""
    limit_rate: float | None = None


def questions(evidence: Evidence, policy: Policy, *, compare: bool) -> Iterator[Question]:
    """Ask everything. ``compare``: the baseline can be trusted, so that the release may be set against it."""
    for side in evidence.release.sides:
        apart = side.bare + side.phaseless + evidence.nameless.get(side.unit, 0)
        yield from _limits(side, policy, apart)
        yield from _cohorts(side, policy)
        if _has_rate(side):
            before = evidence.baseline.side(side.unit) if evidence.baseline is not None and compare else None
            base = before if before is not None and _has_rate(before) else None
            if base is not None:
                yield from _baseline(side, base, policy, apart)
            yield from _classes(side, base, evidence.clusters, policy)


def _has_rate(side: Side) -> bool:
    """Whether it was tried at all, and no more often failed than that."""
    return side.tally.attempts > 0 and side.tally.primary <= side.tally.tried


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
        measured=_measured(failures, attempts, apart),
        said=f"{_of(failures, attempts, side.unit)} {_DOING[measure]}",
        bad=above_limit(failures, attempts, limit),
        good=below_limit(failures + apart, attempts, limit),
        needed=attempts_to_decide(failures, attempts, limit, policy.alpha, apart),
        command="crashpath clusters",
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
        measured=_measured(failures, attempts, side.vague),
        said=f"{_of(failures, attempts, side.unit)} of {one.cohort} {_DOING[measure]}",
        bad=above_limit(failures, attempts, limit),
        good=None if small else below_limit(failures + side.vague, attempts, limit),
        needed=attempts_to_decide(failures, attempts, limit, policy.alpha, side.vague),
        command=f"{_trends(side)} --platform {quote(one.cohort.platform)}",
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
            if one.told and then is not None and then.attempts:
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
    needs = [
        attempts_to_compare(failures, attempts, base_failures, base_attempts, ratio, policy.alpha / 2, held),
        attempts_to_decide(failures, attempts, floor, policy.alpha / 2, held),
    ]
    who = f" of {subject}" if subject else ""
    return Question(
        family=family,
        rule=f"baseline.{measure}",
        unit=side.unit,
        subject=subject,
        limit=f"at most {times(ratio)} {_rate(base_failures, base_attempts)}, or {percent(floor)}",
        measured=_measured(failures, attempts, held),
        said=(
            f"{_of(failures, attempts, side.unit)}{who} {_DOING[measure]}, "
            f"against {_rate(base_failures, base_attempts)} of the baseline"
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
        needed=min((one for one in needs if one is not None), default=None),
        command=_trends(side),
    )


def _classes(side: Side, base: Side | None, clusters: Mapping[int, ClusterFacts], policy: Policy) -> Iterator[Question]:
    """Ask of every class, and of every cluster, whether it is new or more frequent than the baseline allows.

    Without a baseline that can be asked of clusters alone, and only of those that were first seen in this release.
    """
    members = _members(side, clusters)
    for level in ("class", "cluster"):
        now, then = _counted(side, level), {} if base is None else _counted(base, level)
        for key in sorted(now | then):
            failures, before = now.get(key, 0), then.get(key, 0)
            if base is not None and before:
                question = _regressed(side, base, key, failures, before, policy)
            elif base is not None:
                question = _new(side, key, failures, "which the baseline did not have", policy)
            elif level == "cluster" and _born(key, clusters, side.release):
                question = _new(side, key, failures, "which was first seen in this release", policy)
            else:
                continue
            if question is not None:
                yield (
                    _named_cluster(question, int(key), clusters)
                    if level == "cluster"
                    else _named_class(question, members.get(key, ()))
                )


def _counted(side: Side, level: str) -> dict[str, int]:
    counted: dict[str, int] = {}
    for group in side.groups:
        key = group.failure_class if level == "class" else str(group.cluster)
        if level == "class" or group.cluster is not None:
            counted[key] = counted.get(key, 0) + group.failures
    return counted


def _born(key: str, clusters: Mapping[int, ClusterFacts], release: str) -> bool:
    facts = clusters.get(int(key))
    return facts is not None and facts.first_release == release


def _new(side: Side, key: str, failures: int, why: str, policy: Policy) -> Question | None:
    limit = policy.classes.new_rate
    if limit is None:
        return None
    bad = above_limit(failures, side.tally.tried, limit)
    return _of_class(side, key, failures, "new_rate", f"at most {percent(limit)}", why, bad, policy)


def _regressed(side: Side, base: Side, key: str, failures: int, then: int, policy: Policy) -> Question | None:
    ratio, floor = policy.classes.regressed_ratio, policy.classes.regressed_floor
    if ratio is None:
        return None
    attempts, base_attempts, before = side.tally.tried, base.tally.tried, _rate(then, base.tally.tried)
    bad = min(worse_than(failures, attempts, then, base_attempts, ratio), above_limit(failures, attempts, floor))
    limit = f"at most {times(ratio)} {before}, or {percent(floor)}"
    return _of_class(side, key, failures, "regressed_ratio", limit, f"against {before} of the baseline", bad, policy)


def _of_class(
    side: Side, key: str, failures: int, rule: str, limit: str, why: str, bad: float, policy: Policy
) -> Question:
    """Return the question of a class or cluster; of fewer failures than the policy counts nothing is said."""
    return Question(
        family=Family.CLASS,
        rule=f"classes.{rule}",
        unit=side.unit,
        subject=key,
        limit=limit,
        measured=_measured(failures, side.tally.tried),
        said=f"{_of(failures, side.tally.tried, side.unit)} failed with it, {why}",
        bad=bad if failures >= policy.classes.min_count else 0.0,
        good=None,
    )


def _named_cluster(question: Question, number: int, clusters: Mapping[int, ClusterFacts]) -> Question:
    """Give the question of a cluster its subject in words, and where to look."""
    facts, name = clusters.get(number), cluster_id(number)
    title = name if facts is None else f"{name} ({facts.title})"
    return replace(question, subject=title, evidence=(name,), command=f"crashpath show {name}")


def _named_class(question: Question, members: Sequence[str]) -> Question:
    """Give the question of a class its clusters to look at, the most frequent first."""
    command = f"crashpath show {members[0]}" if members else ""
    return replace(question, evidence=tuple(members[:_SHOWN_EVIDENCE]), command=command)


def _members(side: Side, clusters: Mapping[int, ClusterFacts]) -> dict[str, list[str]]:
    """Return the ids of each class's clusters, the most failures first."""
    found: dict[str, list[str]] = {}
    for group in sorted(side.groups, key=lambda one: (-one.failures, one.cluster or 0)):
        if group.cluster is not None and group.cluster in clusters:
            found.setdefault(group.failure_class, []).append(clusters[group.cluster].id)
    return found


def _trends(side: Side) -> str:
    return f"crashpath trends --by class --release {quote(side.release)}"


def _measured(failures: int, attempts: int, apart: int = 0) -> str:
    more = f", and {many(apart, 'failure')} apart" if apart else ""
    return f"{_rate(failures, attempts)} ({failures:,} of {attempts:,}){more}"


def _of(failures: int, attempts: int, unit: str) -> str:
    return f"{failures:,} of {many(attempts, unit)} ({_rate(failures, attempts)})"


def _rate(failures: int, attempts: int) -> str:
    return percent(failures / attempts) if attempts else "no rate"
