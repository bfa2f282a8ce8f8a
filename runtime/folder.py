"""A model folder: both artefacts of one model and what is known of them.

``model.onnx`` (its external data beside it), ``model.ts.pt``, ``model.toml``, ``golden.npz``, optionally a tokenizer.
``model.toml``::

    schema = 1
    name = "minilm"
    [[inputs]]                       # in the order of the TorchScript forward()
    name = "input_ids"
    dtype = "int64"                  # numpy's name
    shape = ["batch", "sequence"]    # a number is fixed, a word is free and the same wherever it stands
    [[outputs]]
    name = "embedding"
    dtype = "float32"
    shape = ["batch", 384]
    [tolerance]                      # both must hold: |a - b| <= atol + rtol * |b|
    atol = 1e-4
    rtol = 1e-3
    top1 = false                     # the output is a score: its largest entry must be the same, too
    [limits]
    deadline_ms = 2000               # one request, both paths
    load_s = 60                      # until a path is ready
    memory_mib = 0                   # address space of a worker above what it needs for nothing; 0: no limit
    threads = 1                      # intra-op threads of a path
    [tokenizer]                      # optional
    file = "tokenizer.json"
    fallback = "vocab.txt"           # what the prepare step falls back to: a BERT word-piece vocabulary
    max_tokens = 256
    lowercase = true                 # what the fallback cannot read from its vocabulary
    [files]                          # sha256 of every artefact
    "model.onnx" = "…"
    [provenance]                     # optional, for people: versions that wrote it, opset, where the weights are from

``golden.npz`` holds a feed (``in.NAME``) and the answer to it (``out.NAME``).
"""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.values import Arrays

MAIN_FILE = "model.onnx"
FALLBACK_FILE = "model.ts.pt"
SPEC_FILE = "model.toml"
GOLDEN_FILE = "golden.npz"
SCHEMA = 1
_ADVICE = "crashpath export writes a whole one"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, numpy dtype and shape of an input or output; a word in the shape is a free dimension."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When two answers are the same: ``|a - b| <= atol + rtol * |b|`` everywhere, and the same top entry if asked."""

    atol: float = 1e-4
    rtol: float = 1e-3
    top1: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """``deadline_ms`` of a request, ``load_s`` until a path is ready, ``memory_mib`` (0: none), ``threads`` a path."""

    deadline_ms: float = 2000.0
    load_s: float = 60.0
    memory_mib: int = 0
    threads: int = 1


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """Files of the prepare step, relative to the folder; ``fallback`` is ``None`` where there is no second way."""

    file: str
    fallback: str | None
    max_tokens: int
    lowercase: bool = True


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What ``model.toml`` says. ``files`` are the artefacts with the sha256 they should have."""

    path: Path
    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    tolerance: Tolerance
    limits: Limits
    tokenizer: TokenizerSpec | None
    files: tuple[tuple[str, str], ...]

    @property
    def main(self) -> Path:
        """The ONNX artefact."""
        return self.path / MAIN_FILE

    @property
    def fallback(self) -> Path:
        """The TorchScript artefact."""
        return self.path / FALLBACK_FILE

    @property
    def hash(self) -> str:
        """Twelve hex digits over the declared artefacts: evidence for one hash says nothing of another."""
        told = "\n".join(f"{name} {digest}" for name, digest in sorted(self.files))
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def golden(self) -> tuple[Arrays, Arrays]:
        """Return the golden feed and the answer to it. Raises `ModelFolderError`."""
        path = self.path / GOLDEN_FILE
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise ModelFolderError(f"{path} cannot be read ({error}); {_ADVICE}") from error
        feed = {spec.name: arrays.get(f"in.{spec.name}") for spec in self.inputs}
        answer = {spec.name: arrays.get(f"out.{spec.name}") for spec in self.outputs}
        missing = [name for name, array in (feed | answer).items() if array is None]
        if missing:
            raise ModelFolderError(f"{path} has no array for {', '.join(missing)}; {_ADVICE}")
        return feed, answer  # type: ignore[return-value]  # None was ruled out above


def open_folder(path: Path | str) -> ModelFolder:
    """Read ``model.toml`` of a folder; no artefact is loaded. Raises `ModelFolderError`, one sentence with advice."""
    folder = Path(path)
    spec = folder / SPEC_FILE
    try:
        raw = tomllib.loads(spec.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        what = f"{folder} has no {SPEC_FILE}" if folder.is_dir() else f"{folder} is no folder"
        raise ModelFolderError(f"{what}; {_ADVICE}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelFolderError(f"{spec} cannot be read ({error}); {_ADVICE}") from error
    if raw.get("schema") != SCHEMA:
        raise ModelFolderError(f"{spec} has schema {raw.get('schema')!r} where {SCHEMA} is known; export it again")
    try:
        return ModelFolder(
            path=folder,
            name=str(raw["name"]),
            inputs=tuple(_tensor(one) for one in raw["inputs"]),
            outputs=tuple(_tensor(one) for one in raw["outputs"]),
            tolerance=Tolerance(**raw.get("tolerance", {})),
            limits=Limits(**raw.get("limits", {})),
            tokenizer=_tokenizer(raw.get("tokenizer")),
            files=tuple(sorted((str(name), str(digest)) for name, digest in raw.get("files", {}).items())),
        )
    except KeyError as error:
        raise ModelFolderError(f"{spec} does not say {error.args[0]!r}; {_ADVICE}") from error
    except (TypeError, ValueError) as error:
        raise ModelFolderError(f"{spec} is not understood ({error}); {_ADVICE}") from error


def file_hash(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """Return the sha256 of a file; ``progress`` gets the bytes read so far."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done)
    return digest.hexdigest()


def _tensor(raw: Mapping[str, Any]) -> TensorSpec:
    dtype = np.dtype(str(raw["dtype"])).name
    shape = tuple(one if isinstance(one, int) and not isinstance(one, bool) else str(one) for one in raw["shape"])
    return TensorSpec(str(raw["name"]), dtype, shape)


def _tokenizer(raw: Mapping[str, Any] | None) -> TokenizerSpec | None:
    if raw is None:
        return None
    fallback = raw.get("fallback")
    second = None if fallback is None else str(fallback)
    return TokenizerSpec(str(raw["file"]), second, int(raw["max_tokens"]), bool(raw.get("lowercase", True)))
