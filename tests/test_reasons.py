"""The registry of reasons, against errors that onnxruntime, Python and the system really raise."""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from crashpath.ingest.classes import CLASSES
from crashpath.runtime import errors
from crashpath.runtime.errors import FAILURES, Failure, InputError, ServingError
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.reason import DETAIL, bounded, masked
from crashpath.runtime.reasons import REASONS, recognise, recognise_death
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path, Phase


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    ort.set_default_logger_severity(4)
    return tiny_folder(tmp_path_factory.mktemp("affine"), fallback=False)


def test_every_failure_is_a_class_of_the_field() -> None:
    """Rule: what a drill proves and what the field shows are counted in the same words."""
    classes = {one.id for one in CLASSES}
    assert {failure.failure_class for failure in FAILURES} <= classes
    named = {reason.failure for reason in REASONS if issubclass(reason.failure, Failure)}
    assert named == set(FAILURES)


Spoil = Callable[[Any], object]
GRAPHS: tuple[tuple[str, Spoil, type[Failure]], ...] = (
    ("ir", lambda m: setattr(m, "ir_version", 99), errors.LoadCorrupt),
    ("opset", lambda m: setattr(m.opset_import[0], "version", 99), errors.LoadCorrupt),
    ("no opset", lambda m: m.ClearField("opset_import"), errors.LoadCorrupt),
    ("dangling", lambda m: m.graph.node[0].input.__setitem__(0, "zz"), errors.LoadCorrupt),
    ("no such output", lambda m: setattr(m.graph.output[0], "name", "zz"), errors.LoadCorrupt),
    ("attribute", lambda m: m.graph.node[0].attribute.append(helper.make_attribute("foo", 1)), errors.LoadCorrupt),
    ("operator", lambda m: setattr(m.graph.node[0], "op_type", "Frob"), errors.UnsupportedOp),
    ("type", lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", 7), errors.ShapeInference),
    ("width", lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 5), errors.ShapeInference),
)


@pytest.mark.parametrize(("name", "spoil", "failure"), GRAPHS, ids=[one[0] for one in GRAPHS])
def test_graphs_that_are_refused(
    folder: ModelFolder, tmp_path: FilePath, name: str, spoil: Spoil, failure: type[Failure]
) -> None:
    """Rule: at load it is the text that names the failure: onnxruntime's code is 1 for most of them."""
    model = onnx.load(str(folder.main))
    spoil(model)
    onnx.save(model, str(tmp_path / "model.onnx"))
    found = _of(lambda: _session(tmp_path / "model.onnx"), Phase.LOAD)
    assert type(found) is failure


