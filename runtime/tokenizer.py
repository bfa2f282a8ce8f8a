"""The prepare step of a text model: texts to a feed, from ``tokenizer.json``, or from a bare vocabulary behind it.

Each way is a callable of one text or several. It reads its file with the first call and keeps what it built; after a
failure the next call tries again, so a file that was put right serves again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crashpath.runtime.errors import InputError, ModelFolderError, TokenizerBroken
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Texts = str | Sequence[str]
RAW = "texts"
"""What the raw input is called in an `InputError`."""

_PADS = ("[PAD]", "<pad>", "<|pad|>", "<|endoftext|>")
_FIELDS: dict[str, Callable[[Encoding], list[int]]] = {
    "input_ids": lambda one: one.ids,
    "attention_mask": lambda one: one.attention_mask,
    "token_type_ids": lambda one: one.type_ids,
}


class Tokenize:
    """Texts to a feed of ``names``, int64 ``[texts, longest]``, padded on the right, cut at ``max_tokens``.

    ``build`` gives the tokenizer. Calls raise `TokenizerBroken` where it cannot be built, `OSError` where its file
    cannot be read, `InputError` for what is no text. Safe to call from several threads.
    """

    def __init__(self, build: Callable[[], Tokenizer], names: Sequence[str], max_tokens: int) -> None:
        self._build, self._names, self._max_tokens = build, tuple(names), max_tokens
        self._ready: Tokenizer | None = None
        self._lock = threading.Lock()

    def __call__(self, raw: Any) -> Arrays:
        texts = _texts(raw)
        ready = self._ready or self._make()
        encoded = ready.encode_batch(texts)
        return {name: np.array([_FIELDS[name](one) for one in encoded], dtype=np.int64) for name in self._names}

    def _make(self) -> Tokenizer:
        with self._lock:
            if self._ready is None:
                self._ready = _fitted(self._build(), self._max_tokens)
            return self._ready


def main_tokenizer(folder: ModelFolder) -> Tokenize:
    """Return the step that reads the declared ``tokenizer.json``. Raises `ModelFolderError`; reads no file yet."""
    spec = _spec(folder)
    path = folder.path / spec.file
    return Tokenize(lambda: from_json(path), _names(folder), spec.max_tokens)


def fallback_tokenizer(folder: ModelFolder) -> Tokenize | None:
    """Return the step that builds a BERT word-piece tokenizer from the declared vocabulary; ``None`` without one."""
    spec = _spec(folder)
    if spec.fallback is None:
        return None
    path = folder.path / spec.fallback
    return Tokenize(lambda: from_vocabulary(path, lowercase=spec.lowercase), _names(folder), spec.max_tokens)


def from_json(path: Path) -> Tokenizer:
    """Build the tokenizer that a ``tokenizer.json`` describes. Raises `TokenizerBroken` or `OSError`."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads do not survive a fork
    from tokenizers import Tokenizer

    raw = _read(path)
    try:
        return Tokenizer.from_buffer(raw)
    except ValueError as error:
        raise TokenizerBroken(f"{path.name}: {error}", "ValueError of tokenizers.Tokenizer.from_buffer") from error


def from_vocabulary(path: Path, *, lowercase: bool) -> Tokenizer:
    """Build BERT's word-piece tokenizer from a vocabulary, one token a line. Raises `TokenizerBroken` or `OSError`."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    try:
        tokens = _read(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise TokenizerBroken(f"{path.name}: {error}", "the vocabulary is not UTF-8") from error
    ids = {token: number for number, token in enumerate(tokens)}
    missing = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if token not in ids]
    if missing:
        raise TokenizerBroken(f"{path.name} has no {', '.join(missing)}", "special tokens of the vocabulary")
    made = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    made.add_special_tokens([one for one in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if one in ids])
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return made


def _fitted(tokenizer: Tokenizer, max_tokens: int) -> Tokenizer:
    """Cut at ``max_tokens`` and pad to the longest, whatever the file said of it."""
    told = tokenizer.padding or {}
    pad = str(told.get("pad_token") or next((one for one in _PADS if tokenizer.token_to_id(one) is not None), _PADS[0]))
    number = tokenizer.token_to_id(pad)
    tokenizer.enable_padding(pad_token=pad, pad_id=0 if number is None else number, direction="right", length=None)
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise TokenizerBroken(f"{path.name} is missing", "the declared file is not in the folder") from error


def _texts(raw: Any) -> list[str]:
    texts = [raw] if isinstance(raw, str) else list(raw) if isinstance(raw, Sequence) else None
    if texts is None or not all(isinstance(one, str) for one in texts):
        raise InputError(RAW, f"the raw input is a text or a sequence of texts, not {type(raw).__name__}")
    if not texts:
        raise InputError(RAW, "there are no texts; give at least one")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            RAW, f"a text has half of a surrogate pair ({error.reason}); decode it with errors=replace"
        ) from error
    return texts


def _spec(folder: ModelFolder) -> Any:
    if folder.tokenizer is None:
        raise ModelFolderError(f"{folder.path} has no [tokenizer] in model.toml; give it tensors instead of texts")
    return folder.tokenizer


def _names(folder: ModelFolder) -> tuple[str, ...]:
    names = tuple(one.name for one in folder.inputs)
    unknown = [name for name in names if name not in _FIELDS]
    if unknown:
        raise ModelFolderError(
            f"{folder.path} has a tokenizer, which gives {', '.join(_FIELDS)}, but the model takes {', '.join(unknown)}"
        )
    return names
