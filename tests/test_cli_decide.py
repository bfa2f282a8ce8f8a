"""The commands that decide: what they print, how they refuse, and that they never make a store."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crashpath.dashboard import cli
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.testing import a_night
from crashpath.ingest.decisions import By
from crashpath.ingest.details import show_cluster
from crashpath.ingest.reviews import override, record_look
from crashpath.ingest.store import open_store

TEMPLATE = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start()\n{}\n'
FAILURES = (
    "OSError: [Errno 13] Permission denied to read the model in the cache",
    "OSError: [Errno 13] Permission denied to read the config in the cache",
    "OSError: [Errno 28] No space left on device while the model is written",
    "KeyError: 'unk_token' is missing in the vocabulary of the tokenizer",
)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with three clusters, the first with two signatures; the environment names it and who decides."""
    file = tmp_path / "app.log"
    file.write_text("\n".join(TEMPLATE.format(one) for one in FAILURES))
    url = f"sqlite:///{tmp_path}/crashpath.db"
    with open_store(url) as store:
        a_night(store, [file])
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


def big(url: str) -> tuple[str, list[str]]:
    """The cluster with two signatures, and these."""
    with open_store(url) as store, store.read() as session:
        for number in range(1, 4):
            found = show_cluster(session, f"C-{number}")
            if len(found.signatures) == 2:
                return found.row.id, sorted(one.id for one in found.signatures)
    raise AssertionError("no cluster has two signatures")


def test_all_of_them_in_words_and_json(url: str, run: Any) -> None:
    """Each command says what it did, and the number to undo it by; the list has who, what, why and what was undone."""
    whole, (one, _) = big(url)
    others = [name for name in ("C-0001", "C-0002", "C-0003") if name != whole]
    code, made, err = run("merge", whole, *others, "--why", "one cache", "--json")
    assert (code, err, made["cluster"]) == (Exit.DONE, "", whole)
    assert [row["decision"] for row in made["decisions"]] == [1, 2]
    code, made, _ = run("split", whole, one[:12], "--who", "kim", "--json")
    assert (code, made["decision"], made["who"], made["other"], made["signatures"]) == (0, 3, "kim", "C-0004", [one])
    assert run("name", whole, "  the   cache ")[1] == f"Decision 4: name of {whole}: the cache.\n"
    assert run("assign", "c-4", "hang", "--to", "lee")[1] == "Decision 5: C-0004: class hang, given to lee.\n"
    code, said, err = run("undo", "5", "--why", "a mistake")
    assert (code, err) == (Exit.DONE, "")
    assert said == "Decision 6: undo of 5, C-0004: class hang, given to lee.\n"
    code, rows, _ = run("decisions", "--json")
    assert [(r["decision"], r["kind"], r["who"], r["undone_by"]) for r in rows] == [
        (1, "merge", "dana", None), (2, "merge", "dana", None), (3, "split", "kim", None),
        (4, "name", "dana", None), (5, "assign", "dana", 6), (6, "undo", "dana", None),
    ]  # fmt: skip
    assert (rows[0]["why"], rows[5]["undoes"], rows[5]["why"]) == ("one cache", 5, "a mistake")
    said = run("decisions", "C-0004")[1]
    assert "undone by 6" in said
    assert "split of 1 signature" in said
    assert "the cache" not in said
    assert "The last 1 of 6; --limit 6 shows all." in run("decisions", "--limit", "1")[1]


def test_no_decision_says_what_records_one(url: str, run: Any) -> None:
    """Of the whole store an override of a review, too; it is on no cluster, so on one it is not named."""
    code, said, err = run("decisions")
    assert (code, err) == (Exit.DONE, "")
    assert said == (
        "Nobody decided anything yet. crashpath merge, split, name, assign, resolve, mute, ticket and note record a "
        "decision on clusters, "
        "crashpath review --override one on a release.\n"
    )
    run("name", "C-2", "a name")
    said = run("decisions", "C-1")[1]
    assert said == (
        "Nobody decided anything on C-0001 yet. crashpath merge, split, name, assign, resolve, mute, ticket and note "
        "do.\n"
    )
    assert run("decisions", "C-1", "--json")[1] == []


def test_an_empty_name_takes_it_away(url: str, run: Any) -> None:
    """An empty text takes the name away; what is so already is said and not recorded."""
    assert run("name", "C-1", "")[1] == "C-0001 has no name already: nothing was recorded.\n"
    run("name", "C-1", "a name")
    assert run("name", "C-1", "a name", "--json")[1] == {"decision": None}
    assert run("name", "C-1", "")[1] == "Decision 2: name of C-0001 taken away.\n"
    run("assign", "C-1", "hang")
    assert run("assign", "C-1", "hang")[1] == "People said so of C-0001 already: nothing was recorded.\n"
    assert run("assign", "C-1", "--to", "lee")[1] == "Decision 4: C-0001: given to lee.\n"
    assert run("assign", "C-1", "--to", "")[1] == "Decision 5: C-0001: given to nobody.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["merge", "C-1", "C-99"], Exit.FAILED, "There is no cluster C-0099."),
        (["merge", "C-1"], Exit.USAGE, "merge needs B…"),
        (["merge", "C-1", "C-1"], Exit.FAILED, "A cluster cannot be merged with itself."),
        (["merge", "C-1", "wat"], Exit.FAILED, "'wat' is not a cluster's id."),
        (["split", "C-1", "sig9-none"], Exit.FAILED, "There is no signature 'sig9-none'."),
        (["split", "C-1"], Exit.USAGE, "split needs SIGNATURE…"),
        (["assign", "C-1", "oom"], Exit.USAGE, "oom is no failure class. Did you mean oom_"),
        (["assign", "C-1", "weather"], Exit.USAGE, "weather is no failure class."),
        (["assign", "C-1"], Exit.USAGE, "assign needs CLASS, or --to PERSON."),
        (["name", "C-1"], Exit.USAGE, "name needs TEXT."),
        (["name", "C-1", "x" * 201], Exit.USAGE, "TEXT has 201 characters"),
        (["undo", "7"], Exit.FAILED, "There is no decision 7. `crashpath decisions` lists them."),
        (["undo", "9" * 30], Exit.FAILED, "There is no decision 999"),
        (["undo", "first"], Exit.USAGE, "DECISION:"),
        (["decisions", "C-99"], Exit.FAILED, "There is no cluster C-0099."),
    ],
)
def test_refusals_are_one_line(url: str, run: Any, arguments: list[str], code: Exit, words: str) -> None:
    """Wrong use ends with 2, what cannot be with 4; one sentence with advice on standard error; nothing is recorded."""
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1
    assert run("decisions", "--json")[1] == []


