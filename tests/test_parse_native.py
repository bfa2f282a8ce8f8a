"""Rules of native failures, on real programs where the machine can build them and on their formats elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crashpath.ingest.model import Parsed
from crashpath.ingest.parse import parse

PROGRAM = r"""
#include <cassert>
#include <cstdlib>
#include <stdexcept>
#include <string>
namespace ml {
struct LoadError : std::runtime_error { using std::runtime_error::runtime_error; };
template <class T> void run(T* p, int depth) { if (depth) run(p, depth - 1); else *p = 1; }
}
int main(int, char** v) {
  std::string mode = v[1];
  if (mode == "throw") throw ml::LoadError("cannot map weights\nfile model.bin");
  if (mode == "int") throw 42;
  if (mode == "assert") { int n = std::atoi(v[2]); assert(n == 4 && "shape"); }
  if (mode == "free") { void* volatile p = std::malloc(10); void* volatile q = p; std::free(p); std::free(q); }
  if (mode == "null") { int* volatile p = nullptr; ml::run((int*)p, 2); }
}
"""


def shown(parsed: Parsed) -> list[tuple[str, str]]:
    return [(thrown.type, thrown.message) for thrown in parsed.chain]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("native")
    (folder / "prog.cpp").write_text(PROGRAM)
    subprocess.run(["g++", "-g", "-O0", "-w", "-o", "prog", "prog.cpp"], cwd=folder, check=True, timeout=120)
    return folder / "prog"


def run_in_shell(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", f"{command}; true"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("mode", "chain", "signal"),
    [
        ("throw", [("ml::LoadError", "cannot map weights\nfile model.bin")], "SIGABRT"),
        ("int", [("int", "")], "SIGABRT"),
        ("assert 3", [("Assertion", "n == 4 && \"shape\"")], "SIGABRT"),
        ("free", [("glibc", "free(): double free detected in tcache 2")], "SIGABRT"),
        ("null", [], "SIGSEGV"),
    ],
)  # fmt: skip
def test_real_programs_end_as_they_say(program: Path, mode: str, chain: list[tuple[str, str]], signal: str) -> None:
    """An uncaught exception, a failed assertion, glibc's abort and a fault, with what bash says of the signal."""
    parsed = parse(run_in_shell(f"./prog {mode}", program.parent))
    assert shown(parsed) == chain
    assert (parsed.signal, parsed.format) == (signal, "native")


def test_a_real_assertion_has_its_function(program: Path) -> None:
    """The function that an assertion line names is a frame."""
    frames = parse(run_in_shell("./prog assert 3", program.parent)).chain[0].frames
    assert [(frame.module, frame.function) for frame in frames] == [("prog", "main")]


def test_a_real_gdb_backtrace(program: Path) -> None:
    """gdb's frames, innermost last, without template arguments, under the signal that it names."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    parsed = parse(run_in_shell("gdb -q -batch -ex run -ex bt --args ./prog null", program.parent))
    assert shown(parsed) == [("SIGSEGV", "Segmentation fault")]
    assert [frame.function for frame in parsed.chain[0].frames] == ["main", "ml::run", "ml::run", "ml::run"]
    assert (parsed.format, parsed.signal) == ("gdb", "SIGSEGV")


@pytest.mark.parametrize(
    ("call", "message", "signal"),
    [("_sigsegv()", "Segmentation fault", "SIGSEGV"), ("_sigabrt()", "Aborted", "SIGABRT")],
)
def test_a_real_fatal_python_error(tmp_path: Path, call: str, message: str, signal: str) -> None:
    """faulthandler's current thread, innermost frame last; other threads are not its stack."""
    (tmp_path / "prog.py").write_text(
        "import faulthandler, threading, time\nfaulthandler.enable()\n"
        "threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\ntime.sleep(0.1)\n"
        f"def inner():\n    faulthandler.{call}\ndef outer():\n    inner()\nouter()\n"
    )
    parsed = parse(run_in_shell(f"{sys.executable} prog.py", tmp_path))
    assert shown(parsed) == [("Fatal Python error", message)]
    assert [frame.function for frame in parsed.chain[0].frames] == ["<module>", "outer", "inner"]
    assert (parsed.format, parsed.signal) == ("faulthandler", signal)


