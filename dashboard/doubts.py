"""Why the figures of a review cannot be trusted, or are not there: each doubt a HOLD, or a note where a policy says so.

A doubt is no test. It is never a NO-GO: what is not known speaks neither for a release nor against it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from shlex import quote

from crashpath.dashboard.evidence import Evidence, Known
from crashpath.dashboard.plurals import many
from crashpath.dashboard.policy import Doubt, Policy
from crashpath.dashboard.review_model import Apart, Cohort, Measure, Reason, Verdict
from crashpath.dashboard.sides import CohortTally, Side, Tally
from crashpath.dashboard.unheard import Unheard
from crashpath.ingest.schema import UNKNOWN

_NAMED = 3
"""Most releases, cohorts and days that a sentence names; it counts the others."""
_BETWEEN = re.compile(r"[\W_]+")
_LOAD = "crashpath attempts FILE"
_NIGHT = "crashpath nightly PATH…"


@dataclass(frozen=True, slots=True)
class Doubts:
    """What is doubted. ``compare``: the baseline can be trusted. ``problems``: a sentence for a unit's cohort."""

    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    apart: tuple[Apart, ...]
    compare: bool
    problems: Mapping[tuple[str, Cohort], str]


@dataclass(frozen=True, slots=True)
class _Doubt:
    """One doubt, and whether it holds the release back."""

    weight: Doubt
    reason: Reason


def doubts(evidence: Evidence, policy: Policy, *, unit: str | None) -> Doubts:
    """Return everything that is in doubt. ``unit`` is the one that was asked to come first, if one was."""
    about = [*_of_release(evidence, policy, unit), *_of_strangers(evidence, policy), *_of_night(evidence, policy)]
    baseline = list(_of_baseline(evidence, policy, unit))
    everything = (*about, *baseline)
    return Doubts(
        tuple(one.reason for one in everything if one.weight == "HOLD"),
        (*(one.reason.sentence for one in everything if one.weight == "note"), *_notes(evidence, policy)),
        tuple(_apart(evidence)),
        compare=evidence.baseline is not None and all(one.weight == "note" for one in baseline),
        problems=_problems(evidence.release),
    )


def impossible(tally: Tally) -> bool:
    """Whether more failed than was tried."""
    return any(failures > attempts for failures, attempts in map(tally.of, (Measure.PRIMARY, Measure.UNANSWERED)))


def _of_release(evidence: Evidence, policy: Policy, unit: str | None) -> Iterator[_Doubt]:
    known = evidence.release
    if known.release not in evidence.releases:
        yield _hold(
            "release", known.release, _unknown("release", known.release, evidence.releases), "crashpath attempts"
        )
        return
    if not known.sides:
        failed = f"; {_failed(sum(known.untold.values()))}, on no denominator" if known.untold else ""
        yield _hold("attempts", "", f"No attempts of release {known.release} are told{failed}.", _LOAD)
    elif unit is not None and known.side(unit) is None:
        told = ", ".join(f"{side.unit}s" for side in known.sides)
        yield _hold("attempts", unit, f"No {unit}s of release {known.release} are told, only {told}.", _LOAD, unit)
    for side in known.sides:
        yield from _of_side(side, policy)
    if known.sides:
        for name, count in sorted(known.untold.items()):
            what = f"{many(count, name)} failed, and no {name}s are told: they have no rate."
            yield _Doubt(policy.evidence.untold, _reason("untold", f"{name}s", what, _LOAD, name))
    yield from _unheard(known.unheard, policy.evidence.unheard, "unheard", "")
    attempts, failures = known.ahead
    if attempts or failures:
        what = (
            f"{many(attempts, 'attempt')} and {many(failures, 'failure')} are dated after {evidence.at:%Y-%m-%d} (UTC)"
        )
        yield _Doubt(policy.evidence.future, _reason("future", "", what, "crashpath attempts"))


def _of_side(side: Side, policy: Policy) -> Iterator[_Doubt]:
    if not side.tally.attempts:
        what = f"0 {side.unit}s of release {side.release} are told: nothing was tried, so nothing is shown."
        yield _hold("attempts", f"{side.unit}s", what, _LOAD, side.unit)
    elif impossible(side.tally):
        yield _hold("impossible", f"{side.unit}s", f"{_more(side.tally, side.unit)}.", _LOAD, side.unit)
    bad = [one.cohort for one in side.cohorts if one.told and impossible(one.tally)]
    if bad:
        what = f"In {_some(bad)} more {side.unit}s failed than were tried: attempts are missing there."
        yield _Doubt("HOLD", _reason("impossible", _subject(bad), what, _LOAD, side.unit, _names(bad)))
    most = policy.classes.min_count
    silent = [one for one in side.cohorts if not one.told and one.tally.primary >= most]
    if silent:
        what = f"{_named(silent, side)}, of which no {side.unit}s are told."
        untold = [one.cohort for one in silent]
        reason = _reason("untold", _subject(untold), what, _LOAD, side.unit, _names(untold))
        yield _Doubt(policy.evidence.untold, reason)


