"""The encoder on the project's own runtime: ONNX Runtime answers, with the TorchScript twin of the same weights behind.

Vectors are those of `encoder.SentenceEncoder` within the rounding that either has, so they go under the same id
(docs/decisions/0007). torch is imported for the first export, and when ONNX Runtime fails; a night does without.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from crashpath.clustering import encoder as plain
from crashpath.clustering.encoder import BATCH, Encoder, Vectors, rounded
from crashpath.clustering.exports import check_file, exported
from crashpath.runtime.errors import ServingError
from crashpath.runtime.folder import FALLBACK_FILE, ModelFolder

if TYPE_CHECKING:
    from crashpath.runtime.lane import Backend
    from crashpath.runtime.session import FallbackSession

_log = logging.getLogger(__name__)

DEADLINE_MS = 600_000.0
"""Of one batch, both paths. It is there to end what hangs: a batch takes seconds, waking the twin up to a minute."""
_LOAD_S = 240.0


class Twin(Encoder, Protocol):
    """An encoder that says where its model is."""

    def source(self) -> Path:
        """Return the folder of the sentence-transformers model, its weights checked. Raises `EncoderError`."""


class RuntimeEncoder:
    """Serves the model of ``twin`` through a `FallbackSession`, which is opened with the first text.

    ``twin`` has the id, and encodes where the session cannot be opened or nobody in it answers: the cache folder cannot
    be written, both libraries fail. ``dim`` is the length of the vectors; where it is not given the model is asked.
    ``cache`` is the folder for the export (default: the user's).
    """

    def __init__(
        self, twin: Twin, *, dim: int | None = None, cache: Path | None = None, threads: int | None = None
    ) -> None:
        self._twin, self._cache = twin, cache
        self._dim = dim
        self._threads = threads or usable_threads()
        self._lock = threading.Lock()
        self._session: FallbackSession | None = None
        self._given_up = False
        self.rerouted = 0
        """Batches whose answer was not the main path's, or whose tokens were the second tokenizer's."""

    @property
    def id(self) -> str:
        return self._twin.id

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._open()
        return self._twin.dim if self._dim is None else self._dim

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode distinct texts in sorted order and fixed batches, so that the same set gives the same vectors."""
        distinct = sorted(set(texts), key=lambda text: (len(text), text))
        if not distinct:
            return np.zeros((0, self.dim), dtype=np.float32)
        session = self._open()
        if session is None:
            return self._twin.encode(texts)
        try:
            parts = [self._answer(session, distinct[at : at + BATCH]) for at in range(0, len(distinct), BATCH)]
        except ServingError as error:
            self._give_up(error)
            return self._twin.encode(texts)
        row = {text: i for i, text in enumerate(distinct)}
        return rounded(np.concatenate(parts)[[row[text] for text in texts]])

    def close(self) -> None:
        """Let go of the models; the next text opens them again."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def _open(self) -> FallbackSession | None:
        with self._lock:
            if self._session is None and not self._given_up:
                try:
                    folder = exported(self._twin.source, self.id, self._cache)
                    self._dim = int(folder.outputs[0].shape[-1])
                    self._session = serve(folder, self._threads)
                except (ServingError, OSError, ImportError) as error:
                    self._tell(error)
            return self._session

    def _give_up(self, error: Exception) -> None:
        self._tell(error)
        self.close()  # two models in memory would be one too many

    def _tell(self, error: Exception) -> None:
        _log.warning("the encoder's own runtime cannot be used (%s); sentence-transformers encodes instead", error)
        self._given_up = True

    def _answer(self, session: FallbackSession, texts: Sequence[str]) -> Any:
        clean = [text.encode(errors="replace").decode() for text in texts]  # a lone surrogate is no text to a tokenizer
        answer = session.run_raw(clean, deadline_ms=DEADLINE_MS)
        if answer.cause is not None:
            self.rerouted += 1
            _log.warning("the encoder's batch was answered by %s after %s: %s", answer.path, answer.route, answer.cause)
        (output,) = answer.outputs.values()
        return output


def serve(folder: ModelFolder, threads: int) -> FallbackSession:
    """Serve an exported encoder in this process; its TorchScript twin is read when it is first needed."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # nothing leaves this machine
    from crashpath.runtime.backends import OrtBackend, TorchScriptBackend
    from crashpath.runtime.inprocess import InProcessLane
    from crashpath.runtime.lazylane import LazyLane
    from crashpath.runtime.prepare import PrepareStep
    from crashpath.runtime.session import FallbackSession
    from crashpath.runtime.startup import Expected
    from crashpath.runtime.tokenizer import fallback_tokenizer, main_tokenizer
    from crashpath.runtime.values import Path as Way

    feed, golden = folder.golden()

    def twin() -> Backend:
        check_file(folder, FALLBACK_FILE)
        return TorchScriptBackend(folder, threads)

    expected = Expected(folder.inputs, folder.tolerance, golden)
    return FallbackSession(
        InProcessLane(Way.MAIN, lambda: OrtBackend(folder, threads=threads), feed),
        LazyLane(InProcessLane(Way.FALLBACK, twin, feed), expected, load_s=_LOAD_S),
        inputs=folder.inputs,
        tolerance=folder.tolerance,
        golden=golden,
        deadline_ms=DEADLINE_MS,
        load_s=_LOAD_S,
        prepare=PrepareStep(main_tokenizer(folder), fallback_tokenizer(folder)),
        sample=0.0,  # comparing would load the twin
    )


def open_encoder(name: str = "minilm") -> RuntimeEncoder:
    """Return the encoder of that name, as `encoder.open_encoder`, on the runtime."""
    return RuntimeEncoder(plain.open_encoder(name), dim=384 if name == "minilm" else None)


def usable_threads() -> int:
    """Threads for one operator: ``OMP_NUM_THREADS``, as torch reads it, or the cores that this process may use."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
