"""The command line's contract: exit codes, one sentence an error, JSON and nothing else on standard output."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from crashpath.dashboard import cli
from crashpath.dashboard.commands import HOMES
from crashpath.dashboard.errors import EXPECTED, WRONG_USE
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import tell
from crashpath.dashboard.inputs import Fields, looks_like_records
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import open_store

TRACE = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 8, in load
    with open(path) as file:
FileNotFoundError: [Errno 2] No such file or directory: '/opt/models/bert/model.onnx'
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """URL of a store with one night in it."""
    log = tmp_path / "app.log"
    log.write_text(TRACE)
    url = f"sqlite:///{tmp_path}/crashpath.db"
    with open_store(url) as store:
        a_night(store, [log])
    return url


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return what was printed on standard output and on standard error."""
    captured = capsys.readouterr()
    return captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nightly"], Exit.USAGE),
        (["no-such-command"], Exit.USAGE),
        (["trends", "--by", "weather"], Exit.USAGE),
        (["classify"], Exit.USAGE),
        (["clusters", "--db", "sqlite:////nowhere/crashpath.db"], Exit.FAILED),
        (["clusters", "--db", "not a url"], Exit.FAILED),
        (["nightly", "x.log", "--tz", "Nowhere/Land"], Exit.USAGE),
        (["nightly", "x.log", "--as-of", "yesterday"], Exit.USAGE),
        (["nightly", "x.log", "--phase", "sleep"], Exit.USAGE),
        (["nightly", "x.log", "--max-quarantine", "7"], Exit.USAGE),
        (["classify", "x.log", "--tz", "Nowhere"], Exit.USAGE),
        (["classify", "--jsonl", "/nowhere.jsonl"], Exit.FAILED),
    ],
)
def test_errors_are_one_line(arguments: list[str], code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong use ends with 2, a run that cannot go on with 4, each with one line on standard error; never with 1."""
    assert cli.run(arguments) == code
    out, err = said(capsys)
    assert out == ""
    assert err.startswith("crashpath: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["diagnose", "lstm"], "diagnose needs --model DIR. Run crashpath diagnose --help for what is there."),
        (["export", "minilm"], "export needs DIR. Run crashpath export --help for what is there."),
        (["db", "backup"], "db backup needs FILE. Run crashpath db backup --help for what is there."),
        (
            ["drill", "--isolation", "thread"],
            "--isolation: 'thread' is not one of 'process', 'in_process', 'both'. "
            "Run crashpath drill --help for what is there.",
        ),
        (["nightly", "--nope"], "No such option: --nope. Run crashpath nightly --help for what is there."),
        (["drill", "--n"], "Option '--n' requires an argument. Run crashpath drill --help for what is there."),
        (
            ["cluster"],
            "No such command 'cluster'. Did you mean 'clusters', 'recluster'? Run crashpath --help for what is there.",
        ),
    ],
)
def test_wrong_use_names_what_to_type(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing or cannot be is named as a person types it, with the command whose help tells more."""
    assert cli.run(arguments) == Exit.USAGE
    assert said(capsys) == ("", f"crashpath: {sentence}\n")


def test_each_command_is_where_it_is_looked_for() -> None:
    """Each module adds the commands that are listed for it, in that order; so none is missing when it is asked for."""
    for home, commands in HOMES:
        app = typer.Typer()
        importlib.import_module(f"crashpath.dashboard.{home}").register(app)
        names = [one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands]
        assert (*names, *(str(one.name) for one in app.registered_groups)) == commands


def test_expected_errors_are_known_by_their_names() -> None:
    """A name of an expected error is that of a class: one that was renamed would read as a defect."""
    for name in WRONG_USE + EXPECTED:
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), kind), Exception)


