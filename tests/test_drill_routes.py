"""Route drills: edges that no fault takes are taken for real, none is left without a scenario, and each can be red."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crashpath.coverage import routescene
from crashpath.coverage.drillcase import cases_of
from crashpath.coverage.drillcells import Verdict
from crashpath.coverage.drillfolder import built_in_folder
from crashpath.coverage.drillkept import Kept, planned
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillroutes import SCENARIOS, RouteRunner, scenarios_of
from crashpath.coverage.drillstage import Pace
from crashpath.coverage.drillstore import Evidence, drill_routes
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.route_units import declared_routes, route_drills
from crashpath.coverage.routescenario import NO_STEP, RouteResult, Scenario, impossible
from crashpath.coverage.routescene import NO_ROWS, Scene
from crashpath.coverage.routestore import route_reasons
from crashpath.dashboard.cli import run
from crashpath.dashboard.exits import Exit
from crashpath.ingest.store import open_store
from crashpath.runtime import routes
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.routes import ROUTES
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

PACE = Pace(load=20.0, recover=60.0)
AT = datetime(2026, 1, 2, tzinfo=UTC)
ANY_DRILL = {
    routes.MAIN_ANSWERED,
    routes.answered(routes.RESTARTING),
    routes.LOADED,
    routes.LOAD_FAILED,
    routes.DOWN,
    routes.RESTORED,
}
"""What every session of drills takes whose paths go and come back."""


def _scenario(name: str) -> Scenario:
    return next(one for one in SCENARIOS if one.id == name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    """The built-in model, with a deadline that a loaded machine keeps."""
    made = built_in_folder(tmp_path_factory.mktemp("model") / "tiny")
    return replace(made, limits=replace(made.limits, deadline_ms=8000.0))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.id)
def test_edges_are_taken_in_process(folder: ModelFolder, scenario: Scenario) -> None:
    """Each scenario takes all its edges in the serving process, and callers get what they say."""
    runner = RouteRunner(folder, "in_process", pace=PACE)
    result = runner.drive(scenario)
    assert result.verdict is Verdict.GREEN, result.why
    assert all(count > 0 for _, count in result.taken)
    assert set(scenario.edges) <= set(runner.routes)


@pytest.mark.parametrize(
    "name",
    [
        "breaker-opens-and-closes",
        "probe-differs",
        "main-back-first",
        "both-fail-while-restarting",
        "both-fail-while-loading",
        "main-busy",
        "fallback-late",
        "starts-degraded",
        "unknown-error",
        "session-closed",
    ],
)
def test_edges_are_taken_in_workers(folder: ModelFolder, name: str) -> None:
    """So do those that go another way where each path has a worker of its own: deaths, loads, turns, errors."""
    result = RouteRunner(folder, "process", pace=PACE).drive(_scenario(name))
    assert result.verdict is Verdict.GREEN, result.why
    assert all(count > 0 for _, count in result.taken)


def _by_faults() -> set[str]:
    """The edges that a fault of the catalogue takes, by its class and phases."""
    cases = [one for one in cases_of(FAULTS) if one.plan.path == Which.MAIN]
    return {
        routes.prepared(one.fault.failure_class)
        if one.phase is Phase.PREPARE
        else routes.answered(routes.stem(one.phase, one.fault.failure_class))
        for one in cases
    }


@pytest.mark.parametrize("policy", ["breaker", "sticky"])
def test_every_declared_edge_is_taken_or_has_a_reason(policy: str) -> None:
    """An edge that is declared is taken by a fault, by a route drill, or says why it is apart: a new edge needs one."""
    taken = ANY_DRILL | _by_faults() | set(route_drills(frozenset({policy})))
    left = [unit.id for unit in declared_routes(frozenset({policy})) if unit.counted and unit.id not in taken]
    assert left == []
    assert not {edge for one in SCENARIOS for edge in one.edges} - {route.id for route in ROUTES}


def test_scenarios_are_named_once() -> None:
    """Names are unique, each policy's edges are declared, and an isolation that is left out says why."""
    assert len({one.id for one in SCENARIOS}) == len(SCENARIOS)
    assert all(one.edges for one in SCENARIOS)
    assert all(set(dict(one.not_in)) < set(ISOLATIONS) for one in SCENARIOS)
    assert {one.id for one in scenarios_of("off")} == {"off-fails"}


