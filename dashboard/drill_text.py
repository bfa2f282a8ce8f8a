"""What ``crashpath drill`` prints for people: a line a drill, the legend, the sums, field against proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from crashpath.coverage.claims import lower_bound, shown
from crashpath.coverage.drillcells import CELLS, DrillResult, Verdict
from crashpath.coverage.drillmix import MixResult
from crashpath.coverage.field import Names, Standing, field_against_proof, shares
from crashpath.runtime.diagnose import CHECKS

LEGEND = (
    "cells: "
    + " ".join(f"{cell.letter} {cell.id}" for cell in CELLS[:5])
    + "\n       "
    + " ".join(f"{cell.letter} {cell.id}" for cell in CELLS[5:])
    + " · x does not hold · - cannot apply"
)
_FAULT, _PHASE, _ISOLATION = 29, 8, 11


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over drills and mix. A drill is one trial, a struck request of the mix another; ``bound``: see `claims`."""

    requests: int
    unanswered: int
    wrong: int
    trials: int
    misses: int

    @property
    def bound(self) -> float:
        """Clopper-Pearson, one-sided, 95 %."""
        return lower_bound(self.trials, min(self.misses, self.trials))


def totals(results: Sequence[DrillResult], mix: MixResult | None) -> Totals:
    """Add up what was driven."""
    driven = [one for one in results if one.verdict is not Verdict.NULL]
    missed = sum(bool(one.unanswered or one.wrong) for one in driven)
    more = (0, 0, 0) if mix is None else (mix.requests, mix.unanswered, mix.wrong)
    return Totals(
        requests=sum(one.requests for one in driven) + more[0],
        unanswered=sum(one.unanswered for one in driven) + more[1],
        wrong=sum(one.wrong for one in driven) + more[2],
        trials=len(driven) + more[0],
        misses=missed + more[1] + more[2],
    )


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


def summary_lines(results: Sequence[DrillResult]) -> Iterator[str]:
    """Sums of the drills, and the verdict."""
    if not results:
        return
    counts = Counter(one.verdict for one in results)
    sums = totals(results, None)
    yield (
        f"\n{len(results)} drills: {counts[Verdict.GREEN]} green, {counts[Verdict.RED]} red, "
        f"{counts[Verdict.NULL]} do not apply here"
    )
    yield f"{sums.requests:,} requests met a fault: {sums.unanswered} unanswered, {sums.wrong} wrong answers"
    yield (
        f"claim: at least {shown(sums.bound)} of such drills answer every request right "
        f"({sums.trials} drills, {sums.misses} missed; 95 % confidence, Clopper-Pearson)"
    )
    red = [f"{one.fault}/{one.phase}/{one.isolation}" for one in results if one.verdict is Verdict.RED]
    yield "GREEN: every cell that applies holds" if not red else f"RED: {', '.join(red[:8])}{' …' if red[8:] else ''}"


def mix_lines(mix: MixResult | None) -> Iterator[str]:
    """What a mix came to."""
    if mix is None:
        return
    yield (
        f"\n{mix.requests:,} requests met a raised fault, {mix.others:,} more were sent beside them; "
        f"the main path was restarted {mix.restarts:,} times"
    )
    yield f"{mix.unanswered} unanswered, {mix.wrong} wrong answers, {mix.late} late, {mix.misnamed} under another class"
    yield f"claim: at least {shown(mix.bound)} of struck requests are answered right (95 %, Clopper-Pearson)"
    for error in mix.errors:
        yield f"    {error}"


def field_lines(session: Session, model: str, model_hash: str) -> Iterator[str]:
    """Field against proof, where the store has crashes; evidence for one model says nothing of another."""
    checks = [Names(check.id, check.prevents) for check in CHECKS]
    rows = field_against_proof(session, checks, model_hash=model_hash)
    if not rows:
        return
    yield f"\n{'class in the field':20} {'crashes':>8} {'share':>7}  what stands against it for {model}"
    for row in rows:
        told = {
            Standing.CONTAINED: f"contained: {row.drills} passed" + (f", {row.red} red" if row.red else ""),
            Standing.PREVENTED: f"prevented: {', '.join(row.checks[:1])}"
            + (f" and {len(row.checks) - 1} more" if row.checks[1:] else ""),
            Standing.UNPROVEN: "without proof" + (f" ({row.red} drills red)" if row.red else ""),
        }[row.standing]
        yield f"{row.failure_class:20} {row.crashes:>8,} {row.share:>7.1%}  {told}"
    found = shares(rows)
    yield " · ".join(f"{found[one]:.1%} {one}" for one in Standing)
