"""What the page Coverage reads: models and releases with evidence, the report of one, its drills, and their age."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.coverage.covered import AHEAD
from crashpath.coverage.covstore import newest_run
from crashpath.coverage.drillcells import CELLS
from crashpath.coverage.drillstore import ORIGIN
from crashpath.coverage.field import IN_USE, FieldRow, Names, field_against_proof, policies_of_runs
from crashpath.coverage.report import Report
from crashpath.coverage.routestore import ROUTES
from crashpath.coverage.runfile import State
from crashpath.coverage.units import Ratio
from crashpath.dashboard.coverage_report import Asked, stored_report
from crashpath.ingest.tables_evidence import CoverageRun, Drill
from crashpath.ingest.trends import Filters
from crashpath.runtime.diagnose import CHECKS
from crashpath.runtime.values import Path as Which

MOST_RELEASES = 12
"""Releases that stand beside each other; the newest of them."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model in a release (``""``: none was named) with evidence; when it was traced and drilled last."""

    model: str
    release: str
    traced: datetime | None
    drilled: datetime | None

    @property
    def newest(self) -> datetime:
        """When the last evidence of it came."""
        return max(at for at in (self.traced, self.drilled) if at is not None)


@dataclass(frozen=True, slots=True)
class Figures:
    """What of one release is covered. ``newest`` is the last traced run that counts."""

    release: str
    main: Ratio
    fallback: Ratio
    routes: Ratio
    drills: Ratio
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class Age:
    """Evidence of one kind: how many there are, how many of them count, and when the newest came, in UTC."""

    kind: str
    there: int
    counted: int
    newest: datetime | None

    def days(self, now: datetime) -> float | None:
        """Days since the newest."""
        return None if self.newest is None else max(0.0, (now - self.newest) / _DAY)


@dataclass(frozen=True, slots=True)
class DrillRow:
    """The last drill of a fault in a phase, isolation and policy. ``cells`` are in the order of ``CELLS``.

    ``counts``: it is not too old, of the main path, and of a policy that is in use.
    """

    fault: str
    failure_class: str
    phase: str
    path: str
    isolation: str
    policy: str
    passed: bool
    cells: tuple[bool | None, ...]
    why: str
    requests: int
    unanswered: int
    wrong: int
    at: datetime
    counts: bool


