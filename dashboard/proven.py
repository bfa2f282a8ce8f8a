"""What was proven of the two paths for a release, and what a policy asks of it.

Evidence is traced runs and drills of this release, no older than the policy allows. Evidence of one model's artefacts
says nothing of other artefacts: shares are of one model, that of the newest traced run, else of the newest drill.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from shlex import quote

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from crashpath.coverage.claims import lower_bound
from crashpath.coverage.covered import AHEAD
from crashpath.coverage.covstore import newest_run
from crashpath.coverage.drillstore import ORIGIN
from crashpath.coverage.field import Last, Names, Standing, field_against_proof, last_drills
from crashpath.coverage.field import shares as field_shares
from crashpath.coverage.units import Kind, Ratio
from crashpath.dashboard.figures import percent
from crashpath.dashboard.plurals import many
from crashpath.dashboard.policy import Proven
from crashpath.dashboard.red_drills import Red, red_besides, red_faults, red_words
from crashpath.dashboard.review_model import Proof, Reason, Share, Threshold, Verdict
from crashpath.dashboard.review_words import covered_words
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.tables_evidence import CoverageHit, CoverageRun, Drill
from crashpath.ingest.trends import Filters
from crashpath.runtime.diagnose import CHECKS

SHARES = {
    "main": "nodes of the main path",
    "fallback": "operators of the fallback",
    "routes": "routes",
    "drills": "drills (a failure class in a phase)",
}
"""What a policy may ask for, in the order of the report, and what is counted of each."""
_MOST_DAYS = 36_500
"""As `crashpath coverage` allows: dates end before evidence gets much older."""
_DAY = timedelta(days=1)
_NAMED = 3
"""Most classes that a sentence names; it counts the others."""
_DIGITS = 12
"""Sums of shares of crashes are right to so many decimals; what they are set against was written with fewer."""


@dataclass(frozen=True, slots=True)
class _Newest:
    """A model's evidence of one kind, and when the last of it was there."""

    model: str
    model_hash: str
    at: datetime


def proven(session: Session, release: str, policy: Proven, *, now: datetime) -> Proof:
    """Return what stands in the store for this release.

    Where all evidence is too old, the proof has model and age of the newest and no shares; where there is none, not
    even these. How much of the field is contained is told all the same: nothing of it.
    """
    days = min(policy.max_age_days, _MOST_DAYS)
    since, until = now - timedelta(days=days), now + AHEAD
    there = [one for one in (_traced(session, release, now), _drilled(session, release, now)) if one is not None]
    counted = [one for one in there if one.at >= since]
    shown = counted[0] if counted else max(there, key=lambda one: one.at, default=None)
    # without evidence a hash that no artefact has: drills of other artefacts contain nothing here
    model_hash = counted[0].model_hash if counted else ""
    shares = _shares(session, release, model_hash, days, now) if counted else ()
    newest = [one.at for one in counted if one.model_hash == model_hash] or [one.at for one in there]
    drills = _last_drills(session, release, since, until)
    missed = sum(not one.passed for one in drills)
    red = (*red_faults(drills), *red_besides(session, release, since=since, until=until))
    checks = [Names(check.id, check.prevents) for check in CHECKS]
    rows = field_against_proof(
        session,
        checks,
        filters=Filters(release=release),
        model_hash=model_hash,
        release=release,
        since=since,
        until=until,
    )
    field = field_shares(rows) if rows else {}
    return Proof(
        shares=shares,
        model=None if shown is None else shown.model,
        age_days=max(0.0, (now - max(newest)) / _DAY) if newest else None,
        drills=len(drills),
        red=tuple(sorted(map(str, red))),
        lower_bound=lower_bound(len(drills), missed) if drills else None,
        contained=field.get(Standing.CONTAINED),
        checked=field.get(Standing.CHECKED),
        unproven=field.get(Standing.UNPROVEN),
        uncovered_field_classes=tuple(row.failure_class for row in rows if row.standing is not Standing.CONTAINED),
    )


def _shares(session: Session, release: str, model_hash: str, days: float, now: datetime) -> tuple[Share, ...]:
    from crashpath.dashboard.coverage_report import Asked, stored_report  # every fault: only where there is evidence

    report = stored_report(session, None, release, Asked(days), now=now, model_hash=model_hash, field=False)
    ratios: tuple[Ratio, ...] = (report.main(), report.fallback(), report.taken(), report.drilled())
    both = zip(SHARES, ratios, strict=True)
    return tuple(Share(name, one.covered, one.total) for name, one in both if one.total)


def _traced(session: Session, release: str, now: datetime) -> _Newest | None:
    run = newest_run(session, release=release, now=now)
    return None if run is None else _Newest(run.model, run.model_hash, run.ended or run.began)


def _drilled(session: Session, release: str, now: datetime) -> _Newest | None:
    """Return the model of the newest drill. Of a route drill the routes that it took are kept, and no drill."""
    took = select(CoverageHit.id).where(CoverageHit.run_id == CoverageRun.id, CoverageHit.kind == Kind.ROUTE).exists()
    at = func.max(func.coalesce(Drill.at, CoverageRun.at))
    query = (
        select(CoverageRun.model, CoverageRun.model_hash, at)
        .outerjoin(Drill, and_(Drill.run_id == CoverageRun.id, Drill.at <= now + AHEAD))
        .where(CoverageRun.origin == ORIGIN, CoverageRun.release == release, or_(Drill.id.is_not(None), took))
        .where(CoverageRun.at <= now + AHEAD)
        .group_by(CoverageRun.model, CoverageRun.model_hash)
        .order_by(at.desc(), CoverageRun.model_hash)
    )
    row = session.execute(query.limit(1)).first()
    return None if row is None else _Newest(*row)


