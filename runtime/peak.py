"""How much memory each path will take at its peak, told from the graph before anything is loaded.

Both sums are base + weights + work + nodes. The base (the library, warm, without a model) is measured in the
child that loads; everything above it is predicted. The factors describe what was observed of the two libraries:

- ONNX Runtime parses the file into one copy of the weights and moves them one by one into tensors, and into packed
  ones where a kernel wants that. Copies of more than 32 MiB go back to the system at once (glibc maps them one by
  one), so that only the largest counts twice; what smaller ones leave stays with the process. Weights of convolutions
  are stored once more in blocked order. Weights beside the graph are mapped: a lookup touches only its rows.
- Its arena keeps what the first run took piece by piece when the second takes the planned block: activations count
  twice.
- TorchScript reads each weight once. Its convolutions reorder input and output beside both.
- Activations of more than 32 MiB are mapped one by one and go back to the system; smaller ones come from glibc's heap,
  which grows to several times of what lives in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashpath.runtime.graph_facts import GraphFacts, Weight

MAPPED_ALONE = 32 << 20
LEFT_BEHIND = 0.75
"""Share of the small copies that stays with the process: between none and all of them, by their order."""
LOOKUPS = frozenset({"Gather", "GatherElements", "GatherND"})
PACKED = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU"})
PLANNED, SMALL_PLANNED = 2, 3
"""How often activations count in ONNX Runtime: large ones, and those that glibc keeps."""
UNFIT = 4
"""How far torch's heap grows over what lives in it: an aligned request does not fit the hole of its own size."""
NODE_MAIN, NODE_FALLBACK = 12 << 10, 16 << 10
FALLBACK_CODE = 6 << 20
"""Kernels that torch maps and compiles when a model first runs, beyond those that the warm base has."""
WITHIN = 0.20
"""How far the prediction may be from the peak that was measured."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Bytes of resident memory at the peak of one path. ``work``: activations, or what the load needs for a moment."""

    base: int
    weights: int
    work: int
    nodes: int

    @property
    def above(self) -> int:
        """What the model takes above the library alone."""
        return self.weights + self.work + self.nodes

    @property
    def total(self) -> int:
        """All of it."""
        return self.base + self.above


def main_peak(graph: GraphFacts, base: int) -> Peak:
    """Predict the peak of the ONNX Runtime path over load and some runs of the feed that ``graph`` was read for."""
    inside = [one for one in graph.weights if not one.external]
    beside = [one for one in graph.weights if one.external]
    kept_inside, kept_beside = round(sum(map(_stays, inside))), round(sum(map(_stays, beside)))
    twice = max((one.size for one in inside if one.size > MAPPED_ALONE), default=0)
    packing = max((one.size for one in beside if one.operator in PACKED), default=0)
    loading = max(kept_inside, sum(one.size for one in inside) + twice) + kept_beside + packing
    kept = kept_inside + kept_beside
    # What the load needs for a moment is gone when the first run begins: the peak is in the one or in the other.
    return Peak(
        base,
        kept,
        max(loading - kept, _main_running(graph)),
        graph.nodes * NODE_MAIN,
    )


def fallback_peak(graph: GraphFacts, base: int) -> Peak:
    """Predict the peak of the TorchScript path; the graph of its twin tells sizes and order."""
    weights = sum(one.size for one in graph.weights)
    nodes = graph.nodes * NODE_FALLBACK + FALLBACK_CODE
    return Peak(base, weights, _fallback_running(graph), nodes)


def _main_running(graph: GraphFacts) -> int:
    return graph.live_main * (SMALL_PLANNED if graph.largest <= MAPPED_ALONE else PLANNED) + graph.feed


def _fallback_running(graph: GraphFacts) -> int:
    if graph.largest > MAPPED_ALONE:
        return graph.live_fallback + graph.feed
    return max(graph.live_fallback, min(graph.made_fallback, UNFIT * graph.live_fallback)) + graph.feed


def device_peak(graph: GraphFacts) -> int:
    """Predict what the main path takes on a device: its arena holds weights and activations, a copy for a moment."""
    largest = max((one.size for one in graph.weights), default=0)
    return sum(one.size for one in graph.weights) + max(largest, 2 * graph.live_main) + graph.feed


def apart(predicted: int, measured: int) -> float:
    """Return by which share of the measured the prediction is off; positive: too much was predicted."""
    return predicted / measured - 1.0 if measured else 0.0


def needed(peaks: Sequence[Peak]) -> int:
    """Return what several paths take at once, each with its library."""
    return sum(one.total for one in peaks)


def _stays(weight: Weight) -> float:
    """Return what a weight takes in ONNX Runtime once the model is loaded."""
    if weight.external:
        lookup = weight.operator in LOOKUPS
        return weight.size * (2.0 if weight.blocked else 0.0 if lookup else 1.0)
    if weight.blocked:
        return 3.0 * weight.size
    left = 0.0 if weight.size > MAPPED_ALONE else LEFT_BEHIND
    return weight.size * (1.0 + left)