def _named(rows: Sequence[CohortTally], side: Side) -> str:
    failed = many(sum(one.tally.primary for one in rows), f"failed {side.unit}")
    return f"{failed} {'names' if failed.startswith('1 ') else 'name'} {_some([one.cohort for one in rows])}"


def _of_night(evidence: Evidence, policy: Policy) -> Iterator[_Doubt]:
    night = evidence.night
    if night is None or night.status not in ("running", "failed", "partial"):
        return
    if night.status == "running":
        what = f"A night is running since {night.started_at:%Y-%m-%d %H:%M} UTC: its logs are not all counted yet."
    else:
        why = f" ({night.reason})" if night.reason else ""
        how = "failed" if night.status == "failed" else "was partial"
        what = f"The last night {how}{why}: what it did not read is not counted."
    about = (f"{night.status} {night.reason or ''}",)
    yield _Doubt(policy.evidence.unfinished_night, _reason("unfinished_night", "", what, _NIGHT, about=about))


def _of_baseline(evidence: Evidence, policy: Policy, unit: str | None) -> Iterator[_Doubt]:
    base, release = evidence.baseline, evidence.release
    if base is None:
        if policy.baseline.required:
            command = f"crashpath review --release {quote(release.release)} --baseline B"
            what = "The policy asks for a baseline, and none was named."
            yield _Doubt("HOLD", Reason(Verdict.HOLD, "baseline.required", "", what, command=command))
        return
    name = base.release
    if name not in evidence.releases:
        yield _hold("baseline", name, _unknown("baseline", name, evidence.releases), "crashpath attempts")
        return
    main = unit if unit is not None and release.side(unit) else next((side.unit for side in release.sides), None)
    side = None if main is None else base.side(main)
    if main is not None and (side is None or not side.tally.attempts):
        what = f"No {main}s of the baseline {name} are told: there is nothing to compare with."
        yield _hold("baseline", name, what, _LOAD, main)
    for one in base.sides:
        if impossible(one.tally):
            yield _hold("baseline", name, f"Of the baseline {name}, {_more(one.tally, one.unit)}.", _LOAD, one.unit)
    yield from _unheard(base.unheard, policy.evidence.unheard, "baseline", f" of the baseline {name}")


def _unheard(missed: Sequence[Unheard], weight: Doubt, rule: str, whose: str) -> Iterator[_Doubt]:
    """Doubt cohorts by how far they were heard: those of which nobody ever was, and those from some day on."""
    for ever in (False, True):
        few = [one for one in missed if (one.since is not None) is ever]
        if not few:
            continue
        cohorts = list(dict.fromkeys(one.cohort for one in few))
        tried = many(sum(one.attempts for one in few), "attempt")
        since = min((one.since for one in few if one.since is not None), default=None)
        until = f" after {since.isoformat()}" if since else ""
        what = (
            f"No log source{whose} was heard from {_some(cohorts)}{until}: of {tried} nobody knows whether they failed."
        )
        yield _Doubt(weight, _reason(rule, _subject(cohorts), what, _NIGHT, about=_names(cohorts)))


def _of_strangers(evidence: Evidence, policy: Policy) -> Iterator[_Doubt]:
    """Doubt the counts where failures name what may be the release, written otherwise: ``v2.0`` for ``2.0``."""
    release = evidence.release.release
    for name, count in evidence.strangers.items():
        if _plain(name) == _plain(release):
            what = f"{_failed(count)} of release {name}, which may be {release}: of {name} no attempts are told."
            yield _Doubt(policy.evidence.untold, _reason("untold", name, what, "crashpath attempts"))


def _plain(name: str) -> str:
    """Return a release's name without what people write differently; its numbers stay apart: 1.10 is not 11.0."""
    parts = _BETWEEN.sub(".", name.casefold()).removeprefix("release").strip(".")
    return parts.removeprefix("v").strip(".")


