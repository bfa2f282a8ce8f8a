"""The registry of reasons, against errors that torch and its TorchScript interpreter really raise."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import pytest
import torch

from crashpath.runtime import errors
from crashpath.runtime.errors import Failure
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.reasons import recognise
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path, Phase

warnings.filterwarnings("ignore", category=DeprecationWarning)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    return tiny_folder(tmp_path_factory.mktemp("affine"))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.99])
def test_archives_that_were_cut(folder: ModelFolder, tmp_path: FilePath, share: float) -> None:
    """Rule: an archive that is cut short, anywhere, is corrupt."""
    raw = folder.fallback.read_bytes()
    (tmp_path / "m.pt").write_bytes(raw[: int(len(raw) * share)])
    assert _of(lambda: torch.jit.load(tmp_path / "m.pt"), Phase.LOAD) is errors.LoadCorrupt


def test_archives_of_another_kind(folder: ModelFolder, tmp_path: FilePath) -> None:
    """Rule: random bytes, an eager checkpoint, a folder and nothing at all are no TorchScript."""
    (tmp_path / "random.pt").write_bytes(os.urandom(5000))
    torch.save({"w": torch.ones(2)}, tmp_path / "eager.pt")
    for name in ("random.pt", "eager.pt", "absent.pt", ""):
        assert _of(lambda name=name: torch.jit.load(tmp_path / name), Phase.LOAD) is errors.LoadCorrupt  # type: ignore[misc]


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        (b"torch.matmul", b"torch.frobbb", errors.UnsupportedOp),
        (b"self.w", b"self.q", errors.LoadCorrupt),
        (None, b"99\n", errors.LoadCorrupt),
    ],
    ids=["operator", "attribute", "version"],
)
def test_archives_of_other_content(
    folder: ModelFolder, tmp_path: FilePath, old: bytes | None, new: bytes, failure: type[Failure]
) -> None:
    """Rule: an unknown operator is unsupported; a later version or code that does not fit its data is corrupt."""
    with zipfile.ZipFile(folder.fallback) as source, zipfile.ZipFile(tmp_path / "m.pt", "w") as target:
        for name in source.namelist():
            held = source.read(name)
            target.writestr(name, held.replace(old, new) if old else new if name.endswith("/version") else held)
    assert _of(lambda: torch.jit.load(tmp_path / "m.pt"), Phase.LOAD) is failure


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_device_that_is_not_there(folder: ModelFolder) -> None:
    """Rule: to be asked onto a device that cannot be used is its start that failed."""
    assert _of(lambda: torch.jit.load(folder.fallback, map_location="cuda"), Phase.LOAD) is errors.DeviceInit
    assert _of(lambda: torch.ones(1).to("cuda"), Phase.INFER) is errors.DeviceInit


RUNS: tuple[tuple[str, type[Failure]], ...] = (
    ("torch.matmul(x, torch.ones([5, 2]))", errors.ShapeInference),
    ("x + torch.ones([3])", errors.ShapeInference),
    ("torch.cat([x, x[:, :2]], dim=0)", errors.ShapeInference),
    ("torch.conv2d(x.reshape(1, 1, 2, 4), torch.ones(1, 3, 1, 1))", errors.ShapeInference),
    ("x.reshape([-1, 7])", errors.ShapeInference),
    ("x.t().view(-1)", errors.ShapeInference),
    ("torch.embedding(x, torch.tensor([99]))", errors.ShapeInference),
    ("torch.matmul(x, torch.ones([4, 2]).double())", errors.ShapeInference),
    ("torch.ones([-3, 2])", errors.ShapeInference),
    ("torch.ones([1 << 31, 1 << 31])", errors.ShapeInference),
    ("torch.bitwise_or(x, x)", errors.UnsupportedOp),
    ("torch.linalg.inv(torch.eye(3).half())", errors.UnsupportedOp),
    ("torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).exp()", errors.UnsupportedOp),
    ("torch.ones([1 << 24, 1 << 24])", errors.HostMemory),
)


@pytest.mark.parametrize(("expression", "failure"), RUNS, ids=[one[0] for one in RUNS])
def test_runs_that_fail(expression: str, failure: type[Failure]) -> None:
    """Rule: the interpreter's error is named by its last line, eager torch's by the same words."""
    unit = torch.jit.CompilationUnit(f"def f(x: Tensor) -> Tensor:\n    return {expression}\n")
    x = torch.ones(2, 4)
    assert _of(lambda: unit.f(x), Phase.INFER) is failure
    assert _of(lambda: eval(expression, {"torch": torch, "x": x}), Phase.INFER) is failure


def test_what_a_script_raises_itself_is_not_known() -> None:
    """Rule: the model's own words are no reason, whatever they are."""
    words = 'raise RuntimeError("CUDA out of memory, index out of range in self")'
    unit = torch.jit.CompilationUnit(f"def f(x: Tensor) -> Tensor:\n    {words}\n    return x\n")
    assert _of(lambda: unit.f(torch.ones(1)), Phase.INFER) is type(None)


def test_python_that_scripts_cannot_express() -> None:
    """Rule: what the compiler refuses is an unsupported operator."""
    assert _of(lambda: torch.jit.script(_with_a_handler), Phase.LOAD) is errors.UnsupportedOp


def _with_a_handler(x: torch.Tensor) -> torch.Tensor:
    try:
        return x.relu()
    except ValueError:
        return x


def _of(act: Callable[[], object], phase: Phase) -> type[Any]:
    with pytest.raises(Exception) as caught:
        act()
    return type(recognise(caught.value, phase, Path.FALLBACK))
