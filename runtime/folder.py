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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crashpath.runtime.errors import InputError, ModelFolderError
from crashpath.runtime.feeds import FeedCheck
from crashpath.runtime.folder_check import ADVICE, DTYPES, Table, shown
from crashpath.runtime.folder_read import DAMAGE, FOLDER, kind_of, open_plain, read_arrays, read_text, special
from crashpath.runtime.tensors import TensorSpec as TensorSpec
from crashpath.runtime.values import Arrays

MAIN_FILE = "model.onnx"
FALLBACK_FILE = "model.ts.pt"
SPEC_FILE = "model.toml"
GOLDEN_FILE = "golden.npz"
SCHEMA = 1
MOST_MS, MOST_S, MOST_MIB, MOST_THREADS, MOST_TOKENS = 604_800_000, 604_800, 1 << 24, 1024, 1 << 20
"""Upper ends of the limits: a week, a week, 16 TiB, and what no machine and no model has."""
_MOST_APART = 1e9


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

    @property
    def named(self) -> tuple[str, ...]:
        """Every file that belongs to the folder, sorted: the artefacts, the tokenizer's, and all that are declared."""
        names = {MAIN_FILE, FALLBACK_FILE, GOLDEN_FILE, SPEC_FILE} | {name for name, _ in self.files}
        if self.tokenizer is not None:
            names |= {name for name in (self.tokenizer.file, self.tokenizer.fallback) if name is not None}
        return tuple(sorted(names))

    def golden(self) -> tuple[Arrays, Arrays]:
        """Return the golden feed and the answer to it; both are what ``model.toml`` declares.

        Raises `ModelFolderError`, and ``MemoryError`` where they are larger than what is left.
        """
        path = self.path / GOLDEN_FILE
        feeds = {f"in.{spec.name}": spec.name for spec in self.inputs}
        answers = {f"out.{spec.name}": spec.name for spec in self.outputs}
        try:
            arrays = read_arrays(path, (*feeds, *answers))
        except DAMAGE as error:
            raise ModelFolderError(f"{path} cannot be read ({_said(error)}); {ADVICE}") from error
        if missing := [name for name in (*feeds, *answers) if name not in arrays]:
            raise ModelFolderError(f"{path} has no array {', '.join(missing)}; {ADVICE}")
        feed = {name: arrays[key] for key, name in feeds.items()}
        answer = {name: arrays[key] for key, name in answers.items()}
        try:
            FeedCheck(self.inputs)(feed)
        except InputError as error:
            raise ModelFolderError(f"{path} does not fit {SPEC_FILE}: {error}; {ADVICE}") from error
        for spec in self.outputs:
            if (there := answer[spec.name]).dtype.name != spec.dtype or not _fits(there.shape, spec.shape):
                told = f"output {spec.name!r} is {there.dtype.name} {list(there.shape)} where {spec.dtype}"
                raise ModelFolderError(
                    f"{path} does not fit {SPEC_FILE}: {told} {list(spec.shape)} is declared; {ADVICE}"
                )
        return feed, answer


def open_folder(path: Path | str) -> ModelFolder:
    """Read ``model.toml`` of a folder; no artefact is loaded. Raises `ModelFolderError`, one sentence with advice.

    A named pipe, socket or device among the files is refused: whoever opened it might wait for ever.
    """
    folder = read_folder(path)
    if (found := special(folder.path, folder.named)) is not None:
        name, kind = found
        raise ModelFolderError(f"{folder.path / name} is a {kind} where only files belong; remove it, or: {ADVICE}")
    return folder


def read_folder(path: Path | str) -> ModelFolder:
    """Read ``model.toml`` of a folder and look at no other file. Raises as `open_folder` does."""
    folder = Path(path)
    file = folder / SPEC_FILE
    try:
        raw = tomllib.loads(read_text(file))
    except FileNotFoundError as error:
        what = f"{folder} has no {SPEC_FILE}" if kind_of(folder) == FOLDER else f"{folder} is no folder"
        raise ModelFolderError(f"{what}; {ADVICE}") from error
    except (OSError, ValueError, RecursionError) as error:  # a number of thousands of digits, lists without end
        raise ModelFolderError(f"{file} cannot be read ({_said(error)}); {ADVICE}") from error
    schema = raw.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise ModelFolderError(f"{file} has schema {shown(schema)} where {SCHEMA} is known; export it again")
    spec = Table(file, "", raw)
    files = spec.table("files")
    return ModelFolder(
        path=folder,
        name=spec.text("name"),
        inputs=_tensors(spec, "inputs"),
        outputs=_tensors(spec, "outputs"),
        tolerance=_tolerance(spec),
        limits=_limits(spec),
        tokenizer=_tokenizer(spec),
        files=() if files is None else files.digests(),
    )


def file_hash(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """Return the sha256 of a plain file; ``progress`` gets the bytes read so far. Raises `OSError`."""
    digest = hashlib.sha256()
    done = 0
    with open_plain(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done)
    return digest.hexdigest()


def _tensors(spec: Table, key: str) -> tuple[TensorSpec, ...]:
    found: dict[str, TensorSpec] = {}
    for one in spec.tables(key):
        name = one.text("name")
        if name in found:
            raise one.wrong("name", name, "another name than the one before")
        found[name] = TensorSpec(name, one.choice("dtype", DTYPES), one.shape("shape"))
    return tuple(found.values())


def _tolerance(spec: Table) -> Tolerance:
    usual, told = Tolerance(), spec.table("tolerance", ("atol", "rtol", "top1"))
    if told is None:
        return usual
    return Tolerance(
        told.number("atol", usual.atol, high=_MOST_APART, zero=True),
        told.number("rtol", usual.rtol, high=_MOST_APART, zero=True),
        told.flag("top1", usual.top1),
    )


def _limits(spec: Table) -> Limits:
    usual, told = Limits(), spec.table("limits", ("deadline_ms", "load_s", "memory_mib", "threads"))
    if told is None:
        return usual
    return Limits(
        told.number("deadline_ms", usual.deadline_ms, high=MOST_MS),
        told.number("load_s", usual.load_s, high=MOST_S),
        told.whole("memory_mib", 0, MOST_MIB, usual.memory_mib),
        told.whole("threads", 1, MOST_THREADS, usual.threads),
    )


def _tokenizer(spec: Table) -> TokenizerSpec | None:
    told = spec.table("tokenizer")
    if told is None:
        return None
    fallback = told.file_name("fallback") if "fallback" in told.raw else None
    max_tokens, lowercase = told.whole("max_tokens", 1, MOST_TOKENS), told.flag("lowercase", True)
    return TokenizerSpec(told.file_name("file"), fallback, max_tokens, lowercase)


def _fits(found: tuple[int, ...], declared: tuple[int | str, ...]) -> bool:
    pairs = zip(found, declared, strict=False)
    return len(found) == len(declared) and all(isinstance(b, str) or a == b for a, b in pairs)


def _said(error: BaseException) -> str:
    """What an error says, in one line and without its end where it is long."""
    return " ".join((str(error) or type(error).__name__).split())[:200]
