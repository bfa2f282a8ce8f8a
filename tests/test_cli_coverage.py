"""``crashpath coverage``: figures, gaps and gates from real traces in a real store."""

from __future__ import annotations

import json
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crashpath.coverage.covered import PathCoverage
from crashpath.coverage.latency import heat
from crashpath.coverage.units import Kind, Ratio, Timing, Unit
from crashpath.dashboard import cli
from crashpath.dashboard.coverage_html import outline
from crashpath.dashboard.coverage_text import percent
from crashpath.dashboard.exits import Exit
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.opening import open_session
from crashpath.runtime.testing import tiny_folder

DARK = "/1:Loop/body/2:If/then_branch/3:If/else_branch/0:Sub"


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    """A model with branches; its golden feed leaves one of them out."""
    return tiny_folder(tmp_path / "model", kind="branches")


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """A feed that takes the branch which the golden one leaves out."""
    path = tmp_path / "below.npz"
    np.savez(path, x=np.full((2, 4), -9.0, np.float32), steps=np.array([2]))
    return path


class Coverage:
    """The command on a store of its own."""

    def __init__(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.db = f"sqlite:///{tmp_path}/crashpath.db"
        self._capsys = capsys
        self.err = ""

    def __call__(self, *flags: object, code: int = Exit.DONE) -> str:
        self._capsys.readouterr()
        assert cli.run(["coverage", *map(str, flags), "--db", self.db]) == code
        out, self.err = self._capsys.readouterr()
        return out

    def json(self, *flags: object, code: int = Exit.DONE) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*flags, "--json", code=code))
        return found


@pytest.fixture
def coverage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Coverage:
    """The command."""
    return Coverage(tmp_path, capsys)


def test_the_branch_that_is_left_out(coverage: Coverage, folder: ModelFolder, below: Path) -> None:
    """The golden feed covers all but one branch of each path, which is named with a command; a feed closes it."""
    found = coverage.json("--trace", folder.path, "--release", "1.0")
    assert (found["main"], found["fallback"]["total"]) == (
        {"covered": 12, "total": 13},
        found["fallback"]["covered"] + 1,
    )
    assert found["release"] == "1.0"
    nodes = [gap for gap in found["uncovered"] if gap["kind"] == "node"]
    blocks = [gap for gap in found["uncovered"] if gap["kind"] == "block"]
    assert [gap["unit"] for gap in nodes] == [DARK]
    assert len(blocks) == 1
    assert "--feed" in nodes[0]["command"]
    again = coverage.json("--trace", folder.path, "--feed", below, "--release", "1.0")
    assert again["main"] == {"covered": 13, "total": 13}
    assert again["blocks"] == {"covered": 6, "total": 6}
    assert {gap["kind"] for gap in again["uncovered"]} <= {"route", "drill"}
    assert len(again["runs"]) == 2


def test_keys_of_the_contract(coverage: Coverage, folder: ModelFolder) -> None:
    """The documented keys are there, and every excluded unit says why."""
    found = coverage.json("--trace", folder.path)
    for key in ("main", "fallback", "routes", "drills"):
        assert set(found[key]) == {"covered", "total"}
    assert isinstance(found["uncovered_field_classes"], list)
    assert all(one["why"] for one in found["excluded"])
    assert found["placement"]["nodes"] == {"CPUExecutionProvider": 13}  # where it did not run, it was assigned


def test_gates(coverage: Coverage, folder: ModelFolder) -> None:
    """A share below its gate is exit code 6 and a sentence; a gate that is none is misuse."""
    coverage("--trace", folder.path, "--gate", "main=90", "--gate", "blocks=80")
    out = coverage("--gate", "main=95", code=Exit.RED)
    assert "GATE RED: main 92.3 % is below 95 %" in out
    assert coverage.json("--gate", "routes=1", code=Exit.RED)["gate"]
    for wrong in ("main", "main=x", "main=101", "nodes=5"):
        coverage("--gate", wrong, code=Exit.USAGE)


