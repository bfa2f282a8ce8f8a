"""What a coverage report says, as values: the headline, what is not covered, and the command that would cover it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from crashpath.coverage.covered import Covered, Left, PathCoverage
from crashpath.coverage.placement import Placement
from crashpath.coverage.units import Kind, Ratio, Unit, ratio
from crashpath.runtime.values import Path as Which

_USUAL = "breaker"
"""The policy of drills that are told nothing else."""
MAIN_KIND, FALLBACK_KIND = Kind.NODE, Kind.OP
"""What the headline counts: nodes of the ONNX graph, and operators in the blocks of the TorchScript graph."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Drills of a class in a phase: how many of its faults passed last time, how many did not, and when.

    ``reason``: why none of them can be driven here; then it is in no denominator.
    """

    failure_class: str
    phase: str
    passed: int
    red: int
    faults: int
    newest: datetime | None
    reason: str | None = None

    @property
    def counted(self) -> bool:
        """Whether it is in the denominator."""
        return self.reason is None

    @property
    def covered(self) -> bool:
        """Whether something passed and nothing is red."""
        return self.passed > 0 and not self.red


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is not covered, and the command that would cover it; ``with_what`` says what to give to it."""

    kind: str
    path: str
    unit: str
    label: str
    where: str
    command: str
    with_what: str = ""


@dataclass(frozen=True, slots=True)
class Ways:
    """The commands that cover something, of one model folder."""

    folder: str
    flags: str

    def traced(self) -> str:
        """Trace a feed more."""
        return f"crashpath coverage --trace {self.folder} --feed FILE.npz{self.flags}"

    def drilled(self, failure_class: str | None = None) -> str:
        """Drill a class, or all of them."""
        which = "--all" if failure_class is None else f"--class {failure_class}"
        return f"crashpath drill {which} --model {self.folder}{self.flags}"

    def routed(self, policy: str) -> str:
        """Drive the route drills of a policy."""
        under = "" if policy == _USUAL else f" --policy {policy}"
        return f"crashpath drill --routes{under} --model {self.folder}{self.flags}"


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
    ways: Ways

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

    def has(self, path: str, kind: Kind) -> bool:
        """Whether a path has units of a kind, those that are apart included."""
        told = self.covered.path(path)
        return told is not None and any(unit.kind is kind for unit in told.units)

    def taken(self) -> Ratio:
        """Routes."""
        return ratio(self.routes, self.covered.routes)

    def drilled(self) -> Ratio:
        """Failure class × phase."""
        counted = [cell for cell in self.drills if cell.counted]
        return Ratio(sum(cell.covered for cell in counted), len(counted))

    def shapes(self) -> Ratio | None:
        """Buckets of production that were exercised, where production is known."""
        if self.production is None:
            return None
        return Ratio(sum(one in self.covered.domain for one in self.production), len(self.production))

    def placed(self) -> Placement | None:
        """Where the nodes of the main path ran; ``None`` where none was traced."""
        main = self.covered.path(Which.MAIN)
        return None if main is None else main.placement

    def problems(self) -> tuple[str, ...]:
        """What makes the counts less than what ran, and what went wrong in the session that ships."""
        main = self.covered.path(Which.MAIN)
        shipped = () if main is None or main.shipped is None else main.shipped.problems
        return (*dict.fromkeys(told for path in self.covered.paths for told in path.problems), *shipped)

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
    flags: str = "",
    route_drills: Mapping[str, str] | None = None,
) -> Report:
    """Put a report together. ``field`` are classes of crashes that no drill has proven anything of.

    ``route_drills`` are the edges that route drills take, each with their policy.
    ``folder`` and ``flags`` go into the commands: the model folder, and what has to be said for the evidence to count.
    """
    ways = Ways(folder, flags)
    gaps = (
        *(gap for path in covered.paths for gap in _of_path(path, ways)),
        *_of_routes(routes, covered.routes, ways, route_drills or {}),
        *_of_drills(drills, ways),
        *_of_shapes(production or {}, covered.domain, ways),
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
        ways,
    )


def _of_path(path: PathCoverage, ways: Ways) -> list[Gap]:
    return [
        Gap(
            unit.kind, path.path, unit.id, unit.label, unit.where, ways.traced(),
            with_what=f"FILE.npz: a feed that takes {unit.id}",
        )
        for unit in path.uncovered()
    ]  # fmt: skip


def _of_routes(
    routes: Sequence[Unit], taken: Mapping[str, int], ways: Ways, route_drills: Mapping[str, str]
) -> list[Gap]:
    def command(route: str) -> str:
        if route in route_drills:
            return ways.routed(route_drills[route])
        return ways.drilled(_class_of(route))

    return [
        Gap(unit.kind, "", unit.id, unit.label, "", command(unit.id))
        for unit in routes
        if unit.counted and not taken.get(unit.id)
    ]


def _class_of(route: str) -> str | None:
    """Return the class whose drills take an edge, ``None`` where it is not one class's."""
    phase, _, failure_class = route.partition(" -> ")[0].partition(":")
    known = phase in ("prepare", "load", "warmup", "infer") and failure_class not in ("*", "other", "")
    return failure_class if known and failure_class not in ("loaded", "failed", "unknown", "refused") else None


def _of_drills(cells: Sequence[Cell], ways: Ways) -> list[Gap]:
    return [
        Gap(
            "drill", "", f"{cell.failure_class} in {cell.phase}", "red" if cell.red else "never driven", "",
            ways.drilled(cell.failure_class),
        )
        for cell in cells
        if cell.counted and not cell.covered
    ]  # fmt: skip


def times(count: int) -> str:
    """Return a count in words: ``once``, ``3 times``."""
    return "once" if count == 1 else f"{count:,} times"


def _of_shapes(production: Mapping[str, int], exercised: Mapping[str, int], ways: Ways) -> list[Gap]:
    return [
        Gap(
            Kind.DOMAIN, "", bucket, f"asked for {times(count)} in production", "", ways.traced(),
            with_what=f"FILE.npz: a feed of {bucket}",
        )
        for bucket, count in production.items()
        if bucket not in exercised
    ]  # fmt: skip
