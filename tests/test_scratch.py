"""Scratch folders: whose process is gone are taken away, and nobody else's; a fork takes nothing away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crashpath.coverage.runfile import State, read_run, run_files
from crashpath.coverage.scratch import HELD, Scratch, sweep
from crashpath.runtime.testing import tiny_folder

_HOLDS = """
import os, sys
from pathlib import Path
from crashpath.coverage.scratch import Scratch
with Scratch("trace") as scratch:
    (scratch.path / "sub").mkdir()
    os.link(sys.argv[1], scratch.path / "sub" / "weights.bin")
    print(scratch.path, flush=True)
    if sys.stdin.readline() == "die\\n":
        os._exit(1)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what is temporary, in which nothing else is."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    return place


@pytest.mark.parametrize("end", ["killed", "os._exit"])
def test_the_next_one_takes_away_what_a_dead_owner_left(temporary: Path, tmp_path: Path, end: str) -> None:
    """A folder of a process that was killed is swept, with its links; that of one that lives stays."""
    weights = tmp_path / "weights.bin"
    weights.write_bytes(b"w")
    call = [sys.executable, "-c", _HOLDS, str(weights)]
    with (
        subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lives,
        subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as dies,
    ):
        assert lives.stdout is not None
        assert dies.stdout is not None
        alive, dead = Path(lives.stdout.readline().strip()), Path(dies.stdout.readline().strip())
        if end == "killed":
            dies.send_signal(signal.SIGKILL)
            dies.wait(60)
        else:
            dies.communicate("die\n", timeout=60)
        assert dead.is_dir()
        assert weights.stat().st_nlink == 3
        with Scratch("trace") as mine:
            assert {*temporary.iterdir()} == {alive, mine.path}
            assert weights.stat().st_nlink == 2
        lives.communicate("end\n", timeout=60)
    assert [*temporary.iterdir()] == []
    assert weights.read_bytes() == b"w"


def test_what_is_no_scratch_folder_stays(temporary: Path, tmp_path: Path) -> None:
    """A folder of that name without the locked file, a link to one, a file, and what a link points to stay."""
    elsewhere = tmp_path / "mine"
    elsewhere.mkdir()
    (elsewhere / HELD).touch()
    (temporary / "crashpath-trace-notes").mkdir()
    (temporary / "crashpath-trace-file").touch()
    (temporary / "crashpath-trace-link").symlink_to(elsewhere)
    (temporary / "other").mkdir()
    (temporary / "other" / HELD).touch()
    left = temporary / "crashpath-trace-left"
    left.mkdir()
    (left / HELD).touch()
    (left / "away").symlink_to(elsewhere)
    sweep()
    assert not left.exists()
    assert (elsewhere / HELD).exists()
    assert {path.name for path in temporary.iterdir()} == {
        "crashpath-trace-notes", "crashpath-trace-file", "crashpath-trace-link", "other",
    }  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_stays(temporary: Path) -> None:
    """Whoever may remove everything removes no other user's folder all the same."""
    left = temporary / "crashpath-trace-other"
    left.mkdir()
    (left / HELD).touch()
    os.chown(left, 65534, 65534)
    sweep()
    assert (left / HELD).exists()


_FORKS = """
import os, sys
from pathlib import Path
import numpy as np
from crashpath.coverage.tracer import TraceError, Tracer
feed = {"x": np.full((2, 4), 0.25, np.float32), "steps": np.array([3])}
with Tracer(Path(sys.argv[1]), data=Path(sys.argv[2]), timed=False) as tracer:
    tracer.run(feed)
    tracer.run(feed)  # in a profile that is under way
    if not (pid := os.fork()):
        try:
            tracer.run(feed)
        except TraceError:
            sys.exit(7)  # through the end of the tracer
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    tracer.run(feed)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_that_leaves_harms_nothing(temporary: Path, tmp_path: Path) -> None:
    """The fork is refused a run, takes no folder away, writes no run file, and no profile a second time."""
    folder = tiny_folder(tmp_path / "m", kind="branches")
    done = subprocess.run(
        [sys.executable, "-c", _FORKS, str(folder.path), str(tmp_path / "runs")],
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    (run,) = map(read_run, run_files([tmp_path / "runs"]))
    assert (run.state, run.requests) == (State.FINISHED, 3)
    main = run.seen[0].trace
    assert main.problems == ()
    assert (main.hits["/1:Loop"], main.hits["/1:Loop/body/0:Mod"]) == (3, 9)
    assert run.seen[1].trace.hits["/"] == 3
    assert [*temporary.iterdir()] == []
