"""The child that `probe` runs: it loads one artefact and answers the golden feed, telling of each step it reached.

``python -m crashpath.runtime.probe_child`` with a request as JSON on standard input; a line of JSON a step on standard
output. Libraries that print go to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path as File
from typing import Any

from crashpath.runtime.compare import same
from crashpath.runtime.errors import DeviceInit, Failure, ModelFolderError
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.values import Arrays, Path, Phase

MAIN, TORCHSCRIPT, GRAPH, TOKENIZER, VOCABULARY = "ort", "torchscript", "graph", "tokenizer", "vocabulary"
PROVIDER = "provider"
UNCLASSIFIED, MISFIT = "unclassified", "misfit"
"""In place of a class: nobody knows the error; the artefact is there and is not the one that model.toml describes."""
RUNS = 3
"""ONNX Runtime plans its memory in the first run and takes the planned block in the second."""
_ENOUGH_S = 10.0
_KEEP = 600
_IDENTITY = (
    b'\x08\x07:7\n\x10\n\x01x\x12\x01y"\x08Identity\x12\x01tZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)
"""A graph of one node (IR 7, opset 13): what a session costs before it has a model."""

Tell = Callable[..., None]


def main() -> None:
    """Serve one request and end."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(step: str, **found: Any) -> None:
        pipe.write(json.dumps({"step": step, **found}) + "\n")
        pipe.flush()

    request = json.load(sys.stdin)
    with suppress(OSError):
        File("/proc/self/oom_score_adj").write_text("1000")  # if the machine runs out, this child is to go
    contacts = _watch_network()
    code = _guarded(request, tell)
    if contacts:
        tell("contacts", contacts=sorted(set(contacts)))
    pipe.close()
    os._exit(code)  # what the libraries do at exit is not what was asked


def _guarded(request: dict[str, Any], tell: Tell) -> int:
    phase = [Phase.LOAD]
    try:
        JOBS[request["kind"]](request, tell, phase)
    except Exception as error:  # noqa: BLE001  the process boundary: whatever it is, it is what was found
        _tell_failure(error, request["kind"], phase[0], tell)
        return 0
    return 0


def _tell_failure(error: BaseException, kind: str, phase: Phase, tell: Tell) -> None:
    from crashpath.runtime.reasons import recognise

    known = recognise(error, phase, Path.FALLBACK if kind == TORCHSCRIPT else Path.MAIN)
    failure = known.failure_class if isinstance(known, Failure) else UNCLASSIFIED
    if isinstance(error, ModelFolderError):
        failure = MISFIT
    message = " ".join(f"{type(error).__name__}: {error}".split())
    tell("failed", failure=failure, phase=phase.value, message=message[:_KEEP], peak=peak())


def _path(request: dict[str, Any], tell: Tell, phase: list[Phase]) -> None:
    """Load an artefact with the backend that serves it, and answer the golden feed."""
    from crashpath.runtime.backends import open_backend

    _tell_start(request, tell)
    folder = open_folder(request["folder"])
    golden = _golden(folder)
    started = time.perf_counter()
    backend = open_backend(request["kind"], folder, threads=request["threads"], providers=tuple(request["providers"]))
    signature = backend.signature()
    tell(
        "loaded",
        load_s=time.perf_counter() - started,
        inputs=signature.inputs,
        outputs=signature.outputs,
        peak=peak(),
    )
    phase[0] = Phase.INFER
    if golden is not None:
        _answer(backend, folder, golden, tell)


def _golden(folder: ModelFolder) -> tuple[Arrays, Arrays] | None:
    """Feed and answer; ``None`` where they cannot be read, which a check of the files reports."""
    with suppress(ModelFolderError):
        return folder.golden()
    return None


def _answer(backend: Any, folder: ModelFolder, golden: tuple[Arrays, Arrays], tell: Tell) -> None:
    feed, wanted = golden
    times: list[float] = []
    while len(times) < RUNS and sum(times) < _ENOUGH_S:
        started = time.perf_counter()
        given = backend.run(feed)
        times.append(time.perf_counter() - started)
        most = peak()
    compared = asdict(same(given, wanted, folder.tolerance))
    tell("answered", first_ms=times[0] * 1e3, run_ms=times[-1] * 1e3, peak=most, compared=compared)