def test_refusals_say_where_to_look(url: str, run: Any) -> None:
    """Merged before: into which; another's signature: whose; undone before: by which; stood upon: by which."""
    whole, (one, two) = big(url)
    a, b = (name for name in ("C-0001", "C-0002", "C-0003") if name != whole)
    run("merge", a, b)
    for command in (["merge", whole, b], ["name", b, "x"], ["assign", b, "hang"], ["split", b, one]):
        assert f"{b} went into {a}." in run(*command)[2]
    assert f"is in {whole}, not in {a}" in run("split", a, one)[2]
    assert "nothing would stay" in run("split", whole, one, two)[2]
    run("merge", whole, a)
    code, _, err = run("undo", "1")
    assert code == Exit.FAILED
    assert "Decision 2 (merge) stands on decision 1. Undo that one first" in err
    run("undo", "2")
    assert "was undone by decision 3. To have it again, undo that one: `crashpath undo 3`." in run("undo", "2")[2]
    assert run("undo", "1")[0] == Exit.DONE


def test_an_override_of_a_review_is_listed_and_undone(url: str, run: Any) -> None:
    """What people put in the place of a verdict stands among their decisions, and `undo` takes it back and restores."""
    at = datetime(2026, 12, 1, tzinfo=UTC)
    with open_store(url) as store, store.write() as session:
        look = record_look(
            session, at=at, release="2026.12", baseline=None, unit=None, verdict="NO-GO", fingerprint="a", failures=0,
            attempts=0, keys=(), counts={}, policy={}, report={},
        )  # fmt: skip
        override(session, look.id, "GO", By("kim", at, "known since May"))
    run("name", "C-1", "a name")
    said = run("decisions")[1]
    assert "kim   override of release 2026.12: NO-GO" in said
    assert "known since May" in said
    assert "override" not in run("decisions", "C-1")[1]
    assert run("undo", "1")[1] == "Decision 3: undo of 1, override of release 2026.12: NO-GO to GO.\n"
    assert "undone by 3" in run("decisions")[1]
    assert run("undo", "3")[1] == "Decision 4: undo of 3, undo of 1.\n"
    code, rows, _ = run("decisions", "--json")
    assert [(r["kind"], r["release"], r["over"], r["value"], r["undone_by"]) for r in rows] == [
        ("override", "2026.12", "NO-GO", "GO", None), ("name", None, None, "a name", None),
        ("undo", "2026.12", "NO-GO", None, 4), ("undo", "2026.12", "NO-GO", None, None),
    ]  # fmt: skip
    assert code == Exit.DONE


@pytest.mark.parametrize(
    "arguments",
    [
        ["merge", "1", "2"], ["split", "1", "sig2-a"], ["name", "1", "x"], ["assign", "1", "hang"], ["undo", "1"],
        ["decisions"],
    ],
)  # fmt: skip
def test_no_store_is_made(tmp_path: Path, run: Any, arguments: list[str]) -> None:
    """Where there is no store, the sentence says so, and there is none afterwards."""
    code, out, err = run(*arguments, "--db", f"sqlite:///{tmp_path}/none.db")
    assert (code, out) == (Exit.FAILED, "")
    assert err.startswith("crashpath: There is no store at ")
    assert list(tmp_path.iterdir()) == []


def test_who_decides(url: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--who, else CRASHPATH_WHO, else the login's name; odd characters never reach the store."""
    run("name", "C-1", "a\x1b[31m\x00 b\udcff", "--who", "kim\n lee")
    monkeypatch.delenv("CRASHPATH_WHO")
    monkeypatch.setenv("LOGNAME", "robin")
    run("name", "C-1", "c")
    rows = run("decisions", "--json")[1]
    assert [row["who"] for row in rows] == ["kim lee", "robin"]
    assert rows[0]["value"].isprintable()


def test_no_secret_or_address_of_a_person_reaches_the_store(url: str, run: Any, tmp_path: Path) -> None:
    """Names, reasons and people are stored as logs are, without secrets; of an e-mail address who it is stays."""
    token, address = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "kim@mail.corp.io"
    why = f"see https://kim:pw12345@git.corp.io/x?token={token}"
    assert run("name", "C-1", f"refused {token} of {address}", "--who", address, "--why", why)[0] == Exit.DONE
    assert run("assign", "C-1", "hang", "--to", "lee@mail.corp.io", "--why", f"{address} said {token}")[0] == Exit.DONE
    rows = run("decisions", "--json")[1]
    assert (rows[0]["who"], rows[1]["assignee"]) == ("kim", "lee")
    assert rows[0]["value"].startswith("refused <")
    written = b"".join(path.read_bytes() for path in tmp_path.glob("crashpath.db*"))
    for secret in (token, address, "lee@mail", "pw12345"):
        assert secret.encode() not in written
