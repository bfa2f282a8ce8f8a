"""The pytest plugin on a small project of its own, beside pytest-cov and pytest-xdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from crashpath.coverage.covered import add_up
from crashpath.coverage.runfile import Run, State, read_run, run_files
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
import os, pathlib, signal, time

def test_one_dies(scorer):
    scorer.score(1)
    os.kill(os.getpid(), signal.SIGKILL)

def test_other_waits(scorer):
    scorer.score(3)
    deadline = time.monotonic() + 60
    mine = pathlib.Path("/proc/self/stat").read_text().split()[3]
    while time.monotonic() < deadline and len(workers(mine)) > 1:
        time.sleep(0.05)

def workers(parent):
    stats = []
    for one in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            stats.append(one.read_text().rpartition(")")[2].split())
        except OSError:
            pass
    return [one for one in stats if one[1] == parent and one[0] != "Z"]
"""
UNTRACED = """
import numpy as np
import pytest
from pathlib import Path
from crashpath.runtime import open_session

@pytest.mark.parametrize("number", range(4))
def test_untraced(number):
    with open_session(Path(__file__).parent / "other", policy="off") as session:
        session.run({"x": np.ones((2, 4), np.float32)})
"""
OWN = """
import numpy as np

def test_own(crashpath_tracer):
    feed = {"x": np.full((2, 4), 0.25, np.float32), "steps": np.array([3])}
    main, fallback = crashpath_tracer.run(feed)
    assert np.allclose(main["y"], fallback["y"], atol=1e-4)

def test_plain():
    pass
"""


ENDLESS = """
import atexit
import numpy as np
import pytest
from pathlib import Path
from crashpath.runtime import open_session
from crashpath.runtime.errors import DeadlineExceeded

def feed(steps):
    return {"x": np.ones((1, 4), np.float32), "steps": np.array([steps])}

atexit.register(lambda: Path("left").touch())

def test_endless():
    with open_session(Path(__file__).parent / "loop", sample=0.0) as session:
        session.run(feed(3), deadline_ms=60_000)
        with pytest.raises(DeadlineExceeded):
            session.run(feed(1 << 40), deadline_ms=300)
        session.run(feed(4), deadline_ms=60_000)
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


def runs_of(project: Path) -> list[Run]:
    """The runs that the project's run files tell of."""
    return [read_run(path) for path in run_files([project / ".crashpath-coverage"])]


def hits(project: Path) -> tuple[dict[str, int], dict[str, int]]:
    """What the run files of the project add up to, on the main path and on the fallback."""
    runs = runs_of(project)
    assert {run.state for run in runs} == {State.FINISHED}
    covered = add_up(runs, runs[0].model_hash, now=runs[0].ended or runs[0].began)
    main, fallback = covered.path(Which.MAIN), covered.path(Which.FALLBACK)
    assert main is not None
    assert fallback is not None
    assert covered.routes["main:answered"] == 8
    return dict(main.hits), dict(fallback.hits)


def test_own_tests_count(project: Path) -> None:
    """Eight tests of 0 to 7 turns: 8 requests, 28 turns; exactly the branch that no test takes is missing."""
    done = run_pytest(project, "--crashpath-model", "model")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "branches: main 12 of 13" in done.stdout.replace("tiny-", "")
    counted, fallback = hits(project)
    assert (counted["/0:Squeeze"], counted["/1:Loop/body/0:Mod"]) == (8, 28)
    assert sorted(fallback[block] for block in blocks(project)) == [8, 12, 16, 16, 28]
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
    both = hits(project)
    assert [sum(run.requests for run in runs_of(project)), len(runs_of(project))] == [8, 2]
    assert all(run.requests for run in runs_of(project)), "one worker had no test"
    shutil.rmtree(project / ".crashpath-coverage")
    assert run_pytest(project, "--crashpath-model", "model").returncode == 0
    assert both == hits(project)
    assert sorted(both[1][block] for block in blocks(project)) == [8, 12, 16, 16, 28]


def blocks(project: Path) -> list[str]:
    """The blocks of the fallback that were hit."""
    seen = runs_of(project)[0].seen[1]
    return [unit.id for unit in seen.declared.units if unit.kind is Kind.BLOCK and unit.id in seen.trace.hits]


