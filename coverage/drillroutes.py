"""Route drills: every edge of the decision graph that no fault of the catalogue takes, taken for real.

A scenario names its edges, opens a session of its own on a copy of the model folder, made of the lanes of production,
and is led over them by real faults, real wrong feeds and real waiting. It is judged by what callers get.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crashpath.coverage import routes_breaker, routes_caller, routes_paths
from crashpath.coverage.drillcells import Verdict
from crashpath.coverage.drillfolder import tokenizer_file
from crashpath.coverage.drillstage import Pace, opened
from crashpath.coverage.routescenario import NO_STEP, RouteResult, Scenario
from crashpath.coverage.routescene import NotHere, Scene, Unmet
from crashpath.runtime.backends import CPU
from crashpath.runtime.folder import ModelFolder

SCENARIOS: tuple[Scenario, ...] = (*routes_breaker.SCENARIOS, *routes_paths.SCENARIOS, *routes_caller.SCENARIOS)


def scenarios_of(policy: str) -> tuple[Scenario, ...]:
    """Return the scenarios whose edges a policy takes."""
    return tuple(one for one in SCENARIOS if one.policy == policy)


class RouteRunner:
    """Leads scenarios. ``routes`` counts the edges that they took, of green ones alone: a red one proves nothing."""

    def __init__(
        self, folder: ModelFolder, isolation: str, *, pace: Pace | None = None, providers: tuple[str, ...] = (CPU,)
    ) -> None:
        self._folder = folder
        self._isolation = isolation
        self._pace = pace or Pace()
        self._providers = providers
        self.routes: Counter[str] = Counter()
        self.versions: tuple[tuple[str, str], ...] = ()

    def run(self, scenarios: Sequence[Scenario]) -> Iterator[RouteResult]:
        """Yield the result of each. Raises as `opened`."""
        for scenario in scenarios:
            yield self.drive(scenario)

    def drive(self, scenario: Scenario) -> RouteResult:
        """Lead a session over the edges of one scenario."""
        began = time.monotonic()
        why = scenario.not_here(self._isolation)
        if scenario.prepares and tokenizer_file(self._folder) is None:
            why = NO_STEP
        nothing = RouteResult(scenario.id, self._isolation, scenario.policy, scenario.edges, Verdict.NULL, why or "")
        if why is not None:
            return nothing
        policy = scenario.session_policy()
        with opened(
            self._folder,
            self._isolation,
            policy,
            pace=self._pace,
            options=scenario.options,
            providers=self._providers,
        ) as stage:
            self.versions = self.versions or tuple(stage.versions().items())
            scene = Scene(stage)
            verdict, why = _led(scenario, scene)
            routes = Counter(dict(stage.session.facts().figures.routes))
        missed = [edge for edge in scenario.edges if not routes[edge]]
        if verdict is Verdict.GREEN and missed:
            verdict, why = Verdict.RED, f"the session never counted {', '.join(missed)}"
        if verdict is Verdict.GREEN:
            self.routes += routes
        taken = tuple((edge, routes[edge]) for edge in scenario.edges)
        return replace(
            nothing,
            verdict=verdict,
            why=why,
            taken=taken,
            requests=scene.requests,
            seconds=time.monotonic() - began,
        )


def _led(scenario: Scenario, scene: Scene) -> tuple[Verdict, str]:
    try:
        scenario.lead(scene)
        scene.ended()
    except NotHere as reason:
        return Verdict.NULL, str(reason)
    except Unmet as told:
        return Verdict.RED, str(told)
    return Verdict.GREEN, ""
