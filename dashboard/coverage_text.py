"""What ``crashpath coverage`` prints for people: the headline, each denominator, what is not covered and what would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
    """Yield the report in lines of at most 80 columns."""
    release = f", release {report.release}" if report.release else ""
    yield f"{report.model} {report.model_hash}{release}"
    yield headline(report)
    if before is not None:
        yield f"before, in release {before.release}: {headline(before)}"
    yield ""
    for name, ratio, what in rows(report):
        share = percent(ratio)
        yield f"{name:<29}{ratio.covered:>6} of {ratio.total:<6}{share:>9}  {what}".rstrip()
    yield from _placed(report)
    yield from shipped_words(report)
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
            if (ratio := report.experts(path, kind)).total:
                yield f"{word}, {path}", ratio, "that traffic reached"
    yield "routes", report.taken(), "declared edges"
    yield "drills", report.drilled(), "failure class × phase"
    shapes = report.shapes()
    if shapes is not None:
        yield "shapes of production", shapes, "buckets that were exercised"


def _placed(report: Report) -> Iterator[str]:
    placed = report.placed()
    if placed is None:
        return
    yield "placement: " + (", ".join(f"{count} on {name}" for name, count in placed.nodes) or "nothing ran")
    for name in placed.absent:
        yield f"  {name} was asked for, and no node was given to it"
    if placed.unasked:
        yield f"  {many(len(placed.unasked), 'node')} ran on the processor, which nobody asked for:"
        yield from (f"    {name}" for name in placed.unasked[:_SHOWN])
        if len(placed.unasked) > _SHOWN:
            yield f"    … and {len(placed.unasked) - _SHOWN} more"


def shipped_words(report: Report) -> Iterator[str]:
    """Yield what the optimised session executed, where that is known."""
    main = report.covered.path(Which.MAIN)
    told = None if main is None else main.shipped
    if told is not None:
        yield f"optimised, as it ships: {told.ran} of its {told.nodes} nodes ran in the last traced run"


def apart_words(report: Report) -> Iterator[str]:
    """Yield what is in no denominator, by its reason, the most first."""
    reasons = Counter(unit.reason for path in report.covered.paths for unit in path.excluded())
    reasons.update(unit.reason for unit in report.routes if not unit.counted)
    for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], str(one[0]))):
        yield f"apart: {count} × {reason}"


def evidence_words(report: Report) -> Iterator[str]:
    """Yield which runs count, and which do not and why."""
    runs = report.covered.runs
    if report.covered.newest is not None:
        yield f"evidence: {many(len(runs), 'traced run')}, the newest of {report.covered.newest:%Y-%m-%d %H:%M} UTC"
    else:
        yield "evidence: no traced run counts"
    for left in report.left:
        yield f"not counted: run {left.run.id} of {left.run.began:%Y-%m-%d %H:%M} UTC: {left.why}"


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Gaps of one kind, in words, and one command for all of them."""

    title: str
    gaps: tuple[Gap, ...]
    command: str


def gap_groups(report: Report) -> list[GapGroup]:
    """Return what is not covered by kind, in the order in which it matters."""
    return [
        GapGroup(title, mine, _command(mine))
        for kind, title in _KINDS
        if (mine := tuple(gap for gap in report.gaps if gap.kind == kind))
    ]


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
            yield f"  {gap.unit}: {words}" if words else f"  {gap.unit}"
        if len(group.gaps) > _SHOWN:
            yield f"  … and {len(group.gaps) - _SHOWN} more"
        yield f"  → {group.command}"


def _command(gaps: Sequence[Gap]) -> str:
    """One command that covers all of them: what each names, where that is the same, else the drill of all."""
    commands = tuple(dict.fromkeys(gap.command for gap in gaps))
    if len(commands) == 1:
        return commands[0]
    drill = next((one for one in commands if one.startswith("crashpath drill --class ")), None)
    if drill is not None:
        return f"crashpath drill --all --model {drill.partition('--model ')[2]}"
    return f"{commands[0].partition(', with ')[0]}, with feeds that take these"
