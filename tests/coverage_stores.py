"""Evidence for the tests of the page Coverage: traced runs, drills, route drills, mixes and crashes, kept as they are
by the commands, but made up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from crashpath.coverage.covstore import store_run
from crashpath.coverage.drillcells import CELLS, Cell, DrillResult, Verdict, none_apply
from crashpath.coverage.drillmix import MixResult
from crashpath.coverage.drillstore import Evidence, add_to_run, begin_run
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.routescenario import RouteResult
from crashpath.coverage.routestore import ROUTES, route_json
from crashpath.coverage.runfile import Run, Seen
from crashpath.coverage.units import Declared, Kind, Placed, Timing, Trace, Unit
from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.store import Store
from crashpath.runtime.values import Path as Which

CATALOGUE = {one.id: one for one in FAULTS}
OOM, FILE = "model-bytes-refused", "model-killed"
"""Faults of the catalogue, both of the class oom_host."""


def trace(
    store: Store, at: datetime, *, release: str = "2.1", model: str = "scores", model_hash: str = "abc", hits: int = 9,
    problem: str = "", name: str = "Add",
) -> None:  # fmt: skip
    """Keep a traced run that ended then, which hit so many of 10 nodes, and one of 2 operators."""
    nodes = tuple(Unit(Kind.NODE, f"/{one}:{name}", name) for one in range(10))
    ops = tuple(Unit(Kind.OP, f"/{one}:aten::add", "aten::add") for one in range(2))
    timings = (Timing(Which.MAIN, name, 1, 10, 0.02), Timing(Which.MAIN, name, 8, 10, 0.05))
    placed = tuple(Placed(one.id, name, "CPUExecutionProvider", "CPUExecutionProvider") for one in nodes[:hits])
    run = Run(
        f"run-{model}-{release}-{model_hash}-{at:%m%d%H}", "trace", model, model_hash, release, at, at,
        asked=("CUDAExecutionProvider",),
        seen=(
            Seen(
                Declared(Which.MAIN, nodes),
                Trace(
                    Which.MAIN, {one.id: 1 for one in nodes[:hits]}, timings, placed,
                    problems=(problem,) if problem else (),
                ),
            ),
            Seen(
                Declared(Which.FALLBACK, ops),
                Trace(Which.FALLBACK, {ops[0].id: 2}, (Timing(Which.FALLBACK, "aten::add", 1, 4, 0.1),)),
            ),
        ),
        routes={"main:answered": 2},
    )  # fmt: skip
    with store.write() as session:
        assert store_run(session, run)


def drill(
    store: Store, at: datetime, passed: bool | None = True, *, release: str = "2.1", model: str = "scores",
    model_hash: str = "abc", fault: str = OOM, phase: str = "load", isolation: str = "process",
    policy: str = "breaker", path: str = "ort",
) -> None:  # fmt: skip
    """Keep a drill of then; one that is ``None`` could not be driven."""
    failure_class = CATALOGUE[fault].failure_class
    cells = tuple(
        Cell(one.id, passed if one.id == "equal" else True, "two answers differ" if not passed else "") for one in CELLS
    )
    if passed is None:
        cells = none_apply("this machine has no such device")
    result = DrillResult(fault, failure_class, phase, isolation, policy, path, cells, requests=2)
    evidence = Evidence(at, release, model, model_hash, policy, (("torch", "2"),))
    with store.write() as session:
        add_to_run(session, begin_run(session, evidence), evidence, [result], (), {})


def beside(store: Store, at: datetime, *, red: bool, release: str = "2.1", model_hash: str = "abc") -> None:
    """Keep a run with one route drill and one mix of ten requests; both red, or none."""
    evidence = Evidence(at, release, "scores", model_hash, "breaker", (("torch", "2"),))
    verdict = Verdict.RED if red else Verdict.GREEN
    route = RouteResult("busy-fallback", "process", "breaker", ("a -> b",), verdict, "never taken" if red else "")
    mix = MixResult(
        10, "process", "breaker, patient", (), 10, 20, int(red), 0, 0, 0, ((OOM, 10),), 1, (), (("torch", "2"),)
    )
    with store.write() as session:
        add_to_run(session, begin_run(session, evidence), evidence, (), [mix], {ROUTES: [route_json(route)]})


def crashes(store: Store, folder: Path, errors: Sequence[str], release: str = "2.1") -> None:
    """Let one load fail with each of these errors."""
    place = folder / "logs" / release
    place.mkdir(parents=True)
    for number, error in enumerate(errors):
        where = f"/srv/app/{error.partition(':')[0]}.py"
        frames = f'  File "{where}", line 3, in load\n    go()\n'
        (place / f"{number}.log").write_text(f"Traceback (most recent call last):\n{frames}{error}\n")
    a_night(store, [folder / "logs"], NightOptions(feed=FeedOptions(patterns=("{release}/*.log",))))
