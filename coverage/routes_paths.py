"""Route drills in which both paths are in trouble, one of them is busy, or the session starts without one."""

from __future__ import annotations

from crashpath.coverage.drillstage import Options
from crashpath.coverage.routes_breaker import OPEN, STAYS_OPEN
from crashpath.coverage.routescenario import Scenario
from crashpath.coverage.routescene import MEMORY, OF_MEMORY, Scene, Unmet, held
from crashpath.runtime import routes
from crashpath.runtime.errors import DeadlineExceeded, HostMemory, InputError, Saturated
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

BUSY = routes.answered(routes.BUSY)
OTHER = routes.answered(routes.stem(Phase.INFER, routes.OTHER))
_SLEEPS = "waiting.sleeps"
_SLOW_LOAD, _SLOWER_LOAD = "2", "5"
"""Seconds that a load waits before it goes on: so that a path is away for certain, whichever model it is."""
_BRIEF_MS = 1500.0
"""A deadline in which a path that loads so slowly does not come back."""
_PATIENT_MS = 60_000.0


def _ends(scene: Scene) -> str:
    """Return how the fallback is struck down: killed where it has a worker of its own. Both are told as memory."""
    return "process.killed" if scene.stage.isolation == "process" else MEMORY


def main_back_first(scene: Scene) -> None:
    """The main path restarts, the fallback goes down with the request: it waits, and the main path answers."""
    with (
        scene.struck(Which.MAIN, Phase.LOAD, _SLEEPS, _SLOW_LOAD, times=1),
        scene.struck(Which.FALLBACK, Phase.INFER, _ends(scene), times=1),
    ):
        scene.stage.take_down(Which.MAIN)
        scene.answered(routes.MAIN_AGAIN)


def both_while_restarting(scene: Scene) -> None:
    """The main path restarts, the fallback goes down with the request, and neither is back by its deadline."""
    with (
        scene.struck(Which.MAIN, Phase.LOAD, _SLEEPS, _SLOWER_LOAD, times=1) as loads,
        scene.struck(Which.FALLBACK, Phase.INFER, _ends(scene), times=1),
    ):
        scene.stage.take_down(Which.MAIN)
        scene.both_failed(routes.failed(routes.RESTARTING), "oom_host", _BRIEF_MS)
        scene.until("the load of the main path", lambda: loads() > 0)


def both_while_loading(scene: Scene) -> None:
    """The main artefact is cut in half, and the fallback fails, too."""
    with scene.spoiled("cut"), scene.struck(Which.FALLBACK, Phase.INFER, MEMORY):
        scene.stage.take_down(Which.MAIN)
        scene.down(Which.MAIN, Phase.LOAD)
        scene.until_both_failed(routes.failed("load:*"))


def both_while_warming_up(scene: Scene) -> None:
    """The main path gets no memory for its warm-up, and the fallback fails, too."""
    with (
        scene.struck(Which.MAIN, Phase.WARMUP, MEMORY),
        scene.struck(Which.FALLBACK, Phase.INFER, MEMORY),
    ):
        scene.stage.take_down(Which.MAIN)
        scene.down(Which.MAIN, Phase.WARMUP)
        scene.until_both_failed(routes.failed("warmup:*"))


def both_fail(scene: Scene) -> None:
    """Both paths fail at one request."""
    with (
        scene.struck(Which.MAIN, Phase.INFER, MEMORY),
        scene.struck(Which.FALLBACK, Phase.INFER, MEMORY),
    ):
        scene.both_failed(routes.failed("infer:*"), "oom_host")


def main_is_busy(scene: Scene) -> None:
    """A long request is on the main path; another one's turn does not come, and the fallback answers it."""
    deadline = scene.deadline_ms()
    seconds = 1.3 * deadline / 1000
    with scene.struck(Which.MAIN, Phase.INFER, _SLEEPS, f"{seconds:.1f}", times=1) as hits:
        long = scene.beside(deadline_ms=_PATIENT_MS + 8000 * seconds)
        scene.until("the long request on the main path", lambda: hits() > 0)
        scene.answered(BUSY, deadline_ms=deadline)
        held(long.ended(scene.patience + seconds), routes.MAIN_ANSWERED)