def test_a_real_timeout_of_faulthandler(tmp_path: Path) -> None:
    """``dump_traceback_later`` is a timeout, not a crash: it has frames and no signal."""
    (tmp_path / "prog.py").write_text(
        "import faulthandler, time\nfaulthandler.dump_traceback_later(0.1, exit=True)\n"
        "def stuck():\n    time.sleep(9)\nstuck()\n"
    )
    parsed = parse(run_in_shell(f"{sys.executable} prog.py", tmp_path))
    assert (parsed.chain[0].type, parsed.signal) == ("Timeout", None)
    assert parsed.chain[0].frames[-1].function == "stuck"


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("Segmentation fault (core dumped)", "SIGSEGV"),
        ("run.sh: line 18:  2214 Illegal instruction     (core dumped) python -m server --port 1", "SIGILL"),
        ("zsh: killed     python serve.py", "SIGKILL"),
        ("Killed", "SIGKILL"),
        ("runner exited with error: signal: illegal instruction", "SIGILL"),
        ("signal: killed", "SIGKILL"),
        ("svc.service: Main process exited, code=dumped, status=11/SEGV", "SIGSEGV"),
        ("Worker (pid:25260) was sent SIGKILL! Perhaps out of memory?", "SIGKILL"),
        ("Sending SIGTERM to the group\nprocess died with <Signals.SIGSEGV: 11>", "SIGSEGV"),
        ("child exited with exit code -9", "SIGKILL"),
        ("process exited with code 0xC0000005", "SIGSEGV"),
        ("the request was killed by the user", None),
        ("connection aborted by peer", None),
    ],
)
def test_a_signal_is_read_from_what_supervisors_say(line: str, signal: str | None) -> None:
    """Shells, Go, systemd, gunicorn, Python and Windows each say it in their own words; prose says nothing."""
    assert parse(line).signal == signal


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("$ echo $?\n132\n", 132),
        ("Last State: Terminated\n  Reason: OOMKilled\n  Exit Code:    137\n", 137),
        ("process exited with code 139", 139),
        ("command returned non-zero exit status 1.", 1),
        ("llama-server process has terminated: exit status 1: error loading model", 1),
        ("exitcode  : -9 (pid: 12)", -9),
        ("svc.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED", 3),
        ("svc.service: Main process exited, code=dumped, status=11/SEGV", None),
        ("Exit Code: 0", None),
        ("request failed with status code 503", None),
        ("OpenCL Error, code=-61", None),
    ],
)
def test_an_exit_code_is_not_any_number(text: str, code: int | None) -> None:
    """Only what says that a process ended is an exit code: neither HTTP's status nor a library's error code."""
    assert parse(text).exit_code == code


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (
            "CUDA error: an illegal memory access was encountered",
            "CUDA error",
            "an illegal memory access was encountered",
        ),
        (
            'CUDA error at a.cu:5 code=700(cudaErrorIllegalAddress) "an illegal address"',
            "CUDA error",
            "an illegal address",
        ),
        ('GGML_ASSERT: C:\\b\\ggml-cuda.cu:244: !"CUDA error"', "GGML_ASSERT", '!"CUDA error"'),
        ("/b/ggml.c:12: GGML_ASSERT(a->ne[0] == b) failed", "GGML_ASSERT", "a->ne[0] == b"),
        (
            "device_api.cc:238: InternalError: Check failed: (e == OK) is false: no",
            "Check failed",
            "(e == OK) is false: no",
        ),
        ("F0101 01:01:01.1 7 file.h:195] Check failed: a > 0 (-1 vs. 0)", "Check failed", "a > 0 (-1 vs. 0)"),
        ("*** stack smashing detected ***: terminated", "glibc", "stack smashing detected"),
        ("double free or corruption (!prev)", "glibc", "double free or corruption (!prev)"),
        ("libc++abi: terminating due to uncaught exception of type tvm::InternalError: no", "tvm::InternalError", "no"),
        (
            "./srv: error while loading shared libraries: libx.so.1: cannot open",
            "shared libraries",
            "libx.so.1: cannot open",
        ),
        ("#\n# Fatal error in ../api.cc, line 7\n# out of memory\n#\n", "Fatal error", "out of memory"),
    ],
)
def test_last_words_have_a_type_and_a_message(line: str, kind: str, message: str) -> None:
    """Each library's last words, wherever they stand in a line."""
    assert shown(parse(line)) == [(kind, message)]


def test_the_same_words_of_many_threads_are_one() -> None:
    """A device-side assertion is printed by each GPU thread; it is one exception, before the traceback that follows."""
    line = "/p/Indexing.cu:15: indexSelect: block: [{0},0,0], thread: [{0},0,0] Assertion `i < n` failed.\n"
    text = "".join(line.format(n) for n in range(5)) + (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x()\nRuntimeError: CUDA error: assert\n'
    )
    parsed = parse(text)
    assert shown(parsed) == [("Assertion", "i < n"), ("RuntimeError", "CUDA error: assert")]
    assert parsed.format == "python_traceback"


SANITIZER = """\
==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x55 bp 0x7f sp 0x7f
READ of size 4 at 0x602000000010 thread T0
    #0 0x5653a2bf2895 in __interceptor_memcpy ../asan.cpp:12
    #1 0x5653a2bf2895 in void ml::Engine::run<int>(int*, int) /b/engine.cpp:9:3
    #2 0x5653a2bf089c in main /b/main.cpp:14
    #3 0x7f5281c45249  (/lib/x86_64-linux-gnu/libc.so.6+0x27249)

0x602000000010 is located 0 bytes inside of 4-byte region
freed by thread T0 here:
    #0 0x1111111111 in free_other /b/other.cpp:1
"""


def test_a_sanitizer_report_has_the_stack_of_the_error() -> None:
    """The first stack is where it happened; where memory was freed is not."""
    parsed = parse(SANITIZER)
    assert shown(parsed) == [("AddressSanitizer", "heap-use-after-free on address 0x602000000010")]
    functions = [(frame.function, frame.in_project) for frame in parsed.chain[0].frames]
    assert functions[1:] == [("main", True), ("ml::Engine::run", True), ("__interceptor_memcpy", False)]
    assert parsed.format == "sanitizer"


TOMBSTONE = """\
signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x18
Cause: null pointer dereference
    x0  b400007a8be65700  x1  0000000000000079
backtrace:
      #00 pc 00000000001a2d54  /data/app/~~u==/base.apk!libmodel_jni.so (offset 0x2e44000) (ml::Net::run(int)+52)
      #01 pc 00000000000d4fc4  /apex/com.android.runtime/lib64/bionic/libc.so (__pthread_start(void*)+208) (BuildId: 1)
"""


def test_a_tombstone_has_its_backtrace() -> None:
    """Android's frames name a library, and a function where symbols were left."""
    parsed = parse(TOMBSTONE)
    assert shown(parsed) == [("SIGSEGV", "SEGV_MAPERR")]
    assert [(f.module, f.function, f.in_project) for f in parsed.chain[0].frames] == [
        ("libc", "__pthread_start", False),
        ("libmodel_jni", "ml::Net::run", True),
    ]
    assert parsed.signal == "SIGSEGV"
