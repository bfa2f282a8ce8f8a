"""The backends: ONNX Runtime and TorchScript. The one of tests that answers with a function is in `fakelane`.

A backend raises its library's own errors. Its own are `ModelFolderError` for a file that is not there, `DeviceInit`
for a provider that was asked for and is not used (the library would only warn and compute on the processor), and
`DeviceMemory` where it is a device's arena that is full.
"""

from __future__ import annotations

import platform
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from crashpath.runtime.errors import DeviceInit, DeviceMemory, ModelFolderError
from crashpath.runtime.folder import FALLBACK_FILE, MAIN_FILE, ModelFolder
from crashpath.runtime.lane import Backend, LaneSignature
from crashpath.runtime.values import Arrays

if TYPE_CHECKING:
    import torch

CPU = "CPUExecutionProvider"
WEIGHTS = (".data", ".weights", ".bin")
"""How files of external data are named, beside those that begin as the graph's file does."""
_ERRORS_ONLY = 3


class OrtBackend:
    """The ONNX artefact in ONNX Runtime, on the given execution providers, with ``threads`` intra-op threads."""

    def __init__(self, folder: ModelFolder, *, threads: int = 1, providers: Sequence[str] = (CPU,)) -> None:
        import onnxruntime as ort

        _check_files(folder, MAIN_FILE)
        self._make_options = ort.RunOptions
        self._check_providers(providers, ort.get_available_providers())
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        self._session: Any = ort.InferenceSession(
            str(folder.main), options, providers=list(providers), enable_fallback=False
        )
        self._session.disable_fallback()
        self._check_providers(providers, self._session.get_providers())
        self._device = any(one != CPU for one in providers)
        self._names = [spec.name for spec in folder.outputs]
        self._running: dict[int, Any] = {}
        self._versions = (("onnxruntime", ort.__version__), ("python", platform.python_version()))
        _check_signature(folder, MAIN_FILE, self.signature())

    @staticmethod
    def _check_providers(wanted: Sequence[str], there: Sequence[str]) -> None:
        lacking = [one for one in wanted if one not in there]
        if lacking:
            raise DeviceInit(
                f"{', '.join(lacking)} was requested and is not usable here; there is {', '.join(there)}",
                "providers of the session",
            )

    def run(self, feed: Arrays) -> Arrays:
        """Answer a feed. Raises what ``InferenceSession.run`` raises, and `DeviceMemory`."""
        options = self._make_options()
        me = threading.get_ident()
        self._running[me] = options
        try:
            outputs = self._session.run(self._names, feed, options)
        except Exception as error:
            if self._device and "BFCArena" in str(error):
                raise DeviceMemory(str(error).strip(), "arena of a session on a device") from error
            raise
        finally:
            del self._running[me]
        return dict(zip(self._names, outputs, strict=True))

    def cancel(self, thread: int | None = None) -> None:
        """Ask a run to stop: it does between two nodes, with an error that says so; the session stays usable."""
        for ident, options in tuple(self._running.items()):
            if thread is None or ident == thread:
                options.terminate = True

    def signature(self) -> LaneSignature:
        """Names of the graph's inputs and outputs."""
        inputs = tuple(one.name for one in self._session.get_inputs())
        return LaneSignature(inputs, tuple(one.name for one in self._session.get_outputs()))

    def versions(self) -> tuple[tuple[str, str], ...]:
        """ONNX Runtime and Python."""
        return self._versions

    def close(self) -> None:
        """Let go of the session, which frees its memory."""
        self._session = None


