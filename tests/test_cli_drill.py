"""``crashpath faults`` and ``crashpath drill``: documents, lines, exit codes, what is stored and written."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import select

from crashpath.coverage.drillcells import CELLS
from crashpath.coverage.drillplan import device_is_here
from crashpath.coverage.faults import FAULTS
from crashpath.dashboard.cli import run
from crashpath.dashboard.drill_text import wrapped
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.testing import a_night
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
    assert document["claim"] == {"unit": "drill", "trials": 2, "misses": 0}
    assert document["lower_bound"] == pytest.approx(0.05**0.5)
    assert document["providers"] == ["CPUExecutionProvider"]
    assert document["limits"]["deadline_ms"] == 2000.0
    assert [(one["fault"], one["class"], one["phase"], one["isolation"]) for one in document["drills"]] == [
        ("model-request-memory", "oom_host", "infer", "in_process"),
        ("model-tokenizer-cut", "tokenizer", "prepare", "in_process"),
    ]
    for one in document["drills"]:
        assert list(one["cells"]) == [cell.id for cell in CELLS]
        assert all(one["cells"].values()), one["why"]
    with open_store(url, create=False) as store, store.read() as session:
        rows = session.scalars(select(Drill).order_by(Drill.id)).all()
        assert [(row.fault, row.passed, row.release, row.model_hash, row.path) for row in rows] == [
            (one["fault"], True, "2.1.0", document["model_hash"], "ort") for one in document["drills"]
        ]
        assert "onnxruntime" in rows[0].versions
        kept = session.scalars(select(CoverageRun)).one()
        assert (kept.origin, kept.detail["policy"]) == ("drill", "breaker")
        assert (kept.detail["providers"], kept.detail["limits"]) == (document["providers"], document["limits"])
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
    assert not re.search(r"\b100(\.0+)? ?%", out)
    assert "requests were sent while a fault was there" in out
    assert "each a drill" in " ".join(out.split())
    assert max(len(line) for line in out.splitlines()) <= 80
    assert re.search(r"\d %", out)
    assert not re.search(r"\d%", out)
    assert "repeat it alone" not in out
    assert "\n2 drills to come\n" in out


@pytest.mark.parametrize("width", [80, 60])
def test_what_is_wrapped_keeps_its_indent(width: int) -> None:
    """A note that goes on is indented as it began, nothing is lost, and no number stands apart from its unit."""
    note = "    raised: it would end or freeze the process that serves: only a worker of its own can be struck, 91.3 %"
    lines = list(wrapped(f"a line\n{note}", width))
    assert lines[0] == "a line"
    assert len(lines) > 2
    assert all(line.startswith("    ") and line[4] != " " and len(line) <= width for line in lines[1:])
    assert " ".join(line.strip() for line in lines[1:]) == note.strip()
    assert list(wrapped("1234567 91.3 %", 13)) == ["1234567", "91.3 %"]


def test_a_red_drill_is_exit_6(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Under `account` the second failure is not answered: exit 6, and the line says which cell does not hold."""
    code = run([*QUICK[:3], "--isolation", "in_process", "--policy", "account", "--no-store", "--db", url])
    out = capsys.readouterr().out
    assert code == Exit.RED
    assert "answered: HostMemory" in " ".join(out.split())
    again = "repeat it alone: crashpath drill --fault model-request-memory --isolation in_process --policy=account"
    assert again in " ".join(out.split())
    assert not Path("drills.db").exists()