def test_a_command_imports_no_other() -> None:
    """What a look at a folder does not need is not imported for it: seconds, each time."""
    code = (
        "import sys; from crashpath.dashboard.cli import run; run(['diagnose', '--model', 'nowhere']); "
        "print([one for one in ('sqlalchemy', 'alembic', 'scipy', 'sklearn', 'torch', 'pydantic_settings') "
        "if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=280)
    assert done.stdout == "[]\n"
    assert "nowhere is no folder" in done.stderr


def test_uncaught_errors_are_not_no_go(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error nobody foresaw exits with 4; its traceback is shown with --debug only."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("crashpath.dashboard.cli_read.open_store", broken)
    assert cli.run(["clusters"]) == Exit.FAILED
    assert "Traceback" not in said(capsys)[1]
    assert cli.run(["clusters", "--debug"]) == Exit.FAILED
    assert "Traceback" in said(capsys)[1]


def test_reading_commands(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each reading command answers in text and as one JSON document."""
    for arguments in (["clusters"], ["trends"], ["trends", "--by", "class"], ["show", "C-0001"], ["db", "check"]):
        assert cli.run([*arguments, "--db", url]) == Exit.DONE
        assert said(capsys)[0].strip()
        assert cli.run([*arguments, "--db", url, "--json"]) == Exit.DONE
        assert json.loads(said(capsys)[0])


def test_show_says_what_it_does_not_know(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An id that the store does not have is one sentence with advice."""
    assert cli.run(["show", "C-9999", "--db", url]) == Exit.FAILED
    assert "no cluster C-9999" in said(capsys)[1]


def test_backup_is_a_store(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A backup opens as a store with the same crashes."""
    assert cli.run(["db", "backup", str(tmp_path / "copy.db"), "--db", url]) == Exit.DONE
    said(capsys)
    assert cli.run(["clusters", "--db", f"sqlite:///{tmp_path}/copy.db", "--json"]) == Exit.DONE
    assert json.loads(said(capsys)[0])[0]["crashes"] == 1


def test_a_newer_store_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A store of a later schema is left alone, with one sentence."""
    from sqlalchemy import text

    with open_store(url) as store, store.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert cli.run(["nightly", "x.log", "--db", url]) == Exit.FAILED
    assert "newer crashpath" in said(capsys)[1]


def test_another_file_is_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is something else is named as such, and not touched."""
    file = tmp_path / "notes.db"
    file.write_text("these are notes, not a database, and they should stay as they are" * 50)
    before = file.read_bytes()
    assert cli.run(["clusters", "--db", f"sqlite:///{file}"]) == Exit.FAILED
    assert "not a SQLite database" in said(capsys)[1]
    assert file.read_bytes() == before


RECORDS = (
    json.dumps({"id": "a", "log": TRACE}),
    json.dumps({"id": "b", "log": ""}),
    "not json",
    json.dumps({"id": "c", "log": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n" + TRACE}),
    json.dumps(["a", "list"]),
    json.dumps({"id": "d", "log": TRACE.replace("bert", "gpt")}),
)


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """What the real program prints of these records, as ``group``."""
    file = tmp_path_factory.mktemp("records") / "records.jsonl"
    file.write_text("\n".join(RECORDS) + "\n")
    program = [sys.executable, "-c", "from crashpath.dashboard.cli import main; main()"]
    done = subprocess.run(
        [*program, "group", file, "--jsonl", "--json"], capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_one_object_a_line_in_order(grouped: list[dict[str, object]]) -> None:
    """A line is one record: none is split or dropped, and what has no text is unclassified."""
    assert [one["id"] for one in grouped] == ["a", "b", "line-3", "c", "line-5", "d"]
    assert [one["class"] for one in grouped if one["id"] in ("b", "line-3", "line-5")] == ["unclassified"] * 3
    for one in grouped:
        assert {"id", "class", "headline", "probability", "root", "signature", "format", "evidence"} <= set(one)


def test_group_finds_the_same_failure(grouped: list[dict[str, object]]) -> None:
    """Records that differ in a path alone are one group and each other's nearest; another failure is not in it."""
    by_id = {one["id"]: one for one in grouped}
    assert by_id["a"]["cluster"] == by_id["d"]["cluster"] != by_id["c"]["cluster"]
    assert by_id["a"]["nearest"]["id"] == "d"  # type: ignore[index]  # a JSON object
    assert by_id["a"]["signature"] == by_id["d"]["signature"]


def test_paths_that_are_not_there_make_no_store(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no path can be read and there is no store, the night fails in one sentence and leaves no store behind;
    where there is one, it keeps a partial night."""
    missing = [str(tmp_path / "nowhere.log"), str(tmp_path / "no*.log")]
    file = tmp_path / "new.db"
    assert cli.run(["nightly", *missing, "--db", f"sqlite:///{file}"]) == Exit.FAILED
    out, err = said(capsys)
    assert (out, err.count("\n")) == ("", 1)
    assert "nowhere.log does not exist" in err
    assert not file.exists()
    assert cli.run(["nightly", *missing, "--db", url, "--json"]) == Exit.PARTIAL
    assert json.loads(said(capsys)[0])["sources"]["unreadable"] == 2


def test_exclude_comes_from_flags_or_the_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A glob in ``crashpath.toml`` leaves a file out of each night; ``--exclude`` stands in its place."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "core.bin").write_bytes(b"\x7fELF\0\0\1\2")
    monkeypatch.chdir(tmp_path)
    assert cli.run(["nightly", "logs", "--json"]) == Exit.PARTIAL
    Path("crashpath.toml").write_text('exclude = ["*.bin"]\n')
    assert cli.run(["nightly", "logs"]) == Exit.DONE
    assert cli.run(["nightly", "logs", "--exclude", "*.old", "--exclude", "x/*"]) == Exit.PARTIAL
    assert cli.run(["nightly", "logs", "--exclude", "*.old", "--exclude", "core*"]) == Exit.DONE


def test_an_empty_folder_is_a_complete_night(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without files is no failure; one sentence says that there was nothing to read."""
    (tmp_path / "logs").mkdir()
    arguments = ["nightly", str(tmp_path / "logs"), "--db", f"sqlite:///{tmp_path}/empty.db"]
    assert cli.run(arguments) == Exit.DONE
    assert "There was nothing to read" in said(capsys)[0]
    assert cli.run([*arguments, "--json"]) == Exit.DONE
    assert json.loads(said(capsys)[0])["status"] == "complete"


def test_lists_say_what_they_leave_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list that is cut says how much there is; days outside the window are counted; one crash is one crash."""
    (tmp_path / "a.log").write_text(f"2026-01-01 10:00:00,000 ERROR server: failed\n{TRACE}")
    (tmp_path / "b.log").write_text("2026-03-01 10:00:00,000 ERROR server: failed\nRuntimeError: CUDA out of memory\n")
    url = f"sqlite:///{tmp_path}/crashpath.db"
    with open_store(url) as store:
        a_night(store, [tmp_path / "a.log", tmp_path / "b.log"])
    assert cli.run(["clusters", "--limit", "1", "--db", url]) == Exit.DONE
    assert "1 of 2 clusters" in said(capsys)[0]
    assert cli.run(["clusters", "--db", url]) == Exit.DONE
    assert " of 2 clusters" not in said(capsys)[0]
    assert cli.run(["trends", "--db", url]) == Exit.DONE
    assert "Not shown: 1 crash on earlier days" in said(capsys)[0]
    assert cli.run(["trends", "--days", "365", "--db", url]) == Exit.DONE
    assert "Not shown" not in said(capsys)[0]


def test_nothing_internal_is_shown(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``db check`` and ``show`` speak in words: every table has some, and no name of a table or a code stands there."""
    from crashpath.dashboard.cli_db import WORDS
    from crashpath.ingest.tables_evidence import SCHEMA

    assert set(WORDS) == set(SCHEMA.tables)
    assert cli.run(["db", "check", "--db", url]) == Exit.DONE
    assert "_" not in said(capsys)[0]
    assert cli.run(["show", "C-0001", "--db", url]) == Exit.DONE
    out = said(capsys)[0]
    assert "1 signature\n" in out
    assert "began this cluster" in out
    assert "birth" not in out


def test_group_shows_what_it_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json each record has its class and probability, root line, evidence and nearest, in 80 columns."""
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join((RECORDS[0], RECORDS[5], RECORDS[1])))
    assert cli.run(["group", str(file), "--jsonl"]) == Exit.DONE
    out, err = said(capsys)
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    first = out.split("\nG-")[0]
    assert re.match(r"G-1    load_corrupt    [01]\.\d\d  a\n", first)
    for word in ("root    FileNotFoundError: ", "because ", "nearest d, similarity 1.00"):
        assert word in first
    assert "there was no text to read" in out


@pytest.mark.parametrize("command", ["classify", "group"])
def test_hostile_texts_and_ids_are_spelled_out_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Half a character, escapes and marks of direction neither end the command nor reach the terminal."""
    file = tmp_path / "records.jsonl"
    file.write_text(
        '{"id": "a\\u001b[31m", "log": "RuntimeError: \\ud800 \\u001b]0;x\\u0007 \\u202e"}\n'
        '{"id": "\\udfff", "log": "MemoryError"}\n'
    )
    assert cli.run([command, str(file), "--jsonl"]) == Exit.DONE
    out, err = said(capsys)
    assert (err, out.replace("\n", "").isprintable()) == ("", True)
    assert all(word in out for word in ("a\\x1b[31m", "\\ud800", "\\u202e", "\\udfff"))


def test_a_repeated_id_is_no_other_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever ids records have and however often, each is answered for itself."""
    file = tmp_path / "records.jsonl"
    texts = ("KeyError: 'a'", "MemoryError", "Segmentation fault (core dumped)")
    lines = [json.dumps({"id": i, "log": text}) for i, text in zip(("a", "a", "a\0" + "1"), texts, strict=True)]
    file.write_text("\n".join(lines))
    assert cli.run(["group", str(file), "--jsonl", "--json"]) == Exit.DONE
    found = [json.loads(line) for line in said(capsys)[0].splitlines()]
    assert [one["id"] for one in found] == ["a", "a", "a\0" + "1"]
    assert len({one["cluster"] for one in found}) == 3
    assert [one["nearest"]["id"] for one in found[:2]] == ["a", "a"]


def test_records_that_are_read_as_a_log_are_hinted_at(tmp_path: Path) -> None:
    """A file that ends in .jsonl and begins with an object that has the text field is told from a log of JSON lines."""
    fields = Fields()
    for name, line, hint in (
        ("a.jsonl", RECORDS[0], True),
        ("a.log", RECORDS[0], False),
        ("b.jsonl", json.dumps({"message": "x"}), False),
        ("c.jsonl", "not json", False),
        ("d.jsonl", "", False),
    ):
        (tmp_path / name).write_text(line + "\n")
        assert looks_like_records(str(tmp_path / name), fields) == hint, name
    assert not looks_like_records(str(tmp_path / "nowhere.jsonl"), fields)


def test_waiting_is_explained_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only tells a person why nothing happens is said on a terminal, and not in a job's log."""
    tell("loading …")
    assert said(capsys) == ("", "")
    ours, theirs = os.openpty()
    with open(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", terminal)
        tell("loading …")
        terminal.flush()
        assert os.read(ours, 100).decode() == "loading …\r\n"
    os.close(ours)


def test_odd_lines_get_an_object_each(tmp_path: Path) -> None:
    """Rule: half a character, NaN and nesting without end are one record each, and what is printed is JSON."""
    lines = [b"[" * 100_000, b'{"id":"\\ud800","log":"std::bad_alloc \\ud800"}', b'{"id":NaN,"log":"std::bad_alloc"}']
    (tmp_path / "odd.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    command = [sys.executable, "-m", "crashpath.dashboard.cli", "classify", "odd.jsonl", "--jsonl", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    assert [json.loads(line)["class"] for line in done.stdout.splitlines()] == ["unclassified", "oom_host", "oom_host"]
    assert "NaN" not in done.stdout


def test_a_reader_that_has_gone_is_no_no_go(tmp_path: Path) -> None:
    """Rule: where standard output is closed in the midst, the exit code is that of a run that failed, never 1."""
    (tmp_path / "many.jsonl").write_bytes(b'{"log":"std::bad_alloc"}\n' * 3_000)
    command = [sys.executable, "-m", "crashpath.dashboard.cli", "classify", "many.jsonl", "--jsonl", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.wait(300) == Exit.FAILED


def test_records_under_another_key_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no record has a text under the key that is asked for, a sentence says which flag names it."""
    file = tmp_path / "records.jsonl"
    file.write_text(json.dumps({"id": "a", "message": "MemoryError"}))
    assert cli.run(["classify", str(file), "--jsonl", "--json"]) == Exit.DONE
    out, err = said(capsys)
    assert json.loads(out)["class"] == "unclassified"
    assert "--text-field" in err