def test_without_the_flag_nothing_is_imported(project: Path) -> None:
    """The plugin costs a project that does not ask for it neither torch nor the runtime."""
    (project / "test_app.py").write_text(LEAN)
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project / ".crashpath-coverage").exists()


def test_a_worker_that_dies_loses_its_own_run(project: Path) -> None:
    """Of two workers one is killed in a test: its run is told as lost, that of the other counts, with its hits."""
    text = TESTS.partition("@pytest.mark.parametrize")[0]
    (project / "test_app.py").write_text(text + DIES)
    done = run_pytest(project, "-n", "2", "--max-worker-restart", "0", "--crashpath-model", "model")
    assert done.returncode != 0
    runs = sorted(runs_of(project), key=lambda run: run.state)
    assert [run.state for run in runs] == [State.FINISHED, State.LOST], done.stdout
    kept = runs[0]
    assert (kept.requests, kept.routes["main:answered"]) == (1, 1)
    assert (kept.seen[0].trace.hits["/0:Squeeze"], kept.seen[0].trace.hits["/1:Loop/body/0:Mod"]) == (1, 3)
    assert kept.seen[1].trace.hits["/"] == 1
    assert "(1 request in 1 run, 1 run lost)" in done.stdout


def test_the_fixture_runs_feeds_with_the_flag_and_skips_without(project: Path) -> None:
    """An ordinary run of such tests is green, says why they did not run, and leaves nothing; with the flag they run."""
    (project / "test_app.py").write_text(OWN)
    done = run_pytest(project, "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert "give pytest --crashpath-model DIR" in done.stdout
    assert not (project / ".crashpath-coverage").exists()
    done = run_pytest(project, "--crashpath-model", "model")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert [run.requests for run in runs_of(project)] == [1]


@pytest.mark.parametrize("flags", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_model_that_cannot_be_traced_fails_no_test(project: Path, flags: tuple[str, ...]) -> None:
    """The tests pass as they do without tracing, no run file is left, and one line says why, whoever met it."""
    other = tiny_folder(project / "other", fallback=True)
    (project / "test_app.py").write_text(UNTRACED)
    (other.path / "model.ts.pt").unlink()
    done = run_pytest(project, *flags, "--crashpath-model", "other")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project / ".crashpath-coverage").exists()
    assert done.stdout.count("cannot be traced") == 1, done.stdout
    assert "no request was traced" in done.stdout


@pytest.mark.parametrize("flags", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_request_without_end_holds_no_test_up(project: Path, flags: tuple[str, ...]) -> None:
    """The test ends as without tracing, one line says so, and the process ends well, with its run told as lost."""
    tiny_folder(project / "loop", kind="loop")
    (project / "test_app.py").write_text(ENDLESS)
    done = run_pytest(project, *flags, "--crashpath-model", "loop", "--crashpath-limit", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("tracing took more than 2 s") == 1, done.stdout
    assert "so all of this run is lost" in done.stdout
    assert flags or (project / "left").exists(), "what others do at the end of the process was left out"
    assert [run.state for run in runs_of(project)] == [State.LOST]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--crashpath-model", "/nonexist"), "/nonexist is no folder"),
        (("--crashpath-model", "bare"), "give it a [files] table"),
        (("--crashpath-model", "model", "--crashpath-limit", "0"), "no number of seconds"),
        (("--crashpath-model", "model", "--crashpath-limit", "nan"), "no number of seconds"),
    ],
)
def test_a_wrong_flag_is_told_in_a_sentence(project: Path, flags: tuple[str, ...], said: str) -> None:
    """Pytest ends with its code for wrong usage and that sentence, not with an error of its own."""
    bare = shutil.copytree(project / "model", project / "bare") / "model.toml"
    bare.write_text(bare.read_text().partition("[files]")[0])
    for more in ((), ("-n", "2")):
        done = run_pytest(project, *flags, *more)
        assert (done.returncode, "INTERNALERROR" in done.stdout + done.stderr) == (4, False), done.stdout + done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
