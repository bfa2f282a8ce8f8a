"""Write a torch module as a model folder: ONNX for the main path, TorchScript for the fallback, both checked.

::

    export_module(net, {"x": example}, "models/net", name="net", output_names=["y"],
                  dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})

The folder appears whole or not at all: it is written under another name beside its place and then renamed.
torch, onnx and onnxruntime are imported when something is exported.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crashpath.runtime.errors import ExportError
from crashpath.runtime.export_check import MODULE_ERRORS, Answers, Axes, arrays_of, check, tensors_of
from crashpath.runtime.export_graph import tidy, tidy_script
from crashpath.runtime.folder import (
    FALLBACK_FILE,
    GOLDEN_FILE,
    MAIN_FILE,
    SPEC_FILE,
    Limits,
    ModelFolder,
    TensorSpec,
    TokenizerSpec,
    Tolerance,
    file_hash,
    open_folder,
)
from crashpath.runtime.folder_file import Provenance, told
from crashpath.runtime.values import Arrays

if TYPE_CHECKING:
    from torch import nn

OPSET = 17
"""Read by every onnxruntime since 1.12."""


@dataclass(frozen=True, slots=True)
class Extra:
    """What else goes into the folder: a tokenizer, whose files ``write`` puts there, and more provenance."""

    tokenizer: TokenizerSpec | None = None
    write: Callable[[Path], None] | None = None
    provenance: Provenance = field(default=())


def export_module(
    module: nn.Module,
    feed: Arrays,
    folder: Path | str,
    *,
    name: str,
    output_names: Sequence[str],
    dynamic_axes: Axes,
    tolerance: Tolerance | None = None,
    limits: Limits | None = None,
    script: bool = False,
    opset: int = OPSET,
    external_data: bool = False,
    replace: bool = False,
    extra: Extra | None = None,
) -> ModelFolder:
    """Write ``module`` as a model folder and open it.

    ``feed`` is an example: numpy arrays by the names of ``forward``'s arguments, in their order; with its answer it
    becomes the golden one. ``dynamic_axes`` says which dimensions of inputs and outputs are free, as in
    ``torch.onnx.export``; whatever else the example has is fixed. The module is traced, so it keeps the
    branches and loop counts that the example took; ``script=True`` compiles it, with branches and loops that depend on
    values. ``replace`` allows to take the place of an existing folder.

    Raises `ExportError` when the module cannot be exported, when an artefact answers otherwise than the module in some
    shape that was declared free, or when the folder is there already.
    """
    place = Path(folder)
    check_place(place, replace=replace)
    tolerance, limits, extra = tolerance or Tolerance(), limits or Limits(), extra or Extra()
    net = module.eval()
    try:
        expected = _answer(net, feed)
    except MODULE_ERRORS as error:
        raise ExportError(f"the module does not answer its example ({error!r}); give a feed that it takes") from error
    if len(expected) != len(output_names):
        raise ExportError(f"the module gives {len(expected)} tensors where {len(output_names)} output names were given")
    with _folder_in_place(place) as draft:
        scripted = _write_fallback(net, feed, draft / FALLBACK_FILE, script=script)
        found = _write_main(scripted if script else net, feed, output_names, dynamic_axes, draft, opset, external_data)
        check(draft, feed, dynamic_axes, output_names, lambda probe: _answer(net, probe), tolerance)
        _write_golden(draft / GOLDEN_FILE, feed, dict(zip(output_names, expected, strict=True)))
        if extra.write is not None:
            extra.write(draft)
        spec = ModelFolder(
            path=place,
            name=name,
            inputs=tuple(_spec(one, array, dynamic_axes) for one, array in feed.items()),
            outputs=tuple(_spec(*one, dynamic_axes) for one in zip(output_names, expected, strict=True)),
            tolerance=tolerance,
            limits=limits,
            tokenizer=extra.tokenizer,
            files=tuple((file.name, file_hash(file)) for file in sorted(draft.iterdir())),
        )
        provenance = (*_versions(found, script), *extra.provenance)
        (draft / SPEC_FILE).write_text(told(spec, provenance), encoding="utf-8")
    return open_folder(place)


def check_place(place: Path, *, replace: bool) -> None:
    """See, before anything is loaded, that a folder may be written here. Raises `ExportError`."""
    if place.is_dir():
        if replace or not any(place.iterdir()):
            return
        raise ExportError(f"{place} is there already; give another folder, or replace it: --force, or replace=True")
    if place.exists():
        raise ExportError(f"{place} is a file; give the name of a folder that is not there yet")


@contextmanager
def _folder_in_place(place: Path) -> Iterator[Path]:
    """Give an empty folder beside ``place`` that takes its place at the end, or vanishes where something was raised."""
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part"))
    try:
        yield draft
        draft.chmod(0o755)  # a temporary folder is its owner's alone
        if place.is_dir() and any(place.iterdir()):
            old = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.", suffix=".old"))
            os.replace(place, old)
            os.replace(draft, place)
            shutil.rmtree(old)
        else:
            os.replace(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _answer(net: nn.Module, feed: Arrays) -> Answers:
    import torch

    with torch.no_grad():
        return arrays_of(net(*tensors_of(feed)))


def _write_fallback(net: nn.Module, feed: Arrays, path: Path, *, script: bool) -> Any:
    import torch

    made: Any
    try:
        with torch.no_grad(), _quiet():
            if script:
                made = torch.jit.script(net)
            else:
                made = torch.jit.trace(net, tensors_of(feed), strict=False, check_trace=False)  # type: ignore[no-untyped-call]  # so in torch
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        raise ExportError(f"torch.jit cannot compile the module ({error}); see its documentation") from error
    names = [one.name for one in made.forward.schema.arguments[1:]]
    if names != list(feed):
        raise ExportError(
            f"forward() takes {', '.join(names)} where the example has {', '.join(feed)}; "
            "name the inputs as the arguments, in their order"
        )
    with _quiet():
        torch.jit.save(made, str(path))
    tidy_script(path)
    return made


def _write_main(
    net: Any, feed: Arrays, outputs: Sequence[str], axes: Axes, draft: Path, opset: int, external_data: bool
) -> int:
    import torch

    with tempfile.TemporaryDirectory(dir=draft.parent, prefix=f"{draft.name}.") as scratch:
        raw = Path(scratch) / MAIN_FILE
        try:
            with torch.no_grad(), _quiet():
                torch.onnx.export(
                    net,
                    tensors_of(feed),
                    str(raw),
                    dynamo=False,  # the other exporter needs onnxscript, and names nodes less clearly
                    opset_version=opset,
                    input_names=list(feed),
                    output_names=list(outputs),
                    dynamic_axes={name: dict(free) for name, free in axes.items()},
                )
        except (RuntimeError, ValueError, TypeError, torch.onnx.OnnxExporterError) as error:
            raise ExportError(f"the module cannot be exported to ONNX opset {opset} ({error})") from error
        return tidy(raw, draft / MAIN_FILE, external_data=external_data)


def _write_golden(path: Path, feed: Arrays, answer: Arrays) -> None:
    arrays: dict[str, NDArray[Any]] = {f"in.{name}": array for name, array in feed.items()}
    arrays |= {f"out.{name}": array for name, array in answer.items()}
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # its stubs take the flag allow_pickle for one of the arrays


def _spec(name: str, array: NDArray[Any], axes: Axes) -> TensorSpec:
    free = axes.get(name, {})
    return TensorSpec(name, array.dtype.name, tuple(free.get(axis, size) for axis, size in enumerate(array.shape)))


def _versions(opset: int, script: bool) -> Provenance:
    libraries = ("crashpath", "torch", "onnx", "onnxruntime", "numpy")
    return (
        ("opset", str(opset)),
        ("torchscript", "script" if script else "trace"),
        *((library, importlib.metadata.version(library)) for library in libraries),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the exporters say of every shape they meet: `export_check.check` finds out what came of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
