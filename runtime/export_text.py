"""Write a sentence-transformers model as a model folder: one graph from ids to vectors, a tokenizer with a second way.

Pooling and normalisation are in the graph, so both paths answer with finished unit vectors.
"""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crashpath.runtime.errors import ExportError, ServingError
from crashpath.runtime.export import OPSET, Extra, check_place, export_module
from crashpath.runtime.export_check import MODULE_ERRORS
from crashpath.runtime.folder import Limits, ModelFolder, TokenizerSpec, Tolerance, file_hash
from crashpath.runtime.tokenizer import Tokenize, from_json, from_vocabulary

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "vocab.txt"
OUTPUT = "embedding"
TOLERANCE = Tolerance(atol=1e-5, rtol=1e-3)
LIMITS = Limits(load_s=120.0)
"""Importing torch takes most of a load, and half a minute on a busy machine."""

EXAMPLES: tuple[str, ...] = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "Killed",
    "[ONNXRuntimeError] : 1 : FAIL : Type Error: Type parameter (T) bound to different types (tensor(float) and "
    "tensor(int64)) in node (Add_3) while loading /models/café/model.onnx — déjà vu: ÅNGSTRÖM 模型 🙂 don't_stop",
)
"""What becomes the golden feed, and what a second tokenizer has to agree on: cases, accents, Chinese, punctuation."""
_CLOSE = 1e-5
_LONGEST = 512


def export_sentence_transformers(
    model: Path | str,
    folder: Path | str,
    *,
    name: str | None = None,
    max_tokens: int | None = None,
    limits: Limits = LIMITS,
    opset: int = OPSET,
    external_data: bool = False,
    replace: bool = False,
) -> ModelFolder:
    """Write the model of a folder, or of a name that is in the local cache, as a model folder; nothing is fetched.

    Inputs are ``input_ids`` and ``attention_mask``, int64 ``[batch, sequence]`` (and ``token_type_ids`` where the
    tokenizer gives other types than 0); the output is ``embedding``, float32 ``[batch, width]``, rows of length 1.
    ``max_tokens`` can only shorten what the model takes. The fallback's tokenizer is a bare vocabulary, and is left out
    where it does not give the same ids. Raises `ExportError`.
    """
    check_place(Path(folder), replace=replace)
    _check_source(model)
    with _hushed():
        source = _load(model)
        longest = min((one for one in (max_tokens, source.max_seq_length) if one), default=_LONGEST)
        feed = _feed(source, longest)
        lowercase = _second_way(source, feed["input_ids"], longest)
        spec = TokenizerSpec(TOKENIZER_FILE, None if lowercase is None else VOCABULARY_FILE, longest, bool(lowercase))
        net = _network(source, with_types="token_type_ids" in feed)
        _agree(source, net, feed, longest)
        return export_module(
            net,
            feed,
            folder,
            name=name or Path(str(model)).name,
            output_names=[OUTPUT],
            dynamic_axes={key: {0: "batch", 1: "sequence"} for key in feed} | {OUTPUT: {0: "batch"}},
            tolerance=TOLERANCE,
            limits=limits,
            opset=opset,
            external_data=external_data,
            replace=replace,
            extra=Extra(spec, lambda draft: _write_tokenizers(source, draft, spec), _provenance(model)),
        )


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep transformers from telling of progress, and of a loss that nobody asks for."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers leaves both unannotated
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _feed(source: SentenceTransformer, longest: int) -> dict[str, NDArray[Any]]:
    main = Tokenize(lambda: _backend(source), ("input_ids", "attention_mask", "token_type_ids"), longest)
    feed = dict(main(EXAMPLES))
    if not feed["token_type_ids"].any():
        del feed["token_type_ids"]  # the model adds zeros by itself
    return feed


def _check_source(model: Path | str) -> None:
    """See that there is such a folder or cached model before libraries are loaded, which would try the network."""
    if Path(model).is_dir():
        return
    from huggingface_hub.constants import HF_HUB_CACHE

    caches = [Path(one) for one in (HF_HUB_CACHE, os.environ.get("SENTENCE_TRANSFORMERS_HOME")) if one]
    names = [f"models--{one}{model}".replace("/", "--") for one in ("", "sentence-transformers/")]
    if not any((cache / name).is_dir() for cache in caches for name in names):
        raise ExportError(
            f"{model} is no folder, and no model of this name is in the local cache (nothing is fetched); "
            "give the folder of a sentence-transformers model, or a function as package.module:function"
        )


