"""The commands that say how a cluster stands: what they print, how they refuse, and who else tells of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crashpath.dashboard import cli
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import open_store

TRACE = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start()\nOSError: {}\n'
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
LINK = "https://tracker.example.org/browse/ML-12"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with one cluster, seen in 2.0 and a day later in 2.1."""
    folder = tmp_path_factory.mktemp("stored")
    for day, release in ((1, "2.0"), (2, "2.1")):
        file = folder / f"{release}.log"
        file.write_text(f"2026-02-0{day} 10:00:00 ERROR {TRACE.format('Permission denied to read the model')}")
        (folder / f"{release}.log.meta.json").write_text(json.dumps({"release": release}))
    with open_store(f"sqlite:///{folder}/crashpath.db") as store:
        a_night(store, [folder])
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "crashpath.db").read_bytes()


@pytest.fixture
def url(stored: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """That store; the environment names it and who decides."""
    (tmp_path / "crashpath.db").write_bytes(stored)
    url = f"sqlite:///{tmp_path}/crashpath.db"
    monkeypatch.setenv("CRASHPATH_DB", url)
    monkeypatch.setenv("CRASHPATH_WHO", "dana")
    return url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command; return exit code, standard output (parsed where it is JSON) and standard error."""

    def run(*arguments: str) -> tuple[int, Any, str]:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        return code, json.loads(out) if "--json" in arguments and out else out, err

    return run


def test_all_of_them_in_words(url: str, run: Any) -> None:
    """Each says what it did with the number to undo it by; said again, nothing is recorded; an empty one takes away."""
    told = [
        (("resolve", "C-1", "--in", "2.2"), "C-0001 resolved in 2.2", "is resolved in that release already"),
        (("mute", "C-1", "--until", "2999-01-31"), "C-0001 muted until 2999-01-31 00:00 UTC", "is muted until then"),
        (("ticket", "C-1", LINK), f"ticket of C-0001: {LINK}", "has that ticket already"),
        (("note", "C-1", "seen  on\none host"), "note on C-0001: seen on one host", "has that note already"),
    ]
    for number, (command, words, again) in enumerate(told, start=1):
        code, out, err = run(*command)
        assert (code, err, out.split("\n")[0]) == (Exit.DONE, "", f"Decision {number}: {words}.")
        code, out, _ = run(*command)
        assert code == Exit.DONE
        assert again in out
        assert "nothing was recorded." in out
    for number, (command, words) in enumerate(
        [
            (("resolve", "C-1", "--in", ""), "C-0001 no longer resolved"),
            (("mute", "C-1", "--until", " "), "C-0001 no longer muted"),
            (("ticket", "C-1", ""), "ticket of C-0001 taken away"),
        ],
        start=5,
    ):
        assert run(*command)[1] == f"Decision {number}: {words}.\n"
        assert "already: nothing was recorded." in run(*command)[1]
    assert run("undo", "5")[1] == "Decision 8: undo of 5, C-0001 no longer resolved.\n"


def test_json_who_and_why(url: str, run: Any) -> None:
    """As JSON a decision is what the list has of it; what was so already is `null`."""
    code, made, err = run(
        "mute", "C-1", "--until", "2999-01-31T02:00+02:00", "--who", "kim", "--why", "fixed", "--json"
    )
    assert (code, err) == (Exit.DONE, "")
    assert run("decisions", "--json")[1] == [made]
    assert (made["kind"], made["who"], made["why"]) == ("mute", "kim", "fixed")
    assert made["value"] == "2999-01-31T00:00:00+00:00"
    assert run("mute", "C-1", "--until", "2999-01-31", "--json")[1] == {"decision": None}


def test_show_and_decisions_tell_of_it(url: str, run: Any) -> None:
    """How a cluster stands is in `show`, with its lineage and decisions, and in `decisions`."""
    run("resolve", "C-1", "--in", "2.2")
    run("mute", "C-1", "--until", "2999-01-31")
    run("ticket", "C-1", LINK)
    run("note", "C-1", "seen on one host", "--why", "asked kim")
    run("resolve", "C-1", "--in", "2.3")
    run("undo", "5")
    said = run("show", "C-1")[1]
    top, _, rest = said.partition("what happened to it")
    lineage, _, decided = rest.partition("what people decided")
    for words in ("\nresolved in 2.2\n", "\nmuted until 2999-01-31 00:00 UTC\n", f"\nticket {LINK}\n"):
        assert words in top
    for words in ("resolved in 2.2 (decision 1)", "muted until 2999-01-31 00:00 UTC (decision 2)", "(decision 3)"):
        assert words in lineage
    assert "note: seen on one host (decision 4)" in lineage
    assert "decision 5 was undone (decision 6)" in lineage
    assert "note on C-0001: seen on one host: asked kim" in decided
    shown = run("show", "C-1", "--json")[1]
    assert shown["row"]["resolved_in"] == "2.2"
    assert shown["row"]["ticket"] == LINK
    assert [row["kind"] for row in shown["decisions"]] == ["resolve", "mute", "ticket", "note", "resolve", "undo"]
    listed = run("decisions", "C-1")[1]
    assert "C-0001 resolved in 2.3 · undone by 6" in listed
    assert "note on C-0001: seen on one host" in listed


def test_a_release_to_come_is_allowed_and_said(url: str, run: Any) -> None:
    """Nobody knows 2.2 yet, which may be so or a slip of the pen; 2.1 is known, and the cluster is seen in it."""
    said = run("resolve", "C-1", "--in", "2.2")[1]
    assert "Nothing is known of release 2.2 yet" in said
    assert "regressed" not in said
    code, made, _ = run("resolve", "C-1", "--in", "2.1x", "--json")
    assert code == Exit.DONE
    assert "Did you mean 2.1?" in made["cautions"][0]
    said = run("resolve", "C-1", "--in", "2.0")[1]
    assert "Nothing is known" not in said
    assert "C-0001 is seen in that release or later (2.0, 2.1): it counts as regressed." in " ".join(said.split())
    assert "cautions" not in run("resolve", "C-1", "--in", "", "--json")[1]


def test_no_secret_reaches_the_store(url: str, run: Any, tmp_path: Path) -> None:
    """Release, link, note and reason are cleaned; that a link is not kept as it was given is said."""
    said = run("ticket", "C-1", f"https://git.corp.io/x?token={TOKEN}")[1]
    assert "https://git.corp.io/x?token=<secret>" in said
    assert "was replaced before it was kept" in " ".join(said.split())
    run("note", "C-1", f"use {TOKEN}", "--why", f"as {TOKEN}")
    run("resolve", "C-1", "--in", f"build {TOKEN}")
    assert len(run("decisions", "--json")[1]) == 3
    written = b"".join(path.read_bytes() for path in tmp_path.glob("crashpath.db*"))
    assert TOKEN.encode() not in written


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["resolve", "C-1"], Exit.USAGE, "resolve needs --in RELEASE"),
        (["resolve", "C-99", "--in", "2.0"], Exit.FAILED, "There is no cluster C-0099."),
        (["resolve", "C-1", "--in", "unknown"], Exit.FAILED, "unknown is no release"),
        (["resolve", "C-1", "--in", "x" * 300], Exit.USAGE, "--in has 300 characters"),
        (["mute", "C-1"], Exit.USAGE, "mute needs --until DAY"),
        (["mute", "C-1", "--until", "soon"], Exit.USAGE, "--until soon is no time"),
        (["mute", "C-1", "--until", "2020-01-31"], Exit.FAILED, "2020-01-31 00:00 UTC is past."),
        (["ticket", "C-1"], Exit.USAGE, "ticket needs URL"),
        (["ticket", "C-1", "javascript:alert(1)"], Exit.USAGE, "URL cannot be kept: it is no web address"),
        (["ticket", "C-1", "https://kim:pw12345@example.org"], Exit.USAGE, "URL cannot be kept: it has a user name"),
        (["ticket", "C-1", f"https://{TOKEN}.example.org"], Exit.FAILED, "its host looks like a secret"),
        (["note", "C-1", " "], Exit.USAGE, "note needs a TEXT"),
        (["note", "C-1", "x" * 1001], Exit.USAGE, "TEXT has 1,001 characters"),
        (["note", "x", "y"], Exit.FAILED, "'x' is not a cluster's id"),
    ],
)
def test_refusals_are_one_line(url: str, run: Any, arguments: list[str], code: Exit, words: str) -> None:
    """Wrong use ends with 2, what cannot be with 4; one sentence on standard error; nothing is recorded."""
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1
    assert "pw12345" not in err
    assert TOKEN not in err
    assert run("decisions", "--json")[1] == []


@pytest.mark.parametrize(
    "arguments",
    [["resolve", "1", "--in", "2"], ["mute", "1", "--until", "2999-01-01"], ["ticket", "1", LINK], ["note", "1", "x"]],
)
def test_no_store_is_made(tmp_path: Path, run: Any, arguments: list[str]) -> None:
    """Where there is no store, the sentence says so, and there is none afterwards."""
    code, out, err = run(*arguments, "--db", f"sqlite:///{tmp_path}/none.db")
    assert (code, out) == (Exit.FAILED, "")
    assert err.startswith("crashpath: There is no store at ")
    assert list(tmp_path.iterdir()) == []
