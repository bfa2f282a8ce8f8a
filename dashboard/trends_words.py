"""Sentences and figures of the page Trends: plain text, whoever shows it makes it inert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from crashpath.dashboard.intervals import compared, rate
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import Compared, Measure, Rate
from crashpath.dashboard.review_words import (
    MEANING,
    counts_words,
    days_words,
    difference_interval,
    difference_words,
    interval_words,
    rate_in_full,
    rate_words,
    share_words,
)
from crashpath.dashboard.sides import Tally
from crashpath.dashboard.trends_model import By, Rates, Window
from crashpath.ingest.classes import HEADLINES, headline_of
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.trends import DayCount

TELL = ("crashpath attempts FILE", "crashpath nightly LOGS… --attempts FILE")
"""Commands that tell how often something was tried."""
PATHS = (
    "The main path's rate is of the attempts that tried it, the fallback's of those that reached it: their main path "
    "failed, or they were sent past it. Where a deployment has no fallback, each of these counts as not answered."
)
TITLES = {
    Measure.PRIMARY: "Failure rate",
    Measure.UNANSWERED: "Unanswered rate",
    Measure.CONTAINED: "Contained rate",
}
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Figure:
    """A headline figure. ``change`` is against the window before; ``worse`` is ``None`` where chance may explain it."""

    label: str
    value: str
    change: str
    up: bool
    worse: bool | None
    lines: tuple[str, ...]
    meaning: str


def figures_of(rates: Rates, crashes: int, crashes_before: int | None) -> tuple[Figure, ...]:
    """Return the figures of a window in one row, each beside the window before."""
    unit, tally, before = rates.asked.unit, rates.tally, rates.before
    primary, unanswered = (_compare(tally, before, one) for one in (Measure.PRIMARY, Measure.UNANSWERED))
    contained = compared(_contained(tally), None if before is None or not before.primary else _contained(before))
    return (
        _figure(TITLES[Measure.PRIMARY], primary, f"{unit}s in which {MEANING[Measure.PRIMARY]}", rates),
        _figure(TITLES[Measure.UNANSWERED], unanswered, f"{unit}s that {MEANING[Measure.UNANSWERED]}", rates),
        _figure(
            "Contained share",
            contained,
            f"Of the {unit}s in which the main path failed, those that the fallback answered",
            rates,
            good=True,
        ),
        crash_figure(crashes, crashes_before),
    )


def count_figures(counts: Iterable[DayCount], crashes: int, before: int | None) -> tuple[Figure, ...]:
    """Return crashes, and those of each headline, where there are no rates. ``counts`` are by class."""
    sums = Counter(dict.fromkeys(HEADLINES, 0))
    for row in counts:
        sums[headline_of(row.key)] += row.crashes
    several = (
        Figure(name, f"{sums[name]:,}", "", False, None, (f"{share_words(sums[name] / crashes)} of crashes.",), "")
        for name in HEADLINES
        if crashes
    )
    return (crash_figure(crashes, before), *several)


def crash_figure(crashes: int, before: int | None) -> Figure:
    """Return the count of crashes, which has no denominator and so no better or worse."""
    change = "" if before is None else f"{crashes - before:+,}".replace("-", "−")
    lines = () if before is None else (f"Window before: {before:,}.",)
    return Figure(
        "Crashes", f"{crashes:,}", change, crashes > (before or 0), None, lines,
        "Records of logs that tell of a failure; several may tell of one failed attempt",
    )  # fmt: skip


def _compare(tally: Tally, before: Tally | None, measure: Measure) -> Compared:
    earlier = None if before is None or not before.attempts else rate(*before.of(measure))
    return compared(rate(*tally.of(measure)), earlier)


def _contained(tally: Tally) -> Rate:
    return rate(tally.primary - tally.unanswered, tally.primary)


def _figure(label: str, figure: Compared, meaning: str, rates: Rates, *, good: bool = False) -> Figure:
    now, before, moved = figure.release, figure.baseline, figure.difference
    lines = [" · ".join(filter(None, (interval_words(now), counts_words(now)))) + "."]
    if moved is not None and before is not None:
        lines.append(f"Window before: {rate_in_full(before)}; the change lies in {difference_interval(moved)} points.")
    elif rates.before is not None:
        lines.append(f"Window before: {'no rate' if rates.before.attempts else f'no {rates.asked.unit}s are told'}.")
    shown = moved is not None and not moved.low <= 0 <= moved.high
    up = moved is not None and moved.value > 0
    change = "" if moved is None else difference_words(moved)
    return Figure(label, rate_words(now), change, up, (up is not good) if shown else None, tuple(lines), meaning)


def rate_caption(rates: Rates) -> str:
    """Return what the lines are, over what, and what is not drawn."""
    asked = rates.asked
    if asked.by is By.PATH:
        what = PATHS
    else:
        kind = f"{asked.unit}s that {_THAT[asked.measure]}"
        of = f"all {asked.unit}s" if asked.measure is Measure.UNANSWERED else f"{asked.unit}s that tried the main path"
        what = f"{kind}, of {of}."
    others = f" Not drawn, as they have fewer attempts: {names_words(rates.others)}." if rates.others else ""
    return f"{what[0].upper()}{what[1:]} Bands are exact 95 % intervals of each day; days are UTC days.{others}"


_THAT = {
    Measure.PRIMARY: "failed on the main path, whoever answered",
    Measure.UNANSWERED: "nobody answered",
    Measure.CONTAINED: "failed on the main path and were answered by the fallback",
}


def gap_words(rates: Rates) -> str:
    """Say on how many days of the window there is no rate; nothing where each day has one."""
    window, unit = rates.asked.window, rates.asked.unit
    missing = window.days - rates.told_days
    if not missing:
        return ""
    begin = window.drawn(day for day, tally in rates.days.items() if tally.attempts).since
    early, inside = (begin - window.since).days, missing - (begin - window.since).days
    found = [f"before {begin}: the picture begins there"] if early else []
    if inside:
        found.append(f"on {many(inside, 'day')}{' after that' if early else ''}, where the line has a gap")
    return f"No {unit}s are told {', nor '.join(found)}."


def impossible_words(rates: Rates) -> str:
    """Say that some days have more failures than attempts; nothing where none has."""
    points = [one for line in rates.lines for one in line.points if one.rate is not None]
    found = sum(one.rate is not None and one.rate.rate is None and one.rate.failures > 0 for one in points)
    return f"{many(found, 'point')} left out: more failures than {rates.asked.unit}s are told there." if found else ""


def left_out_words(rates: Rates) -> list[str]:
    """Say which failures of the window are in no rate, and why."""
    left, unit = rates.left_out, rates.asked.unit
    found = []
    named = {name: count for name, count in left.strangers.items() if name != UNKNOWN}
    if named:
        several = "releases" if len(named) > 1 else "release"
        found.append(f"{named_count(named)} of {several} {names_words(sorted(named))}, of which no {unit}s are told")
    if UNKNOWN in left.strangers:
        found.append(f"{left.strangers[UNKNOWN]:,} that name no release")
    if left.bare:
        found.append(f"{left.bare:,} on days of which no {unit}s of their release are told")
    if left.phaseless:
        found.append(f"{left.phaseless:,} that name no phase, so that they may be of another unit")
    if left.vague:
        found.append(f"{left.vague:,} whose platform is none, or may be several, of those that {unit}s are told of")
    return found


def named_count(counts: Mapping[str, int]) -> str:
    """Return the sum of counts, thousands parted."""
    return f"{sum(counts.values()):,}"


def window_words(window: Window) -> str:
    """Return the days of a window."""
    return days_words(window.since, window.until)


def names_words(names: Sequence[str]) -> str:
    """Return some names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def stale_words(days: int) -> str:
    """Say that some days are still being counted; nothing where none is."""
    if not days:
        return ""
    return f"Failed attempts of {many(days, 'day')} are still to be counted anew, by a night: rates there may change."


def later_words(crashes: int, attempts: Mapping[str, int], today: date) -> str:
    """Say what is dated later than today and shown nowhere; nothing where nothing is."""
    found = [many(crashes, "crash")] if crashes else []
    found += [many(count, unit) for unit, count in attempts.items() if count]
    return f"Dated later than {today} (UTC), and not shown: {' and '.join(found)}." if found else ""


def no_rate_words(units: Sequence[str], unit: str | None, path: str | None) -> tuple[str, bool]:
    """Say why counts are in the place of rates, and whether to tell attempts would help."""
    if not units:
        return "No attempts are told, so these are counts, not rates. To have rates, tell how often was tried:", True
    if path is not None:
        return "Failed attempts are not kept by path: with a path chosen these are counts of crashes, not rates.", False
    return (
        f"No {unit}s are told of these days with these filters, so these are counts, not rates. To have rates, tell "
        "how often was tried:",
        True,
    )


def window_line(window: Window) -> str:
    """Say which days the figures are of, and what they stand beside."""
    before = f", beside the {many(window.days_before, 'day')} before" if window.before is not None else ""
    return f"Figures of {window_words(window)}{before}. Intervals are exact 95 % ones."
