"""The page Coverage, run by Streamlit's own test harness: figures, squares, gaps with commands, ages, drills."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crashpath.ingest.store import Store, open_store

MAKE = runpy.run_path(str(Path(__file__).parent / "coverage_stores.py"))
trace, drill, beside, crashes = (MAKE[name] for name in ("trace", "drill", "beside", "crashes"))
Open = Callable[..., AppTest]
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
HOSTILE = "<script>alert(1)</script> [x](http://evil) *b*"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder: no policy lies in it."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with crashes, three releases of one model, and one of another; nobody writes to it."""
    folder = tmp_path_factory.mktemp("coverage")
    url = f"sqlite:///{folder}/store.db"
    with open_store(url) as store:
        crashes(store, folder, ["MemoryError", "MemoryError", "ModuleNotFoundError: No module named 'tokenizers'"])
        trace(store, NOW - 9 * DAY, release="1.0", hits=5)
        trace(store, NOW - 2 * DAY)
        trace(store, NOW - 3 * DAY, model="other", release="7.0")
        trace(store, NOW - 60 * DAY, release="0.9")
        drill(store, NOW - DAY)
        drill(store, NOW - DAY, False, phase="infer")
        drill(store, NOW - DAY, None, phase="warmup")
        drill(store, NOW - 50 * DAY, release="0.9")
        beside(store, NOW - DAY, red=True)
    return url


def words(page: AppTest) -> str:
    """Everything that the page says, without what Markdown needs to show signs as they are."""
    kinds = ("markdown", "header", "subheader", "caption", "info", "warning", "error", "success", "code")
    return "\n".join(one.value for one in page.main if one.type in kinds).replace("\\", "")


def metrics(page: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in page.metric}


def table(page: AppTest, column: str) -> dict[str, list[str]]:
    """The first table with this column, by column."""
    frame = next(one.value for one in page.dataframe if column in one.value)
    return {name: list(frame[name]) for name in frame}


def test_what_is_covered_comes_first(url: str, open_page: Open) -> None:
    """Of the release traced last: both paths, routes and drills with their counts, and releases beside each other."""
    page = open_page(url, "coverage")
    found = metrics(page)
    assert (found["main path, nodes"], found["fallback, operators"]) == ("90.0 %", "50.0 %")
    assert "9 of 10" in words(page)
    assert (page.selectbox(key="model").value, page.selectbox(key="release").value) == ("scores", "2.1")
    beside_each_other = table(page, "main path, nodes")
    assert beside_each_other["release"] == ["2.1", "1.0", "0.9"]
    assert beside_each_other["main path, nodes"] == ["90.0 %, 9 of 10", "50.0 %, 5 of 10", "0.0 %, 0 of 10"]


def test_the_field_and_what_stands_against_it(url: str, open_page: Open) -> None:
    """Shares with counts: two crashes are in a class and phase of which a drill passed, for one a check exists."""
    page = open_page(url, "coverage")
    found = metrics(page)
    assert (found["contained"], found["preventable"], found["without proof"]) == ("66.7 %", "33.3 %", "0.0 %")
    said = words(page)
    assert "1 crash; a check exists" in said
    assert "no drill that counts shows them contained:** dependency" in said
    squares = table(page, "why not")
    at = [place for place, name in enumerate(squares["class"]) if name == "oom_host"]
    states = {squares["phase"][place]: squares["drills"][place] for place in at}
    assert (states["load"], states["infer"]) == ("✓ passed", "✗ red")


def test_gaps_have_the_command_that_closes_them(url: str, open_page: Open) -> None:
    """Grouped, with what to give to it; long lists are folded and whole."""
    page = open_page(url, "coverage")
    commands = [one.value for one in page.code]
    assert "crashpath coverage --trace DIR --feed FILE.npz --release 2.1" in commands
    assert "crashpath drill --all --model DIR --release 2.1" in commands
    said = words(page)
    assert "nodes of the main path that no run reached: 1" in said
    assert "/9:Add: Add" in said
    assert any("more" in one.label for one in page.expander)


def test_drills_with_their_cells(url: str, open_page: Open) -> None:
    """The red ones first, each cell with its sign, and why it does not hold."""
    drills = table(open_page(url, "coverage"), "raised")
    assert drills["result"] == ["✗ red", "✓ green"]
    assert (drills["raised"][0], drills["equal"][0]) == ("✓", "✗")
    assert drills["why"][0] == "equal: two answers differ"
    routes = table(open_page(url, "coverage"), "what")
    assert routes


