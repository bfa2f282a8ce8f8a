"""What the page Trends shows, as values: rates by day and line, failures by class, and what is in no rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from crashpath.dashboard.review_model import Measure, Rate
from crashpath.dashboard.sides import Tally
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_trends import Lot

ALL = "all"
MAIN, FALLBACK = "main path", "fallback"


class By(StrEnum):
    """What has a line of its own."""

    NOTHING = "nothing"
    RELEASE = "release"
    PLATFORM = "platform"
    PATH = "path"


@dataclass(frozen=True, slots=True)
class Window:
    """UTC days, both inclusive. ``before`` is the first day of the window before, which is as long as far as anything
    is known of it; ``None`` where nothing is.
    """

    since: date
    until: date
    before: date | None

    @property
    def first(self) -> date:
        """The first day that is read."""
        return self.before or self.since

    @property
    def days(self) -> int:
        """How many days there are."""
        return (self.until - self.since).days + 1

    def drawn(self, days: Iterable[date]) -> Window:
        """Return it from the first of these days on: a picture has no room for what nothing is known of."""
        first = min((day for day in days if day >= self.since), default=self.since)
        return Window(first, self.until, self.before)

    @property
    def days_before(self) -> int:
        """How many days the window before has."""
        return (self.since - self.first).days


@dataclass(frozen=True, slots=True)
class Asked:
    """One view of the rates. ``None`` lets all releases, or platforms, pass."""

    unit: str
    by: By
    measure: Measure
    release: str | None
    platform: str | None
    window: Window


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of attempts, by release, summed over models and paths; nothing of days to come but how many
    ``ahead`` there are, by unit.
    """

    releases: Mapping[str, tuple[AttemptCount, ...]]
    units: tuple[str, ...]
    platforms: tuple[str, ...]
    first: date | None
    last: date | None
    ahead: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Point:
    """A line's rate on a UTC day; ``None`` on a day of which no attempts are told."""

    day: date
    rate: Rate | None


@dataclass(frozen=True, slots=True)
class Line:
    """Rates by day, one point for each day of the window. ``attempts`` are those of the window."""

    name: str
    attempts: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Failed attempts of the window that are in no rate.

    ``strangers`` by release: no attempts are told of it in this unit. ``bare``: on days of which none are told of their
    release. ``phaseless``: of an unknown phase where attempts of several units are told. ``vague``: their platform may
    be each of several.
    """

    strangers: Mapping[str, int]
    bare: int
    phaseless: int
    vague: int


@dataclass(frozen=True, slots=True)
class Counted:
    """The failures of one release that its rates count: of these ``lot``'s, those on ``days`` (with attempts)."""

    lot: Lot
    days: frozenset[date]


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one view. ``before`` are the sums of the window before, ``None`` where there is none.

    ``others`` are lines left out, the most attempts first. ``told_days`` of the window's days have attempts,
    ``before_days`` of the window before. ``days`` are the sums of all lines by day.
    """

    asked: Asked
    tally: Tally
    before: Tally | None
    told_days: int
    before_days: int
    days: Mapping[date, Tally]
    lines: tuple[Line, ...]
    others: tuple[str, ...]
    left_out: LeftOut
    counted: tuple[Counted, ...]


@dataclass(frozen=True, slots=True)
class ClassFigure:
    """Failures of a class over the window; ``failure_class`` is ``None`` for a whole headline.

    In counts ``rate`` has no attempts, and its failures are crashes.
    """

    headline: str
    failure_class: str | None
    rate: Rate

    @property
    def name(self) -> str:
        """What it is called on its level."""
        return self.failure_class or self.headline


@dataclass(frozen=True, slots=True)
class ClassDay:
    """Failures of a class on a UTC day, of so many attempts that tried the main path (0 in counts)."""

    day: date
    failure_class: str
    failures: int
    tried: int


@dataclass(frozen=True, slots=True)
class Classes:
    """Failures by headline and class. ``unlogged`` are told by counts of attempts alone and have no class."""

    figures: tuple[ClassFigure, ...]
    days: tuple[ClassDay, ...]
    unlogged: int


@dataclass(frozen=True, slots=True)
class Behind:
    """One cluster behind a point: ``count`` failed attempts, or crashes in counts."""

    cluster: str | None
    title: str
    failure_class: str
    count: int