def test_before_and_after(coverage: Coverage, folder: ModelFolder, below: Path) -> None:
    """Figures of another release stand beside."""
    coverage("--trace", folder.path, "--release", "1.0")
    out = coverage("--trace", folder.path, "--feed", below, "--release", "1.1", "--before", "1.0")
    assert out.splitlines()[1].startswith("main 100.0 %")
    assert "before, in release 1.0: main 92.3 %" in out
    assert max(len(line) for line in out.splitlines() if not line.startswith("  →")) <= 80


def test_evidence_of_other_artefacts(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """Runs of a model that was exported again do not count, and the report says so."""
    coverage("--trace", folder.path)
    other = tiny_folder(tmp_path / "other", kind="affine")
    found = coverage.json("--model", other.path)
    assert (found["model"], found["main"]["covered"], found["fallback"]["covered"]) == ("tiny-affine", 0, 0)
    assert min(found["main"]["total"], found["fallback"]["total"]) > 0
    assert {gap["kind"] for gap in found["uncovered"]} >= {"node", "block"}
    assert "other artefacts" in found["not_counted"][0]["why"]


def test_before_is_of_its_own_artefacts(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """A release that served other artefacts is compared by what it served, not by what serves now."""
    older = tiny_folder(tmp_path / "older", kind="loop").path
    told = older / "model.toml"
    told.write_text(told.read_text(encoding="utf-8").replace("tiny-loop", "tiny-branches"), encoding="utf-8")
    was = coverage.json("--trace", older, "--release", "1.0")["main"]
    coverage("--trace", tiny_folder(tmp_path / "other").path, "--release", "1.0")  # of another model, and later
    found = coverage.json("--trace", folder.path, "--release", "1.1", "--before", "1.0")
    assert found["before"]["main"] == was
    assert was != found["main"] == {"covered": 12, "total": 13}
    coverage("--trace", folder.path, "--release", "1.1", "--before", "0.9", code=Exit.FAILED)
    assert "no traced run of tiny-branches in release 0.9" in coverage.err


def test_a_feed_that_breaks_the_model(coverage: Coverage, tmp_path: Path) -> None:
    """A feed on which the model fails is told, is exit code 5, and costs the other feeds nothing."""
    model = tiny_folder(tmp_path / "gather", kind="gather")
    np.savez(tmp_path / "beyond.npz", ids=np.array([99], np.int64))
    found = coverage.json("--trace", model.path, "--feed", tmp_path / "beyond.npz", code=Exit.PARTIAL)
    assert found["main"] == {"covered": 1, "total": 1}
    assert "beyond.npz: the main path raised" in coverage.err
    np.savez(tmp_path / "wrong.npz", ids=np.array([[1]], np.int64))
    found = coverage.json("--trace", model.path, "--feed", tmp_path / "wrong.npz", code=Exit.PARTIAL)
    assert found["main"] == {"covered": 1, "total": 1}
    assert "'ids' has shape" in coverage.err
    coverage("--trace", model.path, "--failing-feed", tmp_path / "beyond.npz")
    good = tmp_path / "good.npz"
    np.savez(good, ids=np.array([1], np.int64))
    coverage("--trace", model.path, "--failing-feed", good, code=Exit.PARTIAL)
    assert "good.npz: the model was said to fail on this feed, and it answered" in coverage.err


def test_shapes_of_production(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """Shapes of production that no run exercised are named, with how often they were asked for."""
    events = tmp_path / "events.jsonl"
    with open_session(folder, events=events, sample=0.0) as session:
        for rows in (2, 2, 100):
            session.run({"x": np.zeros((rows, 4), np.float32), "steps": np.array([1])})
    found = coverage.json("--trace", folder.path, "--events", events)
    assert found["shapes"] == {"covered": 1, "total": 2}
    (gap,) = [one for one in found["uncovered"] if one["kind"] == "domain"]
    assert (gap["unit"], gap["label"]) == ("batch<=128", "asked for once in production")


def test_drills_count(coverage: Coverage, folder: ModelFolder) -> None:
    """A drill that passed covers its class and phase, and the edges that its session took."""
    drill = ["drill", "--fault", "model-bytes-refused", "--isolation", "in_process", "--model", str(folder.path)]
    assert cli.run([*drill, "--db", coverage.db]) == Exit.DONE
    found = coverage.json("--model", folder.path)
    dark = {gap["unit"] for gap in found["uncovered"]}
    assert found["drills"]["covered"] >= 1
    assert "oom_host in infer" not in dark
    assert not {"main:answered", "infer:oom_host -> fallback:answered"} & dark
    assert "infer:hang -> fallback:answered" in dark


def test_what_cannot_be_driven_is_apart(coverage: Coverage, folder: ModelFolder) -> None:
    """A class and phase whose faults were all tried, and none can be driven here, is apart with the reason."""
    before = coverage.json("--model", folder.path)
    for failure_class in ("network_auth", "dependency", "oom_host", "permission_disk", "tokenizer"):
        drill = ["drill", "--class", failure_class, "--isolation", "in_process", "--model", str(folder.path)]
        assert cli.run([*drill, "--db", coverage.db]) in (Exit.DONE, Exit.PARTIAL)
    found = coverage.json("--model", folder.path)
    apart = {one["unit"]: one["why"] for one in found["excluded"]}
    assert "no prepare step" in apart["tokenizer in prepare"]
    assert "no prepare step" in apart["prepare:tokenizer -> prepare:fallback"]
    assert "no prepare step" in apart["prepare:* -> caller"]
    assert found["routes"]["total"] < before["routes"]["total"]
    assert found["drills"]["total"] == before["drills"]["total"] - 5
    assert "apart: " in coverage("--model", folder.path)


def test_a_provider_that_is_not_there(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """A run that fell back to the processor names the provider and the nodes, in text, JSON and on the page."""
    page = tmp_path / "page.html"
    flags = ("--trace", folder.path, "--provider", "CUDAExecutionProvider")
    out = coverage(*flags, "--html", page)
    assert "CUDAExecutionProvider was asked for, and no node was given to it" in out
    assert "nodes ran on the processor, which nobody asked for" in out
    found = coverage.json("--trace", folder.path)  # a later run that asked for nothing hides nothing
    assert found["placement"]["absent"] == ["CUDAExecutionProvider"]
    assert "/1:Loop" in found["placement"]["unasked"]
    assert "/1:Loop" in page.read_text(encoding="utf-8")
    assert "CUDAExecutionProvider was asked for" in page.read_text(encoding="utf-8")


def test_a_name_forges_no_line(coverage: Coverage, folder: ModelFolder) -> None:
    """Control characters of a name are spelled out."""
    first, second = coverage("--trace", folder.path, "--release", "1\x1b[31m\nmain 100.0 %").splitlines()[:2]
    assert first.endswith("release 1\\x1b[31m\\nmain 100.0 %")
    assert second.startswith("main 92.3 %")


def test_the_commands_can_be_run(coverage: Coverage, folder: ModelFolder, below: Path, tmp_path: Path) -> None:
    """What is printed for a gap is a command line that counts for this report, whatever the folder is called."""
    spaced = tmp_path / "a model's folder"
    folder.path.rename(spaced)
    found = coverage.json("--trace", spaced, "--release", "1.0 b")
    (gap,) = [one for one in found["uncovered"] if one["kind"] == "node"]
    _, command, *flags = shlex.split(gap["command"].replace("FILE.npz", shlex.quote(str(below))))
    assert (command, gap["with_what"]) == ("coverage", f"FILE.npz: a feed that takes {DARK}")
    assert cli.run([command, *flags]) == Exit.DONE
    assert coverage.json("--model", spaced, "--release", "1.0 b")["main"] == {"covered": 13, "total": 13}


def test_wrong_input(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """Each is one sentence with advice and the documented code."""
    coverage(code=Exit.FAILED)
    assert "--trace DIR" in coverage.err
    coverage("--trace", tmp_path / "nowhere", code=Exit.FAILED)
    coverage("--trace", folder.path, "--feed", folder.path / "model.toml", code=Exit.PARTIAL)
    assert "numpy.savez" in coverage.err
    (tmp_path / "x.coverage.json").write_text("{")
    coverage("--trace", folder.path, "--add", tmp_path / "x.coverage.json", code=Exit.PARTIAL)
    assert "cut short" in coverage.err
    coverage("--perfetto", tmp_path / "p.json", code=Exit.USAGE)
    coverage("--trace", folder.path, "--html", tmp_path / "no" / "page.html", code=Exit.FAILED)
    assert "cannot be written" in coverage.err
    np.save(tmp_path / "one.npy", np.zeros(3))
    coverage("--trace", folder.path, "--feed", tmp_path / "one.npy", code=Exit.PARTIAL)
    assert "numpy.savez" in coverage.err


class Texts(HTMLParser):
    """All that a page loads, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what would be fetched."""
        self.loads += [
            str(value) for name, value in attrs if name in ("src", "href") and not str(value).startswith("#")
        ]
        assert tag not in ("script", "link", "img", "iframe")

    def handle_data(self, data: str) -> None:
        """Collect the words."""
        self.words += data


def test_the_page_needs_nothing(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """The page loads nothing, says the headline, and marks the branch that was not hit in both outlines."""
    page = tmp_path / "coverage.html"
    coverage("--trace", folder.path, "--html", page)
    texts = Texts()
    texts.feed(page.read_text(encoding="utf-8"))
    assert texts.loads == []
    assert "main 92.3 %" in texts.words
    assert texts.words.count("✗ not hit") == 3  # the node; the block and its operator
    assert DARK in texts.words


def test_one_request_over_both_paths(coverage: Coverage, folder: ModelFolder, tmp_path: Path) -> None:
    """The trace has a span for the route of each answer and, below it, the operators of that path."""
    coverage("--trace", folder.path, "--perfetto", tmp_path / "p.json")
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    spans = [one for one in events if one["ph"] == "X"]
    assert [one["name"] for one in spans if one["cat"] == "route"] == [
        "main:answered",
        "infer:oom_host -> fallback:answered (failure raised on purpose)",
    ]  # fmt: skip
    assert any(one["cat"] == "ort" and one["name"].startswith("Loop ") for one in spans)
    assert any(one["cat"] == "torchscript" and one["name"] == "aten::add" for one in spans)
    assert all(one["ts"] >= 0 and one["dur"] >= 0 for one in spans)


def test_heat() -> None:
    """Rows stand by the time that they took; colours follow the logarithm; where nothing ran the cell is empty."""
    told = [
        Timing("ort", "MatMul", 1, 10, 0.01), Timing("ort", "MatMul", 8, 10, 0.1), Timing("ort", "Add", 1, 100, 0.001),
        Timing("torchscript", "aten::mm", 1, 1, 9.0),
    ]  # fmt: skip
    found = heat(told, "ort")
    assert (found.operators, found.batches) == (("MatMul", "Add"), (1, 8))
    assert found.cells == ((1000.0, 10000.0), (10.0, None))
    assert found.shares == ((pytest.approx(2 / 3), 1.0), (0.0, None))
    assert heat([], "ort").operators == ()


def test_percent_is_never_rounded_up() -> None:
    """100 % is said of all alone."""
    assert [percent(Ratio(a, b)) for a, b in ((9999, 10000), (1, 1), (0, 0), (1, 3))] == [
        "99.9 %", "100.0 %", "no unit", "33.3 %",
    ]  # fmt: skip


def test_a_deep_outline() -> None:
    """A graph of more levels than a page opens one by one is whole in its outline all the same."""
    units = tuple(Unit(Kind.NODE, f"n{i}", "If", parent=f"n{i - 1}" if i else "") for i in range(3000))
    path = PathCoverage("ort", units, hits={"n0": 1}, timings=(), placed=(), shipped=None)
    todo, seen = list(outline(path)), 0
    assert todo[0].dark == 2999
    while todo:
        branch = todo.pop()
        seen += 1
        todo.extend(branch.inside)
    assert seen == 3000
