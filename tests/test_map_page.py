"""The page Map: what it says where there is a map, and where there is none; what is selected goes to triage."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest

from crashpath.clustering.places import FEWEST
from crashpath.dashboard import page_map
from crashpath.dashboard.map_view import read_map
from crashpath.dashboard.testing import a_night
from crashpath.ingest import deciding
from crashpath.ingest.decisions import By
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Signature
from crashpath.ingest.testing import EPOCH
from crashpath.ingest.trends import Filters

SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("map_samples.py"))))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(SAMPLE.make(tmp_path_factory.mktemp("map")))


def url_of(store: Store) -> str:
    return str(store.engine.url)


def said(app: AppTest) -> str:
    """All text of the page on which a person can read what it is about."""
    parts = [*app.caption, *app.info, *app.warning, *app.error, *app.subheader, *app.markdown]
    return "\n".join(str(one.value) for one in parts).replace("\\", "")


def figure(app: AppTest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(app.get("plotly_chart")[0].proto.spec)
    return found


def links(app: AppTest) -> dict[str, str]:
    return {one.proto.label: one.proto.query_string for one in app.get("page_link")}


def test_it_shows_the_map_and_counts_what_is_not_on_it(url: str, open_page: Any) -> None:
    """Rule: the picture, the same as a table, and a line on how much is on it."""
    app = open_page(url, "map")
    assert "7 signatures of 7 clusters · 1 new in night 2, with a ring · 1 signature without a place yet" in said(app)
    assert sum(len(trace["customdata"]) for trace in figure(app)["data"]) == 7 + 1  # with the ring
    table = app.dataframe[0].value
    assert list(table["crashes"]) == [5, 3, 2, 1, 1, 1, 1]
    assert app.get("plotly_chart")[0].proto.alt.startswith("Map of 7 signatures")


def test_an_address_names_what_is_looked_at(url: str, open_page: Any) -> None:
    """Rule: release, platform and class of an address are picked, and the picture is of them alone."""
    app = open_page(url, "map", release="2.0", platform="p0")
    assert "1 signature of 1 cluster" in said(app)
    assert app.selectbox(key="release").value == "2.0"
    app.selectbox(key="platform").select("p1").run()
    assert "2 signatures of 2 clusters" in said(app)


def test_days_are_counted_back_from_the_last_one_with_a_crash(url: str, open_page: Any) -> None:
    """Rule: a window ends with the last day that has a crash, however long ago that is."""
    assert "1 signature of 1 cluster" in said(open_page(url, "map", days="7"))


def test_a_value_that_nobody_knows_is_said(url: str, open_page: Any) -> None:
    """Rule: what an address names and the store does not have is told, as text; the rest is shown."""
    app = open_page(url, "map", release="**9.9**<b>")
    assert "**9.9**<b> in the address is not known here" in said(app)
    assert "7 signatures" in said(app)


def test_nothing_passes(url: str, open_page: Any) -> None:
    """Rule: where the filters let nothing pass, that is said in place of an empty picture."""
    app = open_page(url, "map", release="2.0", days="7")
    assert "No signature on the map passes these filters." in said(app)
    assert not app.get("plotly_chart")


def test_a_cluster_is_highlighted(url: str, open_page: Any) -> None:
    """Rule: a cluster that the address names stands out by its id, however it is written."""
    names = [trace["name"] for trace in figure(open_page(url, "map", cluster="c-1"))["data"]]
    assert "C-0001" in names


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("C-0999", "There is no cluster C-0999"),
        ("<b>x</b>", "'<b>x</b>' is not a cluster's id."),
        ("C-0001", "C-0001 has no signature on the map that passes these filters."),
    ],
)
def test_a_cluster_that_is_not_there_is_said(url: str, open_page: Any, wanted: str, sentence: str) -> None:
    """Rule: an id that means nothing, or nothing here, is told in a sentence; the map is shown all the same."""
    with open_store(url, create=False, read_only=True) as store, store.read() as session:
        elsewhere = "2.1" if read_map(session, Filters(release="2.0")).clusters.get(1) else "2.0"
    app = open_page(url, "map", cluster=wanted, release=elsewhere)
    assert sentence in said(app)
    assert app.get("plotly_chart")


def test_a_merged_cluster_is_followed(store: Store, tmp_path: Path, open_page: Any) -> None:
    """Rule: an old link to a cluster that went into another one highlights that one."""
    SAMPLE.fill(store, tmp_path)
    with store.write() as session:
        deciding.merge(session, 2, [1], By("eve", EPOCH))
    app = open_page(url_of(store), "map", cluster="C-0001")
    assert "C-0001 went into C-0002." in said(app)
    assert "C-0002" in [trace["name"] for trace in figure(app)["data"]]


def test_what_is_selected_goes_to_triage(url: str, open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: the clusters of selected points are listed, with a link to them that keeps the filters."""
    app = open_page(url, "map", release="2.1")
    numbers = sorted({one for trace in figure(app)["data"] for one in trace["customdata"]})[:2]
    chosen = SimpleNamespace(selection=SimpleNamespace(points=[{"customdata": one} for one in (*numbers, 999)]))
    monkeypatch.setattr("streamlit.plotly_chart", lambda *_a, **_k: chosen)
    app.run()
    assert not app.exception
    assert "Selected: 2 clusters" in said(app)
    assert len(app.dataframe[0].value) == 2
    address = parse_qs(links(app)["Open these in triage"])
    assert set(address["clusters"][0].split(",")) == {f"C-{one:04d}" for one in numbers}
    assert address["release"] == ["2.1"]


