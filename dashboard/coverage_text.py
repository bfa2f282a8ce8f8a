"""What ``crashpath coverage`` prints for people: the headline, each denominator, what is not covered and what would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from crashpath.coverage.report import Gap, Report
from crashpath.coverage.units import Kind, Ratio
from crashpath.dashboard.plurals import many
from crashpath.runtime.values import Path as Which

_KINDS = (
    (Kind.NODE, "nodes of the main path that no run reached"),
    (Kind.BLOCK, "blocks of the fallback that no run entered"),
    (Kind.OP, "operators of the fallback that no run reached"),
    (Kind.EXPERT, "experts that no traffic reached"),
    (Kind.DOMAIN, "shapes of production that no run exercised"),
    (Kind.ROUTE, "routes that nothing took"),
    ("drill", "drills that are red or were never driven"),
)
_SHOWN = 8
"""Gaps that are listed; --json and --html have all of them."""
_FEEDS = "FILE.npz: a feed that takes one of these; --feed may be given more than once"


def percent(ratio: Ratio) -> str:
    """Return a share for people, rounded down: 100 % is said of all alone."""
    if not ratio.total:
        return "no unit"
    tenths = ratio.covered * 1000 // ratio.total
    return f"{tenths // 10}.{tenths % 10} %"


def headline(report: Report) -> str:
    """Return the line that goes first everywhere."""
    return f"main {percent(report.main())} · fallback {percent(report.fallback())}"


def lines(report: Report, before: Report | None = None) -> Iterator[str]:
    """Yield the report in lines, of at most 80 columns but for names and commands; control characters are spelled out.

    A name in a model or in a run file can therefore not forge a line.
    """
    for line in _lines(report, before):
        yield "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def _lines(report: Report, before: Report | None) -> Iterator[str]:
    release = f", release {report.release}" if report.release else ""
    yield f"{report.model} {report.model_hash}{release}"
    yield headline(report)
    if before is not None:
        yield f"before, in release {before.release}: {headline(before)}"
    yield ""
    was = {} if before is None else {name: percent(ratio) for name, ratio, _ in rows(before)}
    for name, ratio, what in rows(report):
        share = percent(ratio)
        note = f"was {was[name]}" if name in was else what
        yield f"{name:<29}{ratio.covered:>6} of {ratio.total:<6}{share:>9}  {note}".rstrip()
    yield from placed_words(report)
    yield from shipped_words(report)
    yield from (f"problem: {told}" for told in report.problems())
    yield from apart_words(report)
    yield from evidence_words(report)
    yield from _gaps(report)
    if report.field:
        yield ""
        yield "in the field, and no drill has proven anything of it: " + ", ".join(report.field)


def rows(report: Report) -> Iterator[tuple[str, Ratio, str]]:
    yield "main, nodes", report.main(), "of the ONNX graph"
    yield "fallback, operators", report.fallback(), "of the TorchScript graph"
    yield "fallback, blocks", report.blocks(), ""
    for path in (Which.MAIN, Which.FALLBACK):
        for kind, word in ((Kind.EXPERT, "experts"), (Kind.PAIR, "pairs of experts")):
            if report.has(path, kind):
                yield f"{word}, {path}", report.experts(path, kind), "that traffic reached"
    yield "routes", report.taken(), "declared edges"
    yield "drills", report.drilled(), "failure class × phase"
    shapes = report.shapes()
    if shapes is not None:
        yield "shapes of production", shapes, "buckets that were exercised"


def placed_words(report: Report) -> Iterator[str]:
    """Yield where the nodes of the main path ran, and which of them ran where nobody asked for."""
    placed = report.placed()
    if placed is None:
        return
    yield "placement: " + (", ".join(f"{count} on {name}" for name, count in placed.nodes) or "nothing ran")
    for run in placed.runs:
        yield from (f"  {name} was asked for, and no node was given to it (run {run.run})" for name in run.absent)
    if placed.names:
        yield f"  {many(len(placed.names), 'node')} ran on the processor, which nobody asked for:"
        yield from (f"    {name}" for name in placed.names[:_SHOWN])
        if len(placed.names) > _SHOWN:
            yield f"    … and {len(placed.names) - _SHOWN} more"


def shipped_words(report: Report) -> Iterator[str]:
    """Yield what the optimised session executed, where that is known."""
    main = report.covered.path(Which.MAIN)
    told = None if main is None else main.shipped
    if told is not None and told.nodes:
        yield f"optimised, as it ships: {told.ran} of its {told.nodes} nodes ran in the last traced run"


def apart_words(report: Report) -> Iterator[str]:
    """Yield what is in no denominator, by its reason, the most first."""
    reasons = Counter(unit.reason for path in report.covered.paths for unit in path.excluded())
    reasons.update(unit.reason for unit in report.routes if not unit.counted)
    reasons.update(cell.reason for cell in report.drills if not cell.counted)
    for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], str(one[0]))):
        yield f"apart: {count} × {reason}"


def evidence_words(report: Report) -> Iterator[str]:
    """Yield which runs count, and which do not and why."""
    runs = report.covered.runs
    if report.covered.newest is not None:
        yield f"evidence: {many(len(runs), 'traced run')}, the newest of {report.covered.newest:%Y-%m-%d %H:%M} UTC"
    else:
        yield "evidence: no traced run counts"
    others = [left for left in report.left if left.run.model != report.model]
    for left in report.left:
        if left not in others:
            yield f"not counted: run {left.run.id} of {left.run.began:%Y-%m-%d %H:%M} UTC: {left.why}"
    if others:
        yield f"not counted: {many(len(others), 'run')} of other models"


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Gaps of one kind, in words, one command for all of them, and what to give to it."""

    title: str
    gaps: tuple[Gap, ...]
    command: str
    with_what: str


def gap_groups(report: Report) -> list[GapGroup]:
    """Return what is not covered by kind, in the order in which it matters."""
    groups = []
    for kind, title in _KINDS:
        mine = tuple(gap for gap in report.gaps if gap.kind == kind)
        if mine:
            commands = {gap.command for gap in mine}
            whats = {gap.with_what for gap in mine}
            command = commands.pop() if len(commands) == 1 else report.ways.drilled()
            groups.append(GapGroup(title, mine, command, whats.pop() if len(whats) == 1 else _FEEDS))
    return groups


def gap_words(gap: Gap) -> str:
    """Return what a gap is, beside its id; nothing for a route, whose id says all."""
    if gap.kind == Kind.ROUTE:
        return ""
    return gap.label + (f" ({gap.where})" if gap.where else "")


def _gaps(report: Report) -> Iterator[str]:
    if not report.gaps:
        return
    yield ""
    yield f"not covered: {many(len(report.gaps), 'unit')}"
    for group in gap_groups(report):
        yield f"{group.title}: {len(group.gaps)}"
        for gap in group.gaps[:_SHOWN]:
            words = gap_words(gap)
            path = f"{gap.path}: " if gap.kind is Kind.EXPERT else ""
            yield f"  {path}{gap.unit}: {words}" if words else f"  {path}{gap.unit}"
        if len(group.gaps) > _SHOWN:
            yield f"  … and {len(group.gaps) - _SHOWN} more"
        yield f"  → {group.command}"
        if group.with_what:
            yield f"    {group.with_what}"
