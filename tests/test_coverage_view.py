"""What the page Coverage reads: figures as the command has them, squares, ages, the last drills, the field."""

from __future__ import annotations

import json
import runpy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from plotly.graph_objects import Figure

from crashpath.coverage.field import Standing
from crashpath.coverage.latency import heat
from crashpath.coverage.report import Cell
from crashpath.coverage.units import Ratio, Timing
from crashpath.dashboard.cli import run
from crashpath.dashboard.coverage_grid import SIGNS, State, grid
from crashpath.dashboard.coverage_pictures import (
    STANDING_PATTERNS,
    STATES,
    by_release,
    latency,
    milliseconds,
    short,
    squares,
    standings,
)
from crashpath.dashboard.coverage_view import View, crashes_by_cell, figures, offers, view
from crashpath.ingest.store import Store

MAKE = runpy.run_path(str(Path(__file__).parent / "coverage_stores.py"))
trace, drill, beside, crashes = (MAKE[name] for name in ("trace", "drill", "beside", "crashes"))
KILLED = MAKE["FILE"]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTILE = "<script>alert(1)</script>\u202e"


def seen(store: Store, release: str = "2.1", model: str = "scores") -> View:
    with store.read() as session:
        return view(session, model, release, 30, NOW)


def test_releases_with_evidence(any_store: Store) -> None:
    """The one traced last comes first, those that were drilled alone at the end, each with when that was."""
    trace(any_store, NOW - 3 * DAY, release="1.0")
    trace(any_store, NOW - 2 * DAY, release="2.1")
    trace(any_store, NOW - 9 * DAY, release="", model="other")
    drill(any_store, NOW - DAY, release="1.0")
    drill(any_store, NOW - DAY, release="3.0")
    with any_store.read() as session:
        found = offers(session)
    assert [(one.model, one.release) for one in found] == [
        ("scores", "2.1"), ("scores", "1.0"), ("other", ""), ("scores", "3.0"),
    ]  # fmt: skip
    assert (found[1].traced, found[1].drilled) == (NOW - 3 * DAY, NOW - DAY)
    assert (found[3].traced, found[3].newest) == (None, NOW - DAY)


def test_figures_of_releases(any_store: Store) -> None:
    """Each release is counted by its own artefacts, and by evidence that is not too old."""
    trace(any_store, NOW - 3 * DAY, release="1.0", model_hash="old", hits=5)
    trace(any_store, NOW - 2 * DAY, release="2.1", hits=9)
    trace(any_store, NOW - 90 * DAY, release="0.9", hits=9)
    drill(any_store, NOW - DAY, release="3.0")
    with any_store.read() as session:
        one, two, aged, drilled = figures(session, "scores", ("1.0", "2.1", "0.9", "3.0"), 30, NOW)
    assert (one.main, two.main, aged.main) == (Ratio(5, 10), Ratio(9, 10), Ratio(0, 10))
    assert two.fallback == Ratio(1, 2)
    assert (two.newest, aged.newest) == (NOW - 2 * DAY, None)
    assert (drilled.main, drilled.drills.covered) == (Ratio(0, 0), 1)


