"""``crashpath attempts``: files in, sums and corrections out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashpath.dashboard.cli import run
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import open_store

HEAD = "unit,day,release,platform,model,attempts,failures,devices\n"
ROWS = (
    "request,2026-02-01,1.0,linux,bert,1000,9,5\n"
    "request,2026-02-03,1.0,linux,bert,500,,\n"
    "load,2026-02-01,1.1,k8s,,20,,\n"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """URL of a place for a store."""
    return f"sqlite:///{tmp_path}/store.db"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = run(["attempts", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_files_are_loaded_listed_and_corrected(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows, new and changed are said of each file; sums are by cohort; a correction shows both sides."""
    file, other = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text(HEAD + ROWS)
    other.write_text("unit,day,attempts\ndeployment,2026-02-01,3\n")
    code, out, _ = said(capsys, str(file), str(other), "--db", url)
    assert (code, out.splitlines()) == (0, ["a.csv: 3 rows, 3 new, 0 changed", "b.csv: 1 row, 1 new, 0 changed"])
    file.write_text(HEAD + ROWS.replace("1000,9", "1001,8"))
    code, out, _ = said(capsys, str(file), "--db", url, "--json")
    assert (code, json.loads(out)) == (0, {"files": [{"file": "a.csv", "rows": 3, "new": 0, "changed": 1}]})
    code, out, _ = said(capsys, "--db", url)
    lines = [line.split() for line in out.splitlines()]
    assert lines[1:4] == [
        ["deployment", "unknown", "unknown", "unknown", "2026-02-01", "2026-02-01", "3", "-"],
        ["load", "1.1", "k8s", "unknown", "2026-02-01", "2026-02-01", "20", "-"],
        ["request", "1.0", "linux", "bert", "2026-02-01", "2026-02-03", "1,501", "8"],
    ]
    assert lines[4][:3] == ["1", "row", "corrected;"]
    code, out, _ = said(capsys, "--db", url, "--release", "1.0", "--json")
    told = json.loads(out)
    assert [(one["unit"], one["attempts"], one["rows"], one["corrected"]) for one in told["attempts"]] == [
        ("request", 1501, 2, 1)
    ]
    (correction,) = told["corrections"]
    sides = [
        (correction[side]["attempts"], correction[side]["failures"], correction[side]["devices"])
        for side in ("before", "after")
    ]
    assert (correction["day"], sides) == ("2026-02-01", [(1000, 9, 5), (1001, 8, 5)])


def test_a_bad_file_is_one_sentence_and_stores_nothing(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4, with the file and row; neither this file nor one before it is stored, and no store is made."""
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(HEAD + ROWS)
    bad.write_text("unit,day,attempts\nload,2026-02-01,7\nload,2026-02-02,many\n")
    code, out, err = said(capsys, str(good), str(bad), "--db", url)
    assert (code, out) == (4, "")
    assert len(err.splitlines()) == 1
    assert "bad.csv, row 2: attempts is 'many'" in err
    assert not (tmp_path / "store.db").exists()
    assert said(capsys, str(tmp_path / "none.csv"), "--db", url)[0] == 4
    assert said(capsys, "--db", url)[0] == 4  # no store


def test_a_store_without_attempts(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so, and how to load some; so for a release of which none are told."""
    (tmp_path / "a.log").write_text("KeyError: 'x'\n")
    with open_store(url) as store:
        a_night(store, [tmp_path / "a.log"])
    assert said(capsys, "--db", url)[1].startswith("No attempts are told.")
    code, out, _ = said(capsys, "--db", url, "--release", "9.9")
    assert (code, out.startswith("No attempts of release 9.9 are told.")) == (0, True)
    assert json.loads(said(capsys, "--db", url, "--json")[1]) == {"attempts": [], "corrections": []}
