"""What ``crashpath drill`` prints for people: a line a drill, the legend, the sums, field against proof."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from crashpath.coverage.claims import shown
from crashpath.coverage.drillcells import CELLS, DrillResult, Verdict
from crashpath.coverage.drillclaim import DRILL, REQUEST, Claim
from crashpath.coverage.drillkept import Planned
from crashpath.coverage.drillmix import MixResult
from crashpath.coverage.drillstage import Pace
from crashpath.coverage.field import FieldPart, FieldRow, Standing, shares
from crashpath.coverage.routescenario import RouteResult
from crashpath.dashboard.plurals import many
from crashpath.runtime.folder import ModelFolder

LEGEND = (
    "cells: "
    + " ".join(f"{cell.letter} {cell.id}" for cell in CELLS[:5])
    + "\n       "
    + " ".join(f"{cell.letter} {cell.id}" for cell in CELLS[5:])
    + " · x does not hold · - cannot apply"
)
_FAULT, _PHASE, _ISOLATION = 29, 8, 11
_SCENARIO = 28


def drill_line(one: DrillResult) -> str:
    """One line of a drill, and below it why a cell does not hold, or why none applies."""
    line = f"{one.fault:{_FAULT}} {one.phase:{_PHASE}} {one.isolation:{_ISOLATION}} {one.marks} {one.verdict}"
    said = reasons(one)
    return line + "".join(f"\n    {reason}" for reason in said)


def reasons(one: DrillResult) -> tuple[str, ...]:
    """Why cells do not hold, each with its name; for a drill that cannot be driven, the one reason."""
    if one.verdict is Verdict.NULL:
        return (next(cell.why for cell in one.cells),)
    return tuple(f"{cell.name}: {cell.why}" for cell in one.cells if cell.value is False)


def wrapped(line: str, width: int) -> Iterator[str]:
    """Break a text into lines of at most ``width``; what goes on keeps its indent, and a number its unit."""
    for one in line.split("\n"):
        indent = one[: len(one) - len(one.lstrip(" "))]
        bound = re.sub(r"(?<=\d) %", "\u00a0%", one)  # textwrap breaks at no such space
        parts = textwrap.wrap(bound, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
        yield from (part.replace("\u00a0%", " %") for part in parts)


def percent(share: float) -> str:
    """A share for people: ``91.3 %``."""
    return f"{100 * share:.1f} %"


def opening_lines(
    folder: ModelFolder, policy: str, providers: Sequence[str], pace: Pace, plan: Planned
) -> Iterator[str]:
    """What is driven, how much of it, and under which limits."""
    yield f"{folder.name} {folder.hash}, policy {policy}, main path on {', '.join(providers)}"
    yield f"deadline {folder.limits.deadline_ms:g} ms, a load may take {pace.load:g} s"
    if plan.drills:
        yield f"{many(plan.drills, 'drill')} to come"
    if plan.routes:
        yield f"{many(plan.routes, 'route drill')} to come"


def summary_lines(results: Sequence[DrillResult]) -> Iterator[str]:
    """Counts and sums of the drills."""
    if not results:
        return
    counts = Counter(one.verdict for one in results)
    driven = [one for one in results if one.verdict is not Verdict.NULL]
    yield (
        f"\n{many(len(results), 'drill')}: {counts[Verdict.GREEN]} green, {counts[Verdict.RED]} red, "
        f"{counts[Verdict.NULL]} not driven here"
    )
    yield (
        f"{sum(one.requests for one in driven):,} requests were sent while a fault was there: "
        f"{sum(one.unanswered for one in driven):,} unanswered, {sum(one.wrong for one in driven):,} wrong answers"
    )


def mix_lines(mixes: Sequence[MixResult]) -> Iterator[str]:
    """What each mix came to, and under which policy."""
    for mix in mixes:
        settings = ", ".join(f"{name} {value:g}" for name, value in mix.breaker)
        yield f"\nmix in {mix.isolation}, policy {mix.policy}" + (f" ({settings})" if settings else "")
        yield (
            f"{mix.requests:,} of {mix.wanted:,} requests met a raised fault, "
            f"{mix.others:,} more were sent beside them; the main path was restarted {mix.restarts:,} times"
        )
        yield (
            f"{mix.unanswered} unanswered, {mix.wrong} wrong answers, {mix.late} late, "
            f"{mix.misnamed} under another class"
        )
        for error in mix.errors:
            yield f"    {error}"


def route_line(one: RouteResult) -> str:
    """One line of a route drill, and below it why it is not green."""
    line = f"{one.scenario:{_SCENARIO}} {one.isolation:{_ISOLATION}} {many(len(one.edges), 'edge'):8} {one.verdict}"
    return f"{line}\n    {one.why}" if one.why else line


def route_lines(routes: Sequence[RouteResult]) -> Iterator[str]:
    """Counts of the route drills, and of the edges that they took."""
    if not routes:
        return
    counts = Counter(one.verdict for one in routes)
    named = {edge for one in routes for edge in one.edges}
    taken = {edge for one in routes if one.verdict is Verdict.GREEN for edge in one.edges}
    yield (
        f"\n{many(len(routes), 'route drill')}: {counts[Verdict.GREEN]} green, {counts[Verdict.RED]} red, "
        f"{counts[Verdict.NULL]} not driven here; {len(taken)} of {many(len(named), 'edge')} taken"
    )


def claim_lines(claim: Claim) -> Iterator[str]:
    """What may be claimed, of what, by how many trials; without a trial, nothing."""
    if not claim.trials:
        return
    what = {
        DRILL: "of such drills leave no request without its right answer",
        REQUEST: "of requests that meet a fault are answered rightly",
    }[claim.unit]
    yield (
        f"claim: at least {shown(claim.bound).replace('%', ' %')} {what} "
        f"({claim.trials:,} trials, each a {claim.unit}, {claim.misses:,} missed; 95 % confidence, Clopper-Pearson)"
    )


def verdict_line(results: Sequence[DrillResult], mixes: Sequence[MixResult], routes: Sequence[RouteResult] = ()) -> str:
    """The last word."""
    red = [f"{one.fault}/{one.phase}/{one.isolation}" for one in results if one.verdict is Verdict.RED]
    red += [f"mix in {mix.isolation} ({', '.join(mix.faulty)})" for mix in mixes if mix.faulty]
    red += [f"{one.scenario}/{one.isolation}" for one in routes if one.verdict is Verdict.RED]
    if red:
        return f"RED: {', '.join(red[:8])}{' …' if red[8:] else ''}"
    if nothing_driven(results, mixes, routes):
        return "NOTHING DRIVEN: no fault could be raised here, so nothing is proven; the lines above say why"
    if not results and not mixes:
        return "GREEN: every edge went as it says"
    return "GREEN: every cell that applies holds"


def repeat_lines(
    results: Sequence[DrillResult], model: Path | None, options: Sequence[str], routes: Sequence[RouteResult] = ()
) -> Iterator[str]:
    """How to repeat the first red drill alone, in the same setting: a machine under load can be why it is red."""
    driven: list[DrillResult | RouteResult] = [*results, *routes]
    red = next((one for one in driven if one.verdict is Verdict.RED), None)
    if red is None:
        return
    folder = () if model is None else ("--model", str(model))
    which = ("--routes",) if isinstance(red, RouteResult) else ("--fault", red.fault)
    command = ("crashpath", "drill", *which, *folder, "--isolation", red.isolation, *options)
    yield f"load on the machine can make a drill red; repeat it alone: {shlex.join(command)}"


def nothing_driven(
    results: Sequence[DrillResult], mixes: Sequence[MixResult], routes: Sequence[RouteResult] = ()
) -> bool:
    """Whether no fault was raised at all, and where no fault was asked for, no edge taken."""
    if not results and not mixes:
        return all(one.verdict is Verdict.NULL for one in routes)
    return not mixes and all(one.verdict is Verdict.NULL for one in results)


def field_lines(rows: Sequence[FieldRow], model: str, days: int) -> Iterator[str]:
    """Field against proof, where the store has crashes; evidence for one model says nothing of another."""
    if not rows:
        return
    yield f"\nwhat stands against the field's classes, for {model}, by drills of the last {days} days"
    yield f"{'class':16} {'phase':8} {'crashes':>8} {'share':>7}  "
    for row in rows:
        for part in row.parts:
            yield (
                f"{row.failure_class:16} {part.phase:8} {part.crashes:>8,} {percent(part.share):>7}  "
                f"{standing_words(part, row.checks)}"
            )
    found = shares(rows)
    yield " · ".join(f"{percent(found[one])} {one}" for one in Standing)


def standing_words(part: FieldPart, checks: Sequence[str]) -> str:
    """What stands against a class in a phase: how many drills passed, which checks look for it, what is red."""
    red = f", {many(part.red, 'drill')} red" if part.red else ""
    match part.standing:
        case Standing.CONTAINED:
            return f"{part.standing}: {many(part.drills, 'drill')} passed"
        case Standing.CHECKED:
            more = f" and {len(checks) - 1} more" if checks[1:] else ""
            return f"{part.standing}: {checks[0]}{more}{red}"
        case _:
            return f"{part.standing}{red}"
