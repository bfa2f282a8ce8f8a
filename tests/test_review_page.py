"""The page Review, run by Streamlit's own test harness: the verdict first, what is recorded, what is not known."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crashpath.dashboard import page_review_pick
from crashpath.dashboard.cli import run
from crashpath.ingest.reviews import looks
from crashpath.ingest.store import open_store
from crashpath.ingest.tables_counts import StaleDay

make_store = runpy.run_path(str(Path(__file__).parent / "review_stores.py"))["make_store"]
Open = Callable[..., AppTest]
HOSTILE = "<script>alert(1)</script> [x](http://evil) *b* \u202e"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two releases, which nobody writes to."""
    folder = tmp_path_factory.mktemp("review")
    make_store(folder)
    return folder


@pytest.fixture
def url(told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the store, in an empty working folder."""
    (tmp_path / "store.db").write_bytes((told / "store.db").read_bytes())
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path}/store.db"


def words(page: AppTest) -> str:
    """Everything that the page says, in its order, without what Markdown needs to show signs as they are."""
    kinds = ("markdown", "header", "subheader", "caption", "info", "warning", "error", "success", "code")
    return "\n".join(one.value for one in page.main if one.type in kinds).replace("\\", "")


def by_command(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["review", "--release", "2.0", "--baseline", "1.0", "--db", url, "--json"])
    return code, json.loads(capsys.readouterr().out)


def recorded(url: str, release: str = "2.0") -> int:
    with open_store(url) as store, store.read() as session:
        return len(looks(session, release))


def test_the_verdict_comes_first(url: str, open_page: Open) -> None:
    """With its sign and why in a sentence, of the release tried last against the one before it; looking is no look."""
    page = open_page(url, "review")
    assert "check_circle" in page.header[0].value
    assert "GO" in page.header[0].value
    said = words(page)
    assert said.index("Everything that the policy asks for is shown") < said.index("Reasons")
    assert "release 2.0 against 1.0, counted in deployments" in said
    assert "not recorded" in said
    assert page.code[0].value == "crashpath review --release 2.0 --baseline 1.0"
    assert recorded(url) == 0


def test_evidence_is_there(url: str, open_page: Open) -> None:
    """Rates with counts, by day, cohort and class, thresholds and all releases; three files can be downloaded."""
    page = open_page(url, "review")
    assert [one.value for one in page.metric][:2] == ["0.20 %", "0.20 %"]
    heads = [one.value for one in (*page.header, *page.subheader)]
    for head in (
        "Rates by deployment",
        "Unanswered by day",
        "Worst cohorts",
        "Every rule of the policy",
        "All releases",
    ):
        assert head in heads
    assert len(page.get("download_button")) == 3
    assert len(page.get("plotly_chart")) == 4
    releases = page.dataframe[-1].value
    assert list(releases["release"]) == ["2.0", "1.0"]


def test_another_release_is_picked(url: str, open_page: Open) -> None:
    """The one that has none before it is set against nothing; its reasons have their commands."""
    page = open_page(url, "review")
    page.selectbox(key="release").select("1.0").run()
    assert not page.exception
    assert "NO-GO" in page.header[0].value
    said = words(page)
    assert "release 1.0 without a baseline" in said
    assert "90 of 3,000 deployments (3.00 %) were not answered" in said
    assert "crashpath clusters --release 1.0" in [one.value for one in page.code]
    page.selectbox(key="unit").select("load").run()
    assert "No loads of release 1.0 are told" in words(page)


def test_the_address_says_what_is_reviewed(url: str, open_page: Open) -> None:
    """Release, baseline and unit of the address are those of the page."""
    page = open_page(url, "review", release="1.0", baseline="2.0", unit="deployment")
    assert page.selectbox(key="release").value == "1.0"
    assert "release 1.0 against 2.0" in words(page)


def test_names_that_nobody_knows(url: str, open_page: Open) -> None:
    """An unknown release in the address is a HOLD that says so; what can be no release is left out and said."""
    page = open_page(url, "review", release="9.9")
    assert "HOLD" in page.header[0].value
    assert "pause_circle" in page.header[0].value
    assert "The store knows nothing of release 9.9" in words(page)
    page = open_page(url, "review", baseline="7.7")
    assert "knows nothing of baseline 7.7" in words(page)
    page = open_page(url, "review", release=HOSTILE, unit="fortnight", baseline="2.0")
    said = "\n".join(one.value for one in page.warning).replace("\\", "")
    assert "in the address can be no release" in said
    assert "fortnight in the address is none of deployment, load, request" in said
    assert "Release and baseline are both 2.0" in said
    assert "release 2.0 against 1.0" in words(page)


def test_a_look_is_recorded_when_it_is_asked_for(url: str, open_page: Open, capsys: pytest.CaptureFixture[str]) -> None:
    """One button keeps it, as the command would; the command finds it unchanged."""
    page = open_page(url, "review")
    page.button(key="record-look").click().run()
    assert not page.exception
    assert "Look 1 at release 2.0 is recorded: GO." in page.success[0].value.replace("\\", "")
    assert "(recorded)" in words(page)
    assert by_command(url, capsys)[1]["looks"] == 1
    assert recorded(url) == 1


def test_an_override_is_recorded_and_taken_back(url: str, open_page: Open, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line sees both; on the page the outcome stands under the verdict."""
    page = open_page(url, "review")
    _override(page, "HOLD", "kim", f"not on a Friday {HOSTILE}")
    assert "GO" in page.header[0].value
    assert "overridden to HOLD by kim: not on a Friday <script>" in page.subheader[0].value.replace("\\", "")
    code, document = by_command(url, capsys)
    assert (code, document["verdict"], document["outcome"], document["looks"]) == (3, "GO", "HOLD", 1)
    assert (document["overrides"][0]["who"], document["overrides"][0]["holds"]) == ("kim", True)
    number = document["overrides"][0]["decision"]
    page.text_input(key=f"undo-who-{number}").input("noor")
    _submit(page, "Undo")
    assert f"undo of {number}" in page.success[0].value.replace("\\", "")
    assert by_command(url, capsys)[0] == 0
    assert "(undone)" in words(page)
    assert not [one for one in page.button if one.label == "Undo"]


def test_an_override_that_cannot_be(url: str, open_page: Open) -> None:
    """Without a reason it is refused in a sentence, and nothing is recorded."""
    page = open_page(url, "review")
    _override(page, "HOLD", "kim", "")
    assert "needs a name and a reason" in page.error[0].value
    assert recorded(url) == 0


def test_read_only_offers_nothing_that_writes(url: str, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """No button records, nothing is counted anew, and days that are not counted are said; files can be downloaded."""
    with open_store(url) as store, store.write() as session:
        session.add(StaleDay(day=runpy.run_path(str(Path(__file__).parent / "review_stores.py"))["DAY"], touched=1))
    monkeypatch.setenv("CRASHPATH_READ_ONLY", "1")
    page = open_page(url, "review")
    assert not page.button
    assert not page.text_input
    assert len(page.get("download_button")) == 3
    assert "1 day has failures that are not all counted yet" in words(page)
    monkeypatch.setenv("CRASHPATH_READ_ONLY", "0")
    assert "not all counted yet" not in words(open_page(url, "review"))


def test_nothing_is_reviewed_twice(url: str, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rerun, and the same view opened by somebody else, take what was reviewed before."""
    from crashpath.dashboard import review_view

    made = []
    real = review_view.review_as_counted

    def counting(*given: Any, **more: Any) -> Any:
        made.append(given)
        return real(*given, **more)

    monkeypatch.setattr(review_view, "review_as_counted", counting)
    page = open_page(url, "review")
    page.run()
    open_page(url, "review")
    assert len(made) == 1


def test_a_policy_that_cannot_be_used_is_said(url: str, open_page: Open, tmp_path: Path) -> None:
    """Its key is named, and nothing is judged by rules that nobody asked for."""
    (tmp_path / "policy.toml").write_text("alhpa = 0.01\n")
    page = open_page(url, "review")
    assert "alhpa" in page.error[0].value
    assert not page.header


def test_a_store_of_which_nothing_can_be_reviewed(tmp_path: Path, open_page: Open) -> None:
    """It says which commands tell of a release."""
    empty = f"sqlite:///{tmp_path}/empty.db"
    open_store(empty).close()
    said = words(open_page(empty, "review"))
    assert "crashpath nightly" in said
    assert "crashpath attempts FILE" in said


def test_a_store_that_is_busy_is_reviewed_as_it_is(url: str, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where failures cannot be counted at the moment, what is counted is shown."""
    from crashpath.ingest.store_errors import StoreBusy

    def busy(*_: Any) -> None:
        raise StoreBusy("The store is busy.", "Wait.")

    monkeypatch.setattr(page_review_pick, "refresh_failures", busy)
    assert "GO" in open_page(url, "review").header[0].value


def _override(page: AppTest, verdict: str, who: str, why: str) -> None:
    page.selectbox(key="override-verdict").select(verdict)
    page.text_input(key="override-who").input(who)
    page.text_area(key="override-why").input(why)
    _submit(page, "Override")


def _submit(page: AppTest, label: str) -> None:
    next(one for one in page.button if one.label == label).click().run()
    assert not page.exception
