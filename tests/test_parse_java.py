"""Rules of JVM traces, on a real JVM where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from crashpath.ingest.parse import parse

PROGRAM = """
public class Boom {
  static void inner(int i) { if (i == 0) throw new IllegalStateException("model closed\\nsecond line"); inner(i - 1); }
  public static void main(String[] a) throws Exception {
    if (a[0].equals("plain")) System.loadLibrary("not_there");
    try { Runnable r = () -> inner(2); r.run(); }
    catch (Exception e) {
      Exception x = new RuntimeException("load failed", e);
      x.addSuppressed(new java.io.IOException("close failed", new Exception("why close failed")));
      throw x;
    }
  }
}
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    source = tmp_path_factory.mktemp("java") / "Boom.java"
    source.write_text(PROGRAM)
    return {mode: _java(source, mode) for mode in ("chain", "plain")}  # one start of the JVM each


def _java(source: Path, mode: str) -> str:
    command = ["java", "-Xmx64m", str(source), mode]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stderr


def test_caused_by_is_the_cause(traces: dict[str, str]) -> None:
    """``Caused by`` comes first in the chain, with its message's lines; what was suppressed is not in the chain."""
    parsed = parse(traces["chain"])
    assert [(t.type, t.message) for t in parsed.chain] == [
        ("java.lang.IllegalStateException", "model closed\nsecond line"),
        ("java.lang.RuntimeException", "load failed"),
    ]
    assert parsed.format == "java"
    project = [frame.function for frame in parsed.chain[0].frames if frame.in_project]
    assert project == ["main", "lambda$main", "inner", "inner", "inner"]


def test_an_error_of_the_jvm_has_its_frames(traces: dict[str, str]) -> None:
    """The library's own frames are read and are not the project's."""
    (thrown,) = parse(traces["plain"]).chain
    assert thrown.type == "java.lang.UnsatisfiedLinkError"
    assert [frame.function for frame in thrown.frames if frame.in_project] == ["main"]
    assert len(thrown.frames) > 2


def test_a_message_of_many_lines_belongs_to_its_exception() -> None:
    """Lines between the type and the first frame are the message, even when they look like code."""
    text = (
        "12:00 com.example.Svc - request failed\n"
        "com.example.CheckFailedError: \nExpected: x.join(1)\nResult: y\n\n\tat com.example.A.b(A.java:3)\n"
    )
    (thrown,) = parse(text).chain
    assert (thrown.type, thrown.message, thrown.line) == (
        "com.example.CheckFailedError",
        "Expected: x.join(1)\nResult: y",
        1,
    )


def test_a_python_traceback_in_a_message_is_the_cause() -> None:
    """A JVM that hosts Python prints Python's traceback as its own message: Python's exception is the cause."""
    text = (
        "org.example.PythonException: Traceback (most recent call last):\n"
        '  File "/app/udf.py", line 3, in f\n    g()\nValueError: bad row\n\n'
        "\tat org.example.Runner.call(Runner.java:9)\n"
    )
    parsed = parse(text)
    assert [thrown.type for thrown in parsed.chain] == ["ValueError", "org.example.PythonException"]


def test_a_root_cause_first_trace_keeps_its_order() -> None:
    """``Wrapped by`` (root cause first) prints the cause at the top."""
    text = "a.b.InnerException: x\n\tat a.b.C.d(C.java:1)\nWrapped by: a.b.OuterException: y\n\tat a.b.C.e(C.java:2)\n"
    assert [thrown.type for thrown in parse(text).chain] == ["a.b.InnerException", "a.b.OuterException"]