def test_old_evidence_is_marked(url: str, open_page: Open, tmp_path: Path) -> None:
    """What the policy takes for too old does not count, and the page says so; the policy says how old that is."""
    page = open_page(url, "coverage", release="0.9")
    assert "Too old to count: traced runs of both paths (60.0 days), drills of the main path (50.0 days)" in words(page)
    assert metrics(page)["main path, nodes"] == "0.0 %"
    assert "✗ too old: does not count" in table(page, "state")["state"]
    (tmp_path / "policy.toml").write_text("[coverage]\nmax_age_days = 90\n")
    page = open_page(url, "coverage", release="0.9")
    assert "older than 90 days" in words(page)
    assert metrics(page)["main path, nodes"] == "90.0 %"
    (tmp_path / "policy.toml").write_text("[coverage]\nmax_days = 90\n")
    page = open_page(url, "coverage")
    assert "max_days. `crashpath policy` lists all keys. The default age is taken." in words(page)


def test_placement_and_problems(tmp_path: Path, store: Store, open_page: Open) -> None:
    """Nodes that ran where nobody asked for are told, and problems of a run are warnings that show log text as text."""
    trace(store, NOW - DAY, problem=f"the profile broke off at {HOSTILE}")
    said = words(open_page(store.engine.url.render_as_string(), "coverage"))
    assert "9 nodes ran on the processor, which nobody asked for" in said
    assert f"the profile broke off at {HOSTILE}" in said


def test_another_model_and_release(url: str, open_page: Open) -> None:
    """They are picked, or stand in the address; of another model its own releases are offered."""
    page = open_page(url, "coverage", model="other")
    assert page.selectbox(key="release").value == "7.0"
    page = open_page(url, "coverage", release="1.0")
    assert metrics(page)["main path, nodes"] == "50.0 %"
    page.selectbox(key="model").select("other").run()
    assert not page.exception
    assert page.selectbox(key="release").value == "7.0"


def test_names_that_nobody_knows(url: str, open_page: Open) -> None:
    """They are said, as text, and the newest is shown."""
    page = open_page(url, "coverage", model=HOSTILE, release="9.9")
    said = "\n".join(one.value for one in page.warning)
    assert "<script>" not in said
    assert f"no coverage and no drill of the model {HOSTILE} in the address; scores is shown" in said.replace("\\", "")
    assert "the release 9.9" in said.replace("\\", "")
    assert metrics(page)["main path, nodes"] == "90.0 %"


def test_latency_of_the_other_path(url: str, open_page: Open) -> None:
    """Which path stands in the address."""
    page = open_page(url, "coverage", latency="fallback")
    assert table(page, "of all time")["operator"] == ["aten::add"]
    assert table(open_page(url, "coverage"), "of all time")["batch 8"] == ["5"]


def test_hostile_names(store: Store, open_page: Open) -> None:
    """A model, a release and an operator of any name are shown as text."""
    trace(store, NOW - DAY, model=HOSTILE, release=HOSTILE, name=HOSTILE)
    page = open_page(store.engine.url.render_as_string(), "coverage")
    raw = "\n".join(one.value for one in page.main if one.type in ("markdown", "caption", "warning", "header"))
    assert "<script>" not in raw
    assert "[x](http" not in raw
    assert f"{HOSTILE} abc" in words(page)


def test_no_evidence_says_what_makes_some(tmp_path: Path, open_page: Open) -> None:
    """With crashes and without: the two commands are there to be copied."""
    url = f"sqlite:///{tmp_path}/crashes.db"
    with open_store(url) as store:
        crashes(store, tmp_path, ["MemoryError"])
    page = open_page(url, "coverage")
    assert [one.value for one in page.code] == [
        "crashpath coverage --trace DIR --release R",
        "crashpath drill --all --model DIR --release R",
    ]
    assert "nothing is proven of the two paths" in words(page)
    assert "crashpath nightly" not in words(page)
    open_store(f"sqlite:///{tmp_path}/empty.db").close()
    assert "crashpath nightly" in words(open_page(f"sqlite:///{tmp_path}/empty.db", "coverage"))
