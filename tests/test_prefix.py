"""Prefixes of the field, alone and stacked, and lines that only look as if they had one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crashpath.ingest.prefix import strip_line

TEXT = "RuntimeError: CUDA error: out of memory"

PREFIXES = [
    # (prefix, level, writer, host)
    ("2024-06-28T06:40:11.685300953Z ", None, None, None),
    ("2024-06-28 06:40:11,685 ", None, None, None),
    ("2024-06-28 06:40:11,685 - my.logger - ERROR - ", "ERROR", None, None),
    ("2024-06-28 06:40:11,685 ERROR ", "ERROR", None, None),
    ("2024-06-28 06:40:11,685 [ERROR] ", "ERROR", None, None),
    ("2024-06-28 06:40:11,685 my.logger 142 ERROR    ", "ERROR", None, None),
    ("2024-06-28 06:40:11.685 | ERROR    | app.serve:main:44 - ", "ERROR", None, None),
    ("2024-06-28 06:40:11.685 ERROR 1 --- [main] o.s.c.Server : ", "ERROR", None, None),
    ("2024-06-28T06:40:11.685Z ERROR server::engine: ", "ERROR", None, None),
    ("06:40:11.685 [main] ERROR c.example.Server - ", "ERROR", None, None),
    ("[2024-06-28 06:40:11 +0000] [25002] [ERROR] ", "ERROR", "25002", None),
    ("[2024-06-28 06:40:11] ", None, None, None),
    ("[2024-06-28 06:40:11,106 E 20771 20771] logging.cc:361: ", "ERROR", None, None),
    ("2023/09/27 08:11:20 serve.go:333: ", None, None, None),
    ("2022-04-08 10:40:12.115044: E tensorflow_serving/core/source.cc:365] ", "ERROR", None, None),
    ("E1110 01:51:02.118850 11340 http_server.cc:3452] ", "ERROR", None, None),
    ("W1201 20:43:01.246000 1025 torch/multiprocessing/spawn.py:165] ", "WARNING", None, None),
    ("[rank0]:[E1120 12:00:00.123456789 ProcessGroup.cpp:616] ", "ERROR", "rank0", None),
    ("[rank3]: ", None, "rank3", None),
    ("[default0]:", None, "default0", None),
    ("[1,0]<stderr>: ", None, "1,0", None),
    ("INFO 07-07 08:10:02 [api_server.py:1287] ", "INFO", None, None),
    ("ERROR 07-07 08:10:02 engine.py:275] ", "ERROR", None, None),
    ("(RayWorker pid=1588) ", None, "RayWorker pid=1588", None),
    ("(Worker pid=15, ip=10.0.0.3) ", None, "Worker pid=15, ip=10.0.0.3", None),
    ("\x1b[36m(EngineCore_DP0 pid=268)\x1b[0m ERROR 11-19 13:40:12 [core.py:842] ", "ERROR",
     "EngineCore_DP0 pid=268", None),
    ("ERROR:root:", "ERROR", None, None),
    ("ERROR: ", "ERROR", None, None),
    ("ERROR:    ", "ERROR", None, None),
    ("CRITICAL - ", "FATAL", None, None),
    ("[INFO|trainer.py:123] 2024-06-28 06:40:11,685 >> ", "INFO", None, None),
    ("vllm-1  | ", None, "vllm-1", None),
    ("vllm-1  | (EngineCore pid=7) ERROR 11-19 13:40:12 [core.py:842] ", "ERROR", "vllm-1 > EngineCore pid=7", None),
    ("[pod/serve-7d9b4c6f5d-x2k8p/model] ", None, "serve-7d9b4c6f5d-x2k8p/model", None),
    ("serve-7d9b4c6f5d-x2k8p model ", None, "serve-7d9b4c6f5d-x2k8p model", None),
    ("2024-06-28T06:40:11.685300953Z stderr F ", None, None, None),
    ("Nov 15 22:10:38 gpu-node-3 serve[902]: ", None, "serve[902]", "gpu-node-3"),
    ("2024-06-28T06:40:11+0000 gpu-node-3 serve[902]: ", None, "serve[902]", "gpu-node-3"),
    ("<34>1 2024-06-28T06:40:11Z gpu-node-3 serve 902 - - ", None, "serve 902", "gpu-node-3"),
    ("Nov 15 22:10:38 gpu-node-3 kernel: [45811.204117] ", None, "kernel", "gpu-node-3"),
    ("[45811.204117] ", None, None, None),
    ("08-01 21:40:07.618 30112 30177 E onnxruntime: ", "ERROR", "30112", None),
    ("2023-12-04 19:20:41.118 14012-14099 libc    com.example.app    A  ", "FATAL", "14012", None),
    ("E/tflite  (11410): ", "ERROR", "11410", None),
    ("INFO 2025-11-19T21:40:12.501877312Z [resource.labels.containerName: vllm] ", None, "vllm", None),
    ("2024-11-18T17:10:02,499 [INFO ] W-9000-model_1.0-stdout MODEL_LOG - ", None, "W-9000-model_1.0", None),
    ("2024-11-18T17:10:02,499 [WARN ] W-9000-model_1.0 org.example.WorkerThread - ", "WARNING",
     "W-9000-model_1.0", None),
    ("[12/01/2024-10:11:12] [E] ", "ERROR", None, None),
    ("24/03/28 02:11:40 ERROR Executor: ", "ERROR", None, None),
    ("2025-03-28T02:11:40.9073450Z ##[error]", "ERROR", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "level", "writer", "host"), PREFIXES)
def test_a_prefix_goes_and_tells_what_it_said(
    prefix: str, level: str | None, writer: str | None, host: str | None
) -> None:
    """The text is whole, and level, writer and host are read."""
    line = strip_line(prefix + TEXT)
    assert line.text == TEXT
    assert (line.level, line.writer, line.host) == (level, writer, host)


def test_the_outermost_stamp_is_kept() -> None:
    """A collector's stamp has year and zone, so it wins over the logger's behind it."""
    line = strip_line("2024-06-28T06:40:11.685Z (Worker pid=1) ERROR 06-27 22:40:04 [a.py:145] x")
    assert (line.stamp, line.text) == ("2024-06-28T06:40:11.685Z", "x")
    assert strip_line("[45811.204117] x").stamp is None


@pytest.mark.parametrize("prefix", [p for p, *_ in PREFIXES if not p.endswith(("    ", "A  ")) and "Executor" not in p])
def test_the_indentation_of_a_trace_survives(prefix: str) -> None:
    """Frames keep the blanks that the interpreter printed."""
    for text in ('  File "a.py", line 3, in f', "    return g(x)", "\tat a.b.C.d(C.java:3)"):
        assert strip_line(prefix + text).text.rstrip() == text


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: x",
        "torch.cuda.OutOfMemoryError: CUDA out of memory",
        "Error: timed out waiting for the runner",
        "error[E0502]: cannot borrow",
        "E0502: cannot borrow",
        'FATAL EXCEPTION: main',
        "FATAL ERROR: Reached heap limit Allocation failed",
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in f',
        "    at f (a.js:1:2)",
        "Caused by: java.io.IOException: broken",
        "  | ValueError: 1",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "*** SIGSEGV received at time=1735689600 on cpu 3 ***",
        "#00 pc 0000000000386f3c libfoo.so",
        "C:\\serve\\app.exe failed",
        ">>> session = InferenceSession(path)",
        "$ serve --model m",
        "12 nodes were not assigned",
        "404 Client Error: Not Found",
        "[ONNXRuntimeError] : 1 : FAIL : Load model failed",
        "[  60117]     0 60117  9743705   105957  1683456        0           999 tritonserver",
        "at::native::foo failed",
        "Killed",
        "",
    ],
)  # fmt: skip
def test_a_line_without_prefix_stays_whole(line: str) -> None:
    """What may carry meaning is never taken for a prefix."""
    assert strip_line(line).text == line


def test_a_runtimes_own_bracket_is_read_but_kept() -> None:
    """The ONNX Runtime bracket is the grammar of its parser, so only the level is taken from it."""
    text = "[E:onnxruntime:, session.cc:514 Run] Non-zero status code"
    line = strip_line("2021-07-07 09:31:08.226141730 " + text)
    assert (line.text, line.level) == (text, "ERROR")


def test_an_exception_after_a_logger_is_not_taken_for_the_loggers_name() -> None:
    """A dotted name before a colon is a logger only where it cannot be an exception."""
    text = "vllm.v1.exceptions.EngineDeadError: engine died"
    for prefix in ("ERROR ", "2024-06-28 06:40:11 ERROR ", "ERROR 07-12 08:45:12 [a.py:706] "):
        assert strip_line(prefix + text).text == text


def test_logfmt_gives_message_and_error() -> None:
    """Of key=value lines the message and the error are the text."""
    line = strip_line(
        'time=2025-02-19T06:46:07Z level=ERROR source=a.go:4 msg="load failed" error="timed \\"out\\"\\nnow"'
    )
    assert (line.text, line.level, line.stamp) == ('load failed: timed "out"\nnow', "ERROR", "2025-02-19T06:46:07Z")


def test_a_python_logger_of_this_process_is_read() -> None:
    """What the standard library prints today is understood, trace included."""
    code = (
        "import logging\n"
        "logging.basicConfig(format='%(asctime)s - %(name)s - %(levelname)s - %(message)s')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: logging.getLogger('a.b').exception('it broke')\n"
    )
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.splitlines()
    first, last = strip_line(lines[0]), strip_line(lines[-1])
    assert (first.text, first.level, last.text) == ("it broke", "ERROR", "ZeroDivisionError: division by zero")


def test_the_answer_does_not_depend_on_the_line_before() -> None:
    """Lines in any order are stripped as each would be alone."""
    lines = [prefix + text for prefix, *_ in PREFIXES for text in (TEXT, "  indented", "")]
    alone = {}
    for line in lines:
        strip_line("nothing of a prefix 1")
        strip_line("vllm-9  | x")
        alone[line] = strip_line(line)
    for line in lines + lines[::-1] + sorted(lines):
        assert strip_line(line) == alone[line]


def test_a_prefix_that_was_met_before_says_what_it_says_now() -> None:
    """Digits of a known prefix are read anew, a blank after it goes, and what follows it is looked at."""
    for stamp, pid in (("11-19 13:40:12", "268"), ("11-19 13:41:59", "301")):
        line = strip_line(f"(EngineCore_DP0 pid={pid}) ERROR {stamp} [core.py:842]   frame")
        assert line == ("  frame", "ERROR", f"EngineCore_DP0 pid={pid}", stamp, None)
    assert strip_line("(Worker pid=15)").writer == "Worker pid=15"
    assert strip_line("(Worker pid=15) " + TEXT).text == TEXT
    inner = strip_line("(Worker pid=15) ERROR 11-19 13:40:12 [a.py:1] " + TEXT)
    assert (inner.text, inner.level, inner.writer) == (TEXT, "ERROR", "Worker pid=15")


def test_each_kind_of_stamp_finds_its_rules() -> None:
    """What looks at the third character of a line agrees with what the rules take."""
    for stamp in ("2024-06-28 06:40:11,685", "2024-06-28T06:40:11.685Z", "06-28 06:40:11", "06:40:11"):
        assert strip_line(f"{stamp} ERROR {TEXT}").text == TEXT
    phone = strip_line("2023-12-04 19:20:41.118 14012 14099 E tflite  : " + TEXT)
    assert (phone.text, phone.level, phone.writer) == (TEXT, "ERROR", "14012")


def test_a_one_letter_level_before_a_date_is_read() -> None:
    """Python formats of the kind ``%(levelname).1s%(asctime)s %(threadName)s file:line]``."""
    line = strip_line("W2026-11-24 23:35:08,738 MainThread serve.py:18] " + TEXT)
    assert (line.text, line.level, line.stamp) == (TEXT, "WARNING", "2026-11-24 23:35:08,738")
