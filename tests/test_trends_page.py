"""The page Trends, run by Streamlit's own test harness, on a store with data, an empty one, and a broken one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pandas as pd
from streamlit.testing.v1 import AppTest

from crashpath.dashboard.pictures import bars_by_cohort, bars_by_day, looks_of
from crashpath.dashboard.testing import a_night
from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED, headline_of
from crashpath.ingest.store import open_store

DAY = date(2026, 2, 1)
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nMemoryError: <script>alert(1)</script>\n'


def test_headline_comes_first(tmp_path: Path, open_page: Callable[..., AppTest]) -> None:
    """With data, the page starts with the headline figures and has a picture and its table."""
    log = tmp_path / "app.log"
    log.write_text(TRACE)
    url = f"sqlite:///{tmp_path}/crashpath.db"
    with open_store(url) as store:
        a_night(store, [log])
    page = open_page(url)
    assert page.metric[0].label == "OOM"
    assert page.metric[0].value == "1"
    assert len(page.dataframe) == 2


def test_filters_narrow_the_counts(tmp_path: Path, open_page: Callable[..., AppTest]) -> None:
    """Counting by class shows the class of the crash; the choice is kept by the page."""
    log = tmp_path / "app.log"
    log.write_text(TRACE)
    url = f"sqlite:///{tmp_path}/crashpath.db"
    with open_store(url) as store:
        a_night(store, [log])
    page = open_page(url)
    page.selectbox(key="by").select("class").run()
    assert not page.exception
    assert list(page.dataframe[0].value["class"]) == ["oom_host"]


def test_empty_store_says_what_to_run(tmp_path: Path, open_page: Callable[..., AppTest]) -> None:
    """No store, and a store without crashes: the page says which command to run."""
    page = open_page(f"sqlite:///{tmp_path}/none.db")
    assert "crashpath nightly" in page.info[0].value
    open_store(f"sqlite:///{tmp_path}/empty.db").close()
    page = open_page(f"sqlite:///{tmp_path}/empty.db")
    assert "crashpath nightly" in page.info[0].value


def test_broken_store_says_what_is_wrong(tmp_path: Path, open_page: Callable[..., AppTest]) -> None:
    """A file that is no store is explained in one sentence on the page."""
    file = tmp_path / "broken.db"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    page = open_page(f"sqlite:///{file}")
    assert "not a SQLite database" in page.error[0].value


def test_a_colour_means_the_same_in_both_pictures() -> None:
    """A headline has one colour wherever it is drawn, its classes have it too, and nothing else has it; names of one
    picture differ in colour or pattern."""
    classes = [one.id for one in CLASSES] + [UNCLASSIFIED]
    by_day = bars_by_day(pd.DataFrame([(DAY, c, 1) for c in classes], columns=["day", "class", "crashes"]), "class")
    by_release = bars_by_cohort(
        pd.DataFrame([("2026.10", h, 1) for h in HEADLINES], columns=["release", "headline", "crashes"]), "release"
    )
    headline_colour = {bar.name: bar.marker.color for bar in by_release.data}
    assert len(set(headline_colour.values())) == len(HEADLINES)
    looks = {bar.name: (bar.marker.color, bar.marker.pattern.shape) for bar in by_day.data}
    assert len(set(looks.values())) == len(classes)
    named = {colour: name for name, colour in headline_colour.items() if name != HEADLINES[-1]}
    for name, (colour, _) in looks.items():
        assert named.get(colour, HEADLINES[-1]) == headline_of(name)
    releases = looks_of([f"2026.{n}" for n in range(20)])
    assert not {look.colour for look in releases.values()} & {colour for colour, _ in looks.values()}
    assert len(set(releases.values())) == len(releases)
