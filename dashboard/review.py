"""The release review: what is known of a release, held to a policy, as one value with its verdict.

``judge`` computes and reads nothing, ``review_release`` reads the store for it. Neither counts as a look:
``review_looks`` does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy.orm import Session

from crashpath.dashboard.doubts import Doubts, doubts, impossible
from crashpath.dashboard.evidence import Evidence, gather
from crashpath.dashboard.movements import movements
from crashpath.dashboard.plurals import many
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.proven import proof_rules, proven
from crashpath.dashboard.questions import questions
from crashpath.dashboard.resolved import resolved_again
from crashpath.dashboard.review_model import Movement, Proof, Reason, Review, UnitReport, Verdict
from crashpath.dashboard.review_rates import unit_report
from crashpath.dashboard.sides import Side, make_side
from crashpath.dashboard.verdict import Answer, answers, needed_in, ranked, reasons_of, thresholds_of, verdict_of
from crashpath.ingest.attempts import UNITS
from crashpath.ingest.failed_daily import refresh_failures
from crashpath.ingest.failed_read import stale_days
from crashpath.ingest.store import Store

METHOD = (
    "Verdict: e-values, valid at any look: mixtures of likelihood ratios against limits, conditional likelihood ratios "
    "against a baseline. False NO-GOs share the chance by Holm's method: half for the whole release, a quarter for "
    "cohorts, a quarter for classes and clusters. A GO needs every condition shown.",
    "Intervals are for display, of one look: Clopper and Pearson's of rates, the same limits combined as Newcombe does "
    "of differences, conditional exact ones of ratios.",
    "What moved: exact conditional tests of one look, Holm's correction; it decides nothing.",
)


def review_release(
    store: Store,
    release: str,
    baseline: str | None,
    policy: Policy,
    *,
    policy_name: str,
    unit: str | None = None,
    at: datetime,
) -> Review:
    """Count what is stale, read what is known at ``at`` (now) and judge it. ``policy_name`` says where it came from.

    ``unit`` comes first in the report; without one the policy's, without that the first that is told.
    """
    left = refresh_failures(store).left
    with store.read() as session:
        evidence = gather(session, release, baseline, at=at)
        proof = proven(session, release, policy.coverage, now=at)
    return judge(evidence, proof, policy, policy_name=policy_name, unit=unit, notes=_left(left))


def review_as_counted(
    session: Session,
    release: str,
    baseline: str | None,
    policy: Policy,
    *,
    policy_name: str,
    unit: str | None = None,
    at: datetime,
) -> Review:
    """As ``review_release``, and write nothing: days that are stale stay so, and a note says how many there are."""
    evidence = gather(session, release, baseline, at=at)
    proof = proven(session, release, policy.coverage, now=at)
    notes = _stale(len(stale_days(session)))
    return judge(evidence, proof, policy, policy_name=policy_name, unit=unit, notes=notes)


def judge(
    evidence: Evidence,
    proof: Proof,
    policy: Policy,
    *,
    policy_name: str,
    unit: str | None = None,
    notes: Sequence[str] = (),
) -> Review:
    """Hold evidence to a policy. ``notes`` are sentences on how it was read: they decide nothing."""
    wanted = unit or policy.unit
    doubted = doubts(evidence, policy, unit=wanted)
    asked = answers(questions(_with_side(evidence, wanted), policy, compare=doubted.compare), policy.alpha)
    again = resolved_again(evidence, policy.classes)
    proof_reasons, proof_thresholds = proof_rules(proof, policy.coverage, evidence.release.release)
    told = reasons_of(asked) if evidence.release.sides else ()
    reasons = ranked((*doubted.reasons, *told, *again.reasons, *proof_reasons))
    verdict = verdict_of(reasons)
    main = _main(evidence, wanted)
    return Review(
        verdict=verdict,
        outcome=verdict,
        release=evidence.release.release,
        baseline=None if evidence.baseline is None else evidence.baseline.release,
        unit=main,
        at=evidence.at,
        first_day=evidence.release.first_day,
        last_day=evidence.release.last_day,
        looks=1,
        earlier=(),
        overrides=(),
        reasons=reasons,
        thresholds=(*thresholds_of(asked), again.threshold, *proof_thresholds),
        units=_units(evidence, doubted, asked, _attempts_decide(verdict, reasons)),
        movements=_movements(evidence, main, policy, doubted),
        apart=doubted.apart,
        proof=proof,
        notes=(*doubted.notes, *again.notes, *notes),
        policy=policy_name,
        alpha=policy.alpha,
        method=METHOD,
    )


def _main(evidence: Evidence, wanted: str | None) -> str | None:
    """Return the unit of the headline figures: the one that was asked for, else the first that is told."""
    if wanted is not None and evidence.release.side(wanted) is not None:
        return wanted
    return next((side.unit for side in evidence.release.sides), None)


def _with_side(evidence: Evidence, wanted: str | None) -> Evidence:
    """Return the evidence to ask of; where no attempts are told an empty side, so that limits stand in the report."""
    known = evidence.release
    if known.sides:
        return evidence
    empty = make_side(known.release, wanted or UNITS[0], (), ())
    return replace(evidence, release=replace(known, sides=(empty,)))


def _attempts_decide(verdict: Verdict, reasons: Sequence[Reason]) -> bool:
    """Whether a HOLD would end with more attempts: not where a reason of it is no test."""
    return verdict is Verdict.HOLD and all(one.e_value is not None for one in reasons)


def _units(evidence: Evidence, doubted: Doubts, asked: Sequence[Answer], decide: bool) -> tuple[UnitReport, ...]:
    def needed(unit: str) -> int | None:
        return needed_in(asked, unit) or None if decide else None

    return tuple(
        unit_report(side, _base(evidence, side.unit), doubted.problems, needed(side.unit))
        for side in evidence.release.sides
    )


def _base(evidence: Evidence, unit: str) -> Side | None:
    return None if evidence.baseline is None else evidence.baseline.side(unit)


def _movements(evidence: Evidence, main: str | None, policy: Policy, doubted: Doubts) -> tuple[Movement, ...]:
    side = None if main is None else evidence.release.side(main)
    if side is None or impossible(side.tally):
        return ()
    base = _base(evidence, side.unit) if doubted.compare else None
    return movements(side, base, evidence.clusters, min_count=policy.classes.min_count, alpha=policy.alpha)


def _left(days: int) -> tuple[str, ...]:
    if not days:
        return ()
    return (f"{many(days, 'day')} are written to at this moment: their failures may not all be counted yet.",)


def _stale(days: int) -> tuple[str, ...]:
    if not days:
        return ()
    told = "1 day has failures that are" if days == 1 else f"{days:,} days have failures that are"
    return (f"{told} not all counted yet, and nothing is written here: the next night or `crashpath review` does it.",)
