"""The panel that decides on a cluster, on the page Triage: each form, what it says, and what the store has of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crashpath.dashboard import cli
from crashpath.dashboard.acting import choices
from crashpath.dashboard.testing import a_night
from crashpath.ingest.decisions import decisions
from crashpath.ingest.details import show_cluster
from crashpath.ingest.queries import cluster_list
from crashpath.ingest.store import Store, open_store

TRACE = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start()\n{}\n'
FAILURES = (
    "OSError: [Errno 13] Permission denied to read the model in the cache",
    "OSError: [Errno 13] Permission denied to read the config in the cache",
    "OSError: [Errno 28] No space left on device while the model is written",
    "KeyError: 'unk_token' is missing in the vocabulary of the tokenizer",
)
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
LINK = "https://tracker.example.org/browse/ML-12"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with three clusters, of which one has two signatures, in the releases 2.0 and 2.1."""
    folder = tmp_path_factory.mktemp("stored")
    for day, release in ((1, "2.0"), (2, "2.1")):
        text = "\n".join(f"2026-02-0{day} 10:00:0{n} ERROR {TRACE.format(one)}" for n, one in enumerate(FAILURES))
        (folder / f"{release}.log").write_text(text)
        (folder / f"{release}.log.meta.json").write_text(json.dumps({"release": release}))
    with open_store(f"sqlite:///{folder}/crashpath.db") as store:
        a_night(store, [folder])
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "crashpath.db").read_bytes()


