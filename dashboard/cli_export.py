"""``crashpath export``: write a model as a folder with both paths."""

from __future__ import annotations

import importlib
import inspect
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
from crashpath.runtime.export import check_place, export_module
from crashpath.runtime.folder import Limits, ModelFolder
from crashpath.runtime.wording import size

MINILM = "minilm"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    model: str = typer.Argument(
        ...,
        metavar="MODEL",
        help="minilm (the encoder that comes with crashpath), a sentence-transformers folder or a name in its cache, "
        "or package.module:function, found from the working folder, that returns a dict with the arguments of "
        "crashpath.runtime.export.export_module: module, feed, output_names, dynamic_axes, …",
    ),
    folder: Path = typer.Argument(..., metavar="DIR", help="The folder to write."),
    name: str | None = typer.Option(
        None, "--name", help="Name of the model. Default: MODEL's; of a function: the name that it gives, else DIR's."
    ),
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
        check_place(folder, replace=force)
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
    told = _told(target)
    told["name"] = name or told.get("name") or folder.resolve().name
    told["limits"] = replace(told.get("limits") or Limits(), **limits)
    given = options | told
    try:
        inspect.signature(export_module).bind(folder=folder, **given)
    except TypeError as error:
        raise InputError(
            f"{target} does not give the arguments of crashpath.runtime.export.export_module ({error}); "
            "return a dict with module, feed, output_names and dynamic_axes"
        ) from error
    return export_module(folder=folder, **given)


def _told(target: str) -> dict[str, Any]:
    """Import a function of the caller's, from the working folder too, and call it."""
    module, _, function = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        told = getattr(importlib.import_module(module), function)()
    except Exception as error:  # the caller's code: whatever it raises is no defect of this command
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{target} cannot be called ({what}); mend it, --debug shows where") from error
    finally:
        sys.path.pop(0)
    if not isinstance(told, dict):
        raise InputError(
            f"{target} gives a {type(told).__name__}; return a dict with the arguments of "
            "crashpath.runtime.export.export_module"
        )
    return dict(told)


def _tell(written: ModelFolder, as_json: bool) -> None:
    total = sum((written.path / file).stat().st_size for file, _ in written.files)
    if as_json:
        emit(
            {
                "folder": written.path,
                "name": written.name,
                "hash": written.hash,
                "bytes": total,
                "files": dict(written.files),
            }
        )
        return
    shown = console()
    shown.print(f"{written.name} {written.hash} in {written.path}: {len(written.files)} files, {size(total)}.")
    for label, tensors in (("takes", written.inputs), ("gives", written.outputs)):
        for one in tensors:
            shown.print(f"  {label}  {one.name}  {one.dtype} {list(one.shape)}", markup=False)
    shown.print("Both paths were loaded and answer as the model does.")
    shown.print(f"Next: crashpath diagnose --model {written.path}")
