"""Holds the files that a tracer reads to the digests of their ``model.toml``: evidence is of these and no others."""

from __future__ import annotations

import os
from pathlib import Path

from crashpath.coverage.onnx_graph import tensors_of
from crashpath.runtime.folder import FALLBACK_FILE, MAIN_FILE, SPEC_FILE, ModelFolder, file_hash


def undeclared(folder: ModelFolder) -> str:
    """Return what is wrong with a folder whose hash says nothing of its main path, else nothing. Reads no file."""
    if MAIN_FILE in dict(folder.files):
        return ""
    return (
        f"{folder.path / SPEC_FILE} says no digest of {MAIN_FILE}, so evidence of this model would be evidence of any; "
        "give it a [files] table, as crashpath export writes"
    )


def differing(folder: ModelFolder) -> str:
    """Return what is wrong where a file of one of the paths is not the one that the folder's hash is of, else nothing.

    Raises what the format's library raises of a main path that is no model.
    """
    if said := undeclared(folder):
        return said
    declared = dict(folder.files)
    names = [name for name in (MAIN_FILE, FALLBACK_FILE) if name in declared]
    if said := _other(folder.path, names, declared):
        return said
    beside = _beside(folder.main)
    if lacking := [name for name in beside if name not in declared]:
        said = f"{folder.main} reads {', '.join(lacking)}, of which {SPEC_FILE} says no digest in [files]"
        return f"{said}; export the model again"
    return _other(folder.path, beside, declared)


def _other(folder: Path, names: list[str], declared: dict[str, str]) -> str:
    for name in names:
        try:
            found = file_hash(folder / name)
        except OSError as error:
            return f"{folder / name} cannot be read: {error.strerror or error}"
        if found != declared[name]:
            return (
                f"{folder / name} is not the file that {SPEC_FILE} declares (its sha256 begins with {found[:12]}, not "
                f"{declared[name][:12]}); put that file back, or export the model again"
            )
    return ""


def _beside(main: Path) -> list[str]:
    """Return the files of weights that the graph names, in order."""
    import onnx

    model = onnx.load(str(main), load_external_data=False)
    entries = (entry for tensor in tensors_of(model) for entry in tensor.external_data if entry.key == "location")
    return sorted({os.path.normpath(entry.value) for entry in entries})