def test_a_mix_counts(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--n` strikes that many requests in each isolation; the claim is of struck requests alone, and the document says
    under which policy, with which settings, they were struck.
    """
    chosen = ["--fault", "model-no-space", "--fault", "model-graph-kernel"]
    code = run(["drill", "--n", "30", *chosen, "--json", "--db", url])
    document = json.loads(capsys.readouterr().out)
    assert code == Exit.DONE, document["mixes"]
    assert document["drills"] == []
    assert [(mix["isolation"], mix["requests"]) for mix in document["mixes"]] == [("process", 30), ("in_process", 30)]
    assert (document["requests"], document["unanswered"], document["wrong"]) == (60, 0, 0)
    assert document["claim"] == {"unit": "struck request", "trials": 30, "misses": 0}
    assert 0.9 < document["lower_bound"] < 0.91
    for mix in document["mixes"]:
        assert mix["policy"] != document["policy"] == "breaker"
        assert mix["breaker"]["rate"] == 0.9
    with open_store(url, create=False) as store, store.read() as session:
        kept = session.scalars(select(CoverageRun)).one()
        assert kept.detail["mixes"] == document["mixes"]


def test_a_mix_that_meets_too_few_faults_is_red(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Under `sticky` the first failure switches for good, so one request of eight meets a fault: that proves little."""
    chosen = ["--fault", "model-no-space", "--isolation", "in_process", "--policy", "sticky", "--no-store"]
    code = run(["drill", "--n", "8", *chosen, "--db", url])
    out = " ".join(capsys.readouterr().out.split())
    assert code == Exit.RED
    assert "1 of 8 requests met a fault" in out
    assert "GREEN" not in out


@pytest.mark.skipif(device_is_here(), reason="there is a device here")
def test_nothing_driven_is_not_green(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no fault of a class can be raised, the command says so and ends with 5: nothing is proven."""
    code = run(["drill", "--class", "oom_device", "--no-store", "--db", url])
    out = capsys.readouterr().out
    assert code == Exit.PARTIAL
    assert "NOTHING DRIVEN" in out
    assert "GREEN" not in out
    assert "no device" in out
    assert "claim" not in out


@pytest.mark.skipif(device_is_here(), reason="there is a device here")
def test_the_providers_of_production_are_driven(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A provider that is asked for runs the main path in a drill, too: where it is not usable, nothing is driven."""
    code = run([*QUICK, "--provider", "CUDAExecutionProvider", "--no-store", "--db", url])
    assert code == Exit.FAILED
    assert "cannot be driven" in capsys.readouterr().err


def test_what_stands_against_the_field(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With crashes in the store, the document and the lines say by class and phase what stands against them."""
    logs = tmp_path / "crashes"
    logs.mkdir()
    trace = 'Traceback (most recent call last):\n  File "/srv/app/m.py", line 3, in predict\n    go()\n'
    (logs / "0.log").write_text(f"{trace}MemoryError\n")
    (logs / "1.log").write_text(f"{trace}ModuleNotFoundError: No module named 'tokenizers'\n")
    with open_store(url) as store:
        a_night(store, [logs])
    assert run([*QUICK, "--json", "--db", url]) == Exit.DONE
    field = {row["class"]: row for row in json.loads(capsys.readouterr().out)["field"]}
    assert field["oom_host"]["standing"] == "contained"
    assert field["oom_host"]["phases"][0]["phase"] == "infer"
    assert field["dependency"]["standing"] == "a check exists"
    assert run([*QUICK, "--db", url]) == Exit.DONE
    out = capsys.readouterr().out
    assert "prevented" not in out
    assert "a check exists" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["drill"], "--fault F"),
        (["drill", "--fault", "nope"], "nope"),
        (["drill", "--fault", "ort-opset"], "can be drilled"),
        (["drill", "--class", "nope"], "nope"),
        (["drill", "--all", "--policy", "nope"], "sticky"),
        (["drill", "--all", "--fault", "model-killed"], "--fault only some"),
        (["drill", "--all", "--class", "hang"], "--class only some"),
        (["drill", "--fault", "model-tokenizer-cut", "--n", "5"], "single requests"),
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


@pytest.mark.parametrize("kind", ["no folder", "no store", "locked"])
def test_a_store_that_cannot_be_used_is_told_first(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store in which nothing could be kept ends the command before anything is driven, in one sentence."""
    file = tmp_path / ("there/is/none.db" if kind == "no folder" else "some.db")
    if kind == "no store":
        file.write_text("a text " * 1000)
    monkeypatch.setattr("crashpath.ingest.store.BUSY_MS", 50)
    with ExitStack() as stack:
        if kind == "locked":
            open_store(f"sqlite:///{file}").close()
            other = stack.enter_context(closing(sqlite3.connect(file, isolation_level=None)))
            other.execute("BEGIN IMMEDIATE")
        assert run([*QUICK, "--db", f"sqlite:///{file}"]) == Exit.FAILED
    told = capsys.readouterr()
    assert str(file) in told.err or str(file.parent) in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


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