@pytest.mark.parametrize(
    ("name", "policy", "told"),
    [
        ("another-class", "off", "NetworkAuth"),
        ("both-fail", "off", "HostMemory instead of NoAnswer|HostMemory"),
        ("sticky-switches", "account", "HostMemory|main:answered"),
        ("off-fails", "breaker", "an answer instead of HostMemory"),
    ],
)
def test_a_runtime_that_decides_otherwise_is_red(folder: ModelFolder, name: str, policy: str, told: str) -> None:
    """Where a failure does not go the way that the edge says, the route drill is red, and counts no edge."""
    runner = RouteRunner(folder, "in_process", pace=PACE)
    result = runner.drive(replace(_scenario(name), policy=policy))
    assert result.verdict is Verdict.RED
    assert any(one in result.why for one in told.split("|")), result.why
    assert not runner.routes


def test_a_wrong_answer_is_red(folder: ModelFolder) -> None:
    """An answer over the right edge that is not the model's is red."""
    scenario = _scenario("both-fail")

    def lead(scene: Scene) -> None:
        with scene.served(routescene.TURNS_WRONG):
            scene.answered(routes.MAIN_ANSWERED, kind="poison")

    result = RouteRunner(folder, "in_process", pace=PACE).drive(
        replace(scenario, lead=lead, edges=(routes.MAIN_ANSWERED,))
    )
    assert (result.verdict, result.why) == (Verdict.RED, "main:answered: the answer is wrong")


@pytest.mark.parametrize("edge", [routes.SATURATED, routes.COMPARE_DIFFERS])
def test_an_edge_that_is_not_counted_is_red(folder: ModelFolder, edge: str) -> None:
    """A scenario that names an edge which its session did not take is red, however well all went."""
    scenario = replace(_scenario("wrong-feed"), edges=(routes.INPUT_WRONG, edge))
    result = RouteRunner(folder, "in_process", pace=PACE).drive(scenario)
    assert (result.verdict, result.why) == (Verdict.RED, f"the session never counted {edge}")


def test_a_strike_that_does_not_hit_is_red(folder: ModelFolder) -> None:
    """What was armed and never raised proves nothing."""

    def lead(scene: Scene) -> None:
        with scene.struck(Which.FALLBACK, Phase.INFER, routescene.MEMORY):
            scene.answered(routes.MAIN_ANSWERED)

    scenario = replace(_scenario("wrong-feed"), lead=lead, edges=(routes.MAIN_ANSWERED,))
    result = RouteRunner(folder, "in_process", pace=PACE).drive(scenario)
    assert (result.verdict, "hit 0 times" in result.why) == (Verdict.RED, True)


def test_a_model_on_which_an_edge_cannot_be_taken(tmp_path: Path) -> None:
    """Without a tokenizer there is no prepare step, and without rows no request that differs by them: both are said."""
    runner = RouteRunner(tiny_folder(tmp_path / "model", kind="loop"), "in_process", pace=PACE)
    results = {
        one.scenario: one
        for one in runner.run([_scenario("prepare-fails"), _scenario("main-refuses"), _scenario("both-fail")])
    }
    assert [one.verdict for one in results.values()] == [Verdict.NULL, Verdict.NULL, Verdict.GREEN]
    assert (results["prepare-fails"].why, results["main-refuses"].why) == (NO_STEP, NO_ROWS)


def _result(verdict: Verdict, isolation: str, edge: str = routes.MAIN_REFUSED, why: str = "no rows") -> RouteResult:
    return RouteResult("main-refuses", isolation, "breaker", (edge,), verdict, why if verdict is Verdict.NULL else "")


def test_an_edge_is_impossible_only_where_no_isolation_takes_it() -> None:
    """One isolation that was not tried, or that took it or failed, leaves the edge in the denominator."""
    null = [_result(Verdict.NULL, isolation) for isolation in ISOLATIONS]
    assert impossible(tuple(null)) == {routes.MAIN_REFUSED: "cannot be driven here: no rows"}
    assert impossible((null[0],)) == {}
    assert impossible((null[0], _result(Verdict.GREEN, ISOLATIONS[1]))) == {}
    assert impossible((null[0], _result(Verdict.RED, ISOLATIONS[1]))) == {}


@contextmanager
def _kept(url: str) -> Iterator[Kept]:
    with open_store(url) as store:
        plan = planned((), (), ISOLATIONS, scenarios_of("breaker"))
        yield Kept(store, Evidence(AT, "1.0", "tiny", "abc", "breaker", ()), plan)


