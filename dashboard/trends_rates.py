"""Rates by day and line, as a review counts them: each release against its own attempts, then added up.

A failure counts where a review of its release would count it. What no attempts are told for is kept apart, so that no
line has a failure without the attempts that it was one of.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType

from crashpath.dashboard.intervals import rate
from crashpath.dashboard.review_model import Measure, Rate
from crashpath.dashboard.sides import Tally, make_side, units_told
from crashpath.dashboard.trends_model import (
    ALL,
    FALLBACK,
    MAIN,
    Asked,
    By,
    Counted,
    LeftOut,
    Line,
    Point,
    Rates,
    Told,
)
from crashpath.ingest.attempts import UNITS
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_sums import DaySum
from crashpath.ingest.failed_trends import Lot, PlatformSum
from crashpath.ingest.schema import UNKNOWN, may_be

MOST_LINES = 6
"""Lines in one picture; more could not be told apart."""
_NOTHING = Tally()
Days = dict[date, Tally]


def told_of(rows: Iterable[AttemptCount], today: date) -> Told:
    """Sum attempts over models and paths. What is dated later than ``today`` counts nowhere."""
    sums: dict[tuple[str, date, str, str, bool], list[int | None]] = {}
    ahead: Counter[str] = Counter()
    for row in rows:
        if row.day > today:
            ahead[row.unit] += row.attempts
            continue
        # (Rows that do not tell what was unanswered are kept from those that do, as a tally has to know.)
        key = (row.unit, row.day, row.release, row.platform, row.unanswered is None)
        sums[key] = _added(sums.get(key, [0, None, None, None]), row)
    releases: dict[str, list[AttemptCount]] = defaultdict(list)
    for (unit, day, release, platform, _), (attempts, failures, unanswered, rerouted) in sorted(sums.items()):
        whole = AttemptCount(
            unit,
            day,
            release,
            platform,
            UNKNOWN,
            UNKNOWN,
            attempts or 0,
            failures,
            unanswered,
            rerouted,
            None,
            None,
            "",
        )
        releases[release].append(whole)
    return Told(
        MappingProxyType({name: tuple(found) for name, found in releases.items()}),
        tuple(unit for unit in UNITS if any(key[0] == unit for key in sums)),
        tuple(sorted({key[3] for key in sums})),
        min((key[1] for key in sums), default=None),
        max((key[1] for key in sums), default=None),
        MappingProxyType(dict(ahead)),
    )


def _added(sums: list[int | None], row: AttemptCount) -> list[int | None]:
    more = (row.attempts, row.failures, row.unanswered, row.rerouted)
    return [old if new is None else (old or 0) + new for old, new in zip(sums, more, strict=True)]


def rates_of(told: Told, failed: Sequence[PlatformSum], asked: Asked) -> Rates:
    """Return the rates of a view. ``failed`` has the days of both windows, and none to come."""
    by_release: dict[str, list[PlatformSum]] = defaultdict(list)
    for cell in failed:
        by_release[cell.release].append(cell)

    def parts(*, split: bool) -> list[_Part]:
        names = [name for name in told.releases if asked.release in (None, name)]
        found = [_part(name, told.releases[name], by_release[name], asked, split=split) for name in names]
        return [part for part in found if part.lines]

    whole = parts(split=asked.platform is not None)
    split = parts(split=True) if asked.by is By.PLATFORM and asked.platform is None else whole
    window = asked.window
    sums = _together(days for part in whole for days in part.lines.values())
    inside = {day: tally for day, tally in sums.items() if day >= window.since}
    earlier = [tally for day, tally in sums.items() if day < window.since]
    lines, others = _lines(_by_name(split, inside, asked.by), asked)
    return Rates(
        asked,
        sum(inside.values(), _NOTHING),
        None if window.before is None else sum(earlier, _NOTHING),
        sum(tally.attempts > 0 for tally in inside.values()),
        sum(tally.attempts > 0 for tally in earlier),
        MappingProxyType(inside),
        lines,
        others,
        LeftOut(
            _strangers(by_release, {part.counted.lot.releases[0] for part in whole}, asked),
            sum(part.bare for part in whole),
            sum(part.phaseless for part in whole),
            sum(part.vague for part in split),
        ),
        tuple(part.counted for part in whole),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """One release: days with attempts by platform (or ``ALL``), and failures of the window that are in none."""

    lines: Mapping[str, Days]
    counted: Counted
    bare: int
    phaseless: int
    vague: int


def _part(
    release: str, rows: Sequence[AttemptCount], cells: Sequence[PlatformSum], asked: Asked, *, split: bool
) -> _Part:
    window = asked.window
    alone = units_told(rows) == (asked.unit,)
    units = (asked.unit, UNKNOWN) if alone else (asked.unit,)  # what names no unit can be of no other
    mine = [cell for cell in cells if cell.unit in units]
    counts = [row for row in rows if row.unit == asked.unit]
    homes = {row.platform for row in counts} if split else {ALL}
    fits = {name: _fits(name, homes) if split else [ALL] for name in {cell.platform for cell in mine}}
    wanted = sorted(homes) if asked.platform is None else sorted(homes & {asked.platform})
    lines: dict[str, Days] = {}
    bare = 0
    for home in wanted:
        its = [
            DaySum(asked.unit, cell.day, release, cell.attempts, cell.unanswered, cell.contained)
            for cell in mine
            if fits[cell.platform] == [home]
        ]
        near = [row for row in counts if row.day >= window.first and (row.platform == home or not split)]
        side = make_side(release, asked.unit, its, near, (), ())
        lines[home] = {day: tally for day, tally in side.days.items() if day not in side.without_attempts}
        bare += sum(side.days[day].primary for day in side.without_attempts if day >= window.since)
    days = frozenset(day for found in lines.values() for day in found)
    platforms = None
    if asked.platform is not None:
        platforms = tuple(sorted(name for name, found in fits.items() if found == [asked.platform]))
    untold = tuple(sorted({cell.day for cell in mine} - days))
    return _Part(
        lines if days else {},
        Counted(Lot((release,), units, platforms, untold), days),
        bare,
        0 if alone else _failures(cells, asked, units=(UNKNOWN,)),
        sum(
            cell.attempts
            for cell in mine
            if cell.day >= window.since
            and len(fits[cell.platform]) != 1
            and (asked.platform is None or asked.platform in (cell.platform, *fits[cell.platform]))
        ),
    )


def _fits(name: str, homes: Collection[str]) -> list[str]:
    """Return the platforms, of those that attempts are told of, in which a failure may be counted, as a review does."""
    return [name] if name in homes else sorted(home for home in homes if may_be(home, name))


def _failures(cells: Iterable[PlatformSum], asked: Asked, *, units: Collection[str]) -> int:
    """Count the failures of the window in these units, on the platform that is asked for or on one not told."""
    return sum(
        cell.attempts
        for cell in cells
        if cell.day >= asked.window.since
        and cell.unit in units
        and (asked.platform is None or may_be(asked.platform, cell.platform))
    )


def _strangers(
    by_release: Mapping[str, Sequence[PlatformSum]], counted: Collection[str], asked: Asked
) -> Mapping[str, int]:
    """Count failures of releases without attempts; where one is asked for, its own and what names no release."""
    found = {
        name: _failures(cells, asked, units=(asked.unit,))
        for name, cells in by_release.items()
        if name not in counted and (asked.release is None or name in (asked.release, UNKNOWN))
    }
    return MappingProxyType({name: count for name, count in found.items() if count})


def _together(several: Iterable[Days]) -> Days:
    sums: Days = {}
    for days in several:
        for day, tally in days.items():
            sums[day] = sums.get(day, _NOTHING) + tally
    return dict(sorted(sums.items()))


def _by_name(parts: Sequence[_Part], whole: Days, by: By) -> dict[str, Days]:
    """Return the days of each line of the picture."""
    if by is By.RELEASE:
        return {part.counted.lot.releases[0]: _together(part.lines.values()) for part in parts}
    if by is By.PLATFORM:
        names = sorted({name for part in parts for name in part.lines})
        return {name: _together(part.lines.get(name, {}) for part in parts) for name in names}
    return {MAIN: whole, FALLBACK: whole} if by is By.PATH else {ALL: whole}


def _lines(named: Mapping[str, Days], asked: Asked) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Return the lines with the most attempts in the window, and the names of the others that have any."""
    window = asked.window
    sums = {
        name: sum(tally.attempts for day, tally in days.items() if day >= window.since) for name, days in named.items()
    }
    names = [name for name in sums if sums[name]]
    if asked.by is not By.PATH:
        names.sort(key=lambda name: (-sums[name], name))
    lines = tuple(
        Line(
            name,
            sums[name],
            tuple(
                Point(day, _rate(named[name][day], name, asked) if day in named[name] else None)
                for day in (window.since + timedelta(n) for n in range(window.days))
            ),
        )
        for name in names[:MOST_LINES]
    )
    return lines, tuple(names[MOST_LINES:])


def _rate(tally: Tally, name: str, asked: Asked) -> Rate:
    """Return what a line shows of a day: of the paths what each one's own failures are counted on."""
    if asked.by is not By.PATH:
        return rate(*tally.of(asked.measure))
    if name == MAIN:
        return rate(*tally.of(Measure.PRIMARY))
    return rate(tally.unanswered, reached(tally))


def reached(tally: Tally) -> int:
    """Return how many attempts reached the fallback: the main path failed, or they were sent past it."""
    return tally.primary + tally.attempts - tally.tried


def lots_of(counted: Iterable[Counted], days: Collection[date] | None = None) -> tuple[Lot, ...]:
    """Return what is counted of these days (``None``: of all), releases of which the same counts together."""
    lots: dict[tuple[tuple[str, ...], tuple[str, ...] | None, tuple[date, ...]], list[str]] = defaultdict(list)
    for one in counted:
        if days is None or one.days & set(days):
            lots[one.lot.units, one.lot.platforms, one.lot.untold].extend(one.lot.releases)
    return tuple(Lot(tuple(names), *key) for key, names in lots.items())