def test_of_very_many_the_largest_go_to_triage(url: str, open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: an address has room for so many; that it was cut is said."""
    monkeypatch.setattr(page_map, "MOST_LINKED", 3)
    monkeypatch.setattr(page_map, "MOST_ROWS", 2)
    app = open_page(url, "map")
    assert len(parse_qs(links(app)["Open the 3 largest in triage"])["clusters"][0].split(",")) == 3
    assert "The 2 with most crashes of 7 clusters." in said(app)


def test_hostile_text_is_shown_as_it_is(url: str, open_page: Any) -> None:
    """Rule: nothing of a root line is markup: in the table it is text, in the picture it is escaped."""
    app = open_page(url, "map", days="7")
    assert "<img src=x" in app.dataframe[0].value["name or root line"][0]
    assert "<img" not in json.dumps(figure(app))
    assert not app.get("html")


def test_an_empty_store_says_what_to_run(store: Store, open_page: Any) -> None:
    """Rule: without a crash there is no map, and the command that reads some is named."""
    assert "`crashpath nightly LOGS…`" in said(open_page(url_of(store), "map"))


def test_too_few_signatures_are_said(store: Store, tmp_path: Path, open_page: Any) -> None:
    """Rule: a store that is too small for a map says how many it needs and has, and what makes one."""
    SAMPLE.log(tmp_path / "a", SAMPLE.FIRST, 1)
    a_night(store, [tmp_path / "a"])
    app = open_page(url_of(store), "map")
    assert f"it needs {FEWEST} signatures with different texts, and this store has 6" in said(app)
    assert "crashpath nightly" in said(app)
    assert "See the clusters as a list" in links(app)


def test_a_store_before_its_first_map_says_so(
    store: Store, tmp_path: Path, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: a store of an older crashpath has signatures and no places: the next night makes the map."""
    SAMPLE.fill(store, tmp_path)
    monkeypatch.setattr(page_map, "FEWEST", 5)
    with store.write() as session:
        session.execute(update(Signature).values(map_x=None, map_y=None))
    assert "8 signatures and none has a place on the map yet. The next night makes the map" in said(
        open_page(url_of(store), "map")
    )
