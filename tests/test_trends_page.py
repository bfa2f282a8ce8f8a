"""The page Trends, run by Streamlit's own test harness: rates, counts, every filter, the address, what is behind it."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from crashpath.dashboard import page_trends_lines, page_trends_marks
from crashpath.dashboard.intervals import rate
from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.review_words import rate_words
from crashpath.dashboard.testing import a_night
from crashpath.dashboard.trends_model import Asked, By, Rates, Window
from crashpath.dashboard.trends_rates import rates_of
from crashpath.dashboard.trends_view import read_failed, read_told
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.store import open_store

_SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("trends_samples.py"))))
FIRST, LAST = _SAMPLE.FIRST, _SAMPLE.LAST
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nMemoryError: <script>alert(1)</script>\n'
HOSTILE = "<b>[x](http://e)`*"
OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of the sample's store."""
    return _made(tmp_path_factory.mktemp("trends"), attempts=True)


@pytest.fixture(scope="module")
def untold(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a store with the same crashes, of which nobody told attempts."""
    return _made(tmp_path_factory.mktemp("untold"), attempts=False)


def _made(folder: Path, *, attempts: bool) -> str:
    url = f"sqlite:///{folder}/store.db"
    with open_store(url) as store:
        _SAMPLE.fill(store, folder, attempts=attempts)
    return url


def expected(url: str, unit: str = "deployment", **more: Any) -> Rates:
    """Return the rates of all days, computed apart from the page."""
    window = Window(FIRST, LAST, None)
    asked = Asked(unit, By.NOTHING, Measure.PRIMARY, more.get("release"), more.get("platform"), window)
    with open_store(url) as store, store.read() as session:
        return rates_of(read_told(session, _SAMPLE.TODAY), read_failed(session, FIRST, LAST), asked)


def figures(page: AppTest) -> dict[str, str]:
    """Return the headline figures."""
    return {one.label: one.value for one in page.metric}


def words(page: AppTest) -> str:
    """Return what captions, messages and headings say, with the marks taken away that keep it from being Markdown."""
    told = [*page.caption, *page.info, *page.warning, *page.subheader, *page.markdown]
    return "\n".join(one.value for one in told).replace("\\", "")


def drawn(page: AppTest) -> list[dict[str, Any]]:
    """Return the pictures."""
    return [json.loads(one.proto.spec) for one in page.get("plotly_chart")]


def named(picture: dict[str, Any]) -> list[str]:
    """Return the names of what has a legend in a picture."""
    return [one["name"] for one in picture["data"] if one.get("name") and one.get("showlegend") is not False]


def test_headline_figures_come_first(url: str, open_page: OpenPage) -> None:
    """Failure rate, unanswered rate, contained share and crashes, with counts and interval."""
    page, rates = open_page(url, days="all"), expected(url)
    tally = rates.tally
    assert figures(page) == {
        "Failure rate": rate_words(rate(tally.primary, tally.tried)),
        "Unanswered rate": rate_words(rate(tally.unanswered, tally.attempts)),
        "Contained share": rate_words(rate(tally.primary - tally.unanswered, tally.primary)),
        "Crashes": figures(page)["Crashes"],
    }
    assert f"{tally.primary:,} of {tally.tried:,}." in words(page)
    assert "No deployments are told on 2 days, where the line has a gap." in words(page)
    assert "of release 1.2, of which no deployments are told" in words(page)


def test_the_window_before_is_beside_the_window(url: str, open_page: OpenPage) -> None:
    """Of 14 of 21 days the days before are seven: rates are compared, counts of fewer days are not."""
    page = open_page(url, days="14")
    assert f"Figures of {LAST - timedelta(13)} to {LAST} (UTC), beside the 7 days before." in words(page)
    failure, *_, crashes = page.metric
    assert failure.delta.endswith(" points")
    assert crashes.delta == ""


@pytest.mark.parametrize("unit", ["deployment", "request"])
def test_a_unit_is_counted_alone(url: str, open_page: OpenPage, unit: str) -> None:
    """Only units that attempts are told of can be picked, and each has its own figures."""
    page = open_page(url, days="all")
    assert page.selectbox(key="unit").options == ["deployment", "request"]
    page.selectbox(key="unit").select(unit).run()
    tally = expected(url, unit).tally
    assert f"{tally.primary:,} of {tally.tried:,}." in words(page)


@pytest.mark.parametrize(("key", "value"), [("release", "1.1"), ("platform", "k8s")])
def test_a_filter_narrows_all_of_the_page(url: str, open_page: OpenPage, key: str, value: str) -> None:
    """A release or a platform: figures, lines and classes are its own."""
    page = open_page(url, days="all")
    page.selectbox(key=key).select(value).run()
    assert not page.exception
    rates = expected(url, **{key: value})
    assert f"{rates.tally.primary:,} of {rates.tally.tried:,}." in words(page)
    failures = [row for row in page.dataframe[0].value.itertuples() if row.failures == row.failures]
    assert sum(row.failures for row in failures) == rates.tally.primary
    classes = page.dataframe[-2].value
    assert set(classes["of"]) == {rates.tally.tried}


@pytest.mark.parametrize(
    ("by", "names"), [("release", ["1.0", "1.1"]), ("platform", ["linux", "k8s"]), ("path", ["main path", "fallback"])]
)
def test_each_has_a_line_of_its_own(url: str, open_page: OpenPage, by: str, names: list[str]) -> None:
    """By release, platform or path: a line and a name in the legend for each, and all of them in the table."""
    page = open_page(url, days="all", by=by)
    assert sorted(named(drawn(page)[0])) == sorted(names)
    assert set(page.dataframe[0].value["line"]) == set(names)
    assert ("those that reached it" in words(page)) == (by == "path")


def test_what_is_shown_can_be_picked(url: str, open_page: OpenPage) -> None:
    """Unanswered in the place of primary; by path it is said what each line counts, and there is nothing to pick."""
    page = open_page(url, days="all", unit="request")
    page.selectbox(key="measure").select("unanswered").run()
    table = page.dataframe[0].value
    assert table["failures"].sum() == expected(url, "request").tally.unanswered
    assert page.subheader[0].value == "Unanswered rate by day"
    page.selectbox(key="by").select("path").run()
    assert [one.key for one in page.selectbox if one.key == "measure"] == []


def test_days_without_attempts_have_no_rate_in_the_table(url: str, open_page: OpenPage) -> None:
    """The table has the same gaps as the line."""
    table = open_page(url, days="all").dataframe[0].value
    assert set(table[table["rate"].isna()]["day"]) == _SAMPLE.SILENT


def test_a_path_is_counted_not_rated(url: str, open_page: OpenPage) -> None:
    """With a path chosen the page says why it counts crashes, and has no rate anywhere."""
    page = open_page(url, days="all", path="ort")
    assert "Failed attempts are not kept by path" in page.info[0].value
    assert set(figures(page)) == {"Crashes", "OOM", "load timeout", "tokenizer", "ONNX shape inference", "other"}
    assert "rate" not in page.dataframe[0].value


def test_without_attempts_there_are_counts_and_what_would_tell(untold: str, open_page: OpenPage) -> None:
    """No attempts at all: counts by day, and the commands that tell attempts."""
    page = open_page(untold, days="all", by="release")
    assert "`crashpath attempts FILE`" in page.info[0].value
    assert "--attempts FILE" in page.info[0].value
    assert page.subheader[0].value == "Crashes by day and release"
    assert set(named(drawn(page)[0])) == {"1.0", "1.1", "1.2", "unknown"}
    assert page.dataframe[0].value["crashes"].sum() == int(figures(page)["Crashes"].replace(",", ""))
    assert [one.key for one in page.selectbox if one.key in ("unit", "measure")] == []


def test_a_release_without_attempts_is_counted(url: str, open_page: OpenPage) -> None:
    """Attempts of others are no denominator of it."""
    page = open_page(url, days="all", release="1.2")
    assert "No deployments are told of these days with these filters" in page.info[0].value
    assert page.subheader[0].value == "Crashes by day"


def test_a_headline_opens_into_its_classes(url: str, open_page: OpenPage) -> None:
    """Both pictures show the classes of the headline that is opened, and the table keeps both levels."""
    page = open_page(url, days="all", unit="request")
    assert drawn(page)[1]["data"][0]["y"] == ["OOM", "other"]
    page.selectbox(key="headline").select("OOM").run()
    assert drawn(page)[1]["data"][0]["y"] == ["oom_device"]
    assert [one["name"] for one in drawn(page)[2]["data"]] == ["oom_device"]
    assert {"all of it", "oom_device", "hang"} <= set(page.dataframe[-2].value["class"])


def test_the_address_has_the_whole_view(url: str, open_page: OpenPage) -> None:
    """Everything that can be picked is taken from the address."""
    asked = {"unit": "request", "by": "release", "measure": "contained", "release": "1.1", "platform": "linux"}
    page = open_page(url, days="14", headline="other", **asked)
    chosen = {one.key: one.value for one in page.selectbox}
    assert chosen.items() >= (asked | {"days": "14", "headline": "other", "path": "all"}).items()
    assert not page.warning


@pytest.mark.parametrize("key", ["unit", "days", "release", "platform", "path", "by", "measure", "headline"])
def test_an_unknown_value_in_the_address_is_said(url: str, open_page: OpenPage, key: str) -> None:
    """What nobody knows is named, as text, and left out."""
    page = open_page(url, **{key: HOSTILE})
    assert len(page.warning) == 1
    assert (
        page.warning[0].value.replace("\\", "").startswith(f"{page.selectbox(key=key).label} {HOSTILE} in the address")
    )
    assert "[x](" not in page.warning[0].value
    assert "Failure rate" in figures(page)


def test_a_broken_parameter_is_no_traceback(url: str, open_page: OpenPage) -> None:
    """Values of megabytes and with control characters are cut and spelled out."""
    page = open_page(url, release="\x1b[31m\u202e" + "x" * 100_000)
    assert len(page.warning[0].value) < 500


def test_marks_have_a_row_above_the_lines(url: str, open_page: OpenPage) -> None:
    """What the night bore is new on its first day, in the picture and in the table."""
    page = open_page(url, days="all")
    marks = [one for one in drawn(page)[0]["data"] if one.get("yaxis") == "y2"]
    assert [set(one["y"]) for one in marks] == [{"new"}]
    table = page.dataframe[1].value
    assert set(table["mark"]) == {"new"}
    assert sum(len(one["x"]) for one in marks) == table["day"].nunique()
    of_a_path = open_page(url, days="all", path="ort").dataframe[1].value
    assert set(of_a_path["class"]) == {"hang", "oom_device"}
    assert 0 < len(of_a_path) < len(table)


def test_marks_of_a_large_store_come_after_the_pictures(
    url: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is drawn without them, looks for them, and is drawn once more, then and ever after with them."""
    monkeypatch.setattr(page_trends_marks, "LARGE", 10)
    monkeypatch.setattr(page_trends_marks, "_found", set())
    seen: list[int | None] = []
    real = page_trends_lines.marks_for

    def marks_for(*asked: Any) -> Any:
        found = real(*asked)
        seen.append(None if found is None else len(found))
        return found

    monkeypatch.setattr(page_trends_lines, "marks_for", marks_for)
    page = open_page(url, days="all")
    assert len(seen) == 2
    assert seen[0] is None
    assert len(page.dataframe[1].value) == seen[1]
    assert "still looked for" not in words(page)
    open_page(url, days="all")
    assert seen[2:] == [seen[1]]


@pytest.fixture
def click(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Let a point of a picture be the one that was clicked: its day and its name."""
    clicked: dict[str, list[dict[str, Any]]] = {}
    real = st.plotly_chart

    def plotly_chart(figure: Any, **more: Any) -> Any:
        real(figure, **more)
        return SimpleNamespace(selection=SimpleNamespace(points=clicked.get(more["key"], [])))

    monkeypatch.setattr(st, "plotly_chart", plotly_chart)
    return lambda key, day, name: clicked.update({key: [{"customdata": [day, name]}]})


def links(page: AppTest) -> list[str]:
    """Return the addresses of the links."""
    return [f"{one.proto.page}?{one.proto.query_string}" for one in page.get("page_link")]


def test_a_point_shows_the_clusters_behind_it(url: str, open_page: OpenPage, click: Callable[..., None]) -> None:
    """A day of a release: its clusters with their failed attempts, and triage opened at the same."""
    click("rate-lines", str(FIRST), "1.0")
    page = open_page(url, days="all", by="release")
    behind = page.dataframe[0].value
    rates = expected(url, release="1.0")
    assert 0 < behind["failed deployments"].sum() <= rates.days[FIRST].primary
    assert list(behind.columns) == ["failed deployments", "cluster", "class", "title"]
    assert f"Behind {FIRST} of 1.0" in words(page)
    (one,) = links(page)
    assert one.startswith("triage?")
    assert {f"since={FIRST}", f"until={FIRST}", "release=1.0"} <= set(one.partition("?")[2].split("&"))


def test_a_bar_shows_the_clusters_of_its_class(url: str, open_page: OpenPage, click: Callable[..., None]) -> None:
    """Of the whole window: the failures that the bar shows; triage is opened at class and days."""
    click("class-bars", "", "tokenizer")
    page = open_page(url, days="all")
    table = page.dataframe[-2].value
    whole = table[(table["headline"] == "tokenizer") & (table["class"] == "all of it")]
    assert page.dataframe[-3].value["failed deployments"].sum() == whole["failures"].item()
    assert {"headline=tokenizer", f"since={FIRST}", f"until={LAST}"} <= set(links(page)[0].partition("?")[2].split("&"))


def test_a_bar_of_counts_shows_crashes(untold: str, open_page: OpenPage, click: Callable[..., None]) -> None:
    """Without attempts the clusters behind a day have its crashes."""
    page = open_page(untold, days="all")
    day = page.dataframe[0].value["day"][0]
    crashes = page.dataframe[0].value["crashes"][0]
    click("count-bars", str(day), "all")
    page = open_page(untold, days="all")
    assert page.dataframe[0].value["crashes"].sum() == crashes


def test_a_mark_shows_its_clusters(url: str, open_page: OpenPage, click: Callable[..., None]) -> None:
    """Those that are new on a day, and triage with just these."""
    click("rate-lines", str(FIRST), "mark:new")
    page = open_page(url, days="all")
    behind = page.dataframe[0].value
    assert set(behind["day"]) == {FIRST}
    assert links(page)[0] == f"triage?clusters={'%2C'.join(behind['cluster'])}"


@pytest.mark.parametrize("point", [("2026-13-45", "1.0"), (str(FIRST), "9.9"), ("", ""), (str(FIRST), "mark:odd")])
@pytest.mark.parametrize("key", ["rate-lines", "class-bars", "class-days"])
def test_a_point_of_another_picture_is_none(
    url: str, open_page: OpenPage, click: Callable[..., None], key: str, point: tuple[str, str]
) -> None:
    """A click that stayed from a picture that is no longer shown, or was made up, shows nothing."""
    click(key, *point)
    page = open_page(url, days="all", by="release")
    assert not page.exception
    assert len(page.dataframe) == 4 or page.dataframe[-3].value.empty or "Nothing that is stored" in words(page)


def test_days_to_come_are_said_and_not_shown(tmp_path: Path, open_page: OpenPage) -> None:
    """Attempts and crashes that are dated later than today are in no figure."""
    log = tmp_path / "app.log"
    log.write_text(
        json.dumps({"timestamp": "2199-01-01T00:00:00Z", "level": "error", "msg": _SAMPLE.TEXTS["tokenizer"]})
    )
    told = tmp_path / "attempts.csv"
    told.write_text("unit,day,release,platform,attempts\nload,2199-01-01,1,linux,40\n")
    url = f"sqlite:///{tmp_path}/store.db"
    with open_store(url) as store:
        a_night(store, [log], NightOptions(attempts=str(told)))
    page = open_page(url)
    assert not page.metric
    assert "1 crash and 40 loads" in words(page)


def test_attempts_without_a_crash_are_a_rate_of_nothing(tmp_path: Path, open_page: OpenPage) -> None:
    """A fleet that never failed: 0 % with its interval, and no failure in any headline."""
    told = tmp_path / "attempts.csv"
    told.write_text("unit,day,release,platform,attempts\nload,2026-01-01,1,linux,400\n")
    url = f"sqlite:///{tmp_path}/store.db"
    with open_store(url) as store:
        a_night(store, [], NightOptions(attempts=str(told)))
    page = open_page(url)
    assert figures(page) == {
        "Failure rate": "0 %",
        "Unanswered rate": "0 %",
        "Contained share": "no rate",
        "Crashes": "0",
    }
    assert "0 to 0.92 %" in words(page)
    assert "No failure of these days is in it." in words(page)


def test_names_of_logs_are_text_everywhere(tmp_path: Path, open_page: OpenPage, click: Callable[..., None]) -> None:
    """A release and a root line that are pieces of markup: shown as they are, never as markup or in a link's label."""
    log = tmp_path / "app.log"
    facts = {"timestamp": "2026-03-02T10:00:00Z", "level": "error", "phase": "load", "release": HOSTILE}
    log.write_text(json.dumps(facts | {"msg": f"MemoryError: {HOSTILE}"}))
    told = tmp_path / "attempts.csv"
    told.write_text(f'unit,day,release,platform,attempts\nload,2026-03-02,"{HOSTILE}",linux,40\n')
    url = f"sqlite:///{tmp_path}/store.db"
    with open_store(url) as store:
        a_night(store, [log], NightOptions(attempts=str(told), feed=FeedOptions()))
    click("rate-lines", "2026-03-02", HOSTILE)
    page = open_page(url, by="release")
    assert not page.exception
    spec = json.dumps(drawn(page)[0])
    assert "&lt;b&gt;" in spec
    texts = [one for trace in drawn(page)[0]["data"] for one in (trace.get("name"), *trace.get("hovertext", ()))]
    assert not [one for one in texts if one and HOSTILE in one]
    assert HOSTILE in words(page)
    assert not [one.value for one in [*page.caption, *page.markdown] if HOSTILE in one.value]


def test_empty_store_says_what_to_run(tmp_path: Path, open_page: OpenPage) -> None:
    """No store, and a store without crashes: the page says which command to run."""
    page = open_page(f"sqlite:///{tmp_path}/none.db")
    assert "crashpath nightly" in page.info[0].value
    open_store(f"sqlite:///{tmp_path}/empty.db").close()
    page = open_page(f"sqlite:///{tmp_path}/empty.db")
    assert "crashpath nightly" in page.info[0].value


def test_broken_store_says_what_is_wrong(tmp_path: Path, open_page: OpenPage) -> None:
    """A file that is no store is explained in one sentence on the page."""
    file = tmp_path / "broken.db"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    page = open_page(f"sqlite:///{file}")
    assert "not a SQLite database" in page.error[0].value


def test_the_page_is_the_same_where_nothing_may_be_written(
    url: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody decides anything here, so there is nothing to take away."""
    usual = figures(open_page(url, days="all"))
    monkeypatch.setenv("CRASHPATH_READ_ONLY", "true")
    assert figures(open_page(url, days="all")) == usual
