"""The page Triage in Streamlit's own harness: what broke first, filters in the address, one cluster, one crash."""

from __future__ import annotations

import html
import re
import runpy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest

from crashpath.dashboard import triage_view
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.deciding import merge, name
from crashpath.ingest.decisions import By
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster

_SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("triage_samples.py"))))
BY = By("dana", datetime(2026, 3, 11, 8, tzinfo=UTC))
Open = Callable[..., AppTest]


@dataclass(frozen=True)
class Sample:
    """The bytes of the store of the samples, and the id of each text's cluster."""

    store: bytes
    ids: dict[str, str]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The samples, filled once."""
    folder = tmp_path_factory.mktemp("triage")
    with open_store(f"sqlite:///{folder}/crashpath.db") as store:
        numbers = _SAMPLE.fill(store, folder)
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    ids = {text: cluster_id(number) for text, number in numbers.items()}
    return Sample((folder / "crashpath.db").read_bytes(), ids)


@pytest.fixture
def url(sample: Sample, tmp_path: Path) -> str:
    """A store of its own for a test."""
    (tmp_path / "triage.db").write_bytes(sample.store)
    return f"sqlite:///{tmp_path}/triage.db"


@pytest.fixture
def written(url: str) -> Iterator[Store]:
    """The store, beside the page."""
    with open_store(url) as store:
        yield store


@pytest.fixture
def triage(open_page: Open, url: str) -> Open:
    """Open the page on the samples at a view; a class is asked for as ``of``."""

    def triage(**asked: str) -> AppTest:
        named = {"class" if key == "of" else key: value for key, value in asked.items()}
        return open_page(url, "triage", **named)

    return triage


def plain(text: str) -> str:
    """Text of Markdown without its escapes."""
    return text.replace("\\", "")


def links(page: AppTest) -> list[tuple[str, dict[str, str]]]:
    """The links of a page: what they are called, and the view that they lead to."""
    return [
        (plain(one.proto.label), {key: value[0] for key, value in parse_qs(one.proto.query_string).items()})
        for one in page.get("page_link")
    ]


def listed(page: AppTest) -> list[str]:
    """The clusters that rows lead to, in order."""
    return [view["cluster"] for _, view in links(page) if "cluster" in view]


def bodies(page: AppTest) -> str:
    """All HTML of a page."""
    return "".join(one.proto.body for one in page.get("html"))


def words(page: AppTest) -> str:
    """All that a page says, as plain text: Markdown without escapes, HTML without tags."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "text", "info", "warning", "error", "success")
    said = "\n".join(one.value for kind in kinds for one in page.get(kind))
    return plain(said) + "\n" + html.unescape(re.sub(r"<[^>]+>", " ", bodies(page)))


def test_the_page_says_first_what_broke_in_the_last_night(triage: Open) -> None:
    """The first thing on it are the counts of what broke, then when the night ended and how; each count is a link."""
    page = triage()
    assert page.subheader[0].value == "What broke: 2 new, 1 regressed, 1 spiking, 1 back."
    assert plain(page.markdown[0].value).startswith("Night 2 ended 2026-03-11 03:00 UTC")
    assert page.markdown[0].value.endswith("complete\\.")
    assert links(page)[:4] == [(f"{n} {kind}", {"mark": kind, "here": "1"}) for n, kind in
                               ((2, "new"), (1, "regressed"), (1, "spiking"), (1, "back"))]  # fmt: skip


def test_rows_answer_since_when_in_which_release_on_which_platform_and_whether_contained(
    triage: Open, sample: Sample
) -> None:
    """The clusters that broke stand first, each with its facts, and lead to their page in one click."""
    page = triage()
    ids = [sample.ids[text] for text in ("regressed", "new", "long", "spiking", "back", "steady", "event")]
    assert listed(page) == [*ids, sample.ids["muted"]]
    rows = [html.unescape(re.sub(r"<[^>]+>", " ", one.proto.body)) for one in page.get("html")]
    assert len(rows) == 7
    assert "regressed" in rows[0]
    assert "resolved in 1.1, seen in 1.1" in rows[0]
    assert "since 2026-03-01 in 1.0" in rows[0]
    assert "on k8s most (75.0 %), 2 platforms" in rows[0]
    assert "containment unknown" in rows[0]
    assert "new" in rows[1]
    assert "since 2026-03-10 in 1.1" in rows[1]
    assert "on k8s alone" in rows[1]
    assert "owner ana" in rows[5]
    assert "partly contained: 3 of 4 answered" in rows[6]


