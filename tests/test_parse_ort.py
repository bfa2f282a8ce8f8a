"""Rules of ONNX Runtime's words, on the real library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from crashpath.ingest.parse import parse

STATUS = "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Conv(1) node"


def test_a_real_load_failure_has_the_status_as_its_type(tmp_path: Path) -> None:
    """The type is the status, whichever module the binding's class lives in."""
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    code = "import onnxruntime as o; o.InferenceSession('bad.onnx', providers=['CPUExecutionProvider'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    parsed = parse(done.stderr)
    assert [thrown.type for thrown in parsed.chain] == ["onnxruntime.InvalidProtobuf"]
    assert parsed.chain[0].message.startswith("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF")
    assert parsed.format == "python_traceback"


def test_one_status_has_one_type_in_every_language() -> None:
    """Python, a notebook, C#, C++ and a bare status text name the same failure in the same way."""
    texts = [
        f"onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented: {STATUS}\n",
        f"NotImplemented: {STATUS}\n",
        f"predict failed: {STATUS}\n",
        "Unhandled exception. Microsoft.ML.OnnxRuntime.OnnxRuntimeException: [ErrorCode:NotImplemented] Could not\n"
        "   at Microsoft.ML.OnnxRuntime.InferenceSession.Init(String path)\n",
        "onnx runtime error 9: Could not find an implementation\n",
    ]
    assert {thrown.type for text in texts for thrown in parse(text).chain} == {"onnxruntime.NotImplemented"}


def test_a_log_line_that_the_traceback_repeats_is_dropped() -> None:
    """ONNX Runtime logs what it then throws: one exception; a log line of its own stays, before what followed."""
    frame = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    s.run()\n'
    log = "[E:onnxruntime:, executor.cc:346 Execute] Non-zero status code returned while running Conv node.\n"
    thrown = "Fail: [ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Conv node.\n"
    assert [t.type for t in parse(log + frame + thrown).chain] == ["onnxruntime.Fail"]
    own = "[E:onnxruntime:Default, cuda_call.cc:118 CudaCall] CUDNN failure 8: CUDNN_STATUS_EXECUTION_FAILED\n"
    chain = parse(own + log + frame + thrown).chain
    assert [t.type for t in chain] == ["onnxruntime", "onnxruntime.Fail"]
    assert chain[0].frames[0][:2] == ("CudaCall", "onnxruntime.cuda_call")


def test_a_warning_is_not_a_failure() -> None:
    """Only error and fatal log lines are read."""
    assert parse("[W:onnxruntime:, session_state.cc:13 Verify] Some nodes were not assigned\n").chain == ()