def test_an_operator_without_a_kernel(tmp_path: FilePath) -> None:
    """Rule: NOT_IMPLEMENTED is an unsupported operator."""
    sides = [helper.make_tensor_value_info(name, 16, [2, 2]) for name in ("x", "y")]
    node = helper.make_node("Softmax", ["x"], ["y"], name="/attn/Softmax")
    graph = helper.make_graph([node], "g", sides[:1], sides[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.save(model, str(tmp_path / "m.onnx"))
    assert type(_of(lambda: _session(tmp_path / "m.onnx"), Phase.LOAD)) is errors.UnsupportedOp


@pytest.mark.parametrize("kept", [0, 10, 150])
def test_files_that_were_cut(folder: ModelFolder, tmp_path: FilePath, kept: int) -> None:
    """Rule: a file that is cut short, anywhere, is corrupt; so is one that is absent."""
    path = tmp_path / "m.onnx"
    path.write_bytes(folder.main.read_bytes()[:kept])
    assert type(_of(lambda: _session(path), Phase.LOAD)) is errors.LoadCorrupt
    assert type(_of(lambda: _session(tmp_path / "absent.onnx"), Phase.LOAD)) is errors.LoadCorrupt


def test_external_data_that_is_cut_or_gone(tmp_path: FilePath) -> None:
    """Rule: weights beside the graph belong to it."""
    folder = tiny_folder(tmp_path, fallback=False, external="model.onnx.data")
    os.truncate(tmp_path / "model.onnx.data", 3)
    assert type(_of(lambda: _session(folder.main), Phase.LOAD)) is errors.LoadCorrupt
    (tmp_path / "model.onnx.data").unlink()
    assert type(_of(lambda: _session(folder.main), Phase.LOAD)) is errors.LoadCorrupt


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("rank", {"x": np.ones(4, np.float32)}, "x"),
    ("width", {"x": np.ones((2, 3), np.float32)}, "x"),
    ("dtype", {"x": np.ones((2, 4))}, ""),
    ("absent", {}, "x"),
    ("unknown", {"x": np.ones((2, 4), np.float32), "q": np.ones(1)}, "q"),
    ("no array", {"x": "text"}, "x"),
)


@pytest.mark.parametrize(("name", "feed", "input"), WRONG, ids=[one[0] for one in WRONG])
def test_wrong_feeds_are_the_callers(folder: ModelFolder, name: str, feed: dict[str, Any], input: str) -> None:
    """Rule: what the graph says of a feed is an `InputError` while serving; in the warm-up it is the folder's fault."""
    session = _session(folder.main)
    found = _of(lambda: session.run(None, feed), Phase.INFER)
    assert isinstance(found, InputError)
    assert found.input == input
    if name != "no array":
        assert isinstance(
            _of(lambda: session.run(None, feed), Phase.WARMUP), (errors.ShapeInference, errors.LoadCorrupt)
        )


@pytest.mark.parametrize(
    ("kind", "feed"),
    [
        ("gather", {"ids": np.array([12])}),
        ("reshape", {"x": np.ones(8, np.float32)}),
        ("wide", {"shape": np.array([-5, 2])}),
        ("wide", {"shape": np.array([1 << 40, 1 << 40])}),
    ],
)
def test_shapes_that_fail_inside_a_run(tmp_path: FilePath, kind: str, feed: dict[str, Any]) -> None:
    """Rule: a feed that the graph accepts and a node does not is a failure of shapes, not the caller's error."""
    session = _session(tiny_folder(tmp_path, kind=kind, fallback=False).main)
    assert type(_of(lambda: session.run(None, feed), Phase.INFER)) is errors.ShapeInference


def test_memory_that_an_allocation_does_not_get(tmp_path: FilePath) -> None:
    """Rule: the arena's refusal is host memory (an address space of 2**47 bytes is always too small for this)."""
    session = _session(tiny_folder(tmp_path, kind="wide", fallback=False).main)
    found = _of(lambda: session.run(None, {"shape": np.array([1 << 24, 1 << 24])}), Phase.INFER)
    assert type(found) is errors.HostMemory
    assert type(_of(lambda: np.ones(1 << 48), Phase.INFER)) is errors.HostMemory
    assert type(_of(lambda: bytearray(1 << 60), Phase.LOAD)) is errors.HostMemory


def test_a_run_that_was_terminated_hung(tmp_path: FilePath) -> None:
    """Rule: what a cancelled run leaves is a hang."""
    folder = tiny_folder(tmp_path, kind="loop", fallback=False)
    options = ort.RunOptions()
    options.terminate = True
    session = _session(folder.main)
    assert type(_of(lambda: session.run(None, dict(folder.golden()[0]), options), Phase.INFER)) is errors.Hang


def _refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    urllib.request.urlopen(f"http://127.0.0.1:{port}/model.onnx", timeout=5)


def _silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        urllib.request.urlopen(f"http://127.0.0.1:{server.getsockname()[1]}/model.onnx", timeout=0.2)


SYSTEM: tuple[tuple[str, Callable[[], object], Phase, type[Failure]], ...] = (
    ("import", lambda: importlib.import_module("no_such_module_here"), Phase.LOAD, errors.Dependency),
    ("library", lambda: ctypes.CDLL("libno_such_here.so.1"), Phase.LOAD, errors.Dependency),
    ("symbol", lambda: ctypes.CDLL(None).no_such_symbol_here, Phase.LOAD, errors.Dependency),
    ("driver", lambda: ctypes.CDLL("libcudart.so.99"), Phase.LOAD, errors.DeviceInit),
    ("refused", _refused, Phase.PREPARE, errors.NetworkAuth),
    ("silent", _silent, Phase.LOAD, errors.LoadTimeout),
    ("full", lambda: FilePath("/dev/full").write_bytes(b"x" * 9000), Phase.INFER, errors.PermissionDisk),
    ("waited", lambda: subprocess.run(["sleep", "9"], timeout=0.1, check=False), Phase.INFER, errors.Hang),
    ("absent", lambda: FilePath("/no/such/model.onnx").read_bytes(), Phase.LOAD, errors.LoadCorrupt),
    ("vocabulary", lambda: FilePath("/no/such/vocab.txt").read_bytes(), Phase.PREPARE, errors.TokenizerBroken),
    ("mode", lambda: _raise(OSError(errno.EACCES, os.strerror(errno.EACCES))), Phase.LOAD, errors.PermissionDisk),
    ("files", lambda: _raise(OSError(errno.EMFILE, os.strerror(errno.EMFILE))), Phase.LOAD, errors.PermissionDisk),
    ("no memory", lambda: _raise(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))), Phase.LOAD, errors.HostMemory),
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system's words are Linux's")
@pytest.mark.parametrize(("name", "act", "phase", "failure"), SYSTEM, ids=[one[0] for one in SYSTEM])
def test_what_the_system_says(name: str, act: Callable[[], object], phase: Phase, failure: type[Failure]) -> None:
    """Rule: errors of Python and the system are named by type, number and phase."""
    assert type(_of(act, phase)) is failure


