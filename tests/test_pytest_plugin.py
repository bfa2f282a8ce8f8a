"""The pytest plugin on a small project of its own, beside pytest-cov and pytest-xdist."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from crashpath.coverage.covered import add_up
from crashpath.coverage.runfile import State, read_run, run_files
from crashpath.coverage.units import Kind
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path as Which

APP = """
from crashpath.runtime import open_session
from pathlib import Path
import numpy as np

MODEL = Path(__file__).parent / "model"

class Scorer:
    def __init__(self):
        self.session = open_session(MODEL, sample=0.0)

    def score(self, steps, value=0.25):
        feed = {"x": np.full((2, 4), value, np.float32), "steps": np.array([steps])}
        return self.session.run(feed).outputs["y"]
"""
TESTS = """
import pytest
from app import Scorer

@pytest.fixture(scope="module")
def scorer():
    scorer = Scorer()
    yield scorer
    scorer.session.close()

@pytest.mark.parametrize("steps", range(8))
def test_score(scorer, steps):
    assert scorer.score(steps).shape == (2, 4)
"""
LEAN = """
import sys

def test_lean():
    assert not {'torch', 'onnxruntime', 'crashpath.runtime'} & set(sys.modules)
"""
DIES = """
def test_zz_dies(scorer):
    import os, signal
    scorer.score(1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a model that has branches, an app that serves it, and eight tests."""
    tiny_folder(tmp_path / "model", kind="branches")
    (tmp_path / "app.py").write_text(textwrap.dedent(APP))
    (tmp_path / "test_app.py").write_text(textwrap.dedent(TESTS))
    return tmp_path


def run_pytest(project: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in the project as its team would."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags],
        cwd=project, capture_output=True, text=True, check=False, env=environment, timeout=240,
    )  # fmt: skip


def hits(project: Path) -> dict[str, int]:
    """What the run files of the project add up to, by node of the main path."""
    runs = [read_run(path) for path in run_files([project / ".crashpath-coverage"])]
    assert {run.state for run in runs} == {State.FINISHED}
    covered = add_up(runs, runs[0].model_hash, now=runs[0].ended or runs[0].began)
    main = covered.path(Which.MAIN)
    assert main is not None
    assert covered.routes["main:answered"] == 8
    return dict(main.hits)


def test_own_tests_count(project: Path) -> None:
    """Eight tests of 0 to 7 turns: 8 requests, 28 turns; exactly the branch that no test takes is missing."""
    done = run_pytest(project, "--crashpath-model", "model")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "branches: main 12 of 13" in done.stdout.replace("tiny-", "")
    counted = hits(project)
    assert (counted["/0:Squeeze"], counted["/1:Loop/body/0:Mod"]) == (8, 28)
    (run,) = [read_run(path) for path in run_files([project / ".crashpath-coverage"])]
    dark = [unit.id for unit in run.seen[0].declared.units if unit.kind is Kind.NODE and unit.id not in counted]
    assert dark == ["/1:Loop/body/2:If/then_branch/3:If/else_branch/0:Sub"]


def test_two_workers_beside_pytest_cov(project: Path) -> None:
    """Under pytest-xdist with two workers and pytest-cov the counts are those of one process, and both tools report."""
    done = run_pytest(project, "-n", "2", "--cov=app", "--cov-report=term", "--crashpath-model", "model")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 requests in 2 runs" in done.stdout
    assert "app.py" in done.stdout
    assert "100%" in done.stdout
    counted = hits(project)
    assert (counted["/0:Squeeze"], counted["/1:Loop/body/0:Mod"]) == (8, 28)


def test_without_the_flag_nothing_is_imported(project: Path) -> None:
    """The plugin costs a project that does not ask for it neither torch nor the runtime."""
    (project / "test_app.py").write_text(LEAN)
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project / ".crashpath-coverage").exists()


def test_a_worker_that_dies_loses_its_own_run(project: Path) -> None:
    """Of two workers one is killed in a test: its run is told as lost, that of the other counts."""
    text = (project / "test_app.py").read_text()
    text += DIES
    (project / "test_app.py").write_text(text)
    done = run_pytest(project, "-n", "2", "--max-worker-restart", "0", "--crashpath-model", "model")
    assert done.returncode != 0
    states = sorted(read_run(path).state for path in run_files([project / ".crashpath-coverage"]))
    assert State.LOST in states
    assert "1 runs lost" in done.stdout