def fallback_is_full(scene: Scene) -> None:
    """The fallback takes one request at a time, and has a long one."""
    scene.tripped()
    deadline = scene.deadline_ms()
    seconds = 1.5 * deadline / 1000
    with scene.struck(Which.FALLBACK, Phase.INFER, _SLEEPS, f"{seconds:.1f}", times=1) as hits:
        long = scene.beside(deadline_ms=_PATIENT_MS + 8000 * seconds)
        scene.until("the long request on the fallback", lambda: hits() > 0)
        scene.refused(routes.SATURATED, Saturated, deadline)
        held(long.ended(scene.patience + seconds), OPEN)


def fallback_is_late(scene: Scene) -> None:
    """The fallback does not answer by the deadline."""
    scene.tripped()
    deadline = scene.deadline_ms()
    with scene.struck(Which.FALLBACK, Phase.INFER, _SLEEPS, f"{2 * deadline / 1000:.1f}", times=1):
        scene.refused(routes.LATE, DeadlineExceeded, deadline)


def fallback_refuses(scene: Scene) -> None:
    """A library within the fallback refuses the feed as the caller's mistake."""
    scene.tripped()
    with scene.struck(Which.FALLBACK, Phase.INFER, "graph.refuses", "{fixed_shapes}", times=1):
        scene.refused(routes.FALLBACK_REFUSED, InputError)


def another_class(scene: Scene) -> None:
    """The main path fails in a way that is not expected of a request: something is fetched, and refused."""
    with scene.struck(Which.MAIN, Phase.INFER, "host.fetch", "{address-401}", times=1):
        cause = _cause(scene, OTHER)
    if cause != "network_auth":
        raise Unmet(f"{OTHER}: the cause is told as {cause}")


def _cause(scene: Scene, edge: str) -> str:
    answer = scene.answered(edge).answer
    return "" if answer is None or answer.cause is None else answer.cause.failure_class


def starts_degraded(scene: Scene) -> None:
    """The main artefact is cut in half as the session opens: the fallback answers until it is whole again."""
    scene.counted(routes.START_DEGRADED)
    scene.answered()
    scene.ready(Which.MAIN)
    scene.answered(routes.MAIN_ANSWERED)


def switched(scene: Scene) -> None:
    """Policy sticky: the first failure leaves the main path for good; later the fallback fails, too."""
    with scene.struck(Which.MAIN, Phase.INFER, MEMORY, times=1):
        scene.answered(OF_MEMORY)
    scene.answered(routes.answered(routes.SWITCHED))
    with scene.struck(Which.FALLBACK, Phase.INFER, MEMORY):
        scene.both_failed(routes.failed(routes.SWITCHED), "oom_host")


def second_failure(scene: Scene) -> None:
    """Policy account: the first failure is answered, the second is the caller's."""
    with scene.struck(Which.MAIN, Phase.INFER, MEMORY, times=2, least=2):
        scene.answered(OF_MEMORY)
        scene.refused(routes.SECOND, HostMemory)


def switched_off(scene: Scene) -> None:
    """Policy off: a failure is the caller's."""
    with scene.struck(Which.MAIN, Phase.INFER, MEMORY, times=1):
        scene.refused(routes.OFF_FAILED, HostMemory)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("main-back-first", (routes.MAIN_AGAIN,), main_back_first, options=Options(deadline_ms=_PATIENT_MS)),
    Scenario("both-fail-while-restarting", (routes.failed(routes.RESTARTING),), both_while_restarting),
    Scenario("both-fail-while-loading", (routes.failed("load:*"),), both_while_loading),
    Scenario("both-fail-while-warming-up", (routes.failed("warmup:*"),), both_while_warming_up),
    Scenario("both-fail", (routes.failed("infer:*"),), both_fail),
    Scenario("main-busy", (BUSY,), main_is_busy),
    Scenario(
        "fallback-full",
        (routes.SATURATED,),
        fallback_is_full,
        settings=STAYS_OPEN,
        options=Options(fallback_slots=1),
    ),
    Scenario("fallback-late", (routes.LATE,), fallback_is_late, settings=STAYS_OPEN),
    Scenario("fallback-refuses", (routes.FALLBACK_REFUSED,), fallback_refuses, settings=STAYS_OPEN),
    Scenario("another-class", (OTHER,), another_class),
    Scenario("starts-degraded", (routes.START_DEGRADED,), starts_degraded, options=Options(broken="cut")),
    Scenario(
        "sticky-switches",
        (routes.answered(routes.SWITCHED), routes.failed(routes.SWITCHED)),
        switched,
        policy="sticky",
    ),
    Scenario("account-second", (routes.SECOND,), second_failure, policy="account"),
    Scenario("off-fails", (routes.OFF_FAILED,), switched_off, policy="off"),
)
