"""Route drills of the breaker and of what runs in shadow: probes, and answers that are compared."""

from __future__ import annotations

from crashpath.coverage.drillstage import Options
from crashpath.coverage.routescenario import Scenario
from crashpath.coverage.routescene import MEMORY, TURNS_WRONG, Scene
from crashpath.runtime import routes
from crashpath.runtime.opening import LaneSettings
from crashpath.runtime.policy import BreakerSettings
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

QUICK = BreakerSettings(calls=6, minimum=3, rate=0.5, open_s=2.0, probes=2)
"""Opens after some failures, and is half open soon."""
STAYS_OPEN = BreakerSettings(calls=6, minimum=3, rate=0.5, open_s=3600.0, probes=2)
NO_RATE = BreakerSettings(calls=100, minimum=100, rate=1.0)
"""Is opened by no rate of a few requests."""
OPEN, HALF_OPEN = routes.answered(routes.OPEN), routes.answered(routes.HALF_OPEN)
HANG = routes.answered(routes.stem(Phase.INFER, "hang"))
_ASLEEP = 6
"""How many deadlines a run sleeps that nobody waits for."""


def opens_and_closes(scene: Scene) -> None:
    """Failures open it, the fallback answers, probes pass, and the main path answers again."""
    scene.tripped()
    scene.answered(OPEN)
    _until_closed(scene)


def probe_fails(scene: Scene) -> None:
    """The main path still fails while it is probed: the breaker opens again, and closes once it is well."""
    scene.tripped()
    with scene.struck(Which.MAIN, Phase.INFER, MEMORY):
        _asked_until(scene, routes.PROBE_FAILED)
    _until_closed(scene)


def probe_differs(scene: Scene) -> None:
    """The main path answers otherwise than the fallback while it is probed: callers do not see that answer."""
    with scene.served(TURNS_WRONG):
        scene.tripped()
        _asked_until(scene, routes.PROBE_DIFFERS, "poison")


def both_while_open(scene: Scene) -> None:
    """The fallback fails, too, while the breaker is open."""
    scene.tripped()
    with scene.struck(Which.FALLBACK, Phase.INFER, MEMORY):
        scene.both_failed(routes.failed(routes.OPEN), "oom_host")


def too_many_abandoned(scene: Scene) -> None:
    """Runs that never come back take up all threads that may be given up on: that opens the breaker at once."""
    cap = LaneSettings().abandoned_cap
    deadline = scene.deadline_ms()
    seconds = f"{_ASLEEP * deadline / 1000:.1f}"
    with scene.struck(Which.MAIN, Phase.INFER, "waiting.sleeps", seconds, times=cap, least=cap):
        for _ in range(cap):
            scene.answered(HANG, deadline_ms=deadline)
    scene.counted(routes.ABANDONED)
    scene.answered(OPEN)


def compares(scene: Scene) -> None:
    """Each answer is compared: the fallback gives the same one, and then none."""
    scene.answered(routes.MAIN_ANSWERED)
    scene.counted(routes.COMPARE_EQUAL)
    with scene.struck(Which.FALLBACK, Phase.INFER, MEMORY):
        scene.answered(routes.MAIN_ANSWERED)
        scene.counted(routes.COMPARE_FAILED)


def compare_differs(scene: Scene) -> None:
    """The main path's answer is wrong, which nothing but the comparison can tell."""
    with scene.served(TURNS_WRONG):
        scene.answered(routes.MAIN_ANSWERED, kind="poison", right=False)
        scene.counted(routes.COMPARE_DIFFERS)


def _asked_until(scene: Scene, edge: str, kind: str = "golden") -> None:
    """Ask until the session took an edge in the background; the fallback answers meanwhile."""

    def taken() -> bool:
        scene.answered(OPEN, HALF_OPEN, kind=kind)
        return scene.count(edge) > 0

    scene.until(edge, taken)


def _until_closed(scene: Scene) -> None:
    def closed() -> bool:
        scene.answered(OPEN, HALF_OPEN, routes.MAIN_ANSWERED)
        return scene.count(routes.CLOSED_AGAIN) > 0

    scene.until(routes.CLOSED_AGAIN, closed)
    scene.answered(routes.MAIN_ANSWERED)


_HARD = "a worker that is late is killed, so no run is ever abandoned: it can be in the serving process alone"
_SAMPLED = Options(sample=1.0)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "breaker-opens-and-closes",
        (routes.TRIPPED, OPEN, routes.PROBING, HALF_OPEN, routes.PROBE_PASSED, routes.CLOSED_AGAIN),
        opens_and_closes,
        settings=QUICK,
    ),
    Scenario("probe-fails", (routes.PROBE_FAILED,), probe_fails, settings=QUICK),
    Scenario("probe-differs", (routes.PROBE_DIFFERS,), probe_differs, settings=QUICK),
    Scenario("both-fail-while-open", (routes.failed(routes.OPEN),), both_while_open, settings=STAYS_OPEN),
    Scenario(
        "too-many-abandoned",
        (routes.ABANDONED,),
        too_many_abandoned,
        settings=NO_RATE,
        not_in=(("process", _HARD),),
    ),
    Scenario("compare", (routes.COMPARE_EQUAL, routes.COMPARE_FAILED), compares, options=_SAMPLED),
    Scenario("compare-differs", (routes.COMPARE_DIFFERS,), compare_differs, options=_SAMPLED),
)
