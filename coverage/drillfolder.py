"""The folder that drills break: a copy of a model's, or one that is built in; and the step before the model."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from crashpath.coverage.spoilers import poison
from crashpath.coverage.spoilgraph import poison_rows
from crashpath.runtime.folder import SPEC_FILE, ModelFolder, TokenizerSpec, file_hash, open_folder
from crashpath.runtime.folder_file import told
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.tokenizer import Tokenize, fallback_tokenizer, from_vocabulary, main_tokenizer
from crashpath.runtime.values import Arrays

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "load", "run", "model", "shape", "disk", "path")
"""The vocabulary of the built-in folder: one id a row of its table."""
TEXT = "load model path"
_TOKENIZER = TokenizerSpec("tokenizer.json", "vocab.txt", 16)


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


class Prepared:
    """The prepare step that a session makes of a folder, with a place to strike before its main way.

    A main way keeps the tokenizer that it has built: a file that breaks later does not matter to it. `renew` puts one
    in its place that has read nothing yet, as in a session that was just opened.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        self._main: Tokenize = main_tokenizer(folder)
        self.before: Callable[[], None] | None = None
        self.step = PrepareStep(self._prepare, fallback_tokenizer(folder))

    def renew(self) -> None:
        """Forget the tokenizer that was built."""
        self._main = main_tokenizer(self._folder)

    def _prepare(self, raw: Any) -> Arrays:
        if self.before is not None:
            self.before()
        return self._main(raw)


def built_in_folder(path: Path) -> ModelFolder:
    """Build a tiny text model at ``path``: weights in a file beside the graph, a tokenizer, and its vocabulary."""
    made = tiny_folder(path, kind="text", external="model.onnx.data")
    vocabulary = path / str(_TOKENIZER.fallback)
    vocabulary.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    from_vocabulary(vocabulary, lowercase=True).save(str(path / _TOKENIZER.file))
    files = (vocabulary, path / _TOKENIZER.file)
    hashes = tuple(sorted((*made.files, *((one.name, file_hash(one)) for one in files))))
    (path / SPEC_FILE).write_text(told(replace(made, tokenizer=_TOKENIZER, files=hashes)), encoding="utf-8")
    return open_folder(path)


def copied(folder: ModelFolder, place: Path) -> ModelFolder:
    """Copy a model folder to ``place``, where it may be broken."""
    shutil.copytree(folder.path, place)
    return replace(open_folder(place), limits=folder.limits)


def tokenizer_file(folder: ModelFolder) -> str | None:
    """Return the name of the tokenizer file that the folder declares, or ``None`` where it declares none."""
    return None if folder.tokenizer is None else folder.tokenizer.file


def prepared(folder: ModelFolder) -> Prepared | None:
    """Return the folder's prepare step, or ``None`` where it has none."""
    return None if folder.tokenizer is None else Prepared(folder)


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
        poison(feed, rows, poison_rows(feed)) if every_row_alone else None,
        poison(answer, rows, poison_rows(feed)) if every_row_alone else None,
        TEXT if folder.tokenizer is not None else None,
    )