def _tell_start(request: dict[str, Any], tell: Tell) -> None:
    """Import the library, put the cap on, warm the library up, and say what that costs without a model."""
    from crashpath.runtime.worker import limit_memory

    kind, threads = request["kind"], request["threads"]
    library = importlib.import_module("torch" if kind == TORCHSCRIPT else "onnxruntime")
    bare = memory("VmRSS")
    if request["cap_mib"]:
        limit_memory(request["cap_mib"])
    if not request["as_worker"]:  # a worker warms up with the model itself
        (_warm_torch if kind == TORCHSCRIPT else _warm_ort)(threads)
    tell("started", version=str(library.__version__), bare=bare, base=memory("VmRSS"))


def _warm_ort(threads: int) -> None:
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(_IDENTITY, options, providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.zeros(1, np.float32)})


def _warm_torch(threads: int) -> None:
    import warnings

    import torch

    torch.set_num_threads(threads)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.Flatten(), torch.nn.Linear(16, 4)).eval()
        feed = torch.zeros(1, 3, 3, 3)
        script = torch.jit.trace(net, feed)  # type: ignore[no-untyped-call]  # torch has no types here
        for _ in range(RUNS):
            script(feed)


def _tokenizer(request: dict[str, Any], tell: Tell, phase: list[Phase]) -> None:
    """Build the tokenizer and encode a text."""
    from crashpath.runtime.tokenizer import main_tokenizer

    phase[0] = Phase.PREPARE
    _spoken(request, tell, main_tokenizer)


def _spoken(request: dict[str, Any], tell: Tell, make: Callable[[ModelFolder], Any]) -> None:
    import tokenizers

    folder = open_folder(request["folder"])
    step = make(folder)
    tell("started", version=tokenizers.__version__, base=memory("VmRSS"))
    started = time.perf_counter()
    feed = step("a plain text")
    tell("loaded", load_s=time.perf_counter() - started, inputs=tuple(feed), peak=peak())


def _vocabulary(request: dict[str, Any], tell: Tell, phase: list[Phase]) -> None:
    """Build the tokenizer's fallback and encode a text."""
    from crashpath.runtime.tokenizer import fallback_tokenizer

    phase[0] = Phase.PREPARE
    _spoken(request, tell, fallback_tokenizer)


def _graph(request: dict[str, Any], tell: Tell, phase: list[Phase]) -> None:
    """Read the graph without its weights."""
    import onnx

    from crashpath.runtime.graph_read import read_graph

    tell("started", version=onnx.__version__, base=memory("VmRSS"))
    folder = open_folder(request["folder"])
    golden = _golden(folder)
    sizes = {name: tuple(array.shape) for name, array in golden[0].items()} if golden else {}
    tell("loaded", load_s=0.0, graph=asdict(read_graph(folder.main, sizes)))


def _provider(request: dict[str, Any], tell: Tell, phase: list[Phase]) -> None:
    """Compute a graph of one node on the providers that are asked for."""
    import numpy as np
    import onnxruntime as ort

    there, wanted = ort.get_available_providers(), list(request["providers"])
    tell("started", version=ort.__version__, base=memory("VmRSS"), providers=there)
    if lacking := [one for one in wanted if one not in there]:
        raise DeviceInit(f"{', '.join(lacking)} is not in this onnxruntime; it has {', '.join(there)}")
    session = ort.InferenceSession(_IDENTITY, providers=wanted, enable_fallback=False)
    used = session.get_providers()
    if lacking := [one for one in wanted if one not in used]:
        raise DeviceInit(f"{', '.join(lacking)} could not be started; the session has {', '.join(used)}")
    session.run(None, {"x": np.zeros(1, np.float32)})
    tell("loaded", load_s=0.0, peak=peak())


JOBS: dict[str, Callable[[dict[str, Any], Tell, list[Phase]], None]] = {
    MAIN: _path,
    TORCHSCRIPT: _path,
    TOKENIZER: _tokenizer,
    VOCABULARY: _vocabulary,
    GRAPH: _graph,
    PROVIDER: _provider,
}


def memory(name: str) -> int:
    """Return a figure of ``/proc/self/status`` in bytes, 0 where the system has none."""
    try:
        text = File("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def peak() -> int:
    """Return the most resident bytes this program had (`ru_maxrss` would inherit the parent's over exec)."""
    if most := memory("VmHWM"):
        return most
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _watch_network() -> list[str]:
    """Note where the process tries to connect to, or which name it tries to resolve."""
    contacts: list[str] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            contacts.append(str(arguments[1][0]))
        elif event == "socket.getaddrinfo":
            contacts.append(str(arguments[0]))

    sys.addaudithook(note)
    return contacts


if __name__ == "__main__":
    main()
