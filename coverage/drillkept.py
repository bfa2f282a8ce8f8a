"""A run of drills that is kept as it goes: what was driven is in the store before the next drill begins.

Whoever ends the run, and however, what came before stays: each drill is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from crashpath.coverage.drillcase import Case, not_here
from crashpath.coverage.drillcells import DrillResult, Verdict
from crashpath.coverage.drillmix import MixResult, mixable
from crashpath.coverage.drillstore import Evidence, add_to_run, begin_run
from crashpath.coverage.routescenario import RouteResult, Scenario
from crashpath.coverage.routestore import ROUTES, route_json
from crashpath.ingest.schema import Json
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import StoreBusy

WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Planned:
    """How much is to be driven: cases that can be driven in each isolation, mixes, and route drills."""

    drills: int
    mixes: int = 0
    routes: int = 0


def planned(
    cases: Sequence[Case], mixed: Sequence[Case], isolations: Sequence[str], scenarios: Sequence[Scenario] = ()
) -> Planned:
    """Count what these cases, a mix of ``mixed`` and these scenarios, in each isolation, come to here."""
    return Planned(
        sum(not_here(case, isolation) is None for isolation in isolations for case in cases),
        sum(bool(mixable(mixed, isolation)) for isolation in isolations),
        sum(one.not_here(isolation) is None for isolation in isolations for one in scenarios),
    )


class Kept:
    """What was driven so far, in memory and, where there is a store, in one run of it.

    A store that is locked by others gets it with the next drill. Other errors of the store are raised.
    """

    def __init__(self, store: Store | None, evidence: Evidence, plan: Planned) -> None:
        self.evidence = evidence
        self.plan = plan
        self.results: list[DrillResult] = []
        self.mixes: list[MixResult] = []
        self.routes: list[RouteResult] = []
        self._store = store
        self._run: int | None = None
        self._stored = (0, 0, 0)

    def add(
        self,
        result: DrillResult,
        at: datetime,
        versions: Sequence[tuple[str, str]] = (),
        routes: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Keep a drill that ended ``at``. ``versions`` and ``routes`` are those of the whole run up to now."""
        self.results.append(result)
        self.evidence = replace(self.evidence, versions=tuple(versions), routes=tuple(routes))
        self._store_what_waits(at)

    def add_mix(self, mix: MixResult, at: datetime) -> None:
        """Keep a mix."""
        self.mixes.append(mix)
        self.evidence = replace(self.evidence, versions=self.evidence.versions or mix.versions)
        self._store_what_waits(at)

    def add_route(
        self,
        result: RouteResult,
        at: datetime,
        versions: Sequence[tuple[str, str]] = (),
        routes: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Keep a route drill, as `add`."""
        self.routes.append(result)
        self.evidence = replace(self.evidence, versions=tuple(versions), routes=tuple(routes))
        self._store_what_waits(at)

    def _store_what_waits(self, at: datetime) -> None:
        try:
            self._flush(at, f"unfinished: {self.counted}")
        except StoreBusy:
            return  # it waits for the next drill, or the end

    def end(self, at: datetime, routes: Sequence[tuple[str, int]], *, whole: bool) -> None:
        """Store what waits still, and how the run ended. A run in which nothing came is none. Raises `StoreError`."""
        self.evidence = replace(self.evidence, routes=tuple(routes))
        if self.results or self.mixes or self.routes:
            self._flush(at, WHOLE if whole else f"ended early: {self.counted}; these are kept")

    def _flush(self, at: datetime, ended: str) -> None:
        if self._store is None:
            return
        drills, mixes, _ = self._stored
        with self._store.write() as session:
            run = self._run if self._run is not None else begin_run(session, self.evidence)
            told: Json = {"ended": ended, "planned": {"drills": self.plan.drills, "mixes": self.plan.mixes}}
            if self.plan.routes:
                told["planned"] |= {"routes": self.plan.routes}
                told[ROUTES] = [route_json(one) for one in self.routes]
            add_to_run(session, run, replace(self.evidence, at=at), self.results[drills:], self.mixes[mixes:], told)
        self._run, self._stored = run, self._all

    @property
    def _all(self) -> tuple[int, int, int]:
        return len(self.results), len(self.mixes), len(self.routes)

    @property
    def driven(self) -> int:
        """How many drills raised their fault."""
        return sum(one.verdict is not Verdict.NULL for one in self.results)

    @property
    def counted(self) -> str:
        """How far it came: ``140 of 174 driven``."""
        parts = []
        if self.plan.drills:
            parts.append(f"{self.driven} of {self.plan.drills} driven")
        if self.plan.mixes:
            parts.append(f"{len(self.mixes)} of {self.plan.mixes} mixes")
        if self.plan.routes:
            driven = sum(one.verdict is not Verdict.NULL for one in self.routes)
            parts.append(f"{driven} of {self.plan.routes} route drills")
        return ", ".join(parts) or "nothing was to be driven"

    @property
    def early(self) -> str:
        """What to say of a run that ended early."""
        whole = self._stored == self._all
        if self._store is None or not any(self._all):
            return f"ended early: {self.counted}"
        return f"ended early: {self.counted}; " + ("these are kept" if whole else "the last of them could not be kept")
