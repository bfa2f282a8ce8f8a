"""What `diagnose` wants to know of an ONNX graph, as the child that reads it tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Weight:
    """One stored tensor: bytes, the operator that takes it first, whether it lies in a file beside the graph.

    ``blocked``: a convolution's weights, which ONNX Runtime stores once more in another order.
    """

    size: int
    operator: str
    external: bool
    blocked: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A file beside the graph that holds weights, and how many bytes it must have at least."""

    file: str
    end: int


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """An ONNX graph. ``newest_…`` is what the installed ONNX Runtime was found to load, ``opset`` the graph's own.

    ``live_main`` and ``live_fallback`` are the largest sums of activations that live at one time for the golden feed,
    in bytes, with what the two libraries write in place; ``made_fallback`` is the sum of all;
    ``largest`` is the largest single one, ``feed`` the bytes of that feed. ``unsized`` counts tensors whose shape could
    not be told.
    """

    ir: int
    newest_ir: int
    opset: int
    newest_opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int
    unknown: tuple[str, ...]
    shapes: str
    weights: tuple[Weight, ...]
    pieces: tuple[Piece, ...]
    live_main: int
    live_fallback: int
    made_fallback: int
    largest: int
    feed: int
    unsized: int


def graph_facts(raw: Mapping[str, Any]) -> GraphFacts:
    """Build the facts from what came over the pipe."""
    listed = {name: tuple(raw[name]) for name in ("inputs", "outputs", "unknown")}
    listed["weights"] = tuple(Weight(**one) for one in raw["weights"])
    listed["pieces"] = tuple(Piece(**one) for one in raw["pieces"])
    return GraphFacts(**{**raw, **listed})
