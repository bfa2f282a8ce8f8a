"""The command line's contract: exit codes, one sentence an error, JSON and nothing else on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from crashpath.dashboard import cli
from crashpath.dashboard.exits import Exit
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
