"""``crashpath export``: write a model as a folder with both paths."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from crashpath.dashboard.errors import InputError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import JsonOption, console, emit
from crashpath.runtime.errors import ServingError
from crashpath.runtime.folder import Limits, ModelFolder

MINILM = "minilm"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    model: str = typer.Argument(
        ...,
        metavar="MODEL",
        help="minilm (the encoder that comes with crashpath), a sentence-transformers folder or a name in its cache, "
        "or package.module:function that returns the keyword arguments of crashpath.runtime's export_module().",
    ),
    folder: Path = typer.Argument(..., metavar="DIR", help="The folder to write."),
    name: str | None = typer.Option(None, "--name", help="Name of the model. Default: that of MODEL."),
    deadline_ms: float | None = typer.Option(None, "--deadline-ms", min=1, help="Deadline of a request, both paths."),
    memory_mib: int | None = typer.Option(None, "--memory-mib", min=0, help="Memory limit of a worker; 0 is none."),
    threads: int | None = typer.Option(None, "--threads", min=1, help="Threads of each path within one operator."),
    opset: int = typer.Option(17, "--opset", min=11, help="ONNX operator set."),
    external_data: bool = typer.Option(False, "--external-data", help="Put the ONNX weights in a file of their own."),
    force: bool = typer.Option(False, "--force", help="Replace the folder if it is there."),
    as_json: JsonOption = False,
) -> int:
    """Write a model folder: ONNX for the main path, TorchScript for the fallback, both checked against the model."""
    given = {"deadline_ms": deadline_ms, "memory_mib": memory_mib, "threads": threads}
    limits = {key: value for key, value in given.items() if value is not None}
    options: dict[str, Any] = {"opset": opset, "external_data": external_data, "replace": force}
    try:
        if ":" in model:
            written = _module(model, folder, name, limits, options)
        else:
            written = _sentences(model, folder, name, limits, options)
    except ServingError as error:
        raise InputError(str(error)) from error
    _tell(written, as_json)
    return Exit.DONE


def _sentences(
    model: str, folder: Path, name: str | None, limits: dict[str, Any], options: dict[str, Any]
) -> ModelFolder:
    from crashpath.clustering.encoder import minilm_folder
    from crashpath.runtime.export_text import LIMITS, export_sentence_transformers

    source: Path | str = minilm_folder() if model == MINILM else model
    named = name or (MINILM if model == MINILM else None)
    return export_sentence_transformers(source, folder, name=named, limits=replace(LIMITS, **limits), **options)


def _module(
    target: str, folder: Path, name: str | None, limits: dict[str, Any], options: dict[str, Any]
) -> ModelFolder:
    from crashpath.runtime.export import export_module

    told = _told(target)
    told["name"] = name or told.get("name") or target.partition(":")[2]
    told["limits"] = replace(told.get("limits") or Limits(), **limits)
    try:
        return export_module(folder=folder, **(options | told))
    except TypeError as error:
        raise InputError(
            f"{target} does not give the arguments of export_module() ({error}); see its docstring"
        ) from error


def _told(target: str) -> dict[str, Any]:
    """Import a function of the caller's, from the working folder too, and call it."""
    module, _, function = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{target} cannot be imported ({error}); give package.module:function") from error
    finally:
        sys.path.pop(0)
    told = found()
    if not isinstance(told, dict):
        raise InputError(f"{target} gives a {type(told).__name__}; it should return the arguments of export_module()")
    return dict(told)


def _tell(written: ModelFolder, as_json: bool) -> None:
    size = sum((written.path / file).stat().st_size for file, _ in written.files)
    if as_json:
        emit(
            {
                "folder": written.path,
                "name": written.name,
                "hash": written.hash,
                "bytes": size,
                "files": dict(written.files),
            }
        )
        return
    shown = console()
    shown.print(f"{written.name} {written.hash} in {written.path}: {len(written.files)} files, {size / 1e6:,.1f} MB.")
    for label, tensors in (("takes", written.inputs), ("gives", written.outputs)):
        for one in tensors:
            shown.print(f"  {label}  {one.name}  {one.dtype} {list(one.shape)}", markup=False)
    shown.print("Both paths were loaded and answer as the model does.")
    shown.print(f"Next: crashpath diagnose --model {written.path}")