TOKENIZERS = (
    '{"version": "1.0", "model": {"type": "Nonsense", "vocab": {}}}',
    '{"version": "1.0", "added_tokens": [], "normalizer": null, "model"',
    "version https://git-lfs.github.com/spec/v1",
    '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}',
    '{"version":"1.0","pre_tokenizer":{"type":"Strange"},"model":{"type":"WordPiece","vocab":{"a":0},"unk_token":"[UNK]"}}',
)


@pytest.mark.parametrize("text", TOKENIZERS)
def test_tokenizers_that_cannot_be_built(tmp_path: FilePath, text: str) -> None:
    """Rule: whatever the tokenizers library says of its file while preparing is the tokenizer's failure."""
    from tokenizers import Tokenizer

    path = tmp_path / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    assert type(_of(lambda: Tokenizer.from_file(str(path)), Phase.PREPARE)) is errors.TokenizerBroken
    assert type(_of(lambda: Tokenizer.from_file(str(tmp_path / "no")), Phase.PREPARE)) is errors.TokenizerBroken


@pytest.mark.parametrize(
    "error",
    [
        ValueError("permission denied by the policy of the shop"),
        RuntimeError("the basket is empty"),
        KeyError("CUDA out of memory"),
        LookupError("shape mismatch"),
        ServingError("own"),
    ],
)
def test_what_nobody_knows_stays_what_it_is(error: Exception) -> None:
    """Rule: words alone are no reason: the type must be one whose words they are."""
    assert recognise(error, Phase.INFER, Path.MAIN) is None


def test_an_explicit_cause_names_the_failure() -> None:
    """Rule: what was raised over a cause does not replace it; what was raised is kept as the failure's cause."""
    error = RuntimeError("could not serve")
    error.__cause__ = MemoryError()
    found = recognise(error, Phase.LOAD, Path.MAIN)
    assert isinstance(found, errors.HostMemory)
    assert found.__cause__ is error
    assert found.phase == "load"


