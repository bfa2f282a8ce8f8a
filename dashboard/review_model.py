"""What a release review says, as values: the same figures stand in every form of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum


class Verdict(StrEnum):
    """Whether a release may go out. HOLD: not shown to be good, and not shown to be bad."""

    GO = "GO"
    NO_GO = "NO-GO"
    HOLD = "HOLD"


class Measure(StrEnum):
    """What is counted of failed attempts: the main path failed, nobody answered, the fallback answered."""

    PRIMARY = "primary"
    UNANSWERED = "unanswered"
    CONTAINED = "contained"


@dataclass(frozen=True, slots=True)
class Rate:
    """``failures`` of ``attempts``, with the exact 95 % interval for display; ``None`` where nothing was tried.

    Rates are shares from 0 to 1. Of more failures than attempts there is no rate.
    """

    failures: int
    attempts: int
    rate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Compared:
    """A rate of the release beside the baseline's; difference in shares (release - baseline), ratio release / baseline.

    ``None`` where there is no baseline, or nothing to divide by.
    """

    release: Rate
    baseline: Rate | None
    difference: Estimate | None
    ratio: Estimate | None


@dataclass(frozen=True, slots=True, order=True)
class Cohort:
    """A part of a release's deployments."""

    platform: str
    model: str

    def __str__(self) -> str:
        return f"{self.platform} / {self.model}"


@dataclass(frozen=True, slots=True)
class CohortRow:
    """Rates of one cohort. ``problem`` is a sentence where they cannot be told or trusted."""

    cohort: Cohort
    rates: Mapping[Measure, Compared]
    problem: str | None


@dataclass(frozen=True, slots=True)
class ClassRow:
    """Failed attempts (primary) of one failure class; ``share`` of all failed attempts, ``None`` where there are none.

    ``failure_class`` is ``None`` on the row of a whole headline.
    """

    headline: str
    failure_class: str | None
    rate: Compared
    share: float | None
    baseline_share: float | None


@dataclass(frozen=True, slots=True)
class DayRow:
    """One UTC day of one release: ``attempts`` is ``None`` on a day of which no attempts were told."""

    release: str
    day: date
    attempts: int | None
    primary: Rate
    unanswered: Rate


class Change(StrEnum):
    """How a class or cluster moved from the baseline to the release, or in the last days."""

    NEW = "new"
    REGRESSED = "regressed"
    SPIKING = "spiking"
    FADING = "fading"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Movement:
    """A class or cluster that moved. ``p`` is corrected for all that were looked at; ``None`` where none was computed.

    ``key`` is a class id or a cluster id (``C-0042``), ``title`` what people call it. Failures are failed attempts.
    """

    change: Change
    level: str
    key: str
    title: str
    headline: str
    failures: int
    before: int
    ratio: float | None
    p: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class UnitReport:
    """All that is counted in one unit. ``attempts_needed``: how many more until a verdict is likely; ``None``: none."""

    unit: str
    rates: Mapping[Measure, Compared]
    cohorts: tuple[CohortRow, ...]
    classes: tuple[ClassRow, ...]
    days: tuple[DayRow, ...]
    attempts_needed: int | None


@dataclass(frozen=True, slots=True)
class Apart:
    """Failed attempts that stand on no denominator: they count against a GO and for no NO-GO."""

    failures: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Threshold:
    """A rule of the policy beside what was measured, both in words; ``met`` is ``None`` where it is not shown yet.

    Of a ``guard`` nothing has to be shown: it is met as long as no breach is, whatever the measured figure.
    ``rule`` is the key in the policy file, ``subject`` the cohort, class or cluster where it is about one.
    ``limit_rate`` is the limit as a share where it is a highest rate: pictures draw it as a line.
    """

    rule: str
    subject: str
    limit: str
    measured: str
    met: bool | None
    limit_rate: float | None = None
    guard: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict; a NO-GO's come first, the strongest of them first.

    ``evidence`` are ids that can be looked up (clusters, faults), ``command`` how, or what would settle it.
    ``e_value`` is the weight of the evidence where the reason is a test (20 speaks as strongly as p = .05).
    ``about`` is each thing that it is about, by a name that stays, where ``subject`` counts or describes them.
    """

    verdict: Verdict
    rule: str
    subject: str
    sentence: str
    evidence: tuple[str, ...] = ()
    command: str = ""
    e_value: float | None = None
    attempts_needed: int | None = None
    unit: str = ""
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """An earlier look at the same release."""

    number: int
    at: datetime
    verdict: Verdict
    failures: int
    attempts: int
    baseline: str | None


@dataclass(frozen=True, slots=True)
class Override:
    """What a person decided in place of a verdict. ``holds``: it covers all reasons that there are now."""

    decision: int
    at: datetime
    who: str
    why: str
    verdict: Verdict
    over: Verdict
    holds: bool
    undone: bool


@dataclass(frozen=True, slots=True)
class Share:
    """``covered`` of ``total`` declared units."""

    name: str
    covered: int
    total: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proven of the two paths for this release. ``shares`` is empty where nothing was.

    ``contained``, ``checked`` and ``unproven`` are shares of the field's crashes, ``None`` without any.
    ``lower_bound``: 95 % lower bound of the share of drills that pass, ``None`` without drills.
    """

    shares: tuple[Share, ...]
    model: str | None
    age_days: float | None
    drills: int
    red: tuple[str, ...]
    lower_bound: float | None
    contained: float | None
    checked: float | None
    unproven: float | None
    uncovered_field_classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """The evidence for one release against a baseline, and its verdict. ``unit`` is that of the headline figures.

    ``outcome`` is the verdict, or what a person's override that holds put in its place. ``looks`` counts this one.
    """

    verdict: Verdict
    outcome: Verdict
    release: str
    baseline: str | None
    unit: str | None
    at: datetime
    first_day: date | None
    last_day: date | None
    looks: int
    earlier: tuple[Look, ...]
    overrides: tuple[Override, ...]
    reasons: tuple[Reason, ...]
    thresholds: tuple[Threshold, ...]
    units: tuple[UnitReport, ...]
    movements: tuple[Movement, ...]
    apart: tuple[Apart, ...]
    proof: Proof
    notes: tuple[str, ...]
    policy: str
    alpha: float
    method: tuple[str, ...]

    @property
    def main(self) -> UnitReport | None:
        """The report of the unit that the headline figures count in."""
        return next((one for one in self.units if one.unit == self.unit), None)

    @property
    def attempts_needed(self) -> int | None:
        """Attempts still needed in that unit."""
        return None if self.main is None else self.main.attempts_needed
