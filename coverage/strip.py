"""What would break if experts that no evidence has reached were left out of a model: the traffic, row by row.

A row breaks where the router gives it to a stripped expert. That is not only read off the router: the model is run
with the expert's weights taken out, and rows whose answer then differs are told apart from those that get the expert
and do not need it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crashpath.coverage.experts import Router, find_routers
from crashpath.coverage.onnx_units import MODEL, write_named
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays


class StripError(Exception):
    """An expert cannot be stripped; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A row of a feed that a stripped expert would have got; ``differs``: its answer is another one without it."""

    feed: int
    row: int
    experts: tuple[int, ...]
    differs: bool


def would_break(
    folder: ModelFolder, experts: Sequence[int], feeds: Iterable[Arrays], *, router: int = 0
) -> tuple[Broken, ...]:
    """Return the rows of the feeds that need these experts of the router with that number.

    Raises `StripError` where the model has no such router or expert.
    """
    import onnx

    with tempfile.TemporaryDirectory(prefix="crashpath-strip-") as scratch:
        whole, less = Path(scratch, "whole"), Path(scratch, "less")
        for place in (whole, less):
            place.mkdir()
            write_named(folder.main, place)
        model = onnx.load(str(less / MODEL))
        routers = find_routers(model.graph)
        if router >= len(routers):
            raise StripError(f"{folder.name} has {len(routers)} routers of experts; there is no number {router}")
        chosen = routers[router]
        beyond = [one for one in experts if not 0 <= one < chosen.count]
        if beyond:
            raise StripError(f"the router has experts 0 to {chosen.count - 1}; there is no {beyond[0]}")
        _take_out(model, chosen, experts)
        onnx.save(model, str(less / MODEL))
        names = [spec.name for spec in folder.outputs]
        sessions = [_session(place / MODEL) for place in (whole, less)]
        found: list[Broken] = []
        for number, feed in enumerate(feeds):
            (*right, picks), stripped = (
                sessions[0].run([*names, chosen.indices], dict(feed)), sessions[1].run(names, dict(feed)),
            )  # fmt: skip
            found.extend(_rows(number, picks, experts, right, stripped))
    return tuple(found)


def _take_out(model: Any, router: Router, experts: Sequence[int]) -> None:
    from onnx import numpy_helper

    for tensor in model.graph.initializer:
        if tensor.name == router.weight:
            weight = numpy_helper.to_array(tensor).copy()
            weight[list(experts)] = 0
            tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))


def _session(path: Path) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _rows(
    number: int, picks: Any, experts: Sequence[int], right: Sequence[Any], stripped: Sequence[Any]
) -> list[Broken]:
    rows = []
    for row, given in enumerate(np.asarray(picks).reshape(len(picks), -1)):
        needed = tuple(sorted({int(one) for one in given} & set(experts)))
        if needed:
            differs = any(not np.allclose(a[row], b[row]) for a, b in zip(right, stripped, strict=True))
            rows.append(Broken(number, row, needed, differs))
    return rows
