"""``crashpath quarantine``: what it lists, and how a source is read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crashpath.dashboard import cli
from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import open_store

BAD = b"\xff\xfe\xfd\xfc \x1b[31m[red](http://x)<script>\n"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two logs, three pieces in quarantine, read in one night into the store that the environment names."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, pieces in (("a.log", 2), ("b.log", 1)):
        (folder / name).write_bytes((b"INFO ok\n" + BAD.replace(b" ", b"\xff" * 9)) * pieces + b"ValueError: x\n")
    url = f"sqlite:///{tmp_path}/crashpath.db"
    monkeypatch.setenv("CRASHPATH_DB", url)
    monkeypatch.setenv("CRASHPATH_WHO", "eve")
    with open_store(url) as store:
        a_night(store, [folder], NightOptions(max_quarantine=1))
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command; return exit code, standard output (parsed where it is JSON) and standard error."""

    def run(*arguments: str) -> tuple[int, Any, str]:
        code = cli.run(["quarantine", *arguments])
        out, err = capsys.readouterr()
        return code, json.loads(out) if "--json" in arguments and out else out, err

    return run


def test_it_counts_and_lists_what_is_there(logs: Path, run: Any) -> None:
    """The first line counts by reason; each piece has its number, its source and where it is; nothing steers."""
    code, out, _ = run()
    assert code == 0
    assert out.startswith("3 pieces of 2 sources: not text 3.\n")
    assert "\x1b" not in out
    assert "--retry PIECE" in out
    code, found, _ = run("--json", "--limit", "1")
    assert (found["pieces"], found["sources"], found["reasons"], len(found["listed"])) == (3, 2, {"not text": 3}, 1)
    assert "1 of 3 pieces; --limit 3 shows all." in run("--limit", "1")[1]
    assert run("--night", "9")[1] == "Nothing is in quarantine.\n"


def test_a_piece_is_asked_for_and_its_file_read_again_once(logs: Path, run: Any) -> None:
    """Asking says what will happen; asked twice it is recorded once; the next night does it, and the list says so."""
    code, out, _ = run("--retry", "1", "--retry", "2", "--why", "disk mended")
    assert code == 0
    assert out.count("will be read again from its start by the next night that finds it.") == 1
    assert "Nothing was recorded: Source 1" in run("--source", "1")[1]
    assert "asked for by eve" in run()[1]
    (logs / "a.log").write_bytes(b"INFO ok\nValueError: x\nValueError: x\n")
    with open_store(f"sqlite:///{logs.parent}/crashpath.db") as store:
        a_night(store, [logs], NightOptions(max_quarantine=1))
    code, out, _ = run()
    assert out.startswith("1 piece of 1 source")
    assert "night 2 came upon it." in out
    assert run("--json")[1]["asked"][0]["why"] == "disk mended"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--retry", "77"), 4, "There is no piece 77 in quarantine. `crashpath quarantine` lists them."),
        (("--source", "77"), 4, "There is no source 77."),
        (("--why", "so"), 2, "--why goes with --retry or --source"),
        (("--retry", "0"), 2, "--retry"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    logs: Path, run: Any, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """What is not there, or asks for nothing, gives its exit code and one line; nothing is recorded."""
    got, _, err = run(*arguments)
    assert got == code
    assert said in err
    assert err.count("\n") == 1
    assert run("--json")[1]["asked"] == []
