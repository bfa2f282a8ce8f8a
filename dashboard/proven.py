"""What was proven of the two paths for a release, and what a policy asks of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from shlex import quote

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.coverage.claims import lower_bound
from crashpath.coverage.covstore import newest_run
from crashpath.coverage.field import Last, Standing, field_against_proof, last_drills
from crashpath.coverage.field import shares as field_shares
from crashpath.dashboard.coverage_report import Asked, stored_report
from crashpath.dashboard.figures import percent
from crashpath.dashboard.plurals import many
from crashpath.dashboard.policy import Proven
from crashpath.dashboard.review_model import Proof, Reason, Share, Threshold, Verdict
from crashpath.ingest.tables_evidence import CoverageRun, Drill
from crashpath.ingest.trends import Filters

SHARES = ("main", "fallback", "routes", "drills")
"""What a policy may ask for, in the order of the report."""
_NOTHING = Proof((), None, None, 0, (), None, None, None, None, ())


def proven(session: Session, release: str, policy: Proven, *, now: datetime) -> Proof:
    """Return what stands in the store for this release: runs and drills no older than ``policy.max_age_days``.

    Where a model was traced, its newest run's model counts; else the one that was drilled last. Where all evidence is
    older, the proof has its age and nothing else.
    """
    since = now - timedelta(days=policy.max_age_days)
    found = _newest(session, release, since, now)
    if found is None:
        at = _newest_at(session, release, None)
        return _NOTHING if at is None else Proof((), None, _days(at, now), 0, (), None, None, None, None, ())
    model, model_hash = found
    asked = Asked(policy.max_age_days)
    report = stored_report(session, None, release, asked, now=now, model_hash=model_hash)
    ratios = dict(zip(SHARES, (report.main(), report.fallback(), report.taken(), report.drilled()), strict=True))
    drills = last_drills(session, model_hash=model_hash, release=release, since=since)
    rows = field_against_proof(session, (), filters=Filters(release=release), model_hash=model_hash, since=since)
    field = field_shares(rows) if rows else {}
    at = _newest_at(session, release, model_hash)
    return Proof(
        tuple(Share(name, one.covered, one.total) for name, one in ratios.items() if one.total),
        model,
        None if at is None else _days(at, now),
        len(drills),
        tuple(sorted(dict.fromkeys(one.fault for one in drills if not one.passed))),
        lower_bound(len(drills), _missed(drills)) if drills else None,
        field.get(Standing.CONTAINED),
        field.get(Standing.CHECKED),
        field.get(Standing.UNPROVEN),
        report.field,
    )


def _newest(session: Session, release: str, since: datetime, now: datetime) -> tuple[str, str] | None:
    run = newest_run(session, release=release, now=now)
    if run is not None and run.began >= since:
        return run.model, run.model_hash
    query = (
        select(Drill.model, Drill.model_hash)
        .where(Drill.release == release, Drill.at >= since, Drill.at <= now)
        .order_by(Drill.at.desc(), Drill.id.desc())
    )
    drilled = session.execute(query.limit(1)).first()
    return None if drilled is None else (drilled.model, drilled.model_hash)


def _newest_at(session: Session, release: str, model_hash: str | None) -> datetime | None:
    times = []
    for table in (CoverageRun, Drill):
        query = select(func.max(table.at)).where(table.release == release)
        times.append(session.scalar(query if model_hash is None else query.where(table.model_hash == model_hash)))
    return max((one for one in times if one is not None), default=None)


def _days(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds() / 86_400)


def _missed(drills: tuple[Last, ...]) -> int:
    return sum(not one.passed for one in drills)


def proof_rules(proof: Proof, policy: Proven, release: str) -> tuple[tuple[Reason, ...], tuple[Threshold, ...]]:
    """Return what speaks against a GO, and every rule that is asked beside what was measured."""
    asked = [*_required(proof, policy, release), *_least(proof, policy, release), *_red(proof, policy, release)]
    asked += _uncovered(proof, policy, release)
    return (
        tuple(reason for _, reason in asked if reason is not None),
        tuple(threshold for threshold, _ in asked),
    )


_Asked = tuple[Threshold, Reason | None]


def _required(proof: Proof, policy: Proven, release: str) -> Iterator[_Asked]:
    old = proof.age_days is not None and not proof.shares and not proof.drills
    if not policy.required and not old:
        return
    limit = f"evidence of at most {policy.max_age_days:g} days"
    if proof.shares or proof.drills:
        yield Threshold("coverage.required", "", limit, f"{proof.age_days or 0:.1f} days old", True), None
        return
    measured = f"{proof.age_days:.0f} days old" if proof.age_days is not None else "none"
    met = None if policy.required else True
    said = f"Nothing counts as proven of release {release}: {'its evidence is ' if old else ''}{measured}."
    reason = _hold("coverage.required", "", said, _traced(release)) if policy.required else None
    yield Threshold("coverage.required", "", limit if policy.required else "not asked", measured, met), reason


def _least(proof: Proof, policy: Proven, release: str) -> Iterator[_Asked]:
    told = {one.name: one for one in proof.shares}
    for name in SHARES:
        least: float | None = getattr(policy, name)
        if least is None:
            continue
        share, rule, limit = told.get(name), f"coverage.{name}", f"at least {percent(least)}"
        command = f"crashpath drill --all --model DIR --release {quote(release)}"
        command = command if name in ("routes", "drills") else _traced(release)
        if share is None:
            said = f"Nothing is known of {name}; asked is {limit}."
            yield Threshold(rule, "", limit, "nothing known", None), _hold(rule, "", said, command)
            continue
        met = share.covered >= least * share.total
        measured = f"{percent(share.covered / share.total)} ({share.covered:,} of {share.total:,})"
        said = f"Of {name}, {measured} is covered; asked is {limit}."
        yield (
            Threshold(rule, "", limit, measured, True if met else None),
            None if met else _hold(rule, "", said, command),
        )


def _red(proof: Proof, policy: Proven, release: str) -> Iterator[_Asked]:
    if not proof.drills:
        return
    if not proof.red:
        yield Threshold("coverage.red_drill", "", "none", f"0 of {many(proof.drills, 'drill')}", True), None
    for fault in proof.red:
        reason = None
        if policy.red_drill != "note":
            command = f"crashpath drill --fault {quote(fault)} --model DIR --release {quote(release)}"
            said = f"The last drill of {fault} is red: the fallback is not proven to survive it."
            reason = Reason(Verdict(policy.red_drill), "coverage.red_drill", fault, said, (fault,), command)
        limit = "none" if reason is not None else "none (a note)"
        yield Threshold("coverage.red_drill", fault, limit, "red", False), reason


def _uncovered(proof: Proof, policy: Proven, release: str) -> Iterator[_Asked]:
    most = policy.max_uncovered
    if most is None:
        return
    rule, limit = "coverage.max_uncovered", f"at most {percent(most)}"
    if proof.contained is None:
        yield Threshold(rule, "", limit, "no crash of the release", True), None
        return
    open_share = max(0.0, 1 - proof.contained)
    if open_share <= most:
        yield Threshold(rule, "", limit, percent(open_share), True), None
        return
    named = ", ".join(proof.uncovered_field_classes[:3])
    said = f"{percent(open_share)} of the field's crashes are of classes that no passing drill shows contained"
    said += f" ({named}); allowed is {limit}." if named else f"; allowed is {limit}."
    command = f"crashpath drill --all --model DIR --release {quote(release)}"
    yield Threshold(rule, "", limit, percent(open_share), None), _hold(rule, "", said, command)


def _traced(release: str) -> str:
    return f"crashpath coverage --trace DIR --release {quote(release)}"


def _hold(rule: str, subject: str, said: str, command: str) -> Reason:
    return Reason(Verdict.HOLD, rule, subject, said, command=command)
