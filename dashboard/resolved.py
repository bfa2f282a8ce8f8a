"""Clusters that people resolved in this release or before, and that are seen in it all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crashpath.dashboard.evidence import ClusterFacts, Evidence
from crashpath.dashboard.plurals import many
from crashpath.dashboard.policy import Classes
from crashpath.dashboard.review_model import Reason, Threshold, Verdict

RULE = "classes.resolved_again"


@dataclass(frozen=True, slots=True)
class Again:
    """What was found: reasons, notes where the policy or the count makes them no reasons, and the rule's threshold."""

    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    threshold: Threshold


def resolved_again(evidence: Evidence, policy: Classes) -> Again:
    """Look at every resolved cluster that the release has failures of.

    Which release came first is known by their days. Where the one that a cluster was resolved in has none, nobody knows
    the order, and what would be a NO-GO is a HOLD. Fewer failed attempts than ``min_count`` are a note: one of them may
    be in the wrong cluster.
    """
    reasons, notes = [], []
    for facts, failures, unit in _seen(evidence):
        known = facts.resolved_in in evidence.first_days or facts.resolved_in == evidence.release.release
        order = "" if known else "; no day of that release is known, so that nobody knows which came first"
        what = f"{facts.id} ({facts.title}) was resolved in {facts.resolved_in} and is seen: {_failed(failures, unit)}"
        said = f"{what}{order}."
        if policy.resolved_again == "note" or failures < policy.min_count:
            notes.append(said)
            continue
        verdict = Verdict(policy.resolved_again) if known else Verdict.HOLD
        reasons.append(
            Reason(verdict, RULE, facts.id, said, (facts.id,), f"crashpath show {facts.id}", unit=unit)
        )  # fmt: skip
    measured = many(len(reasons) + len(notes), "cluster")
    limit = f"none with {many(policy.min_count, 'failed attempt')} or more"
    return Again(tuple(reasons), tuple(notes), Threshold(RULE, "", limit, measured, not reasons))


def _seen(evidence: Evidence) -> Iterator[tuple[ClusterFacts, int, str]]:
    """Yield each cluster that was to be gone with its failed attempts, in the unit that has the most of them."""
    most: dict[int, tuple[int, str]] = {}
    for side in evidence.release.sides:
        counted: dict[int, int] = {}
        for group in side.groups:
            if group.cluster is not None:
                counted[group.cluster] = counted.get(group.cluster, 0) + group.failures
        for number, failures in counted.items():
            most[number] = max(most.get(number, (0, "")), (failures, side.unit))
    for number in sorted(most):
        facts = evidence.clusters.get(number)
        if facts is not None and facts.resolved_in is not None and _was_before(evidence, facts.resolved_in):
            yield facts, *most[number]


def _was_before(evidence: Evidence, resolved_in: str) -> bool:
    """Whether a release is this one or came before it, as far as anybody knows."""
    here, there = (evidence.first_days.get(name) for name in (evidence.release.release, resolved_in))
    return resolved_in == evidence.release.release or here is None or there is None or there <= here


def _failed(count: int, unit: str) -> str:
    return f"{many(count, unit)} failed with it"
