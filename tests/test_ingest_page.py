"""The page Ingest health: how the last night went, all that is beside it, and a source that is read again."""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.page_frame import changed
from crashpath.dashboard.testing import a_night
from crashpath.ingest import again
from crashpath.ingest.decisions import By
from crashpath.ingest.lease import Lease
from crashpath.ingest.nights import finish_night, start_night
from crashpath.ingest.queries import store_totals
from crashpath.ingest.store import Store, open_store

SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ingest_samples.py"))))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store and of the logs that it read."""
    folder = tmp_path_factory.mktemp("ingest")
    SAMPLE.make(folder)
    return folder


@pytest.fixture
def url(sample: Path) -> str:
    """That store, for tests that do not write."""
    return f"sqlite:///{sample}/crashpath.db"


@pytest.fixture
def own(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A copy of it to write to."""
    shutil.copy(sample / "crashpath.db", tmp_path / "crashpath.db")
    monkeypatch.setenv("CRASHPATH_WHO", "eve")
    with open_store(f"sqlite:///{tmp_path}/crashpath.db") as store:
        yield store


def url_of(store: Store) -> str:
    return str(store.engine.url)


def said(app: AppTest) -> str:
    """All text of the page that a person reads outside tables."""
    parts = [*app.error, *app.warning, *app.info, *app.success, *app.caption, *app.markdown, *app.subheader]
    return "\n".join(str(one.value) for one in parts).replace("\\", "")


def pictures(app: AppTest) -> list[str]:
    return [one.proto.alt for one in app.get("plotly_chart")]


def test_the_last_night_stands_on_top(url: str, open_page: Any) -> None:
    """Rule: the first thing is how the last night went, why, and what to do; then the nights and their pictures."""
    app = open_page(url, "ingest")
    top = str(app.warning[0].value).replace("\\", "")
    assert top.startswith("Night 3 is partial, ")
    assert "cut.log.gz is a damaged gzip file" in top
    assert "the next night tries again by itself" in top
    table = app.dataframe[0].value
    assert list(table["night"]) == [3, 2, 1]
    assert list(table["quarantined"]) == [0, 1, 0]
    assert pictures(app) == [
        "Seconds by stage of the last 3 nights",
        "New crashes by night",
        "Unclassified share by night",
    ]


def test_a_failed_night_tells_its_reason_as_text(own: Store, open_page: Any) -> None:
    """Rule: a failure is an error with its reason, inert, and says to run it again."""
    with own.write() as session:
        night = start_night(session, versions={}, now=datetime.now(UTC))
        finish_night(
            session, night, "failed", counts={}, seconds={}, reason="no <b>space</b> **left**", now=datetime.now(UTC)
        )
    app = open_page(url_of(own), "ingest")
    top = str(app.error[0].value)
    assert "\\<b\\>space\\<\\/b\\> \\*\\*left\\*\\*" in top
    assert "Run the same `crashpath nightly` again" in top


def test_a_running_night_is_told_with_its_lease(own: Store, open_page: Any) -> None:
    """Rule: while a night runs, since when and by whom; as soon as its lease is gone, that it was killed."""
    with Lease(own):
        with own.write() as session:
            start_night(session, versions={}, now=datetime.now(UTC))
        app = open_page(url_of(own), "ingest")
        assert "its lease is alive" in str(app.info[0].value)
    app.run()
    assert "nobody holds its lease\\: it was killed" in str(app.error[0].value)


def test_a_complete_night_is_good_news(store: Store, tmp_path: Path, open_page: Any) -> None:
    """Rule: a night that read all is told as such; two nights are needed for a share over time, days stand in."""
    log = tmp_path / "a.log"
    log.write_bytes(SAMPLE.trace(1))
    a_night(store, [log])
    app = open_page(url_of(store), "ingest")
    assert "Night 1 is complete" in said(app)
    assert pictures(app) == ["Seconds by stage of the last 1 night", "Unclassified share by day"]


def test_an_empty_store_says_what_to_run(store: Store, open_page: Any) -> None:
    """Rule: before the first night, the command that runs one."""
    assert "crashpath nightly LOGS" in said(open_page(url_of(store), "ingest"))


def test_one_night_in_an_address(url: str, open_page: Any) -> None:
    """Rule: ?night= shows that night alone: sentence, problems, stages, figures, versions."""
    app = open_page(url, "ingest", night="2")
    assert "Night 2 is partial" in said(app)
    assert pictures(app) == ["Seconds by stage of night 2"]
    figures, versions = (one.value for one in app.dataframe)
    assert "sources.read" in list(figures["figure"])
    assert "keying" in list(versions["ran with"])


@pytest.mark.parametrize("night", ["99", "<b>x</b>", "-1", "9" * 40, "²"])
def test_a_night_that_never_was_is_said(url: str, open_page: Any, night: str) -> None:
    """Rule: a number that means nothing is told, as text, and all nights are shown."""
    app = open_page(url, "ingest", night=night)
    assert "There is no night" in said(app)
    assert len(app.dataframe[0].value) == 3


def test_a_section_that_is_none_is_said(url: str, open_page: Any) -> None:
    """Rule: what an address names and the page does not have is told."""
    assert "<i>Moon in the address is none of Nights" in said(open_page(url, "ingest", show="<i>Moon"))


def test_quarantine_is_shown_as_inert_text(url: str, open_page: Any) -> None:
    """Rule: why, where, and how it begins: as code, in which nothing is markup and nothing steers."""
    app = open_page(url, "ingest", show="Quarantine", piece="1")
    assert "1 piece of 1 source: not text 1." in said(app)
    (preview,) = app.code
    assert preview.value.startswith("\\xff\\xfe\\xfd\\xfc <script>alert(1)</script> **bold**")
    assert preview.language in ("", None, "plaintext")
    assert "\x1b" not in preview.value
    assert "\u202e" not in preview.value
    assert not app.get("html")


def test_a_piece_that_is_not_there_is_said(url: str, open_page: Any) -> None:
    """Rule: a piece of another store, or one that was read since, is told."""
    app = open_page(url, "ingest", show="Quarantine", piece="99")
    assert "Piece 99 in the address is not among these." in said(app)


def test_quarantine_of_one_night(url: str, open_page: Any) -> None:
    """Rule: with a night, what it put there."""
    assert "Nothing is in quarantine." in said(open_page(url, "ingest", show="Quarantine", night="1"))


def test_a_source_is_read_again_because_somebody_asks(own: Store, sample: Path, tmp_path: Path, open_page: Any) -> None:
    """Rule: asked for on the page, done by the next night, told there; nothing is counted twice."""
    app = open_page(url_of(own), "ingest", show="Quarantine", piece="1")
    app.text_input(key="retry-why").input("mended")
    app.button[0].click().run()
    assert not app.exception
    assert "will be read again from its start by the next night that finds it" in said(app)
    with own.read() as session:
        (one,) = again.asked(session)
        crashes = store_totals(session).crashes
    assert (one.who, one.why, one.night) == ("eve", "mended", None)
    assert not app.button  # it waits already
    assert "waits for a night that reads this file" in said(app)

    log = sample / "logs" / "a.log"
    kept = log.read_bytes()
    try:
        log.write_bytes(kept.replace(SAMPLE.BROKEN, SAMPLE.trace(59)))
        a_night(own, [log], NightOptions())
    finally:
        log.write_bytes(kept)
    changed()  # another process' write is seen after two seconds
    app = open_page(url_of(own), "ingest", show="Quarantine")
    assert "Nothing is in quarantine." in said(app)
    assert "night 4 came upon it." in said(app)
    with own.read() as session:
        assert store_totals(session).crashes == crashes + 1


def test_nobody_is_no_answer(own: Store, open_page: Any) -> None:
    """Rule: without a name nothing is asked for, and that is said in the form."""
    app = open_page(url_of(own), "ingest", show="Quarantine", piece="1")
    app.text_input(key="retry-who").input(" ")
    app.button[0].click().run()
    assert "write a name" in said(app)
    with own.read() as session:
        assert again.asked(session) == ()


def test_where_writing_is_not_allowed_nothing_can_be_asked(
    url: str, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: a dashboard that only shows offers no retry."""
    monkeypatch.setenv("CRASHPATH_READ_ONLY", "true")
    app = open_page(url, "ingest", show="Quarantine", piece="1")
    assert "this dashboard only shows" in said(app)
    assert not app.button


def test_sources_tell_how_far_and_what_stands_in_the_way(url: str, open_page: Any) -> None:
    """Rule: problems first, then how far each file was read."""
    app = open_page(url, "ingest", show="Sources")
    table = app.dataframe[0].value
    assert "3 sources · 1 with a problem, listed first" in said(app)
    assert "damaged gzip file" in table["problem"][0]
    assert list(table["read"][1:]) == [1.0, 1.0]
    assert "What stood in the way of night 3" in said(app)


def test_the_store_tells_its_size_and_what_it_is_tied_to(own: Store, open_page: Any) -> None:
    """Rule: bytes, growth, rows, schema, keying, encoder, what ran when, and what waits to be told."""
    app = open_page(url_of(own), "ingest", show="Store")
    assert "KiB" in said(app)
    assert "over the last 2 nights" in said(app)
    tied = next(one.value for one in app.dataframe if "the store is tied to" in one.value)
    assert list(tied["the store is tied to"]) == ["schema", "signatures are keyed by", "encoder"]
    assert tied["now"][2] == "fake-384"
    counted = next(one.value for one in app.dataframe if "what" in one.value and "rows" in one.value)
    assert dict(zip(counted["what"], counted["rows"], strict=True))["nights"] == "3"
    assert "Nothing was told yet" in said(app)


def test_a_request_of_another_is_told(own: Store, open_page: Any) -> None:
    """Rule: what somebody else asked for is listed, whoever they are, as text."""
    with own.write() as session:
        again.ask(session, 2, By("**mallory** <b>", datetime.now(UTC)))
    app = open_page(url_of(own), "ingest", show="Quarantine")
    assert "asked for by **mallory** <b>" in said(app)
    assert all("**mallory**" not in str(one.value) for one in app.markdown)


def test_hostile_bytes_are_nowhere_markup(url: str, open_page: Any) -> None:
    """Rule: on no section does a picture or a sentence hold a tag of a log."""
    for section in ("Nights", "Quarantine", "Sources", "Store"):
        app = open_page(url, "ingest", show=section)
        assert "<script" not in json.dumps([one.proto.spec for one in app.get("plotly_chart")])
        assert all("<script" not in str(one.value) for one in (*app.markdown, *app.caption, *app.warning))