def test_muted_clusters_are_folded_away_with_their_number(triage: Open, sample: Sample) -> None:
    """They are in an expander, not among the rows."""
    page = triage()
    (folded,) = [one for one in page.expander if "muted" in one.label]
    assert folded.label == "1 muted cluster"
    assert sample.ids["muted"] in plain(folded.get("page_link")[0].proto.label)
    assert not folded.proto.expanded


FILTERS = {
    "release": ({"release": "1.1"}, {"spiking", "regressed", "new", "long", "steady"}),
    "platform": ({"platform": "windows"}, {"back"}),
    "model": ({"model": "m"}, {"event"}),
    "path": ({"path": "ort"}, {"event"}),
    "phase": ({"phase": "infer"}, {"event"}),
    "class": ({"of": "oom_device"}, {"spiking"}),
    "headline": ({"headline": "tokenizer"}, {"back"}),
    "mark": ({"mark": "new"}, {"new", "long"}),
    "owner": ({"owner": "ana"}, {"steady"}),
    "search": ({"search": "100%_done"}, {"steady"}),
    "since": ({"since": "2026-03-10", "platform": "windows"}, {"back"}),
    "until": ({"until": "2026-01-31"}, {"back"}),
    "class and headline": ({"of": "oom_device", "headline": "tokenizer"}, set()),
}


@pytest.mark.parametrize("case", FILTERS)
def test_each_filter_can_be_linked(triage: Open, sample: Sample, case: str) -> None:
    """A view's address opens it: the widgets show it, the list is of that alone, rows lead back to it."""
    asked, wanted = FILTERS[case]
    page = triage(**asked)
    (muted,) = {sample.ids["muted"]}
    assert {one for one in listed(page) if one != muted} == {sample.ids[text] for text in wanted}
    assert not page.warning
    for key, value in asked.items():
        assert str(page.session_state["class" if key == "of" else key]) == value
    for _, view in links(page):
        if "cluster" in view:
            back = {key: value[0] for key, value in parse_qs(view["back"]).items()}
            assert back == {"class" if key == "of" else key: value for key, value in asked.items()}


