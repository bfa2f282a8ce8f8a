"""``crashpath faults`` and ``crashpath drill``: documents, lines, exit codes, what is stored and written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from sqlalchemy import select

from crashpath.coverage.drillcells import CELLS
from crashpath.coverage.faults import FAULTS
from crashpath.dashboard.cli import run
from crashpath.dashboard.exits import Exit
from crashpath.ingest.store import open_store
from crashpath.ingest.tables_evidence import CoverageRun, Drill

QUICK = ["drill", "--fault", "model-request-memory", "--fault", "model-tokenizer-cut", "--isolation", "in_process"]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of the test's own, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path}/drills.db"


def test_drills_as_a_document(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints the contract's document alone; the rows are stored with model hash and versions; what was printed
    is a labelled log.
    """
    code = run([*QUICK, "--json", "--db", url, "--release", "2.1.0", "--logs", str(tmp_path / "logs")])
    document = json.loads(capsys.readouterr().out)
    assert code == Exit.DONE
    assert {"drills", "requests", "unanswered", "wrong", "lower_bound"} <= set(document)
    assert (document["unanswered"], document["wrong"]) == (0, 0)
    assert [(one["fault"], one["class"], one["phase"], one["isolation"]) for one in document["drills"]] == [
        ("model-request-memory", "oom_host", "infer", "in_process"),
        ("model-tokenizer-cut", "tokenizer", "prepare", "in_process"),
    ]
    for one in document["drills"]:
        assert list(one["cells"]) == [cell.id for cell in CELLS]
        assert all(one["cells"].values()), one["why"]
    with open_store(url, create=False) as store, store.read() as session:
        rows = session.scalars(select(Drill).order_by(Drill.id)).all()
        assert [(row.fault, row.passed, row.release, row.model_hash) for row in rows] == [
            (one["fault"], True, "2.1.0", document["model_hash"]) for one in document["drills"]
        ]
        assert "onnxruntime" in rows[0].versions
        kept = session.scalars(select(CoverageRun)).one()
        assert (kept.origin, kept.detail["policy"]) == ("drill", "breaker")
    with (tmp_path / "logs" / "labels.csv").open(encoding="utf-8", newline="") as file:
        labels = {row["file"]: row["class"] for row in csv.DictReader(file)}
    assert set(labels.values()) == {"oom_host", "tokenizer"}
    for name in labels:
        assert "Traceback (most recent call last)" in (tmp_path / "logs" / name).read_text(encoding="utf-8")


def test_lines_for_people(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line a drill with its marks, the legend, sums, a claim that is no 100 %, a verdict; all within 80 columns."""
    assert run([*QUICK, "--db", url]) == Exit.DONE
    out = capsys.readouterr().out
    assert "RDCTAELB green" in out
    assert "2 drills: 2 green, 0 red" in out
    assert "Clopper-Pearson" in out
    assert "100" not in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_a_red_drill_is_exit_6(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Under `account` the second failure is not answered: exit 6, and the line says which cell does not hold."""
    code = run([*QUICK[:3], "--isolation", "in_process", "--policy", "account", "--no-store", "--db", url])
    out = capsys.readouterr().out
    assert code == Exit.RED
    assert "answered: HostMemory" in " ".join(out.split())
    assert not Path("drills.db").exists()


def test_a_mix_counts(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--n` sends that many struck requests to one session and says what may be claimed."""
    chosen = ["--fault", "model-no-space", "--fault", "model-graph-kernel", "--isolation", "in_process"]
    code = run(["drill", "--n", "30", *chosen, "--no-store", "--json", "--db", url])
    document = json.loads(capsys.readouterr().out)
    assert code == Exit.DONE
    assert document["drills"] == []
    assert (document["mix"]["requests"], document["unanswered"], document["wrong"]) == (30, 0, 0)
    assert 0.9 < document["lower_bound"] < 0.91


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["drill"], "--fault F"),
        (["drill", "--fault", "nope"], "nope"),
        (["drill", "--fault", "ort-opset"], "can be drilled"),
        (["drill", "--class", "nope"], "nope"),
        (["drill", "--all", "--policy", "nope"], "sticky"),
        (["faults", "--class", "nope"], "nope"),
    ],
)
def test_wrong_usage(url: str, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be understood is exit 2 and one sentence that names it."""
    assert run(arguments) == Exit.USAGE
    assert told in capsys.readouterr().err


def test_a_folder_that_is_none(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is no model folder is one sentence and exit 4, not a traceback."""
    assert run(["drill", "--fault", "model-killed", "--model", str(tmp_path), "--db", url]) == Exit.FAILED
    assert "model.toml" in capsys.readouterr().err


def test_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every fault is in the document, with its class, and how it is drilled where it can be."""
    assert run(["faults", "--json"]) == Exit.DONE
    listed = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in listed] == [fault.id for fault in FAULTS]
    killed = next(one for one in listed if one["id"] == "model-killed")
    assert killed["drill"]["isolations"] == ["process"]
    assert run(["faults", "--class", "hang"]) == Exit.DONE
    out = capsys.readouterr().out
    assert "model-request-loop" in out
    assert "model-killed" not in out