def test_results_are_stored_as_they_come(tmp_path: Path) -> None:
    """Each is in the run's detail with its reason, edges are counted, and the last word of a scenario counts."""
    url = f"sqlite:///{tmp_path}/drills.db"
    with _kept(url) as kept:
        for isolation in ISOLATIONS:
            kept.add_route(_result(Verdict.NULL, isolation), AT, (("torch", "2"),), ((routes.SPENT, 1),))
        assert kept.early.startswith("ended early: 0 of ")
        assert "route drills; these are kept" in kept.early
    with open_store(url, create=False) as store, store.read() as session:
        assert drill_routes(session, "abc") == {routes.SPENT: 1}
        assert set(route_reasons(session, "abc")) == {routes.MAIN_REFUSED}
        assert route_reasons(session, "abc", release="2.0") == {}
    with _kept(url) as kept:
        kept.add_route(_result(Verdict.GREEN, "process"), AT, (), ((routes.MAIN_REFUSED, 2),))
        kept.end(AT, ((routes.MAIN_REFUSED, 2),), whole=True)
    with open_store(url, create=False) as store, store.read() as session:
        assert route_reasons(session, "abc") == {}
        assert drill_routes(session, "abc") == {routes.SPENT: 1, routes.MAIN_REFUSED: 2}


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`drill --routes` alone takes edges, which the coverage report then counts; what it lists otherwise has that very
    command, or stands apart with the reason.
    """
    model = tiny_folder(tmp_path / "model", kind="loop", deadline_ms=8000.0)
    url = f"sqlite:///{tmp_path}/drills.db"
    few = tuple(one for one in scenarios_of("breaker") if one.id in ("wrong-feed", "prepare-fails", "main-refuses"))
    monkeypatch.setattr("crashpath.dashboard.cli_drill.scenarios_of", lambda policy: few)
    assert run(["drill", "--routes", "--model", str(model.path), "--json", "--db", url]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert [(one["scenario"], one["isolation"], one["verdict"]) for one in told["routes"]] == [
        (one.id, isolation, "green" if one.id == "wrong-feed" else "null") for isolation in ISOLATIONS for one in few
    ]
    assert (told["drills"], told["driven"], told["requests"]) == ([], 0, 0)
    assert run(["coverage", "--model", str(model.path), "--json", "--db", url]) == Exit.DONE
    report = json.loads(capsys.readouterr().out)
    gaps = {one["unit"]: one["command"] for one in report["uncovered"] if one["kind"] == "route"}
    command = f"crashpath drill --routes --model {model.path} --db {url}"
    assert routes.INPUT_WRONG not in gaps
    assert not {routes.MAIN_REFUSED, routes.PREPARE_FAILED} & set(gaps)
    assert gaps[routes.SATURATED] == command
    assert "--class hang" in gaps[routes.answered("infer:hang")]


def test_red_is_exit_6(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A red route drill makes the command's exit code 6, and says which and why."""
    red = replace(_scenario("wrong-feed"), edges=(routes.SATURATED,))
    monkeypatch.setattr("crashpath.dashboard.cli_drill.scenarios_of", lambda policy: (red,))
    assert run(["drill", "--routes", "--isolation", "in_process", "--no-store"]) == Exit.RED
    out = " ".join(capsys.readouterr().out.split())
    assert "1 route drill: 0 green, 1 red" in out
    assert "never counted fallback:saturated" in out
    assert "RED: wrong-feed/in_process" in out
    assert "crashpath drill --routes --isolation in_process" in out


def test_lines_for_people(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line a route drill, sums, a verdict; all within 80 columns, and no claim, as no fault was drilled."""
    few = tuple(one for one in scenarios_of("breaker") if one.id in ("wrong-feed", "deadline-spent"))
    monkeypatch.setattr("crashpath.dashboard.cli_drill.scenarios_of", lambda policy: few)
    assert run(["drill", "--routes", "--isolation", "in_process", "--no-store"]) == Exit.DONE
    out = capsys.readouterr().out
    assert "2 route drills to come" in out
    assert "2 route drills: 2 green, 0 red, 0 not driven here; 2 of 2 edges taken" in " ".join(out.split())
    assert out.splitlines()[-1] == "GREEN: every edge went as it says"
    assert "claim" not in out
    assert max(len(line) for line in out.splitlines()) <= 80
