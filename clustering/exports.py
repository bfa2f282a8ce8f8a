"""Exported encoders in the user's cache folder: made once for all processes, whole or not there.

``$XDG_CACHE_HOME/crashpath/encoders/`` (or ``~/.cache/crashpath/encoders/``) holds one model folder an encoder and
version of the export, and one lock file beside it. Deleting it costs one export, about a minute.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crashpath.clustering.encoder import MAX_TOKENS
from crashpath.runtime.errors import ExportError, LoadCorrupt, ModelFolderError
from crashpath.runtime.folder import FALLBACK_FILE, ModelFolder, file_hash, open_folder

EXPORT = 1
"""Number of the way to export: raised when that changes, so that an older version's folder is left alone."""


def cache_folder() -> Path:
    """Return the user's cache folder for crashpath, which need not exist. Raises `OSError` where there is no home."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(told) if os.path.isabs(told) else Path(os.path.expanduser("~")) / ".cache"
    if not base.is_absolute():
        raise OSError("there is no home folder; set XDG_CACHE_HOME")
    return base / "crashpath"


def exported(source: Callable[[], Path], encoder: str, cache: Path | None = None) -> ModelFolder:
    """Return the model folder of a sentence-transformers model, written into the cache where it is not whole there.

    ``source`` gives the folder of the model, after whatever check its weights need; it is called only for an export.
    ``encoder`` is the encoder's id, with the hash of its weights in it. One process writes, the others wait for it;
    what one that was killed left is swept away. A model that cannot be exported is noted beside its place, so that it
    is not tried by every process. Raises `ServingError` and `OSError`.
    """
    place = (cache or cache_folder()) / "encoders" / f"{encoder}-e{EXPORT}"
    found = _whole(place)
    if found is not None:
        return found
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(f"{place.name}.lock")):
        found = _whole(place)
        if found is None:
            _sweep(place)
            found = _write(source(), place, place.with_name(f"{place.name}.refused"))
    return found


def check_file(folder: ModelFolder, name: str) -> None:
    """Raise `LoadCorrupt` where a declared file is not what was written."""
    declared = dict(folder.files)[name]
    try:
        found = file_hash(folder.path / name)
    except OSError as error:
        raise LoadCorrupt(f"{name} cannot be read ({error})", "the exported folder") from error
    if found != declared:
        raise LoadCorrupt(f"{name} has sha256 {found[:12]}… where {declared[:12]}… was written", "the exported folder")


def _write(source: Path, place: Path, note: Path) -> ModelFolder:
    version = importlib.metadata.version("torch")
    noted, _, why = (note.read_text(encoding="utf-8") if note.exists() else "").partition("\n")
    if noted == version:
        raise ExportError(f"{why} (delete {note} to try again)")
    from crashpath.runtime.export_text import export_sentence_transformers

    try:
        made = export_sentence_transformers(source, place, name=place.name, max_tokens=MAX_TOKENS, replace=True)
    except ExportError as error:
        part = note.with_name(f".{place.name}.refused")
        part.write_text(f"{version}\n{error}", encoding="utf-8")
        os.replace(part, note)
        raise
    note.unlink(missing_ok=True)
    return made


def _whole(place: Path) -> ModelFolder | None:
    """Open the folder where all but the twin, which is checked when it is needed, is as it was written."""
    try:
        folder = open_folder(place)
        for name, _ in folder.files:
            if name != FALLBACK_FILE:
                check_file(folder, name)
    except (ModelFolderError, LoadCorrupt):
        return None
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; the system lets go of it when this process ends, however it does."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sweep(place: Path) -> None:
    """Remove what an export that was killed left beside its place; called under the lock."""
    for left in place.parent.glob(f".{place.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