def test_figures_are_those_of_the_command(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """What ``crashpath coverage --json`` says of a release, the page says too."""
    now = datetime.now(UTC)
    trace(store, now - DAY)
    drill(store, now - DAY)
    capsys.readouterr()
    assert run(["coverage", "--release", "2.1", "--json", "--db", store.engine.url.render_as_string()]) == 0
    told = json.loads(capsys.readouterr().out)
    with store.read() as session:
        (one,) = figures(session, "scores", ("2.1",), 30, now)
        report = view(session, "scores", "2.1", 30, now).report
    for name in ("main", "fallback", "routes", "drills"):
        assert told[name] == {"covered": getattr(one, name).covered, "total": getattr(one, name).total}
    assert [gap["unit"] for gap in told["uncovered"]] == [gap.unit for gap in report.gaps]


def test_what_the_field_has_against_it(store: Store, tmp_path: Path) -> None:
    """Crashes of the release alone count; a passing drill contains its class and phase, a check is said to exist."""
    crashes(store, tmp_path, ["MemoryError", "MemoryError", "ModuleNotFoundError: No module named 'tokenizers'"])
    crashes(store, tmp_path / "more", ["MemoryError"], release="1.0")
    trace(store, NOW - DAY)
    drill(store, NOW - DAY)
    shown = seen(store)
    rows = {row.failure_class: row for row in shown.field}
    assert (rows["oom_host"].crashes, rows["oom_host"].standing) == (2, Standing.CONTAINED)
    assert rows["dependency"].standing is Standing.CHECKED
    assert crashes_by_cell(shown.field)["oom_host", "load"] == 2
    figure = standings(shown.field)
    assert sum(value for bar in figure.data for value in bar.x) == 3
    assert len({bar.marker.pattern.shape for bar in figure.data}) == len(STANDING_PATTERNS)


def test_evidence_grows_old(any_store: Store) -> None:
    """Of each kind it is told how many there are, how many of them count, and when the newest came."""
    trace(any_store, NOW - 90 * DAY)
    trace(any_store, NOW - 40 * DAY)
    drill(any_store, NOW - 40 * DAY)
    drill(any_store, NOW - 2 * DAY)
    drill(any_store, NOW - 2 * DAY, path="torchscript")
    beside(any_store, NOW - 50 * DAY, red=False)
    ages = {one.kind: one for one in seen(any_store).ages}
    traced = ages["traced runs of both paths"]
    assert (traced.there, traced.counted, traced.days(NOW)) == (2, 0, 40)
    drilled = ages["drills of the main path"]
    assert (drilled.there, drilled.counted, drilled.newest) == (2, 1, NOW - 2 * DAY)
    assert ages["drills of the fallback"].counted == 1
    assert (ages["route drills"].there, ages["route drills"].counted) == (1, 0)
    assert (ages["mixes of many requests"].there, ages["mixes of many requests"].counted) == (1, 0)


def test_the_last_drills(any_store: Store) -> None:
    """Of each fault, phase, isolation and policy the last one is shown, the red ones first, with why; it is said which
    count."""
    drill(any_store, NOW - 3 * DAY, False)
    drill(any_store, NOW - 2 * DAY, True)
    drill(any_store, NOW - 2 * DAY, False, isolation="in_process")
    drill(any_store, NOW - 2 * DAY, True, policy="account")
    drill(any_store, NOW - 2 * DAY, True, path="torchscript")
    drill(any_store, NOW - 90 * DAY, True, fault=KILLED)
    drill(any_store, NOW - 2 * DAY, None, phase="infer")
    rows = seen(any_store).drills
    assert len(rows) == 5
    assert (rows[0].passed, rows[0].isolation) == (False, "in_process")
    assert rows[0].why == "equal: two answers differ"
    assert rows[0].cells == (True,) * 5 + (False,) + (True,) * 2
    assert [row.counts for row in rows].count(True) == 2
    assert rows[-1].fault == KILLED


def test_route_drills_and_mixes(any_store: Store) -> None:
    """The last of each, the red ones first, with why."""
    beside(any_store, NOW - 3 * DAY, red=False)
    beside(any_store, NOW - 2 * DAY, red=True)
    mix, route = seen(any_store).beside
    assert (route.what, route.verdict, route.why) == ("route busy-fallback", "red", "never taken")
    assert (mix.what, mix.verdict) == ("mix of 10", "red")
    assert mix.why == "10 requests met a fault: 1 unanswered, 0 wrong"
    beside(any_store, NOW - DAY, red=False)
    assert {one.verdict for one in seen(any_store).beside} == {"green"}


def test_squares_of_class_and_phase() -> None:
    """Each says how its last drills ended, why none can be driven, and what the field weighs; nothing is left out."""
    cells = (
        Cell("oom_host", "load", 2, 0, 3, NOW), Cell("oom_host", "infer", 1, 1, 3, NOW),
        Cell("hang", "infer", 0, 0, 2, None),
        Cell("tokenizer", "prepare", 0, 0, 1, None, "cannot be driven here: no step"),
    )  # fmt: skip
    found = grid(cells, {("oom_host", "load"): 1200, ("hang", "warmup"): 3, ("unclassified", "unknown"): 9})
    states = {(one.failure_class, one.phase): one for one in found.all}
    assert found.classes == ("oom_host", "unclassified", "hang", "tokenizer")
    assert found.phases[-1] == "unknown"
    assert states["oom_host", "load"].state is State.PASSED
    assert states["oom_host", "infer"].state is State.RED
    assert states["hang", "infer"].state is State.NEVER
    assert states["tokenizer", "prepare"].state is State.CANNOT
    assert states["tokenizer", "prepare"].words.startswith("tokenizer in prepare: cannot be driven here: no step")
    assert states["hang", "warmup"].state is states["unclassified", "unknown"].state is State.NO_FAULT
    assert sum(one.crashes for one in found.all) == 1212
    figure = squares(found)
    (shown,) = figure.data
    assert shown.text[0][1] == f"{SIGNS[State.PASSED]} 1.2k"
    assert len(set(STATES.values())) == len(set(SIGNS.values())) == len(State)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0"), (999, "999"), (1_000, "1.0k"), (12_340, "12k"), (1_500_000, "1.5M"), (2e9, "2.0G")]
)
def test_counts_fit_in_squares(count: float, words: str) -> None:
    """Four characters at most."""
    assert short(int(count)) == words


def test_latency_is_milliseconds_a_call() -> None:
    """By operator and batch; what never ran is empty."""
    timings = (
        Timing("ort", "MatMul", 1, 10, 0.02),
        Timing("ort", "MatMul", 8, 10, 0.5),
        Timing("ort", "Add", 1, 5, 0.001),
    )
    (shown,) = latency(heat(timings, "ort")).data
    assert [list(row) for row in shown.text] == [["2", "50"], ["0.2", ""]]
    assert list(shown.x) == ["1", "8"]
    assert milliseconds(123_456) == "123"


def test_names_are_no_markup(store: Store, tmp_path: Path) -> None:
    """Operators, releases and reasons of drills can be anything; in pictures they are letters."""
    trace(store, NOW - DAY, release=HOSTILE, name=HOSTILE)
    drill(store, NOW - DAY, None, release=HOSTILE)
    shown = seen(store, HOSTILE)
    with store.read() as session:
        found = figures(session, "scores", (HOSTILE,), 30, NOW)
    timings = [one for path in shown.report.covered.paths for one in path.timings]
    for figure in (
        by_release(found),
        squares(grid(shown.report.drills, {(HOSTILE, "load"): 1})),
        latency(heat(timings, "ort")),
    ):
        _inert(figure)


def _inert(figure: Figure) -> None:
    texts = json.dumps(json.loads(figure.to_json()), ensure_ascii=False).replace("<br>", "")
    assert "<" not in texts
    assert "\u202e" not in texts
