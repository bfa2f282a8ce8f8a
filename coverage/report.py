"""What a coverage report says, as values: the headline, what is not covered, and the command that would cover it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from crashpath.coverage.covered import Covered, Left, PathCoverage
from crashpath.coverage.placement import Placement, placement
from crashpath.coverage.units import Kind, Ratio, Unit, ratio
from crashpath.runtime.values import Path as Which

MAIN_KIND, FALLBACK_KIND = Kind.NODE, Kind.OP
"""What the headline counts: nodes of the ONNX graph, and operators in the blocks of the TorchScript graph."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Drills of a class in a phase: how many of its faults passed last time, how many did not, and when."""

    failure_class: str
    phase: str
    passed: int
    red: int
    faults: int
    newest: datetime | None

    @property
    def covered(self) -> bool:
        """Whether something passed and nothing is red."""
        return self.passed > 0 and not self.red


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is not covered, and the command that would cover it."""

    kind: str
    path: str
    unit: str
    label: str
    where: str
    command: str


@dataclass(frozen=True, slots=True)
class Report:
    """One model's coverage. ``production`` is requests a bucket of shapes, ``None`` where no events were given."""

    release: str
    model: str
    model_hash: str
    covered: Covered
    routes: tuple[Unit, ...]
    drills: tuple[Cell, ...]
    field: tuple[str, ...]
    production: Mapping[str, int] | None
    gaps: tuple[Gap, ...]

    def main(self) -> Ratio:
        """Nodes of the main path."""
        return _ratio_of(self.covered.path(Which.MAIN), MAIN_KIND)

    def fallback(self) -> Ratio:
        """Operators of the fallback."""
        return _ratio_of(self.covered.path(Which.FALLBACK), FALLBACK_KIND)

    def blocks(self) -> Ratio:
        """Blocks of the fallback."""
        return _ratio_of(self.covered.path(Which.FALLBACK), Kind.BLOCK)

    def experts(self, path: str, kind: Kind) -> Ratio:
        """Experts, or pairs of them, of a path; of nothing where the model has none."""
        return _ratio_of(self.covered.path(path), kind)

    def taken(self) -> Ratio:
        """Routes."""
        return ratio(self.routes, self.covered.routes)

    def drilled(self) -> Ratio:
        """Failure class × phase."""
        return Ratio(sum(cell.covered for cell in self.drills), len(self.drills))

    def shapes(self) -> Ratio | None:
        """Buckets of production that were exercised, where production is known."""
        if self.production is None:
            return None
        return Ratio(sum(one in self.covered.domain for one in self.production), len(self.production))

    def placed(self) -> Placement | None:
        """Where the nodes of the main path ran; ``None`` where none was traced."""
        main = self.covered.path(Which.MAIN)
        return None if main is None else placement(main.placed, self.covered.asked)

    @property
    def left(self) -> tuple[Left, ...]:
        """Runs that do not count."""
        return self.covered.left


def _ratio_of(path: PathCoverage | None, kind: Kind) -> Ratio:
    return Ratio(0, 0) if path is None else path.ratio(kind)


def make_report(
    covered: Covered,
    *,
    release: str,
    routes: Sequence[Unit],
    drills: Sequence[Cell],
    field: Sequence[str],
    production: Mapping[str, int] | None,
    folder: str = "DIR",
) -> Report:
    """Put a report together. ``field`` are classes of crashes that no drill has proven anything of."""
    gaps = (
        *(gap for path in covered.paths for gap in _of_path(path, folder)),
        *_of_routes(routes, covered.routes, folder),
        *_of_drills(drills, folder),
        *_of_shapes(production or {}, covered.domain, folder),
    )
    return Report(
        release,
        covered.model,
        covered.model_hash,
        covered,
        tuple(routes),
        tuple(drills),
        tuple(field),
        production,
        gaps,
    )


def _of_path(path: PathCoverage, folder: str) -> list[Gap]:
    return [
        Gap(
            unit.kind, path.path, unit.id, unit.label, unit.where,
            f"crashpath coverage --trace {folder} --feed FILE.npz, with a feed that takes {unit.id}",
        )
        for unit in path.uncovered()
    ]  # fmt: skip


def _of_routes(routes: Sequence[Unit], taken: Mapping[str, int], folder: str) -> list[Gap]:
    return [
        Gap(unit.kind, "", unit.id, unit.label, "", _drill_of(unit.id, folder))
        for unit in routes
        if unit.counted and not taken.get(unit.id)
    ]


def _drill_of(route: str, folder: str) -> str:
    stem = route.partition(" -> ")[0]
    phase, _, failure_class = stem.partition(":")
    known = phase in ("prepare", "load", "warmup", "infer") and failure_class not in ("*", "other", "")
    if known and failure_class not in ("loaded", "failed", "unknown", "refused"):
        return f"crashpath drill --class {failure_class} --model {folder}"
    return f"crashpath drill --all --model {folder}"


def _of_drills(cells: Sequence[Cell], folder: str) -> list[Gap]:
    return [
        Gap(
            "drill", "", f"{cell.failure_class} in {cell.phase}",
            "red" if cell.red else "never driven", "", f"crashpath drill --class {cell.failure_class} --model {folder}",
        )
        for cell in cells
        if not cell.covered
    ]  # fmt: skip


def _of_shapes(production: Mapping[str, int], exercised: Mapping[str, int], folder: str) -> list[Gap]:
    return [
        Gap(
            Kind.DOMAIN, "", bucket, f"{count} requests in production", "",
            f"crashpath coverage --trace {folder} --feed FILE.npz, with a feed of {bucket}",
        )
        for bucket, count in production.items()
        if bucket not in exercised
    ]  # fmt: skip