class TorchScriptBackend:
    """The TorchScript artefact on the processor. ``threads`` are intra-op threads, which torch sets for the process."""

    def __init__(self, folder: ModelFolder, threads: int = 1) -> None:
        import torch

        _check_files(folder, FALLBACK_FILE)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        self._torch = torch
        with warnings.catch_warnings(), _naming(FALLBACK_FILE):
            warnings.simplefilter("ignore", DeprecationWarning)  # that TorchScript is deprecated is no news here
            self._module: Any = torch.jit.load(str(folder.fallback), map_location="cpu")  # type: ignore[no-untyped-call]
        self._module.eval()
        self._inputs = tuple(spec.name for spec in folder.inputs)
        self._outputs = tuple(spec.name for spec in folder.outputs)
        self._versions = (("python", platform.python_version()), ("torch", torch.__version__))
        _check_signature(folder, FALLBACK_FILE, self.signature())

    def run(self, feed: Arrays) -> Arrays:
        """Answer a feed. Raises what the TorchScript interpreter raises; the arrays are the caller's own."""
        with self._torch.inference_mode():
            given = self._module(*[self._tensor(feed[name]) for name in self._inputs])
        if isinstance(given, dict):
            return {name: self._array(given[name]) for name in self._outputs}
        tensors = given if isinstance(given, (tuple, list)) else (given,)
        if len(tensors) != len(self._outputs):
            raise ModelFolderError(
                f"{FALLBACK_FILE} gives {len(tensors)} outputs, model.toml names {len(self._outputs)}; export it again"
            )
        return {name: self._array(tensor) for name, tensor in zip(self._outputs, tensors, strict=True)}

    def _tensor(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        return self._torch.from_numpy(np.array(array, order="C"))  # a copy: a script may write to what it is given

    @staticmethod
    def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        return np.array(tensor.detach().cpu().numpy())  # a copy: a script may return its own buffer

    def cancel(self, thread: int | None = None) -> None:
        """Do nothing: the interpreter cannot be interrupted."""

    def signature(self) -> LaneSignature:
        """Names of the arguments of ``forward``; outputs have none."""
        return LaneSignature(tuple(one.name for one in self._module.forward.schema.arguments[1:]), None)

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Python and torch."""
        return self._versions

    def close(self) -> None:
        """Let go of the module."""
        self._module = None


def open_backend(kind: str, folder: ModelFolder, *, threads: int, providers: Sequence[str]) -> Backend:
    """Open the backend named ``ort`` or ``torchscript``: what a worker is told."""
    if kind == "ort":
        return OrtBackend(folder, threads=threads, providers=providers)
    if kind == "torchscript":
        return TorchScriptBackend(folder, threads)
    raise ValueError(f"backend {kind!r} is not known; there is ort and torchscript")


@contextmanager
def _naming(artefact: str) -> Iterator[None]:
    """Have torch's error of a load name the file, which its own words do not; it stays the same error."""
    try:
        yield
    except RuntimeError as error:
        error.args = (f"{artefact}: {error}",)
        raise


def _check_files(folder: ModelFolder, artefact: str) -> None:
    """Raise where the artefact, or declared external data of the graph, is not there."""
    if not (folder.path / artefact).exists():
        raise ModelFolderError(f"{folder.path} has no {artefact}; crashpath export writes a whole folder")
    if artefact != MAIN_FILE:
        return
    weights = (
        name
        for name, _ in folder.files
        if name.endswith(WEIGHTS) or name.startswith((MAIN_FILE + ".", MAIN_FILE + "_"))
    )
    lacking = next((name for name in weights if not (folder.path / name).exists()), None)
    if lacking is not None:
        raise ModelFolderError(f"{artefact} needs the weights file {lacking}, which is not in {folder.path}; copy it")


def _check_signature(folder: ModelFolder, artefact: str, found: LaneSignature) -> None:
    """Raise where the artefact is of another model. TorchScript takes its inputs by their order, so that counts."""
    declared = tuple(spec.name for spec in folder.inputs)
    inputs = found.inputs if artefact == FALLBACK_FILE else tuple(sorted(found.inputs))
    if inputs != (declared if artefact == FALLBACK_FILE else tuple(sorted(declared))):
        told = f"takes {', '.join(found.inputs) or 'nothing'} where model.toml declares {', '.join(declared)}"
        raise ModelFolderError(f"{artefact} {told}; export both artefacts again")
    lacking = [spec.name for spec in folder.outputs if found.outputs is not None and spec.name not in found.outputs]
    if lacking:
        raise ModelFolderError(f"{artefact} gives no output {lacking[0]!r}, which model.toml declares; export it again")