def _notes(evidence: Evidence, policy: Policy) -> Iterator[str]:
    night = evidence.night
    if night is None:
        yield "No night was run yet: failures come from counts of attempts alone."
    if evidence.strangers:
        failed = _failed(sum(evidence.strangers.values()))
        names = _some([*evidence.strangers], "release")
        yield f"In this time {failed} of releases of which no attempts are told: {names}."
    for side in evidence.release.sides:
        yield from _side_notes(side, policy)
    if evidence.baseline is not None and any(evidence.baseline.ahead):
        yield f"Of the baseline {evidence.baseline.release}, days after {evidence.at:%Y-%m-%d} (UTC) are not counted."


def _side_notes(side: Side, policy: Policy) -> Iterator[str]:
    past = side.tally.attempts - side.tally.tried
    if past:
        yield f"{many(past, side.unit)} went to the fallback without a try of the main path: no primary rate has them."
    if side.unlogged:
        yield f"{many(side.unlogged, 'failure')} of {side.unit}s are told by counts alone: no log says of which class."
    if side.vague:
        yield (
            f"{many(side.vague, 'failure')} of {side.unit}s may be of several cohorts; "
            "each cohort has to be shown to be good in spite of them."
        )
    few = [one for one in side.cohorts if not one.told and one.tally.primary < policy.classes.min_count]
    if few:
        yield (
            f"{_named(few, side)}, of which no {side.unit}s are told: a handful, which may be wrong names. "
            "Each other cohort has to be shown to be good in spite of them."
        )
    days = [day for day, tally in side.days.items() if day not in side.without_attempts and impossible(tally)]
    if days:
        yield f"More {side.unit}s failed than were tried on {_days(days)}: these days have no rate of their own."


def _apart(evidence: Evidence) -> Iterator[Apart]:
    for side in evidence.release.sides:
        if side.bare:
            bare = [day for day in side.without_attempts if side.days[day].primary]
            told = f"of {_days(bare)}, of which no {side.unit}s were told"
            yield Apart(side.bare, f"{_failed(side.bare)} {told}.")
        if side.phaseless:
            yield Apart(side.phaseless, f"{_failed(side.phaseless)} without a phase: nobody knows in which unit.")
        nameless = evidence.nameless.get(side.unit, 0)
        if nameless:
            yield Apart(nameless, f"{_failed(nameless)} on its days without naming a release ({side.unit}s).")


def _problems(known: Known) -> dict[tuple[str, Cohort], str]:
    found: dict[tuple[str, Cohort], str] = {}
    for one in known.unheard:
        until = f" after {one.since.isoformat()}" if one.since else ""
        found[one.unit, one.cohort] = f"no log source of it was heard{until}"
    for side in known.sides:
        for row in side.cohorts:
            if not row.told:
                found[side.unit, row.cohort] = f"no {side.unit}s of it are told"
            elif impossible(row.tally):
                found[side.unit, row.cohort] = "more failed than were tried"
    return found


def _hold(rule: str, subject: str, what: str, command: str, unit: str = "") -> _Doubt:
    return _Doubt("HOLD", _reason(rule, subject, what, command, unit))


def _reason(rule: str, subject: str, what: str, command: str, unit: str = "", about: tuple[str, ...] = ()) -> Reason:
    return Reason(Verdict.HOLD, f"evidence.{rule}", subject, what, command=command, unit=unit, about=about)


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    others = [one for one in known if one != UNKNOWN]
    if not others:
        return f"The store knows nothing of {what} {name}, nor of any other."
    near = difflib.get_close_matches(name, others, n=_NAMED, cutoff=0.6) or others[-_NAMED:]
    more = len(others) - len(near)
    return (
        f"The store knows nothing of {what} {name}. It knows {', '.join(near)}{f' and {more:,} more' if more else ''}."
    )


def _more(tally: Tally, unit: str) -> str:
    failed = max(tally.primary, tally.unanswered)
    return f"{failed:,} of {many(tally.attempts, unit)} failed, more than were tried: attempts are missing"


def _failed(count: int) -> str:
    return f"{many(count, 'attempt')} failed"


def _subject(cohorts: Sequence[Cohort]) -> str:
    return str(cohorts[0]) if len(cohorts) == 1 else f"{len(cohorts):,} cohorts"


def _names(cohorts: Sequence[Cohort]) -> tuple[str, ...]:
    return tuple(str(one) for one in cohorts)


def _some(these: Sequence[Cohort] | Sequence[str], what: str = "cohort") -> str:
    named = ", ".join(str(one) for one in these[:_NAMED])
    more = len(these) - _NAMED
    return f"{named} and {many(more, f'more {what}')}" if more > 0 else named


def _days(days: Sequence[date]) -> str:
    named = ", ".join(day.isoformat() for day in sorted(days)[:_NAMED])
    more = len(days) - _NAMED
    return f"{named} and {many(more, 'more day')}" if more > 0 else named