@dataclass(frozen=True, slots=True)
class Beside:
    """A route drill, or a mix of many requests, as it ended last; ``why`` it is red or could not be driven."""

    what: str
    isolation: str
    policy: str
    verdict: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is known of one model in one release. ``field`` are the crashes of that release."""

    report: Report
    field: tuple[FieldRow, ...]
    ages: tuple[Age, ...]
    drills: tuple[DrillRow, ...]
    beside: tuple[Beside, ...]


def offers(session: Session) -> tuple[Offer, ...]:
    """Return every model and release with evidence: the ones traced last come first, those only drilled at the end."""
    drill = CoverageRun.origin == ORIGIN
    query = select(CoverageRun.model, CoverageRun.release, drill, func.max(CoverageRun.at))
    found: dict[tuple[str, str], dict[bool, datetime]] = {}
    for model, release, drilled, at in session.execute(query.group_by(CoverageRun.model, CoverageRun.release, drill)):
        found.setdefault((model, release), {})[bool(drilled)] = at
    there = [Offer(*key, told.get(False), told.get(True)) for key, told in sorted(found.items(), reverse=True)]
    return tuple(sorted(there, key=lambda one: (one.traced is not None, one.traced or one.newest), reverse=True))


def figures(
    session: Session, model: str, releases: Sequence[str], max_age: float, now: datetime
) -> tuple[Figures, ...]:
    """Return the figures of these releases of a model, each by its own artefacts, in the order given."""
    found = []
    for release in releases:
        report = _report(session, model, release, max_age, now)
        ratios = (report.main(), report.fallback(), report.taken(), report.drilled())
        found.append(Figures(release, *ratios, report.covered.newest))
    return tuple(found)


def view(session: Session, model: str, release: str, max_age: float, now: datetime) -> View:
    """Return what is known of a model in a release by evidence of at most ``max_age`` days before ``now``."""
    report = _report(session, model, release, max_age, now)
    since, until = now - timedelta(days=max_age), now + AHEAD
    rows = field_against_proof(
        session,
        [Names(check.id, check.prevents) for check in CHECKS],
        filters=Filters(release=release or None),
        model_hash=report.model_hash,
        release=release,
        since=since,
        until=until,
    )
    drills = _drills(session, report.model_hash, release, since, until)
    told = _told(session, report.model_hash, release)
    ages = (_traced(report), *_driven(session, report.model_hash, release, since, until), *_besides(told, since, until))
    return View(report, rows, ages, drills, _last(told, until))


def crashes_by_cell(rows: Iterable[FieldRow]) -> dict[tuple[str, str], int]:
    """Return the crashes of the field by failure class and phase."""
    return {(row.failure_class, part.phase): part.crashes for row in rows for part in row.parts}


def _report(session: Session, model: str, release: str, max_age: float, now: datetime) -> Report:
    hash = _hash(session, model, release, now)
    return stored_report(session, None, release, Asked(max_age), now=now, model_hash=hash, field=False)


def _hash(session: Session, model: str, release: str, now: datetime) -> str:
    """Return the artefacts of a model in a release: those traced last, else those drilled last."""
    run = newest_run(session, release=release, model=model, now=now)
    if run is not None:
        return run.model_hash
    query = select(CoverageRun.model_hash).where(CoverageRun.model == model, CoverageRun.release == release)
    return session.scalar(query.order_by(CoverageRun.at.desc(), CoverageRun.id.desc()).limit(1)) or ""


def _traced(report: Report) -> Age:
    mine = [left.run for left in report.left if left.run.model_hash == report.model_hash]
    ended = [run for run in (*report.covered.runs, *mine) if run.state is State.FINISHED]
    newest = max((run.ended or run.began for run in ended), default=None)
    return Age("traced runs of both paths", len(ended), len(report.covered.runs), newest)


def _driven(session: Session, model_hash: str, release: str, since: datetime, until: datetime) -> Iterable[Age]:
    query = select(Drill.path, Drill.at).where(Drill.model_hash == model_hash, Drill.release == release)
    found: dict[str, list[datetime]] = {Which.MAIN.value: []}
    for path, at in session.execute(query):
        found.setdefault(path, []).append(at)
    for path, times in found.items():
        kind = "drills of the main path" if path == Which.MAIN.value else "drills of the fallback"
        yield _age(kind, times, since, until)


def _besides(told: Sequence[Beside], since: datetime, until: datetime) -> Iterable[Age]:
    for kind, mixes in (("route drills", False), ("mixes of many requests", True)):
        yield _age(kind, [one.at for one in told if one.what.startswith(_MIX) is mixes], since, until)


def _age(kind: str, times: Sequence[datetime], since: datetime, until: datetime) -> Age:
    known = [at for at in times if at <= until]
    return Age(kind, len(known), sum(at >= since for at in known), max(known, default=None))


def _drills(session: Session, model_hash: str, release: str, since: datetime, until: datetime) -> tuple[DrillRow, ...]:
    """Return the last drills, the red ones first, then the newest."""
    query = (
        select(Drill)
        .where(Drill.model_hash == model_hash, Drill.release == release, Drill.at <= until)
        .order_by(Drill.at, Drill.id)
    )
    policies = policies_of_runs(session)
    last: dict[tuple[str, ...], DrillRow] = {}
    for drill in session.scalars(query):
        policy = policies.get(drill.run_id, "")
        row = DrillRow(
            drill.fault, drill.failure_class, drill.phase, drill.path, drill.isolation, policy, drill.passed,
            tuple(drill.cells.get(cell.id) for cell in CELLS), "; ".join(_whys(drill)), drill.requests,
            drill.unanswered, drill.wrong, drill.at,
            counts=drill.at >= since and drill.path == Which.MAIN and policy in IN_USE,
        )  # fmt: skip
        last[row.fault, row.phase, row.path, row.isolation, policy] = row
    return tuple(sorted(last.values(), key=lambda row: (row.passed, -row.at.timestamp(), row.failure_class, row.fault)))


def _whys(drill: Drill) -> Iterable[str]:
    """Say why cells do not hold, as ``crashpath drill`` does."""
    return (f"{name}: {why}" for name, why in drill.why.items() if drill.cells.get(name) is False)


_MIX = "mix of "


def _told(session: Session, model_hash: str, release: str) -> tuple[Beside, ...]:
    """Return route drills and mixes, the oldest first."""
    query = (
        select(CoverageRun.at, CoverageRun.detail)
        .where(CoverageRun.origin == ORIGIN, CoverageRun.model_hash == model_hash, CoverageRun.release == release)
        .order_by(CoverageRun.at, CoverageRun.id)
    )
    found = []
    for at, detail in session.execute(query):
        for one in (detail or {}).get(ROUTES, ()):
            route = f"route {one['scenario']}"
            found.append(Beside(route, one["isolation"], one["policy"], one["verdict"], one["why"] or "", at))
        for one in (detail or {}).get("mixes", ()):
            words = f"{one['requests']:,} requests met a fault: {one['unanswered']} unanswered, {one['wrong']} wrong"
            verdict = "red" if one["red"] else "green"
            found.append(Beside(f"{_MIX}{one['wanted']}", one["isolation"], str(one["policy"]), verdict, words, at))
    return tuple(found)


def _last(told: Sequence[Beside], until: datetime) -> tuple[Beside, ...]:
    last = {(one.what, one.isolation, one.policy): one for one in told if one.at <= until}
    order = {"red": 0, "null": 1, "green": 2}
    return tuple(sorted(last.values(), key=lambda one: (order.get(one.verdict, 3), one.what, one.isolation)))
