"""What counts as proof of a fault: how a child ended, what a library says when it is asked apart, what props saw."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crashpath.coverage.drillplan import DrillPlan, missing_for
from crashpath.coverage.drillseen import Seen, note_marks, words
from crashpath.coverage.endings import Endings
from crashpath.coverage.props import Props
from crashpath.coverage.strikes import packed
from crashpath.coverage.witness import refusal
from crashpath.runtime.errors import HostMemory
from crashpath.runtime.messages import RemoteError
from crashpath.runtime.testing import tiny_folder

CALL = "import sys; from crashpath.coverage.strikes import strike; strike(sys.argv[1])"


def _child(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
        ("import os; os.abort()", "ended by SIGABRT"),
        ("import os; os._exit(3)", "ended with exit code 3"),
    ],
)
def test_how_a_child_ended(code: str, told: str) -> None:
    """The exit status of a child that ends by itself is told, whoever waited for it."""
    child = _child(code)
    endings = Endings()
    endings.watch(child.pid)
    child.wait(60)
    assert endings.how(child.pid, 60) == told


def test_a_kill_of_our_own_is_told_apart() -> None:
    """A child that this process kills has the same exit status, and is no proof that the fault killed it."""
    endings = Endings()
    child = _child("import time; time.sleep(600)")
    endings.watch(child.pid)
    assert endings.how(child.pid, 0.05) == ""
    child.kill()
    child.wait(60)
    assert endings.how(child.pid, 60) == "was ended by who serves"


def test_what_the_runtime_tells_is_no_proof() -> None:
    """Only observations and the process's own output prove; the runtime's words, its library trace, and names of
    functions in a dump of stacks do not; an empty pattern proves nothing.
    """
    seen = Seen(0)
    seen.hear("the worker was killed (SIGKILL)")
    seen.trace = "MemoryError: no"
    seen.output = 'Fatal Python error: Aborted\n  File "/srv/strikes.py", line 66 in uncaught_bad_alloc\n'
    seen.note("hit a worker")
    assert not seen.proves("SIGKILL|MemoryError|bad_alloc")
    assert not seen.proves("")
    assert seen.proves("Aborted")
    seen.note("that worker ended by SIGKILL")
    assert seen.proves("SIGKILL")


def test_marks_keep_the_words_of_who_refused(tmp_path: Path) -> None:
    """The mark of a strike that comes back has type and message of the error, which the runtime never touched."""
    marks = tmp_path / "marks"
    argument = packed("host.module_missing", marks, "no_such_package")
    subprocess.run([sys.executable, "-c", CALL, argument], check=False, capture_output=True, timeout=120)
    seen = Seen(0)
    note_marks(seen, marks, lambda pid: "ended with exit code 1")
    assert seen.hits == 1
    assert seen.proves("ended with ModuleNotFoundError: No module named .no_such_package")


def test_words_are_the_librarys() -> None:
    """What stands below a failure counts as the library's word only where it is not an error of the runtime."""
    failure = HostMemory("it was refused", "said")
    assert words(failure) == ""
    failure.__cause__ = RemoteError("onnxruntime.Fail", "Failed to allocate memory", "trace")
    assert words(failure) == "onnxruntime.Fail: Failed to allocate memory"
    failure.__cause__ = RemoteError("crashpath.runtime.errors.LoadCorrupt", "is not ready", "trace")
    assert words(failure) == ""
    failure.__cause__ = MemoryError("no")
    assert words(failure) == "MemoryError: no"


def test_a_library_is_asked_apart(tmp_path: Path) -> None:
    """A whole file is taken; of a broken one the library's own error is told; one that is not there, too."""
    folder = tiny_folder(tmp_path, fallback=False)
    assert refusal("{main}", folder.main) == ""
    folder.main.write_bytes(folder.main.read_bytes()[:50])
    assert "INVALID_PROTOBUF" in refusal("{main}", folder.main)
    assert "No such file" in refusal("{tokenizer}", tmp_path / "tokenizer.json")


@pytest.mark.skipif(
    missing_for(DrillPlan((), "", needs=("memory-group",)), "process") is not None, reason="no memory groups here"
)
def test_a_kill_of_an_earlier_drill_is_not_this_ones(tmp_path: Path) -> None:
    """What props saw is told once: a kill in a memory group does not prove the next drill."""
    with Props(tmp_path) as props:
        group = props.fill("{memory-group}")
        assert props.observe() == ""
        argument = packed("process.outgrow_group", tmp_path / "marks", group)
        subprocess.run([sys.executable, "-c", CALL, argument], check=False, capture_output=True, timeout=120)
        assert props.observe() == "oom_kill 1"
        assert props.observe() == ""