def _last_drills(session: Session, release: str, since: datetime, until: datetime) -> list[Last]:
    """Return the last drills of all models of a release.

    Of a model that was exported again, a fault in a phase counts as it ended on the newest artefacts that it was driven
    on: else what was mended by other artefacts would be red for as long as its evidence is not too old.
    """
    query = (
        select(func.max(Drill.model), Drill.model_hash)
        .where(Drill.release == release, Drill.at >= since, Drill.at <= until)
        .group_by(Drill.model_hash)
        .order_by(func.max(Drill.at), Drill.model_hash)
    )
    last: dict[tuple[str, str, str], list[Last]] = {}
    for model, model_hash in session.execute(query):
        here: dict[tuple[str, str, str], list[Last]] = {}
        for one in last_drills(session, model_hash=model_hash, release=release, since=since, until=until):
            here.setdefault((model, one.fault, one.phase), []).append(one)
        last |= here
    return [one for some in last.values() for one in some]


_Rule = tuple[Threshold, tuple[Reason, ...]]


def proof_rules(proof: Proof, policy: Proven, release: str) -> tuple[tuple[Reason, ...], tuple[Threshold, ...]]:
    """Return what speaks against a GO, and every rule that is asked beside what was measured."""
    rules = [
        *_required(proof, policy, release),
        *_least(proof, policy, release),
        *_red(proof, policy, release),
        *_uncovered(proof, policy, release),
    ]
    return tuple(reason for _, reasons in rules for reason in reasons), tuple(threshold for threshold, _ in rules)


def _required(proof: Proof, policy: Proven, release: str) -> Iterator[_Rule]:
    if not policy.required:
        return
    most = _days(policy.max_age_days)
    measured, said = "none", f"Nothing is proven of release {release}: no traced run and no drill of it is known."
    if proof.age_days is not None:
        age = _days(math.ceil(10 * proof.age_days) / 10)  # what is too old is never told as just on the limit
        measured = f"{age} old"
        said = f"The newest evidence of release {release} is {age} old; of more than {most} it does not count."
    limit = f"evidence of at most {most}"
    yield _held("coverage.required", limit, measured, bool(proof.shares), said, _trace(release))


def _least(proof: Proof, policy: Proven, release: str) -> Iterator[_Rule]:
    known = {one.name: one for one in proof.shares}
    commands = {"routes": _drill("--routes", release), "drills": _drill("--all", release)}
    for name, units in SHARES.items():
        least: float | None = getattr(policy, name)
        if least is None:
            continue
        limit, share = f"at least {_limit(least)}", known.get(name)
        measured, met = "nothing known", False
        said = f"Nothing that counts is known of {units}; asked is {limit}."
        if share is not None:
            measured = f"{covered_words(share)} ({share.covered:,} of {share.total:,})"
            met = Fraction(share.covered, share.total) >= Fraction(repr(least))  # as it was written
            said = f"Of {units}, {measured} are covered; asked is {limit}."
        yield _held(f"coverage.{name}", limit, measured, met, said, commands.get(name, _trace(release)))


def _red(proof: Proof, policy: Proven, release: str) -> Iterator[_Rule]:
    rule = "coverage.red_drill"
    measured = f"none of {many(proof.drills, 'drill')}" if proof.drills else "no drill"
    if proof.red:
        measured = red_words(proof.red, proof.drills)
    reasons = tuple(
        Reason(
            Verdict(policy.red_drill), rule, str(red), red.sentence, (red.fault,) if red.fault else (),
            _drill(red.arguments, release),
        )
        for red in map(Red.named, proof.red)
        if policy.red_drill != "note"
    )  # fmt: skip
    yield Threshold(rule, "", "no red drill", measured, not proof.red, guard=True), reasons


def _uncovered(proof: Proof, policy: Proven, release: str) -> Iterator[_Rule]:
    if policy.max_uncovered is None:
        return
    limit = f"at most {_limit(policy.max_uncovered)}"
    if proof.contained is None:
        yield _held("coverage.max_uncovered", limit, "no crash of the release", True, "", "")
        return
    open_share = round((proof.checked or 0.0) + (proof.unproven or 0.0), _DIGITS)
    classes = proof.uncovered_field_classes
    more = f" and {len(classes) - _NAMED:,} more" if len(classes) > _NAMED else ""
    said = (
        f"No passing drill shows the class of {percent(open_share)} of the field's crashes contained "
        f"({', '.join(classes[:_NAMED])}{more}); allowed is {limit}."
    )
    first = next((one for one in classes if one in {known.id for known in CLASSES}), None)
    command = _drill("--all" if first is None else f"--class {first}", release)
    yield _held("coverage.max_uncovered", limit, percent(open_share), open_share <= policy.max_uncovered, said, command)


def _held(rule: str, limit: str, measured: str, met: bool, said: str, command: str) -> _Rule:
    """Return a rule that holds the release back unless it is met: what is not proven is not shown to be bad."""
    reasons = () if met else (Reason(Verdict.HOLD, rule, "", said, command=command),)
    return Threshold(rule, "", limit, measured, True if met else None), reasons


def _trace(release: str) -> str:
    return f"crashpath coverage --trace DIR --release {quote(release)}"


def _drill(what: str, release: str) -> str:
    return f"crashpath drill {what} --model DIR --release {quote(release)}"


def _limit(share: float) -> str:
    """Return a limit as it was written: none is rounded to 100 %."""
    return f"{100 * share:.{_DIGITS}g} %"


def _days(days: float) -> str:
    return "1 day" if days == 1 else f"{days:,g} days"