def test_a_widget_narrows_the_list_and_begins_at_its_first_page(
    triage: Open, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Picking a filter shows the first page of what passes; the pages are all of the list."""
    monkeypatch.setattr(triage_view, "PAGE", 3)
    page = triage()
    page.get("pagination")[0].set_value(2).run()
    assert listed(page)[:3] == [sample.ids[text] for text in ("spiking", "back", "steady")]
    page.selectbox(key="release").select("1.1").run()
    assert not page.exception
    assert listed(page)[:3] == [sample.ids[text] for text in ("new", "regressed", "long")]
    page.text_input(key="search").set_value("CUDA out").run()
    assert listed(page) == [sample.ids["spiking"]]


def test_chosen_clusters_and_days(triage: Open, sample: Sample) -> None:
    """A selection of the map is listed alone; the days of the weight may be all there are."""
    page = triage(clusters=f"{sample.ids['new']},{sample.ids['event']}")
    assert listed(page) == [sample.ids["new"], sample.ids["event"]]
    assert "2 chosen clusters" in words(page)
    assert "80 crashes" in words(triage(days="all"))


def test_what_nobody_knows_is_said_and_left_out(triage: Open) -> None:
    """Values of the address that are none of the store's, and no days, are named; the rest holds."""
    page = triage(
        release="9.9", mark="<b>", of="nope", owner="eve", since="yesterday", until="2026-02-31", days="5",
        clusters="C-1,<script>", platform="windows", show="Nothing",
    )  # fmt: skip
    told = plain("\n".join(one.value for one in page.warning))
    for value in ("9.9", "<b>", "nope", "eve", "yesterday", "2026-02-31", "5", "<script>"):
        assert f"“{value}”" in told
    assert len(page.warning) == 8
    assert not listed(triage(since="2026-03-10", until="2026-03-01"))
    assert "no day is left" in plain(triage(since="2026-03-10", until="2026-03-01").warning[0].value)


def test_the_crashes_behind_a_point_are_listed_newest_first(triage: Open, sample: Sample) -> None:
    """With the days and cohort of a point, its crashes are one click away, each with a link to it."""
    page = triage(show="Crashes", since="2026-03-10", until="2026-03-10", release="1.1", of="oom_device")
    found = [(label, view) for label, view in links(page) if "crash" in view]
    assert len(found) == 40
    assert found[0][0].startswith("2026-03-10 10:39:00 · torch.OutOfMemoryError: CUDA out of memory.")
    assert "2026-03-10 alone: 40 crashes" in words(page)
    crash = triage(crash=found[0][1]["crash"], back=found[0][1]["back"])
    assert f"To its cluster {sample.ids['spiking']}" in [label for label, _ in links(crash)]
    assert ("Back to the list", {"show": "Crashes"}) not in links(crash)
    (back,) = [view for label, view in links(crash) if label == "Back to the list"]
    assert (back["since"], back["release"], back["class"]) == ("2026-03-10", "1.1", "oom_device")
    assert "The newest 50 of 80 crashes" in words(triage(show="Crashes", days="all"))


def test_a_cluster_answers_on_its_page(triage: Open, sample: Sample) -> None:
    """Class, first and last seen with their releases, platforms, containment, root line with its rule, its text."""
    page = triage(cluster=sample.ids["spiking"])
    said = words(page)
    for told in (
        "▲ spiking: far more crashes", "40 crashes on 2026-03-10", "2026-02-26 in 1.0", "2026-03-10 in 1.1",
        "Out of device memory (oom_device)", "k8s (52)", "containment unknown", "52 crashes of 1 signature",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB", "Rule device-out-of-memory",
        'File "/srv/app/serve.py", line 8, in load', "root line: states the cause",
    ):  # fmt: skip
        assert told in said, told
    assert {frame.columns[0] for frame in (one.value for one in page.dataframe)} >= {"platform", "release", "phase"}


def test_parts_of_a_cluster_can_be_linked(triage: Open, sample: Sample) -> None:
    """Why it is one, its neighbours, its class and what happened: each has its address."""
    id = sample.ids["regressed"]
    assert "stands for the cluster" in words(triage(cluster=id))
    near = triage(cluster=id, part="Nearest clusters")
    assert [view["cluster"] for label, view in links(near) if "at distance" in label]
    assert "What to" not in words(triage(cluster=id, part="Class"))
    assert "class permission_disk, given by" in words(triage(cluster=id, part="Class")).lower()
    happened = words(triage(cluster=id, part="What happened"))
    assert "born as permission_disk" in happened
    assert "dana" in happened
    assert "resolved in 1.1" in happened


def test_an_event_cluster_says_what_came_of_its_attempts(triage: Open, sample: Sample) -> None:
    """Contained and unanswered attempts with their interval, and what would prove more."""
    said = words(triage(cluster=sample.ids["event"]))
    assert "partly contained: 3 of 4 answered" in said
    assert "75.0 % (19.4 to 99.4 %), 3 of 4" in said
    assert "crashpath drill --class hang" in said


def test_a_merged_cluster_leads_to_where_it_went(triage: Open, sample: Sample, written: Store) -> None:
    """It says so, links there, and is in no list."""
    gone, into = sample.ids["back"], sample.ids["steady"]
    with written.write() as session:
        merge(session, int(into[2:]), [int(gone[2:])], BY)
    page = triage(cluster=gone)
    assert plain(page.warning[0].value) == f"{gone} went into {into}."
    assert (f"Go to {into}", {"cluster": into, "here": "1"}) in links(page)
    assert gone not in listed(triage())


def test_a_retired_cluster_says_so(triage: Open, sample: Sample, written: Store) -> None:
    """A cluster without members is shown with what happened to it."""
    with written.write() as session:
        session.execute(update(Cluster).where(Cluster.id == int(sample.ids["long"][2:])).values(status="retired"))
    page = triage(cluster=sample.ids["long"])
    assert "retired" in words(page)


@pytest.mark.parametrize("asked", [
    {"cluster": "C-9999"}, {"cluster": "<script>"}, {"cluster": "C-" + "9" * 400}, {"crash": "99999"},
    {"crash": "-1"}, {"crash": "<b>"}, {"crash": "9" * 400}, {"crash": "٣"},
])  # fmt: skip
def test_an_id_that_is_none_is_said(triage: Open, asked: dict[str, str]) -> None:
    """One sentence, and the way to the list."""
    page = triage(**asked)
    assert len(page.error) == 1
    assert len(plain(page.error[0].value)) < 300
    assert links(page)[0][0] == "Back to the list"


def test_hostile_text_is_inert_in_the_list_in_a_cluster_and_in_a_crash(triage: Open, sample: Sample) -> None:
    """Markup, Markdown, colours of terminals and direction marks of a log are shown as they stand, everywhere."""
    id = sample.ids["new"]
    crashes = triage(show="Crashes", clusters=id)
    number = next(view["crash"] for _, view in links(crashes) if "crash" in view)
    pages = (triage(), triage(cluster=id), triage(cluster=id, part="Nearest clusters"), crashes, triage(crash=number))
    for page in pages:
        assert "\x1b" not in words(page)
        assert "\u202e" not in words(page)
        assert "<script" not in bodies(page)
        for kind in ("subheader", "markdown", "caption", "info", "warning"):
            for one in page.get(kind):
                assert not re.search(r"(?<!\\)(?:\*\*bold|\[link|<script|`code|</script)", one.value), one.value
        for one in page.get("page_link"):
            assert not re.search(r"(?<!\\)(?:\*\*bold|\[link|<script|`code)", one.proto.label)
    assert "<script>alert(1)</script> **bold** [link](javascript:alert(2)) `code`" in words(pages[-1])
    assert "\\u202egnp.exe" in html.unescape(bodies(pages[-1]))


def test_a_very_long_line_is_cut_and_that_is_said(triage: Open, sample: Sample) -> None:
    """Nothing that goes to the browser has all of it."""
    page = triage(cluster=sample.ids["long"])
    assert "Not shown: what 1 line has beyond 600 characters." in words(page)
    assert len(words(page)) < 12_000
    assert "x" * 2_500 not in words(page)
    assert "x" * 500 not in words(triage())


def test_names_of_people_are_inert(triage: Open, sample: Sample, written: Store) -> None:
    """A name that a person gave is text, too."""
    with written.write() as session:
        name(session, int(sample.ids["steady"][2:]), "**loud** <img src=x> [a](b)", BY)
    page = triage(cluster=sample.ids["steady"])
    assert plain(page.subheader[0].value) == f"{sample.ids['steady']} · **loud** <img src=x> [a](b)"
    assert "\\*\\*loud" in page.subheader[0].value
    assert "<img" not in bodies(page)


def test_a_page_that_only_shows_offers_nothing_that_writes(
    triage: Open, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``read_only`` the cluster is shown without the panel that decides."""
    assert "Decide" in [one.value for one in triage(cluster=sample.ids["steady"]).subheader]
    monkeypatch.setenv("CRASHPATH_READ_ONLY", "1")
    page = triage(cluster=sample.ids["steady"])
    assert "Decide" not in [one.value for one in page.subheader]
    assert not page.button


def test_a_store_without_crashes_says_what_to_run(tmp_path: Path, open_page: Open) -> None:
    """No store, an empty one, and one that is none."""
    for file in ("none", "empty"):
        if file == "empty":
            open_store(f"sqlite:///{tmp_path}/empty.db").close()
        for asked in ({}, {"cluster": "C-0001"}, {"crash": "1"}):
            page = open_page(f"sqlite:///{tmp_path}/{file}.db", "triage", **asked)
            assert "crashpath nightly" in page.info[0].value
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    broken = open_page(f"sqlite:///{tmp_path}/broken.db", "triage")
    assert "not a SQLite database" in plain(broken.error[0].value)


def test_a_rerun_reads_from_memory(triage: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same view again asks the store for nothing but whether it changed."""
    page = triage()
    asked: list[Any] = []
    monkeypatch.setattr(triage_view, "_rows", lambda *args: asked.append(args) or iter(()))
    started = time.monotonic()
    page.run()
    assert not page.exception
    assert time.monotonic() - started < 60  # else the minute for which it is kept may be over
    assert len(asked) <= 1