@pytest.fixture
def url(stored: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """That store; the environment names who decides."""
    (tmp_path / "crashpath.db").write_bytes(stored)
    monkeypatch.setenv("CRASHPATH_WHO", "dana")
    return f"sqlite:///{tmp_path}/crashpath.db"


@pytest.fixture
def store(url: str) -> Any:
    """The store, beside the page."""
    with open_store(url) as store:
        yield store


@pytest.fixture
def listed(url: str, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """What the command line lists of decisions."""

    def listed() -> list[dict[str, Any]]:
        capsys.readouterr()
        assert cli.run(["decisions", "--json", "--db", url]) == 0
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return rows

    return listed


def clusters(store: Store) -> tuple[str, list[str]]:
    """The cluster of two signatures, and the others."""
    with store.read() as session:
        rows = cluster_list(session)
    (whole,) = [row.id for row in rows if row.signatures == 2]
    return whole, sorted(row.id for row in rows if row.id != whole)


def signatures(store: Store, cluster: str) -> list[str]:
    with store.read() as session:
        return sorted(one.id for one in show_cluster(session, cluster).signatures)


def press(page: AppTest, label: str) -> None:
    """Press the one button with this label, and see that nothing goes wrong in the page."""
    (button,) = [one for one in page.button if one.label == label]
    button.click().run()
    assert not page.exception


def said(page: AppTest) -> str:
    """What the panel says was done, without the escapes of Markdown."""
    return plain("\n".join(one.value for one in page.success))


def refused(page: AppTest) -> str:
    return plain("\n".join(one.value for one in page.error))


def plain(text: str) -> str:
    return text.replace("\\", "")


Open = Callable[..., AppTest]


def test_merge_split_and_undo(url: str, store: Store, open_page: Open, listed: Callable[..., Any]) -> None:
    """Each is done in its form, said with its number and its way back, and is what the command line lists."""
    whole, (a, b) = clusters(store)
    page = open_page(url, "triage", cluster=whole)
    page.text_input(key=f"decide-why-{whole}").set_value("one disk")
    page.multiselect(key=f"merge-{whole}").set_value([a, b])
    press(page, "Merge")
    assert said(page) == (
        f"Decision 1: merge of {a} into {whole} (1 signature). Decision 2: merge of {b} into {whole} (1 signature)."
    )
    assert page.multiselect(key=f"merge-{whole}").value == []
    assert page.text_input(key=f"decide-why-{whole}").value == ""
    four = signatures(store, whole)
    assert len(four) == 4
    page.multiselect(key=f"split-{whole}").set_value(four[:2])
    press(page, "Split out")
    assert said(page) == f"Decision 3: split of 2 signatures out of {whole} into C-0004."
    assert signatures(store, "C-0004") == four[:2]
    press(page, "Undo decision 3")
    assert "Decision 4: undo of 3, split of 2 signatures" in said(page)
    assert "2 signatures went back." in said(page)
    assert signatures(store, whole) == four
    rows = listed()
    assert [(row["kind"], row["who"], row["why"], row["undone_by"]) for row in rows] == [
        ("merge", "dana", "one disk", None), ("merge", "dana", "one disk", None), ("split", "dana", None, 4),
        ("undo", "dana", None, None),
    ]  # fmt: skip


def test_a_split_leads_to_what_it_made(url: str, store: Store, open_page: Open) -> None:
    """The page stays with the whole, and has a link to the new cluster."""
    whole, _ = clusters(store)
    page = open_page(url, "triage", cluster=whole)
    page.multiselect(key=f"split-{whole}").set_value(signatures(store, whole)[:1])
    press(page, "Split out")
    assert page.query_params["cluster"] == whole
    (there,) = [one for one in page.get("page_link") if plain(one.proto.label) == "Go to C-0004"]
    assert "cluster=C-0004" in there.proto.query_string


def test_the_page_goes_on_with_the_one_that_stays(url: str, store: Store, open_page: Open) -> None:
    """Merged into a chosen cluster, the page shows that one, with what was done; undone there, nothing is lost."""
    whole, (a, b) = clusters(store)
    page = open_page(url, "triage", cluster=a)
    page.multiselect(key=f"merge-{a}").set_value([whole, b])
    page.radio(key=f"stays-{a}").set_value("chosen")
    press(page, "Merge")
    assert "Choose the one that stays alone" in refused(page)
    assert page.multiselect(key=f"merge-{a}").value == [whole, b]
    page.multiselect(key=f"merge-{a}").set_value([whole])
    press(page, "Merge")
    assert page.query_params["cluster"] == whole
    assert said(page) == f"Decision 1: merge of {a} into {whole} (1 signature)."
    press(page, "Undo decision 1")
    assert "Decision 2: undo of 1" in said(page)
    assert clusters(store) == (whole, [a, b])


def test_an_undo_of_a_split_leaves_the_part(url: str, store: Store, open_page: Open) -> None:
    """Undone on the page of the part, which is no more: the page goes on with the whole."""
    whole, _ = clusters(store)
    page = open_page(url, "triage", cluster=whole)
    page.multiselect(key=f"split-{whole}").set_value(signatures(store, whole)[:1])
    press(page, "Split out")
    page = open_page(url, "triage", cluster="C-0004")
    press(page, "Undo")
    assert page.query_params["cluster"] == whole
    assert "Decision 2: undo of 1" in said(page)


def test_name_class_and_owner(url: str, open_page: Open, listed: Callable[..., Any]) -> None:
    """Each has its form, which shows what holds; what is so already is said and not recorded; empty takes away."""
    page = open_page(url, "triage", cluster="C-0001")
    page.text_input(key="name-C-0001").set_value("  driver   550 ")
    press(page, "Save name")
    assert page.text_input(key="name-C-0001").value == "driver 550"
    press(page, "Save name")
    assert "C-0001 has that name already: nothing was recorded." in plain(page.info[0].value)
    page.selectbox(key="class-C-0001").set_value("hang")
    press(page, "Set class")
    page.text_input(key="owner-C-0001").set_value("kim")
    press(page, "Give to")
    page.text_input(key="name-C-0001").set_value("")
    press(page, "Save name")
    assert said(page) == "Decision 4: name of C-0001 taken away."
    assert [(row["kind"], row["value"], row["assignee"]) for row in listed()] == [
        ("name", "driver 550", None), ("assign", "hang", None), ("assign", None, "kim"), ("name", None, None),
    ]  # fmt: skip


def test_resolve_mute_and_ticket(url: str, store: Store, open_page: Open, listed: Callable[..., Any]) -> None:
    """Known releases are offered, the newest first; another may be typed, and what is odd about one is said at once."""
    page = open_page(url, "triage", cluster="C-0001")
    assert page.selectbox(key="resolve-C-0001").options == ["2.1", "2.0"]
    page.selectbox(key="resolve-C-0001").set_value("2.0")
    press(page, "Resolve")
    assert "C-0001 is seen in that release or later (2.0, 2.1): it counts as regressed." in said(page)
    page.selectbox(key="resolve-C-0001").options.append("3.0")  # typed: the harness can only choose
    page.selectbox(key="resolve-C-0001").set_value("3.0")
    press(page, "Resolve")
    assert "Decision 2: C-0001 resolved in 3.0. Nothing is known of release 3.0 yet" in said(page)
    assert page.selectbox(key="resolve-C-0001").value == "3.0"
    page.selectbox(key="resolve-C-0001").set_value(None)
    press(page, "Resolve")
    assert said(page) == "Decision 3: C-0001 no longer resolved."
    day = datetime.now(UTC).date() + timedelta(10)
    press(page, "Mute")
    assert "Choose the day" in refused(page)
    page.date_input(key="mute-C-0001").set_value(day)
    press(page, "Mute")
    assert said(page) == f"Decision 4: C-0001 muted until {day} 00:00 UTC."
    assert page.date_input(key="mute-C-0001").value == day
    press(page, "Unmute")
    page.text_input(key="ticket-C-0001").set_value(f" {LINK} ")
    press(page, "Save link")
    assert [one.proto.url for one in page.get("link_button")] == [LINK]
    assert [row["value"] for row in listed()] == ["2.0", "3.0", None, f"{day}T00:00:00+00:00", None, LINK]
    with store.read() as session:
        assert len(decisions(session, 1)) == 6


def test_a_refusal_is_said_and_loses_nothing(url: str, store: Store, open_page: Open) -> None:
    """No link, no name, all signatures, a decision that others stand on: a sentence in place; what was typed stays."""
    whole, (a, b) = clusters(store)
    page = open_page(url, "triage", cluster=whole)
    page.text_input(key=f"ticket-{whole}").set_value("javascript:alert(1)")
    press(page, "Save link")
    assert "This link cannot be kept: it is no web address" in refused(page)
    assert page.text_input(key=f"ticket-{whole}").value == "javascript:alert(1)"
    assert page.get("link_button") == []
    page.text_input(key="decide-who").set_value(" ")
    page.text_area(key=f"note-{whole}").set_value("half a note")
    press(page, "Write note")
    assert "Nobody knows who decides: write a name." in refused(page)
    assert page.text_area(key=f"note-{whole}").value == "half a note"
    page.text_input(key="decide-who").set_value("kim")
    page.multiselect(key=f"split-{whole}").set_value(signatures(store, whole))
    press(page, "Split out")
    assert f"These are all signatures of {whole}: nothing would stay." in refused(page)
    assert page.multiselect(key=f"split-{whole}").value == signatures(store, whole)
    press(page, "Merge")
    assert "Choose at least one other cluster." in refused(page)
    press(page, "Write note")
    assert not page.error
    page = open_page(url, "triage", cluster=whole)
    page.multiselect(key=f"merge-{whole}").set_value([a])
    press(page, "Merge")
    page.multiselect(key=f"merge-{whole}").set_value([b])
    page.radio(key=f"stays-{whole}").set_value("chosen")
    press(page, "Merge")
    page = open_page(url, "triage", cluster=whole)  # it went into the other one: it can only be taken back
    assert not [one for one in page.button if one.label == "Save name"]
    page.button(key="undo-2").click().run()
    assert not page.exception
    assert "Decision 3 (merge) stands on decision 2. Undo that one first" in refused(page)
    with store.read() as session:
        assert [row.kind for row in decisions(session)] == ["note", "merge", "merge"]


def test_who_decides_is_kept(url: str, open_page: Open, listed: Callable[..., Any]) -> None:
    """The name is CRASHPATH_WHO's at first; another one stays for the session, on other clusters as well."""
    page = open_page(url, "triage", cluster="C-0001")
    assert page.text_input(key="decide-who").value == "dana"
    page.text_input(key="decide-who").set_value("kim@mail.corp.io")
    page.text_area(key="note-C-0001").set_value("x")
    press(page, "Write note")
    page.query_params["cluster"] = "C-0002"
    page.run()
    assert page.text_input(key="decide-who").value == "kim@mail.corp.io"
    assert not page.success  # what was done is said where it was done
    page.text_area(key="note-C-0002").set_value("y")
    press(page, "Write note")
    assert [row["who"] for row in listed()] == ["kim", "kim"]


def test_a_note_is_listed_and_taken_back(url: str, open_page: Open, listed: Callable[..., Any]) -> None:
    """Every decision on the cluster stands in the list, the last first, with a button until it is undone."""
    page = open_page(url, "triage", cluster="C-0001")
    for text in ("first", "second"):
        page.text_area(key="note-C-0001").set_value(text)
        press(page, "Write note")
        assert page.text_area(key="note-C-0001").value == ""
    assert {one.key for one in page.button if one.label == "Undo"} == {"undo-1", "undo-2"}
    page.button(key="undo-1").click().run()
    assert said(page) == "Decision 3: undo of 1, note on C-0001: first."
    assert {one.key for one in page.button if one.label == "Undo"} == {"undo-2", "undo-3"}
    entries = [plain(one.value) for one in page.markdown if "dana: " in plain(one.value)]
    assert [entry.partition("dana: ")[2] for entry in entries] == [
        "undo of 1", "note on C-0001: second", "note on C-0001: first (undone by 3)",
    ]  # fmt: skip
    assert [row["undone_by"] for row in listed()] == [3, None, None]


def test_long_lists_begin_with_the_last(url: str, open_page: Open) -> None:
    """Ten decisions are shown, all when somebody wants to see them."""
    with open_store(url) as store:
        for number in range(12):
            assert cli.run(["note", "C-1", f"note {number}", "--db", url]) == 0
        store.close()
    page = open_page(url, "triage", cluster="C-0001")
    assert len([one for one in page.button if one.label == "Undo"]) == 10
    page.toggle(key="all-decisions-C-0001").set_value(True).run()
    assert len([one for one in page.button if one.label == "Undo"]) == 12


def test_nothing_of_it_where_nothing_may_be_decided(url: str, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only, the page shows the cluster and neither form nor button of the panel."""
    page = open_page(url, "triage", cluster="C-0001")
    assert [one for one in page.button if one.label == "Save name"]
    monkeypatch.setenv("CRASHPATH_READ_ONLY", "1")
    page = open_page(url, "triage", cluster="C-0001")
    assert not [one for one in page.subheader if one.value == "Decide"]
    assert not [one for one in page.button if "decide" in one.key or "undo" in one.key]
    assert not [one for one in page.text_input if one.key and "C-0001" in one.key]


def test_what_people_write_is_stored_clean_and_shown_inert(
    url: str, store: Store, open_page: Open, tmp_path: Path
) -> None:
    """Markup in a name is text wherever it stands, and a secret in a note is in no file of the store."""
    name = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) :red[y] $z$"
    page = open_page(url, "triage", cluster="C-0001")
    page.text_input(key="name-C-0001").set_value(name)
    press(page, "Save name")
    page.text_area(key="note-C-0001").set_value(f"token {TOKEN} of kim@mail.corp.io")
    press(page, "Write note")
    assert said(page) == "Decision 2: note on C-0001: token <secret> of <email>."
    with store.read() as session:
        assert [row.value for row in decisions(session)] == [name, "token <secret> of <email>"]
    written = b"".join(path.read_bytes() for path in tmp_path.glob("crashpath.db*"))
    assert TOKEN.encode() not in written
    shown = [*page.markdown, *page.success, *page.caption, *page.subheader, *page.toast]
    with_name = [one.value for one in shown if "alert" in one.value and "<style" not in one.value]
    assert with_name
    for text in with_name:
        assert not re.search(r"(?<!\\)(<|\*\*bold|\[x|:red|\$z)", text), text


def test_what_there_is_to_choose_from(store: Store) -> None:
    """Other active clusters, those of the same class first; a cluster that went into another is none."""
    whole, (a, b) = clusters(store)
    with store.read() as session:
        number = show_cluster(session, whole).row.number
        found = choices(session, number)
    assert sorted(one.id for one in found.others) == [a, b]
    same = [one.failure_class == show_class(store, whole) for one in found.others]
    assert same == sorted(same, reverse=True)
    assert found.releases == ("2.1", "2.0")


def show_class(store: Store, cluster: str) -> str:
    with store.read() as session:
        return show_cluster(session, cluster).row.failure_class
