"""Spoilers: break a copy of a model folder for real, and mend it again.

A `Spoiler` changes files of a folder; `spoiled` keeps what they were and puts it back. Those of `POISONS` leave a
model that loads and answers, and fails for a request of one row more than the golden one alone: `poison` makes that
request from the golden one, so that the fault is the model's own, inside the guarded run, whichever model it is.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashpath.coverage.breakage import truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.spoilgraph import edit

FIFO_WAITS = "a reader waits at the other end"
"""What `Broken.observe` says of a FIFO that is being read: the load really stands there."""

HELD_WAITS = "a reader waits for who holds the file"
"""What it says of a file that is held while somebody opens it."""


@dataclass(frozen=True, slots=True)
class Spoiler:
    """One way to break a folder.

    ``file`` is what it breaks: ``{main}``, ``{fallback}``, ``{external}`` or ``{tokenizer}``; ``break_file`` gets its
    path. ``poisons``: the model still answers, but for one row more than the golden feed has. ``held``: the file stays
    whole, and whoever opens it waits, as for a storage that is asked and does not deliver.
    """

    name: str
    file: str
    break_file: Callable[[Path], None]
    poisons: bool = False
    held: bool = False


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
        self._leased: int | None = None

    def hold(self) -> None:
        """Take the lease of the file. Raises `OSError` where the file system has none, or somebody has it open."""
        self._leased = _leased(self.file)

    def observe(self) -> str:
        """Say what stands in the file's place; of a FIFO, whether somebody waits to read from it.

        To see that, its other end is opened, and kept open without a word: a reader goes on waiting.
        """
        if self._held:
            return FIFO_WAITS
        if self._leased is not None:
            import fcntl

            waits = fcntl.fcntl(self._leased, fcntl.F_GETLEASE) != fcntl.F_WRLCK  # the kernel wants it back
            return HELD_WAITS if waits else "nobody opens"
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
        """Let whoever waits go: at a FIFO it reads an empty file, at a held one the whole."""
        if self._leased is not None:
            os.close(self._leased)
            self._leased = None
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
        if spoiler.held:
            broken.hold()
        yield broken
    finally:
        broken.release()
        os.replace(kept, file)


def can_hold(folder: Path) -> bool:
    """Whether files of ``folder`` can be held, so that who opens them waits: Linux can, on most file systems."""
    handle, name = tempfile.mkstemp(dir=folder)
    os.close(handle)
    try:
        os.close(_leased(Path(name)))
    except (OSError, ImportError, AttributeError):
        return False
    finally:
        os.unlink(name)
    return True


def _leased(path: Path) -> int:
    """Return a descriptor that holds the lease of a file: the kernel makes others wait while they open it."""
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # the usual one, SIGIO, would end this process
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        os.close(file)
        raise
    return file


def poison(arrays: Mapping[str, NDArray[Any]], batch_axis: Mapping[str, bool], rows: int) -> dict[str, NDArray[Any]]:
    """Return the arrays with so many rows, all as their first; those that ``batch_axis`` denies stay."""
    return {
        name: np.repeat(array[:1], rows, axis=0) if batch_axis.get(name, False) else array
        for name, array in arrays.items()
    }


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _anew(path: Path) -> None:
    """The same bytes in a file that nobody has open."""
    again = path.with_name(f".new-{path.name}")
    shutil.copy2(path, again)
    os.replace(again, path)


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
    Spoiler("held", "{main}", _anew, held=True),
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
