"""Do both artefacts answer as the module does, in every shape that was declared free?

A traced graph holds the shapes of its example wherever the module looked at one as a Python number: it loads, and
answers wrongly or not at all for others. So both artefacts are loaded from their files and asked in several shapes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashpath.runtime.errors import ExportError
from crashpath.runtime.folder import FALLBACK_FILE, MAIN_FILE, Tolerance
from crashpath.runtime.values import Arrays

Axes = Mapping[str, Mapping[int, str]]
"""Free dimensions: tensor → axis → word."""

Answers = tuple[NDArray[Any], ...]
Ask = Callable[[Arrays], Answers]

MODULE_ERRORS = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What a module raises for a feed that it does not take."""


def probes(feed: Arrays, axes: Axes) -> Iterator[tuple[str, Arrays]]:
    """Give the example and its neighbours: each free dimension, and all at once, as 1 and as twice as large plus 1."""
    yield "the example's shapes", feed
    words = sorted({word for name in feed for word in axes.get(name, {}).values()})
    groups = [(word,) for word in words] + ([tuple(words)] if len(words) > 1 else [])
    for group in groups:
        for label, size in (("1", lambda _: 1), ("more than the example's", lambda n: 2 * n + 1)):
            yield (
                f"{' and '.join(group)} = {label}",
                {name: _resized(array, axes.get(name, {}), group, size) for name, array in feed.items()},
            )


def check(folder: Path, feed: Arrays, axes: Axes, outputs: Sequence[str], module: Ask, tolerance: Tolerance) -> None:
    """Compare both artefacts of ``folder`` with ``module`` on each probe that the module itself takes.

    Raises `ExportError` that names the artefact, the shape and the difference.
    """
    artefacts = ((MAIN_FILE, _open_main(folder / MAIN_FILE)), (FALLBACK_FILE, _open_fallback(folder / FALLBACK_FILE)))
    for label, probe in probes(feed, axes):
        try:
            expected = module(probe)
        except MODULE_ERRORS:
            if label == "the example's shapes":
                raise
            continue  # the module has limits of its own, and the artefacts may have them too
        for file, ask in artefacts:
            _compare(file, label, outputs, _asked(file, label, ask, probe), expected, tolerance)


def _asked(file: str, label: str, ask: Ask, probe: Arrays) -> Answers:
    try:
        return ask(probe)
    except _ort_errors() as error:
        raise ExportError(
            f"{file} fails with {label}, where the module answers ({_brief(error)}); "
            "declare that dimension as fixed, or export with script=True where the module looks at shapes"
        ) from error


def _compare(
    file: str, label: str, outputs: Sequence[str], got: Answers, expected: Answers, tolerance: Tolerance
) -> None:
    for name, one, other in zip(outputs, got, expected, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            told = f"{one.dtype.name} {list(one.shape)} where the module gives {other.dtype.name} {list(other.shape)}"
        elif np.allclose(one, other, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True):
            continue
        else:
            told = f"values that differ by up to {np.nanmax(np.abs(one.astype(float) - other.astype(float))):.2g}"
        raise ExportError(
            f"{file} answers {name} with {told}, with {label}; give a wider tolerance if that is meant, "
            "declare that dimension as fixed, or export with script=True where the module looks at values or shapes"
        )


def _resized(
    array: NDArray[Any], free: Mapping[int, str], group: Sequence[str], size: Callable[[int], int]
) -> NDArray[Any]:
    for axis, word in free.items():
        if word in group:  # values are repeated, so that ids and masks stay what they are
            array = np.take(array, np.arange(size(array.shape[axis])) % array.shape[axis], axis=axis)
    return np.array(array, order="C")  # (ascontiguousarray makes a row of a scalar)


def _open_main(path: Path) -> Ask:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read once: its wheels tell Microsoft of sessions
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except _ort_errors() as error:
        raise ExportError(f"the exported {path.name} cannot be loaded ({_brief(error)}); try another opset") from error
    taken = {one.name for one in session.get_inputs()}
    return lambda feed: tuple(session.run(None, {name: array for name, array in feed.items() if name in taken}))


def _open_fallback(path: Path) -> Ask:
    import torch

    module = torch.jit.load(str(path), map_location="cpu").eval()  # type: ignore[no-untyped-call]  # so in torch

    def ask(feed: Arrays) -> Answers:
        with torch.no_grad():
            return arrays_of(module(*tensors_of(feed)))

    return ask


def tensors_of(feed: Arrays) -> tuple[Any, ...]:
    """Return the feed as torch tensors of their own memory, in order."""
    import torch

    return tuple(torch.from_numpy(np.array(array, order="C", copy=True)) for array in feed.values())


def arrays_of(answer: Any) -> Answers:
    """Return what a module gave as numpy arrays. Raises `ExportError` for anything but a tensor or a row of them."""
    import torch

    row = answer if isinstance(answer, tuple | list) else (answer,)
    if not row or not all(isinstance(one, torch.Tensor) for one in row):
        raise ExportError(
            f"the module answers a {type(answer).__name__}; wrap it so that it gives a tensor or a tuple of tensors"
        )
    return tuple(one.detach().cpu().numpy() for one in row)


def _ort_errors() -> tuple[type[Exception], ...]:
    """ORT's exceptions have no root of their own below `Exception`."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = (one for one in vars(state).values() if isinstance(one, type) and issubclass(one, Exception))
    return (RuntimeError, ValueError, *found)


def _brief(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]