def test_a_failure_is_itself() -> None:
    """Rule: what a backend has named already is not named again."""
    error = errors.DeviceInit("no such provider", "session")
    assert recognise(error, Phase.LOAD, Path.MAIN) is error
    assert error.__cause__ is None


def test_names_that_users_choose_do_not_count() -> None:
    """Rule: paths, names of nodes and source code of scripts are masked; libraries keep their name."""
    text = "while running Add node. Name:'/std::bad_alloc/Add' Status Message: odd, /srv/CUDA out of memory/x.py"
    assert "bad_alloc" not in masked(text)
    assert "libcudnn.so.9: cannot" in masked("error: /opt/x/libcudnn.so.9: cannot open shared object file")
    script = (
        "The following operation failed in the TorchScript interpreter.\n  raise MemoryError: out\nRuntimeError: odd"
    )
    assert masked(script) == "RuntimeError: odd"
    assert len(bounded("x" * 9999)) < DETAIL + 10


DEATHS: tuple[tuple[int, str, type[Failure], str], ...] = (
    (-signal.SIGSEGV, "Fatal Python error: Segmentation fault\n\nThread 0x7f", errors.NativeCrash, "SIGSEGV"),
    (-signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'", errors.HostMemory, "SIGABRT"),
    (-signal.SIGKILL, "", errors.HostMemory, "SIGKILL"),
    (137, "", errors.HostMemory, "SIGKILL"),
    (-signal.SIGBUS, "bus error: insufficient shared memory (shm)", errors.PermissionDisk, "SIGBUS"),
    (-signal.SIGILL, "", errors.NativeCrash, "SIGILL"),
    (1, "Traceback (most recent call last):\n  File x\nMemoryError\n", errors.HostMemory, "exit code 1"),
    (1, "Traceback (most recent call last):\nModuleNotFoundError: No module named 'numpy'", errors.Dependency, "exit"),
    (0, "", errors.NativeCrash, "exit code 0"),
    (1, "Traceback (most recent call last):\nLookupError: odd", errors.NativeCrash, "exit code 1"),
)


@pytest.mark.parametrize(("exit", "tail", "failure", "evidence"), DEATHS)
def test_deaths(exit: int, tail: str, failure: type[Failure], evidence: str) -> None:
    """Rule: last words before the signal; a bare kill is memory; everything else a native crash."""
    found = recognise_death(exit, tail)
    assert type(found) is failure
    assert evidence in found.evidence


def test_deaths_by_our_own_hand() -> None:
    """Rule: a worker that was killed for its deadline hung, or did not load in time, whatever the kernel counts."""
    late = recognise_death(-9, "std::bad_alloc", killed_by_us=Phase.INFER, oom_kills=1)
    assert (type(late), late.phase) == (errors.Hang, "infer")
    assert type(recognise_death(-9, "", killed_by_us=Phase.WARMUP)) is errors.LoadTimeout
    assert "2 more" in recognise_death(-9, "", oom_kills=2).evidence


def _session(path: FilePath) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _of(act: Callable[[], object], phase: Phase) -> Failure | InputError | None:
    with pytest.raises(BaseException) as caught:
        act()
    return recognise(caught.value, phase, Path.MAIN)


def _raise(error: Exception) -> None:
    raise error


def test_what_the_system_refused_is_told_before_the_code_of_the_library() -> None:
    """Rule: a file that may not be read is a matter of rights, whatever code or step it is told under."""
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    weights = state.ModelRequiresCompilation("[ONNXRuntimeError] : 13 : MODEL_REQUIRES_COMPILATION : SystemError : 13")
    assert isinstance(recognise(weights, Phase.LOAD, Path.MAIN), errors.PermissionDisk)
    tokenizer = Exception("Permission denied (os error 13)")
    assert isinstance(recognise(tokenizer, Phase.PREPARE, Path.MAIN), errors.PermissionDisk)
    absent = Exception("No such file or directory (os error 2)")
    assert isinstance(recognise(absent, Phase.PREPARE, Path.MAIN), errors.TokenizerBroken)
