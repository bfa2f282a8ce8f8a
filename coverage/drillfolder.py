"""The folder that drills break: a copy of a model's, or one that is built in; and the step before the model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashpath.coverage.modelapps import WORDS, write_tokenizer
from crashpath.coverage.spoilers import poison
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.tokenizer import fallback_tokenizer, main_tokenizer

TOKENIZER = "tokenizer.json"
TEXT = " ".join(WORDS[1:4])


@dataclass(frozen=True, slots=True)
class Exam:
    """What drills ask a model: feeds with the answers that are right. ``raw`` is the input of the prepare step.

    The answer to ``raw`` is not known beforehand: it is asked of the whole model before anything is broken.
    """

    feed: Mapping[str, NDArray[Any]]
    answer: Mapping[str, NDArray[Any]]
    poison_feed: Mapping[str, NDArray[Any]] | None
    poison_answer: Mapping[str, NDArray[Any]] | None
    raw: str | None


def built_in_folder(path: Path) -> ModelFolder:
    """Build a tiny text model at ``path``: weights in a file beside the graph, a tokenizer, and its vocabulary."""
    folder = tiny_folder(path, kind="gather", external="model.onnx.data")
    write_tokenizer(path / TOKENIZER)
    return folder


def copied(folder: ModelFolder, place: Path) -> ModelFolder:
    """Copy a model folder to ``place``, where it may be broken."""
    shutil.copytree(folder.path, place)
    return replace(open_folder(place), limits=folder.limits)


def tokenizer_file(folder: ModelFolder) -> str | None:
    """Return the name of the folder's tokenizer file, or ``None`` where it has none."""
    if folder.tokenizer is not None:
        return folder.tokenizer.file
    return TOKENIZER if (folder.path / TOKENIZER).is_file() else None


def exam_of(folder: ModelFolder) -> Exam:
    """Make the questions from the folder's golden feed."""
    feed, answer = folder.golden()
    rows = {
        spec.name: bool(spec.shape) and isinstance(spec.shape[0], str) for spec in (*folder.inputs, *folder.outputs)
    }
    every_row_alone = all(rows.values()) and len({spec.shape[0] for spec in folder.inputs}) == 1
    return Exam(
        feed,
        answer,
        poison(feed, rows) if every_row_alone else None,
        poison(answer, rows) if every_row_alone else None,
        TEXT if tokenizer_file(folder) else None,
    )


def prepare_step(folder: ModelFolder) -> PrepareStep | None:
    """Return the folder's prepare step, built anew with each call, as in a process that has just been started."""
    if tokenizer_file(folder) is None:
        return None
    if folder.tokenizer is not None:
        return PrepareStep(lambda raw: main_tokenizer(folder)(raw), fallback_tokenizer(folder))
    name = folder.inputs[0].name

    def main(raw: str) -> Mapping[str, NDArray[Any]]:
        from tokenizers import Tokenizer

        ids = Tokenizer.from_file(str(folder.path / TOKENIZER)).encode(raw).ids
        return {name: np.array(ids, dtype=np.int64)}

    def plain(raw: str) -> Mapping[str, NDArray[Any]]:
        words = (folder.path / "vocab.txt").read_text(encoding="utf-8").split()
        return {name: np.array([words.index(word) for word in raw.split()], dtype=np.int64)}

    return PrepareStep(main, plain)
