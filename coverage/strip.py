"""What would break if experts that no evidence has reached were left out of a model: the traffic, row by row.

A row breaks where the router gives it to a stripped expert. That is not only read off the router: the model is run
with the expert's weights taken out, and rows whose answer then differs are told apart from those that get the expert
and do not need it. A router over tokens has the rows of a feed in blocks (``[batch, sequence]`` laid flat); where an
answer changes whose row has no such token, the rows are laid out otherwise, and nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crashpath.coverage.batches import batch_of
from crashpath.coverage.experts import Router, by_row, constant_of
from crashpath.coverage.onnx_units import MODEL, Named, write_named
from crashpath.coverage.scratch import Scratch
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

    Raises `StripError` where the model has no such router or expert, cannot be read, fails on a feed, or gives tokens
    to its experts that cannot be told to be of one row of the feed.
    """
    with Scratch("strip") as scratch:
        whole, less = scratch.path / "whole", scratch.path / "less"
        try:
            for place in (whole, less):
                place.mkdir()
                named = write_named(folder.main, place)
            chosen = _router(folder, named, experts, router)
            _take_out(less, folder.main.parent, chosen, experts)
            sessions = [_session(place / MODEL, folder.limits.threads) for place in (whole, less)]
        except StripError:
            raise
        except Exception as error:  # a library's: the format's own and ONNX Runtime's have no root in common
            raise StripError(f"{folder.name} cannot be run without these experts: {_line(error)}") from error
        names = [spec.name for spec in folder.outputs]
        found: list[Broken] = []
        for number, feed in enumerate(feeds):
            try:
                *right, picks = sessions[0].run([*names, chosen.indices], dict(feed))
                stripped = sessions[1].run(names, dict(feed))
            except Exception as error:  # again a library's
                raise StripError(f"{folder.name} fails on feed {number}: {_line(error)}") from error
            given = _by_feed_row(by_row(picks, chosen.axis), batch_of(feed))
            found.extend(_rows(number, given, experts, right, stripped))
    return tuple(found)


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _router(folder: ModelFolder, named: Named, experts: Sequence[int], number: int) -> Router:
    if number >= len(named.routers):
        raise StripError(f"{folder.name} has {len(named.routers)} routers of experts; there is no number {number}")
    chosen = named.routers[number]
    beyond = [one for one in experts if not 0 <= one < chosen.count]
    if beyond:
        raise StripError(f"the router has experts 0 to {chosen.count - 1}; there is no {beyond[0]}")
    return chosen


def _take_out(target: Path, source: Path, router: Router, experts: Sequence[int]) -> None:
    """Write the copy in ``target`` anew, with zeros for the experts in every weight that the router picks."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(target / MODEL), load_external_data=False)
    constants = [(node.output[0], constant_of(node)) for node in model.graph.node if node.op_type == "Constant"]
    held = [*((one.name, one) for one in model.graph.initializer), *constants]
    for number, tensor in enumerate(one for name, one in held if name in router.weights):
        weight = _read(tensor, source)
        weight[list(experts)] = 0
        stripped = numpy_helper.from_array(weight, tensor.name)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:  # it may be larger than a graph may be
            file = f"stripped-{number}"
            (target / file).write_bytes(stripped.raw_data)
            onnx.external_data_helper.set_external_data(stripped, file)
            stripped.ClearField("raw_data")
        tensor.CopyFrom(stripped)
    onnx.save(model, str(target / MODEL))


def _read(tensor: Any, source: Path) -> Any:
    """Return a weight, of its file in the model folder where it has one.

    Read here, not by the format's library, which refuses a file that has hard links: the copies have.
    """
    import onnx
    from onnx import helper, numpy_helper

    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor).copy()
    told = {entry.key: entry.value for entry in tensor.external_data}
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    count = int(np.prod(tuple(tensor.dims), dtype=np.int64))
    if int(told.get("length", count * kind.itemsize)) != count * kind.itemsize:
        raise StripError(f"the weight {tensor.name} is packed ({kind}), in which no expert can be taken out")
    flat = np.fromfile(source / told["location"], kind, count, offset=int(told.get("offset", 0)))
    return flat.reshape(tuple(tensor.dims))


def _session(path: Path, threads: int) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _by_feed_row(picks: Any, batch: int) -> Any:
    """Return the choices by row of the feed: ``[batch, choices of all its tokens]``. Raises `StripError`."""
    if not batch or len(picks) % batch:
        raise StripError(
            f"the router chose for {len(picks)} rows where the feed has {batch}; give feeds of one row each"
        )
    return picks.reshape(batch, -1)


def _rows(
    number: int, picks: Any, experts: Sequence[int], right: Sequence[Any], stripped: Sequence[Any]
) -> list[Broken]:
    changed = _changed(len(picks), right, stripped)
    rows = []
    for row, given in enumerate(picks):
        needed = tuple(sorted({int(one) for one in given} & set(experts)))
        if needed:
            rows.append(Broken(number, row, needed, bool(changed[row])))
        elif changed[row]:
            raise StripError(
                f"the answer of row {row} of feed {number} changes though none of its tokens, as they seem to be laid"
                " out, had such an expert; give feeds of one row each"
            )
    return rows


def _changed(batch: int, right: Sequence[Any], stripped: Sequence[Any]) -> Any:
    """Return which rows have another answer. Outputs have a row, or as many of their own, for each row of the feed."""
    changed = np.zeros(batch, bool)
    for one, other in zip(map(np.asarray, right), map(np.asarray, stripped), strict=True):
        if batch > 1 and (not one.ndim or len(one) % batch):
            raise StripError(f"an output of shape {list(one.shape)} has no rows of a feed of {batch}")
        same = np.isclose(one, other, equal_nan=one.dtype.kind == "f").reshape(batch, -1)
        changed |= ~same.all(axis=1)
    return changed
