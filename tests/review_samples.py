"""Reviews for tests of the report: good, bad, empty, small, overridden, hostile and long; computed as real ones are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from crashpath.dashboard.intervals import compared, rate
from crashpath.dashboard.review_model import (
    Apart,
    Change,
    ClassRow,
    Cohort,
    CohortRow,
    Compared,
    DayRow,
    Look,
    Measure,
    Movement,
    Override,
    Proof,
    Reason,
    Review,
    Share,
    Threshold,
    UnitReport,
    Verdict,
)
from crashpath.ingest.classes import HEADLINES, headline_of

AT = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)
FIRST = date(2026, 11, 1)
EMPTY_PROOF = Proof((), None, None, 0, (), None, None, None, None, ())
PROOF = Proof(
    (Share("main", 981, 1000), Share("fallback", 1999, 2000), Share("routes", 12, 12), Share("drills", 0, 0)),
    "tiny-1a2b",
    3.5,
    112,
    ("hang-in-load",),
    0.9582,
    0.724,
    0.81,
    0.19,
    ("device_fault", "network_auth"),
)
HOSTILE = (
    "\x1b[31mred\x1b[0m [bold]|pipe| `tick` @everyone #1 <script>alert(1)</script> ![i](http://evil.example/x.png) "
    "[l](https://evil.example) www.evil.example a@evil.example \u202egnp\u2066\u200b None nan {{ 7 * 7 }} </title> -->"
    "\n# head\n| - | - |\n```"
)

Counts = tuple[int, int]


def both(primary: Counts, unanswered: Counts, base: tuple[Counts, Counts] | None) -> dict[Measure, Compared]:
    """Three measures of a release beside its baseline, from failures and attempts of primary and unanswered."""

    def one(now: Counts, then: Counts | None) -> Compared:
        return compared(rate(*now), None if then is None else rate(*then))

    contained = (primary[0] - unanswered[0], primary[1])
    before = None if base is None else (base[0][0] - base[1][0], base[0][1])
    return {
        Measure.PRIMARY: one(primary, None if base is None else base[0]),
        Measure.UNANSWERED: one(unanswered, None if base is None else base[1]),
        Measure.CONTAINED: one(contained, before),
    }


def class_rows(now: Mapping[str, int], attempts: int, then: Mapping[str, int], before: int) -> tuple[ClassRow, ...]:
    """Rows of classes and of the headlines that they are in."""
    rows = []
    total, old = sum(now.values()), sum(then.values())

    def row(headline: str, name: str | None, here: int, there: int) -> ClassRow:
        both = compared(rate(here, attempts), rate(there, before) if before else None)
        return ClassRow(headline, name, both, here / total if total else None, there / old if old else None)

    for headline in HEADLINES:
        inside = [name for name in now if headline_of(name) == headline]
        rows.append(row(headline, None, sum(now[one] for one in inside), sum(then.get(one, 0) for one in inside)))
        rows += [row(headline, name, now[name], then.get(name, 0)) for name in inside]
    return tuple(rows)


def day_rows(release: str, first: date, days: int, attempts: int, parts: Sequence[int]) -> tuple[DayRow, ...]:
    """Days with attempts; the failures of each are taken from ``parts`` in turn. Day 7 of each week was not told."""
    rows = []
    for i in range(days):
        failures = parts[i % len(parts)]
        told = None if i % 7 == 6 else attempts
        counted = told or 0
        rows.append(
            DayRow(
                release,
                first + timedelta(days=i),
                told,
                rate(failures, counted),
                rate(failures // 2, counted),
            )
        )
    return tuple(rows)


def go() -> Review:
    """A release that is shown to be good, beside a baseline that was worse."""
    now = {"oom_host": 31, "load_timeout": 5, "shape_inference": 900, "hang": 624}
    then = {"oom_host": 12484, "load_timeout": 5277, "tokenizer": 3689}
    rates = both((1560, 150_000), (312, 150_000), ((21_450, 150_000), (18_100, 150_000)))
    cohorts = tuple(
        CohortRow(
            Cohort(name, "minilm"),
            both((x, n), (x // 5, n), ((x * 9, n), (x * 8, n))),
            None,
        )
        for name, x, n in (("linux-gpu", 900, 80_000), ("linux-cpu", 360, 50_000), ("android", 300, 20_000))
    )
    days = (
        *day_rows("2026.11", FIRST, 14, 10_714, (1500, 1620, 1480, 1555)),
        *day_rows("2026.12", FIRST + timedelta(days=14), 14, 10_714, (110, 98, 121)),
    )
    unit = UnitReport("deployment", rates, cohorts, class_rows(now, 150_000, then, 150_000), days, None)
    return Review(
        verdict=Verdict.GO,
        outcome=Verdict.GO,
        release="2026.12",
        baseline="2026.11",
        unit="deployment",
        at=AT,
        first_day=FIRST + timedelta(days=14),
        last_day=FIRST + timedelta(days=27),
        looks=3,
        earlier=(
            Look(1, AT - timedelta(days=2), Verdict.HOLD, 40, 4_000, "2026.11"),
            Look(2, AT - timedelta(days=1), Verdict.HOLD, 700, 70_000, "2026.11"),
        ),
        overrides=(),
        reasons=(),
        thresholds=(
            Threshold("limits.unanswered (deployment)", "", "at most 1.09 %", "0.21 % (312 of 150,000)", True, 0.0109),
            Threshold(
                "cohorts.unanswered (deployment)",
                "android / minilm",
                "at most 8.00 %",
                "0.30 % (60 of 20,000)",
                True,
                0.08,
            ),
            Threshold("baseline.unanswered (deployment)", "", "at most 1.25 times 12.1 %, or 0.10 %", "0.21 %", True),
        ),
        units=(unit,),
        movements=(
            Movement(
                Change.GONE,
                "class",
                "tokenizer",
                "Tokenizer does not fit",
                "tokenizer",
                0,
                3689,
                0.0,
                1e-300,
                "none, 3,689 failures (2.46 %) in the baseline",
            ),
        ),
        apart=(Apart(12, "12 failures are of days of which no attempts were told."),),
        proof=PROOF,
        notes=("The last night is 5 hours old.",),
        policy="the defaults",
        alpha=0.05,
        method=("Rates: e-processes of mixtures of likelihood ratios.", "Intervals: Clopper and Pearson."),
    )


def no_go() -> Review:
    """The same release with one class that regressed."""
    review = go()
    now = {"oom_host": 31, "load_timeout": 5, "tokenizer": 4100, "shape_inference": 900, "hang": 624}
    then = {"oom_host": 12484, "load_timeout": 5277, "tokenizer": 3689}
    unit = replace(review.units[0], classes=class_rows(now, 150_000, then, 300_000), attempts_needed=None)
    return replace(
        review,
        verdict=Verdict.NO_GO,
        outcome=Verdict.NO_GO,
        units=(unit,),
        reasons=(
            Reason(
                Verdict.NO_GO,
                "classes.regressed_ratio",
                "tokenizer",
                "4,100 of 150,000 deployments (2.73 %) failed with it, against 1.23 % before",
                ("C-0042", "C-0107"),
                "crashpath show C-0042",
                3.2e140,
                None,
            ),
            Reason(
                Verdict.HOLD,
                "cohorts.unanswered",
                "android / minilm",
                "60 of 20,000 deployments (0.30 %) of android / minilm were not answered",
                (),
                "crashpath trends --by class --platform android",
                7.4,
                12_300,
            ),
        ),
        movements=(
            *review.movements,
            Movement(
                Change.REGRESSED,
                "cluster",
                "C-0042",
                "tokenizer.json of vocabulary 30522 against 30500",
                "tokenizer",
                4100,
                3689,
                2.223,
                0.0000021,
                "4,100 failures (2.73 % of deployments), 1.23 % in the baseline: 2.22 times",
            ),
        ),
    )


def no_data() -> Review:
    """Nothing was told of the release."""
    return replace(
        go(),
        verdict=Verdict.HOLD,
        outcome=Verdict.HOLD,
        release="2027.01",
        baseline=None,
        unit=None,
        first_day=None,
        last_day=None,
        looks=1,
        earlier=(),
        units=(),
        movements=(),
        apart=(),
        thresholds=(Threshold("limits.unanswered (deployment)", "", "at most 1.09 %", "no rate", None, 0.0109),),
        proof=EMPTY_PROOF,
        notes=(),
        reasons=(
            Reason(
                Verdict.HOLD,
                "data",
                "",
                "No attempts are told of release 2027.01.",
                (),
                "crashpath attempts load FILE",
                None,
                None,
            ),
        ),
    )


def small() -> Review:
    """Three attempts in one cohort, of another none, and a day on which more failed than was tried."""
    rates = both((1, 3), (0, 3), None)
    cohorts = (
        CohortRow(Cohort("ios", "minilm"), rates, None),
        CohortRow(Cohort("macos", "minilm"), both((0, 0), (0, 0), None), "no log source of it was looked at"),
    )
    days = (
        DayRow("2026.12", FIRST, 3, rate(1, 3), rate(0, 3)),
        DayRow("2026.12", FIRST + timedelta(days=1), None, rate(4, 0), rate(4, 0)),
        DayRow("2026.12", FIRST + timedelta(days=2), 2, rate(5, 2), rate(5, 2)),
    )
    unit = UnitReport("deployment", rates, cohorts, class_rows({"hang": 1}, 3, {}, 0), days, 271)
    return replace(
        no_data(),
        release="2026.12",
        unit="deployment",
        first_day=FIRST,
        last_day=FIRST + timedelta(days=2),
        units=(unit,),
        apart=(Apart(4, "4 failures are of a day of which no attempts were told."),),
        reasons=(
            Reason(
                Verdict.HOLD,
                "limits.unanswered",
                "",
                "0 of 3 deployments (0 %) were not answered",
                (),
                "crashpath review --release 2026.12",
                1.03,
                271,
            ),
        ),
    )


def overridden(why: str = "Only the fleet of the laboratory fails; it is left out of this release") -> Review:
    """A NO-GO that a person overrode, after an override that was undone."""
    kim = Override(9, AT - timedelta(hours=1), "kim", why, Verdict.GO, Verdict.NO_GO, True, False)
    undone = replace(kim, decision=7, why="too early", holds=False, undone=True)
    return replace(no_go(), outcome=Verdict.GO, overrides=(undone, kim))


def hostile() -> Review:
    """Every text that comes from logs, files or people tries to be something else."""
    review = overridden(HOSTILE)
    unit = review.units[0]
    bad = HOSTILE * 3
    days = tuple(replace(day, release=bad if day.release == "2026.12" else day.release) for day in unit.days)
    cohorts = tuple(replace(row, cohort=Cohort(bad, str(i)), problem=bad) for i, row in enumerate(unit.cohorts))
    classes = tuple(replace(row, failure_class=row.failure_class and bad) for row in unit.classes)
    return replace(
        review,
        release=bad,
        baseline="2026.11",
        units=(replace(unit, days=days, cohorts=cohorts, classes=classes),),
        reasons=tuple(
            replace(one, subject=bad, sentence=bad, evidence=(bad, bad), command=f"crashpath show '{bad}'")
            for one in review.reasons
        ),
        movements=tuple(replace(one, key=bad, title=bad, sentence=bad) for one in review.movements),
        thresholds=tuple(replace(one, subject=bad, limit=bad, measured=bad) for one in review.thresholds),
        apart=(Apart(1, bad),),
        proof=replace(PROOF, model=bad, red=(bad,), uncovered_field_classes=(bad,), shares=(Share(bad, 1, 3),)),
        overrides=tuple(replace(one, who=bad, why=bad) for one in review.overrides),
        notes=(bad,),
        policy=bad,
        method=(bad,),
    )


def long() -> Review:
    """40 cohorts, 60 days, hundreds of everything, and counts of billions."""
    review = no_go()
    most = 5_000_000_000
    cohorts = tuple(
        CohortRow(
            Cohort(f"platform-with-a-name-of-some-length-{i}", f"model-{i % 7}"),
            both((i * 1000 + 3, most // 40), (i * 400, most // 40), ((i * 900, most // 40), (i * 390, most // 40))),
            "no log source of it was looked at" if i % 5 == 0 else None,
        )
        for i in range(40)
    )
    days = (
        *day_rows("2026.11", date(2026, 8, 1), 60, most // 60, (800_000, 900_000, 850_000)),
        *day_rows("2026.12", date(2026, 10, 15), 60, most // 60, (120_000, 90_000)),
    )
    rates = both((52_000_001, most), (5_200_000, most), ((51_000_000, most), (5_100_000, most)))
    unit = replace(review.units[0], cohorts=cohorts, days=days, rates=rates)
    load = replace(unit, unit="load", cohorts=(), days=(), classes=())
    return replace(
        review,
        units=(unit, load),
        reasons=review.reasons * 100,
        movements=review.movements * 200,
        thresholds=review.thresholds * 200,
        earlier=tuple(
            Look(i, AT - timedelta(days=60 - i), Verdict.HOLD, i * 1000, i * 80_000_000, "2026.11")
            for i in range(1, 60)
        ),
        looks=60,
        notes=review.notes * 300,
    )


SAMPLES = {
    "go": go,
    "no_go": no_go,
    "no_data": no_data,
    "small": small,
    "overridden": overridden,
    "hostile": hostile,
    "long": long,
}
