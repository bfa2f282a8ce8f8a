"""The coverage report as one page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment

from crashpath.coverage.covered import PathCoverage
from crashpath.coverage.latency import Heat, heat
from crashpath.coverage.report import Cell, Report
from crashpath.coverage.units import Kind, Unit
from crashpath.coverage.wholefile import write_whole
from crashpath.dashboard.coverage_text import (
    apart_words,
    evidence_words,
    gap_groups,
    gap_words,
    headline,
    percent,
    rows,
    shipped_words,
)
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

PHASES = (Phase.PREPARE, Phase.LOAD, Phase.WARMUP, Phase.INFER)
_TITLES = {Which.MAIN: "main path, ONNX Runtime", Which.FALLBACK: "fallback, TorchScript"}
_DEEPEST = 60
"""Levels of the outline that open one by one; a page is built by recursion, which has an end."""
_SCALE = ("#fcfdbf", "#feca8d", "#fd9668", "#f1605d", "#cd4071", "#9e2f7f", "#721f81", "#440f76", "#180f3d")
"""Steps of the magma scale (Smith, van der Walt and Firing, 2015), light to dark: told apart without colour, too."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A unit in the outline: ``hits``, and what is inside it."""

    unit: Unit
    hits: int
    inside: tuple[Branch, ...]
    dark: int
    """Counted units in it, itself included, that were not hit."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell of a heat map of latency: its text, its colour and that of the text on it."""

    text: str
    colour: str
    ink: str


def write_page(target: Path, report: Report, before: Report | None = None) -> None:
    """Write the page in one go: a page that is there is whole. Raises `OSError`."""
    write_whole(target, page(report, before))


def page(report: Report, before: Report | None = None) -> str:
    """Return the page."""
    template = files("crashpath.dashboard").joinpath("coverage_page.html").read_text(encoding="utf-8")
    timings = [one for path in report.covered.paths for one in path.timings]
    heats = [heat(timings, path) for path in (Which.MAIN, Which.FALLBACK)]
    return (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            report=report,
            before=before,
            headline=headline,
            percent=percent,
            gap_groups=gap_groups,
            gap_words=gap_words,
            notes=_notes,
            rows=[(name, ratio) for name, ratio, _ in rows(report)],
            was={} if before is None else {name: percent(ratio) for name, ratio, _ in rows(before)},
            phases=PHASES,
            grid=_grid(report.drills),
            outlines=[(path.path, outline(path)) for path in report.covered.paths],
            heats=[(one, _coloured(one)) for one in heats if one.operators],
            scale=_SCALE,
            titles=_TITLES,
            domain=_domain(report),
            placed=report.placed(),
        )
    )


def _notes(report: Report) -> list[str]:
    return [*shipped_words(report), *apart_words(report), *evidence_words(report)]


def _grid(cells: Sequence[Cell]) -> list[tuple[str, list[Cell | None]]]:
    classes = tuple(dict.fromkeys(cell.failure_class for cell in cells))
    known = {(cell.failure_class, cell.phase): cell for cell in cells}
    return [(one, [known.get((one, phase)) for phase in PHASES]) for one in classes]


def outline(path: PathCoverage) -> tuple[Branch, ...]:
    """Return the units of a path as a tree, in the order of the artefact, flat below `_DEEPEST` levels."""
    inside: dict[str, list[Unit]] = {}
    for unit in path.units:
        if unit.kind is Kind.PAIR:
            continue
        inside.setdefault(unit.parent, []).append(unit)

    def flat(parent: str) -> tuple[Branch, ...]:
        found: list[Unit] = []
        for unit in inside.get(parent, ()):
            found.append(unit)
            todo = [unit.id]
            while todo:
                below = inside.get(todo.pop(), ())
                found.extend(below)
                todo.extend(one.id for one in below)
        hit = path.hits
        return tuple(Branch(u, hit.get(u.id, 0), (), int(u.counted and not hit.get(u.id, 0))) for u in found)

    def grow(parent: str, level: int = 0) -> tuple[Branch, ...]:
        if level == _DEEPEST:
            return flat(parent)
        branches = []
        for unit in inside.get(parent, ()):
            below = grow(unit.id, level + 1)
            hits = path.hits.get(unit.id, 0)
            dark = int(unit.counted and not hits) + sum(one.dark for one in below)
            branches.append(Branch(unit, hits, below, dark))
        return tuple(branches)

    return grow("")


def _coloured(heat: Heat) -> list[tuple[str, float, list[HeatCell]]]:
    rows = []
    for name, total, cells, shares in zip(heat.operators, heat.total, heat.cells, heat.shares, strict=True):
        row = []
        for cell, share in zip(cells, shares, strict=True):
            if cell is None or share is None:
                row.append(HeatCell("", "transparent", "inherit"))
                continue
            step = min(int(share * len(_SCALE)), len(_SCALE) - 1)
            row.append(HeatCell(_microseconds(cell), _SCALE[step], "#000" if step < 4 else "#fff"))
        rows.append((name, total, row))
    return rows


def _microseconds(value: float) -> str:
    return f"{value:.0f} µs" if value < 1000 else f"{value / 1000:.1f} ms"


def _domain(report: Report) -> list[tuple[str, int | None, int]]:
    buckets = sorted({*report.covered.domain, *(report.production or {})})
    asked = report.production
    return [(one, None if asked is None else asked.get(one, 0), report.covered.domain.get(one, 0)) for one in buckets]
