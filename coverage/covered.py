"""Adds up traced runs: what of a model is covered, by evidence that counts.

Evidence counts where it is of the same artefacts (``model_hash``), not older than the policy allows, and not of a time
that is yet to come. What does not count is kept with the reason, so that a report can say why a figure fell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crashpath.coverage.placement import Placement, RunPlaced, placements
from crashpath.coverage.runfile import Run, Seen, State
from crashpath.coverage.units import Declared, Kind, Placed, Ratio, Shipped, Timing, Unit, ratio

AHEAD = timedelta(days=1)
"""By so much the clock of another machine may be ahead: a run that ended later would count for ever."""


@dataclass(frozen=True, slots=True)
class Left:
    """A run that does not count, and why."""

    run: Run
    why: str


@dataclass(frozen=True, slots=True)
class PathCoverage:
    """One path. ``hits`` add up over runs, ``units`` have the reasons of all.

    ``placed`` and ``shipped`` are of the newest run that has them; ``placement`` compares each run with what it asked
    for. ``problems`` are sentences of the runs: why counts may be too low.
    """

    path: str
    units: tuple[Unit, ...]
    hits: Mapping[str, int]
    timings: tuple[Timing, ...]
    placed: tuple[Placed, ...]
    shipped: Shipped | None
    placement: Placement | None = None
    problems: tuple[str, ...] = ()

    def ratio(self, kind: Kind) -> Ratio:
        """Covered units of a kind."""
        return ratio((unit for unit in self.units if unit.kind is kind), self.hits)

    def uncovered(self) -> tuple[Unit, ...]:
        """Counted units that no run has hit, in the artefact's order; those inside one that was not hit stay out."""
        dark = {unit.id for unit in self.units if unit.counted and not self.hits.get(unit.id)}
        dark -= {unit.id for unit in self.units if unit.kind is Kind.PAIR}  # thousands: a share says more than a list
        return tuple(unit for unit in self.units if unit.id in dark and unit.parent not in dark)

    def excluded(self) -> tuple[Unit, ...]:
        """Units that are in no denominator; each says why."""
        return tuple(unit for unit in self.units if not unit.counted)


@dataclass(frozen=True, slots=True)
class Covered:
    """What all runs that count have seen of one model. ``newest`` is when the last of them ended.

    ``asked`` are the providers that the run asked for whose nodes are `PathCoverage.placed`.
    """

    model: str
    model_hash: str
    paths: tuple[PathCoverage, ...]
    routes: Mapping[str, int]
    domain: Mapping[str, int]
    asked: tuple[str, ...]
    runs: tuple[Run, ...]
    left: tuple[Left, ...]
    newest: datetime | None

    def path(self, name: str) -> PathCoverage | None:
        """The path of that name, ``None`` where no run traced it."""
        return next((one for one in self.paths if one.path == name), None)


def add_up(runs: Iterable[Run], model_hash: str, *, now: datetime, max_age: timedelta | None = None) -> Covered:
    """Add up the runs that count for these artefacts."""
    counted: list[Run] = []
    left: list[Left] = []
    for run in sorted(runs, key=lambda one: (one.began, one.id)):
        why = _why_not(run, model_hash, now, max_age)
        if why:
            left.append(Left(run, why))
        else:
            counted.append(run)
    names = tuple(dict.fromkeys(seen.declared.path for run in counted for seen in run.seen))
    routes: Counter[str] = Counter()
    domain: Counter[str] = Counter()
    for run in counted:
        routes.update(run.routes)
        domain.update(run.domain)
    return Covered(
        model=counted[-1].model if counted else "",
        model_hash=model_hash,
        paths=tuple(_path(name, counted) for name in names),
        routes=dict(sorted(routes.items())),
        domain=dict(sorted(domain.items())),
        asked=next((run.asked for run in reversed(counted) if any(one.trace.placed for one in run.seen)), ()),
        runs=tuple(counted),
        left=tuple(left),
        newest=max((run.ended for run in counted if run.ended), default=None),
    )


def _why_not(run: Run, model_hash: str, now: datetime, max_age: timedelta | None) -> str:
    if run.state is State.LOST:
        return "its process ended before it could tell what it saw"
    if run.state is State.RUNNING:
        return "it has not ended yet"
    if run.model_hash != model_hash:
        return f"it is of other artefacts ({run.model_hash})"
    if (run.ended or run.began) - now > AHEAD:
        return f"it says that it ended on {run.ended or run.began:%Y-%m-%d}, which is yet to come; set that clock right"
    if max_age is not None and now - (run.ended or run.began) > max_age:
        return f"it is older than {max_age.days} days"
    return ""


def _path(name: str, runs: Sequence[Run]) -> PathCoverage:
    seen = [(run, one) for run in runs for one in run.seen if one.declared.path == name]
    hits: Counter[str] = Counter()
    for _, one in seen:
        hits.update(one.trace.hits)
    return PathCoverage(
        name,
        _units([one for _, one in seen], hits),
        dict(hits),
        _timings(one for _, one in seen),
        next((one.trace.placed for _, one in reversed(seen) if one.trace.placed), ()),
        next((one.trace.shipped for _, one in reversed(seen) if one.trace.shipped is not None), None),
        placements(RunPlaced(run.id, one.trace.placed, run.asked) for run, one in seen),
        tuple(f"run {run.id}: {problem}" for run, one in seen for problem in one.trace.problems),
    )


def _units(seen: Sequence[Seen], hits: Mapping[str, int]) -> tuple[Unit, ...]:
    """All declared units; what every run found replaced, and none ran, is in no denominator, for that reason."""
    gone = [one.trace.replaced for one in seen]
    declared: Declared = seen[-1].declared
    return tuple(
        Unit(unit.kind, unit.id, unit.label, unit.where, unit.parent, gone[-1][unit.id])
        if unit.counted and not hits.get(unit.id) and all(unit.id in one for one in gone)
        else unit
        for unit in declared.units
    )


def _timings(seen: Iterable[Seen]) -> tuple[Timing, ...]:
    calls: Counter[tuple[str, str, int]] = Counter()
    seconds: dict[tuple[str, str, int], float] = {}
    for one in seen:
        for timing in one.trace.timings:
            key = (timing.path, timing.operator, timing.batch)
            calls[key] += timing.calls
            seconds[key] = seconds.get(key, 0.0) + timing.seconds
    return tuple(Timing(*key, calls[key], seconds[key]) for key in sorted(calls))
