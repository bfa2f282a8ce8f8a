"""Strikes: each really fails, in the process that calls it, and leaves marks by which that is seen."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crashpath.coverage.props import Props
from crashpath.coverage.strikes import named, packed, read_marks

CALL = "import sys; from crashpath.coverage.strikes import strike; strike(sys.argv[1])"
SIGNALS = (
    ("killed", signal.SIGKILL),
    ("segmentation_fault", signal.SIGSEGV),
    ("abort", signal.SIGABRT),
    ("bus_error", signal.SIGBUS),
    ("illegal_instruction", signal.SIGILL),
    ("uncaught_bad_alloc", signal.SIGABRT),
)


def _struck(name: str, argument: str, marks: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CALL, packed(name, marks, argument)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=marks.parent, timeout=120)


@pytest.mark.parametrize(("name", "number"), SIGNALS)
def test_a_process_dies_of_the_signal_it_should(name: str, number: signal.Signals, tmp_path: Path) -> None:
    """The struck process ends by that signal, having said that it was reached and not that it came back; no core file
    stays behind.
    """
    ended = _struck(f"process.{name}", "", tmp_path / "marks")
    assert ended.returncode == -number
    marks = read_marks(tmp_path / "marks")
    assert (len(marks.pids), marks.ended) == (1, ())
    assert [path.name for path in tmp_path.iterdir()] == ["marks"]


@pytest.mark.parametrize(
    ("name", "argument", "told"),
    [
        ("memory.bytes_refused", "64", "MemoryError"),
        ("memory.array_refused", "", "Unable to allocate"),
        ("memory.expand_refused", "{expand}|64", "Failed to allocate memory"),
        ("graph.opens", "{kernel_missing}", "NOT_IMPLEMENTED"),
        ("graph.opens", "{torn}", "INVALID_PROTOBUF"),
        ("graph.runs", "{run_shapes}", "MatMul"),
        ("graph.refuses", "{fixed_shapes}", "Got invalid dimensions"),
        ("code.mean_of_nothing", "", "StatisticsError"),
        ("host.not_executable", "", "Permission denied"),
        ("host.no_space", "", "No space left"),
        ("host.too_many_files", "", "Too many open files"),
        ("host.extension_broken", "", "fast_features"),
        ("host.fetch", "{address-401}", "401"),
        ("host.fetch", "{address-refused}", "refused"),
        ("host.fetch", "{address-reset}", "closed connection"),
    ],
)
def test_a_library_says_no(name: str, argument: str, told: str, tmp_path: Path) -> None:
    """The error is the library's own, with its own words, and the mark tells how the strike ended."""
    with Props(tmp_path) as props:
        ended = _struck(name, props.fill(argument), tmp_path / "marks")
    assert ended.returncode == 1
    assert told in ended.stderr
    marks = read_marks(tmp_path / "marks")
    assert len(marks.pids) == len(marks.ended) == 1


def test_a_limit_is_lifted_again(tmp_path: Path) -> None:
    """A strike that lowers a limit of its process puts it back: the next request must not meet it."""
    code = (
        "import resource, contextlib\n"
        "from crashpath.coverage.strikes import named\n"
        "before = [resource.getrlimit(one) for one in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)]\n"
        "for name, argument in (('memory.bytes_refused', '64'), ('host.too_many_files', '')):\n"
        "    with contextlib.suppress(MemoryError, OSError):\n"
        "        named(name)(argument)\n"
        "assert before == [resource.getrlimit(one) for one in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=120)


def test_unknown_names_are_named() -> None:
    """A strike that is not there is a `KeyError` with its name."""
    with pytest.raises(KeyError, match="no_such"):
        named("process.no_such")