def _load(model: Path | str) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(model), device="cpu", local_files_only=True).eval()
    except (OSError, ValueError) as error:
        raise ExportError(
            f"{model} cannot be loaded offline ({error}); give the folder of a sentence-transformers model"
        ) from error


def _network(source: SentenceTransformer, *, with_types: bool) -> nn.Module:
    import torch

    class Embed(torch.nn.Module):
        """The steps of the model one after the other, and rows of length 1 at the end."""

        def __init__(self) -> None:
            super().__init__()
            self.steps = torch.nn.ModuleList(list(source))

        def embed(self, features: dict[str, Any]) -> Any:
            for step in self.steps:
                features = step(features)
            return torch.nn.functional.normalize(features["sentence_embedding"], p=2.0, dim=1)

    class Plain(Embed):
        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.embed({"input_ids": input_ids, "attention_mask": attention_mask})

    class Typed(Embed):
        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            features = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
            return self.embed(features)

    return (Typed() if with_types else Plain()).eval()


def _backend(source: SentenceTransformer) -> Any:
    """A copy of the model's tokenizer: cutting and padding are set on it."""
    from tokenizers import Tokenizer

    backend = getattr(source.tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ExportError("the model's tokenizer has no fast form; convert it to a tokenizer.json first")
    return Tokenizer.from_str(backend.to_str())


def _second_way(source: SentenceTransformer, ids: NDArray[Any], longest: int) -> bool | None:
    """Whether the vocabulary alone gives the same ids in lower case (``True``) or as it is; ``None``: neither."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / VOCABULARY_FILE
        _write_vocabulary(source, path)
        for lowercase in (True, False):
            step = Tokenize(lambda low=lowercase: from_vocabulary(path, lowercase=low), ("input_ids",), longest)  # type: ignore[misc]  # mypy knows no type for a bound default
            try:
                if np.array_equal(step(EXAMPLES)["input_ids"], ids):
                    return lowercase
            except ServingError:
                return None
    return None


def _write_vocabulary(source: SentenceTransformer, path: Path) -> None:
    known = _backend(source).get_vocab(with_added_tokens=True)
    path.write_text("".join(f"{token}\n" for token in sorted(known, key=known.__getitem__)), encoding="utf-8")


def _write_tokenizers(source: SentenceTransformer, draft: Path, spec: TokenizerSpec) -> None:
    backend = _backend(source)
    backend.no_padding()
    backend.no_truncation()
    (draft / TOKENIZER_FILE).write_text(backend.to_str(pretty=False), encoding="utf-8")
    from_json(draft / TOKENIZER_FILE)
    if spec.fallback is not None:
        _write_vocabulary(source, draft / VOCABULARY_FILE)


def _agree(source: SentenceTransformer, net: nn.Module, feed: dict[str, NDArray[Any]], longest: int) -> None:
    """The feed and the network give what the library itself gives, or the export is refused."""
    import torch

    source.max_seq_length = longest
    expected = source.encode(list(EXAMPLES), show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True)
    try:
        with torch.no_grad():
            got = net(*(torch.from_numpy(array) for array in feed.values())).numpy()
    except MODULE_ERRORS as error:
        raise ExportError(f"the model does not run on ids and a mask alone ({error!r}), so it has no graph") from error
    worst = float(np.abs(got - np.asarray(expected)).max())
    if not worst <= _CLOSE:
        raise ExportError(
            f"the vectors differ from sentence-transformers' by up to {worst:.2g}; "
            "the model does more than its modules say (a prompt, another task), and cannot be exported"
        )


def _provenance(model: Path | str) -> Sequence[tuple[str, str]]:
    versions = [
        (one, importlib.metadata.version(one)) for one in ("sentence-transformers", "transformers", "tokenizers")
    ]
    weights = Path(model) / "model.safetensors"
    return [*versions, *([("weights_sha256", file_hash(weights))] if weights.is_file() else [])]
