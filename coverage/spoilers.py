"""Spoilers: break a copy of a model folder for real, and mend it again.

A `Spoiler` changes files of a folder; `spoiled` keeps what they were and puts it back. Those of `POISONS` leave a
model that loads and answers, and fails for a request of three rows alone: `poison` makes that request from the golden
one, so that the fault is the model's own, inside the guarded run, whichever model it is.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashpath.coverage.breakage import truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.spoilgraph import edit

POISON_ROWS = 3

FIFO_WAITS = "a reader waits at the other end"
"""What `Broken.observe` says of a FIFO that is being read: the load really stands there."""


@dataclass(frozen=True, slots=True)
class Spoiler:
    """One way to break a folder.

    ``file`` is what it breaks: ``{main}``, ``{fallback}``, ``{external}`` or ``{tokenizer}``; ``break_file`` gets its
    path. ``poisons``: the model still answers, but for `POISON_ROWS` rows.
    """

    name: str
    file: str
    break_file: Callable[[Path], None]
    poisons: bool = False


def external_file(model: Path) -> Path | None:
    """Return the file that the graph keeps its weights in, or ``None`` where it has none beside it."""
    import onnx

    graph = onnx.load(str(model), load_external_data=False).graph
    for weight in graph.initializer:
        for entry in weight.external_data:
            if entry.key == "location":
                return model.parent / str(entry.value)
    return None


def file_of(spoiler: Spoiler, folder: Path, tokenizer: str | None) -> Path | None:
    """Return the file that the spoiler breaks in this folder, or ``None`` where the folder has no such file."""
    match spoiler.file:
        case "{main}":
            return folder / "model.onnx"
        case "{fallback}":
            return folder / "model.ts.pt"
        case "{external}":
            return external_file(folder / "model.onnx")
        case _:
            return None if tokenizer is None else folder / tokenizer


class Broken:
    """A file that is broken now; `observe` says what stands in its place."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._held: list[int] = []

    def observe(self) -> str:
        """Say what stands in the file's place; of a FIFO, whether somebody waits to read from it.

        To see that, its other end is opened, and kept open without a word: a reader goes on waiting.
        """
        if self._held:
            return FIFO_WAITS
        if not self.file.exists():
            return "absent"
        if not self.file.is_fifo():
            return f"{self.file.stat().st_size} bytes, mode {self.file.stat().st_mode & 0o777:03o}"
        try:
            self._held.append(os.open(self.file, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return "nobody reads"
        return FIFO_WAITS

    def release(self) -> None:
        """Let whoever waits at a FIFO go: it reads an empty file."""
        if self.file.is_fifo():
            self.observe()
        while self._held:
            os.close(self._held.pop())


@contextmanager
def spoiled(spoiler: Spoiler, file: Path) -> Iterator[Broken]:
    """Break ``file`` meanwhile, and put it back as it was: content, mode and kind."""
    kept = file.with_name(f".kept-{file.name}")
    shutil.copy2(file, kept)
    broken = Broken(file)
    try:
        spoiler.break_file(file)
        yield broken
    finally:
        broken.release()
        os.replace(kept, file)


def poison(arrays: Mapping[str, NDArray[Any]], batch_axis: Mapping[str, bool]) -> dict[str, NDArray[Any]]:
    """Return the arrays with `POISON_ROWS` rows, all as their first; those that ``batch_axis`` denies stay."""
    return {
        name: np.repeat(array[:1], POISON_ROWS, axis=0) if batch_axis.get(name, False) else array
        for name, array in arrays.items()
    }


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _close(path: Path) -> None:
    path.chmod(0)


def _folder(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent)


def _text(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    return write


def _replaced(old: str, new: str) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        if old not in text:
            raise ValueError(f"{path.name}: no {old!r} to replace")
        path.write_text(text.replace(old, new), encoding="utf-8")

    return replace


SPOILERS: tuple[Spoiler, ...] = (
    Spoiler("cut", "{main}", lambda path: truncate(path, 0.5)),
    Spoiler("empty", "{main}", _empty),
    Spoiler("garbage", "{main}", lambda path: write_garbage(path, 4096, random.Random(path.name))),
    Spoiler("pointer", "{main}", lambda path: write_lfs_pointer(path, random.Random(path.name))),
    Spoiler("gone", "{main}", Path.unlink),
    Spoiler("is-folder", "{main}", _folder),
    Spoiler("never-delivered", "{main}", _fifo),
    Spoiler("closed", "{main}", _close),
    Spoiler("future-opset", "{main}", lambda path: edit(path, "opset")),
    Spoiler("future-ir", "{main}", lambda path: edit(path, "ir")),
    Spoiler("dangling-edge", "{main}", lambda path: edit(path, "dangling")),
    Spoiler("impossible-shape", "{main}", lambda path: edit(path, "shape")),
    Spoiler("impossible-type", "{main}", lambda path: edit(path, "type")),
    Spoiler("unknown-operator", "{main}", lambda path: edit(path, "operator")),
    Spoiler("unknown-domain", "{main}", lambda path: edit(path, "domain")),
    Spoiler("kernel-missing", "{main}", lambda path: edit(path, "kernel")),
    Spoiler("weights-gone", "{external}", Path.unlink),
    Spoiler("weights-cut", "{external}", lambda path: truncate(path, 0.3)),
    Spoiler("weights-closed", "{external}", _close),
    Spoiler("poison-loop", "{main}", lambda path: edit(path, "loop"), poisons=True),
    Spoiler("poison-memory", "{main}", lambda path: edit(path, "memory"), poisons=True),
    Spoiler("poison-shape", "{main}", lambda path: edit(path, "reshape"), poisons=True),
    Spoiler("script-cut", "{fallback}", lambda path: truncate(path, 0.5)),
    Spoiler("script-gone", "{fallback}", Path.unlink),
    Spoiler("script-never-delivered", "{fallback}", _fifo),
    Spoiler("tokenizer-cut", "{tokenizer}", lambda path: truncate(path, 0.5)),
    Spoiler("tokenizer-empty", "{tokenizer}", _empty),
    Spoiler("tokenizer-pointer", "{tokenizer}", lambda path: write_lfs_pointer(path, random.Random(path.name))),
    Spoiler("tokenizer-gone", "{tokenizer}", Path.unlink),
    Spoiler("tokenizer-variant", "{tokenizer}", _replaced('"type"', '"kind"')),
    Spoiler("tokenizer-html", "{tokenizer}", _text("<!DOCTYPE html>\n<title>Sign in</title>\n")),
    Spoiler("tokenizer-closed", "{tokenizer}", _close),
)

_BY_NAME = {one.name: one for one in SPOILERS}


def spoiler(name: str) -> Spoiler:
    """Return the spoiler of this name. Raises `KeyError`."""
    return _BY_NAME[name]
