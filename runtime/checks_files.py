"""Checks of a model folder's files: there, whole, readable, and those that were exported."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.finding import Check, Result, fail, ok, skip, warn
from crashpath.runtime.folder import FALLBACK_FILE, GOLDEN_FILE, MAIN_FILE, SPEC_FILE, ModelFolder, file_hash
from crashpath.runtime.folder_read import ABSENT, FILE, kind_of, open_plain, special
from crashpath.runtime.look import MIB, Look
from crashpath.runtime.wording import many, size

_POINTER = b"version https://git-lfs"
_POINTER_SIZE = 1024
_NEEDS_SPACE = 64 * MIB


def spec(look: Look) -> Result:
    """``model.toml`` is there and understood."""
    if look.folder is None:
        return fail(str(look.problem), f"Mend {SPEC_FILE} by hand, or: {look.export}")
    model = look.folder
    told = (many(len(model.inputs), "input"), many(len(model.outputs), "output"), many(len(model.files), "file"))
    return ok(f"{model.name}, {', '.join(told)}")


def readable(look: Look) -> Result:
    """Whoever runs this may read every file of the folder, and nothing in it waits for ever when it is opened."""
    if (found := special(look.path, look.model.named)) is not None:
        name, kind = found
        return fail(f"{name} is a {kind} where a file belongs", f"Remove {look.path / name} and put the file there.")
    closed = [path for path in _present(look.model) if not _opens(path)]
    if not os.access(look.path, os.X_OK):
        closed.insert(0, look.path)
    if not closed:
        return ok(f"{SPEC_FILE} and {many(len(_present(look.model)) - 1, 'file')} can be read")
    first = closed[0]
    told = ", ".join(one.name for one in closed)
    if first == look.path or kind_of(first) == FILE:
        mode = "a+rx" if first == look.path else "a+r"
        return fail(f"{told} cannot be read by user {os.geteuid()}", f"chmod {mode} {first}")
    return fail(f"{told} is a {kind_of(first)} where a file belongs", f"Remove {first} and put the file there.")


def present(name: str) -> Callable[[Look], Result]:
    """The artefact is there and not empty."""

    def run(look: Look) -> Result:
        path = look.model.path / name
        kind = kind_of(path)
        if kind == ABSENT:
            return fail(f"{name} is not there", f"Copy {name} of this model into {look.path}, or: {look.export}")
        if kind == FILE and path.stat().st_size == 0:
            return fail(f"{name} is empty", f"Copy {name} again; the copy was cut short.")
        if not _opens(path):
            return skip(f"{name} cannot be read")
        return ok(f"{name}, {size(path.stat().st_size)}")

    return run


def pointers(look: Look) -> Result:
    """No file is the pointer that Git LFS leaves in place of the content."""
    found = [path.name for path in _present(look.model) if _is_pointer(path)]
    if found:
        return fail(f"{', '.join(found)} is a Git LFS pointer, not the content", f"git lfs pull --include '{found[0]}'")
    return ok("no file is a Git LFS pointer")


def hashed(look: Look) -> Result:
    """Every declared file is the one that was exported, and both artefacts are declared."""
    model = look.model
    known = {MAIN_FILE, FALLBACK_FILE, GOLDEN_FILE}  # that they are there is asked by checks of their own
    wanted = known - {name for name, _ in model.files}
    changed, lacking = [], []
    for name, digest in model.files:
        path = model.path / name
        if kind_of(path) == ABSENT:
            lacking += [name] if name not in known else []
        elif _opens(path) and not _is_pointer(path) and file_hash(path) != digest:
            changed.append(name)
    if changed:
        told = ", ".join(changed)
        return fail(f"{told}: not what was exported (sha256 differs)", f"Copy {told} again, or: {look.export}")
    if lacking:
        told = ", ".join(lacking)
        return fail(f"{told} is in {SPEC_FILE} and not in the folder", f"Copy {told} into {look.path}.")
    if wanted:
        return warn(f"{SPEC_FILE} has no sha256 of {', '.join(sorted(wanted))}", f"This writes them: {look.export}")
    return ok(f"sha256 of {many(len(model.files), 'file')} as exported, model {model.hash}")


def golden(look: Look) -> Result:
    """The golden feed and its answer can be read, and fit the declared inputs and outputs."""
    model = look.model
    try:
        feed, _ = model.golden()
    except ModelFolderError as error:
        return fail(_brief(str(error)), f"Copy {GOLDEN_FILE} again, or: {look.export}")
    except MemoryError:
        return fail(f"{GOLDEN_FILE} is larger than the memory that is left", f"Take a smaller example: {look.export}")
    shapes = ", ".join(f"{name}{list(array.shape)}" for name, array in feed.items())
    return ok(f"a feed of {shapes}")


def space(look: Look) -> Result:
    """The file system of the folder is not full: events and exports are written there or beside."""
    from crashpath.runtime.machine import free_space

    free = free_space(look.path)
    if free < _NEEDS_SPACE:
        return warn(f"{size(free)} free beside the folder", f"Free some space: df -h {look.path}")
    return ok(f"{size(free)} free beside the folder")


def _present(model: ModelFolder) -> list[Path]:
    return [path for path in (model.path / name for name in model.named) if kind_of(path) != ABSENT]


def _opens(path: Path) -> bool:
    try:
        with open_plain(path):
            return True
    except OSError:
        return False


def _is_pointer(path: Path) -> bool:
    if kind_of(path) != FILE or path.stat().st_size > _POINTER_SIZE or not _opens(path):
        return False
    with open_plain(path) as file:
        return file.read(len(_POINTER)) == _POINTER


def _brief(text: str) -> str:
    return text.partition(";")[0]


FILE_CHECKS = (
    Check("folder.spec", "load_corrupt", "model.toml is understood", spec),
    Check("files.readable", "permission_disk", "every file can be read", readable, ("folder.spec",)),
    Check("files.content", "load_corrupt", "no pointer in place of content", pointers, ("folder.spec",)),
    Check("files.hash", "load_corrupt", "the files are those exported", hashed, ("folder.spec",)),
    Check("main.file", "load_corrupt", "the ONNX artefact is there", present(MAIN_FILE), ("folder.spec",)),
    Check(
        "fallback.file", "load_corrupt", "the TorchScript artefact is there", present(FALLBACK_FILE), ("folder.spec",)
    ),
    Check(
        "golden.file", "load_corrupt", "the golden feed and answer are there", golden, ("folder.spec", "files.readable")
    ),
    Check("files.space", "permission_disk", "the disk is not full", space),
)
