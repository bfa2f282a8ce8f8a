"""What the page of a cluster or a crash says, as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashpath.coverage.field import FieldPart, FieldRow, Standing
from crashpath.dashboard.cluster_view import UnitOutcomes
from crashpath.dashboard.intervals import rate
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_words import rate_in_full
from crashpath.dashboard.triage_words import contained_words
from crashpath.ingest.cluster_facts import Outcomes, Seen
from crashpath.ingest.details import ClusterDetail, CrashDetail
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.trends import Count

_MOST_NAMED = 3


def first_words(seen: Seen | None) -> str:
    """Say when it was seen first, and in which release."""
    return "never" if seen is None else f"{seen.first_day} in {seen.first_release}"


def last_words(seen: Seen | None) -> str:
    """Say when it was seen last, and in which release."""
    return "never" if seen is None else f"{seen.last_day} in {seen.last_release}"


def counts_words(counts: Sequence[Count]) -> str:
    """Name the largest ones with their crashes, and how many there are besides."""
    named = ", ".join(f"{one.key} ({one.crashes:,})" for one in counts[:_MOST_NAMED])
    return f"{named} and {len(counts) - _MOST_NAMED:,} more" if len(counts) > _MOST_NAMED else named


def outcomes_of(units: Sequence[UnitOutcomes]) -> Outcomes:
    """Sum what is known over units: an event names one unit, so that nothing is counted twice."""
    return Outcomes(sum(one.contained for one in units), sum(one.unanswered for one in units))


def containment_words(units: Sequence[UnitOutcomes]) -> Iterator[str]:
    """Say of each unit how many failed attempts were contained, with the interval of their share."""
    silent = [one for one in units if not one.known]
    for one in units:
        if one.known:
            told = rate_in_full(rate(one.contained, one.known))
            unknown = one.attempts - one.known
            rest = f" Of {unknown:,} more nothing is known." if unknown > 0 else ""
            yield (
                f"{_failed(one)}: the fallback answered {told} of which an event tells; {one.unanswered:,} unanswered."
                f"{rest}"
            )
    if silent:
        yield f"{', '.join(map(_failed, silent))}: of none does a runtime event tell what came of it."


def _failed(one: UnitOutcomes) -> str:
    noun = "failed attempt" if one.unit == UNKNOWN else f"failed {one.unit}"
    return f"{many(one.attempts, noun)}{' of no known unit' if one.unit == UNKNOWN else ''}"


def proof_words(row: FieldRow | None) -> Iterator[str]:
    """Say what is proven for a class, in the phases of the cluster's crashes."""
    if row is None:
        yield "Nothing is proven: these crashes count under no class that a drill could have."
        return
    alike: dict[tuple[Standing, bool], list[FieldPart]] = {}
    for part in row.parts:
        alike.setdefault((part.standing, part.red > 0), []).append(part)
    for (standing, red), parts in alike.items():
        phases = ", ".join(f"{part.phase} ({many(part.crashes, 'crash')})" for part in parts)
        drills, failed = sum(part.drills for part in parts), sum(part.red for part in parts)
        newest = max((part.newest for part in parts if part.newest), default=None)
        age = f", the newest of {newest:%Y-%m-%d}" if newest else ""
        yield f"{row.failure_class} in phase {phases}: {_proof(row, standing, red, drills, failed)}{age}."


def _proof(row: FieldRow, standing: Standing, red: bool, drills: int, failed: int) -> str:
    if standing is Standing.CONTAINED:
        return f"proven contained by {many(drills, 'passing drill')}"
    if red:
        return f"not contained, as {many(failed, 'drill')} failed"
    command = f"crashpath drill --class {row.failure_class} would prove it"
    if standing is Standing.CHECKED:
        return (
            f"not proven ({command}); crashpath diagnose checks for its cause before serving: {', '.join(row.checks)}"
        )
    return f"not proven; {command}"


def contained_line(units: Sequence[UnitOutcomes]) -> str:
    """Say in a few words whether it is contained."""
    return contained_words(outcomes_of(units))


def when_words(crash: CrashDetail) -> str:
    """Say when a crash was, and whether its own lines say so."""
    inferred = " (of its file: no line has a time)" if crash.at_inferred else ""
    return f"{crash.at:%Y-%m-%d %H:%M:%S} UTC{inferred}"


def members_words(found: ClusterDetail) -> str:
    """Say how many crashes and signatures a cluster has."""
    return f"{many(found.row.crashes, 'crash')} of {many(found.row.signatures, 'signature')}"
