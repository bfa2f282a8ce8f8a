"""Rates over days are those of the reviews of each release; what has no attempts is apart, and never in a rate."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import event

from crashpath.dashboard.evidence import gather
from crashpath.dashboard.intervals import rate
from crashpath.dashboard.review_model import Measure
from crashpath.dashboard.sides import Tally
from crashpath.dashboard.trends_classes import class_counts, class_rates, level
from crashpath.dashboard.trends_counts import OTHERS, counts_of
from crashpath.dashboard.trends_model import ALL, FALLBACK, MAIN, Asked, By, Classes, Rates, Told, Window
from crashpath.dashboard.trends_rates import MOST_LINES, lots_of, rates_of, told_of
from crashpath.dashboard.trends_view import (
    read_began,
    read_classes,
    read_crashes,
    read_crashes_behind,
    read_failed,
    read_failed_behind,
    read_known,
    read_stale,
    read_told,
)
from crashpath.dashboard.trends_words import figures_of, gap_words, left_out_words
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_attempts import FailedAttempts, failed_attempts
from crashpath.ingest.failed_trends import ClassSum, PlatformSum
from crashpath.ingest.stale import mark_stale
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.testing import new_database
from crashpath.ingest.trends import DayCount, Filters

_SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("trends_samples.py"))))
DAYS, FIRST, LAST, PLATFORMS, SILENT = (
    getattr(_SAMPLE, name) for name in ("DAYS", "FIRST", "LAST", "PLATFORMS", "SILENT")
)
TODAY = _SAMPLE.TODAY
WEEK = Window(FIRST + timedelta(days=14), LAST, FIRST + timedelta(days=7))
WHOLE = Window(FIRST, LAST, None)
UNITS = ("deployment", "request")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The sample's store, on each database in turn."""
    folder = tmp_path_factory.mktemp("trends")
    url = f"sqlite:///{folder}/store.db"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgres_server"), "trends")
    with open_store(url) as store:
        _SAMPLE.fill(store, folder)
        yield store


def asked(unit: str = "deployment", by: By = By.NOTHING, window: Window = WHOLE, **more: str) -> Asked:
    """Ask for primary failures of all."""
    return replace(Asked(unit, by, Measure.PRIMARY, None, None, window), **more)  # type: ignore[arg-type]  # by name


def rates(store: Store, what: Asked) -> Rates:
    """Return rates as the page has them."""
    with store.read() as session:
        return rates_of(read_told(session, TODAY), read_failed(session, what.window.first, what.window.until), what)


def classes(store: Store, found: Rates, platforms: tuple[str, ...] | None = None) -> Classes:
    """Return classes as the page has them."""
    window = found.asked.window
    names = tuple(name for one in found.counted for name in one.lot.releases)
    units = tuple({unit for one in found.counted for unit in one.lot.units})
    with store.read() as session:
        return class_rates(found, read_classes(session, names, units, window.since, window.until, platforms))


def reviewed(store: Store, unit: str) -> dict[str, dict[date, Tally]]:
    """Return, by release, the days with attempts as its review has them."""
    found = {}
    with store.read() as session:
        for name in ("1.0", "1.1"):
            side = gather(session, name, None, at=datetime(2026, 4, 1, tzinfo=UTC)).release.side(unit)
            assert side is not None
            found[name] = {day: tally for day, tally in side.days.items() if day not in side.without_attempts}
    return found


def raw(store: Store) -> tuple[FailedAttempts, ...]:
    """Count every crash once more, without what is kept of failures."""
    with store.read() as session:
        return failed_attempts(session)


@pytest.mark.parametrize("unit", UNITS)
def test_days_are_those_of_the_reviews(filled: Store, unit: str) -> None:
    """Each day's sums over all releases are the sums of the reviews' days, by release each review's own."""
    sides = reviewed(filled, unit)
    found = rates(filled, asked(unit))
    assert found.days == {
        day: sum((days[day] for days in sides.values() if day in days), Tally())
        for day in sorted({day for days in sides.values() for day in days})
    }
    lines = {line.name: line for line in rates(filled, asked(unit, By.RELEASE)).lines}
    assert list(lines) == ["1.0", "1.1"]  # the most attempts first
    for name, days in sides.items():
        told = {point.day: point.rate for point in lines[name].points if point.rate is not None}
        assert told == {day: rate(tally.primary, tally.tried) for day, tally in days.items()}


@pytest.mark.parametrize("measure", list(Measure))
def test_measures_are_those_of_a_review(filled: Store, measure: Measure) -> None:
    """Primary, unanswered and contained are counted on what a review counts them on."""
    found = rates(filled, replace(asked("request"), measure=measure))
    points = {point.day: point.rate for point in found.lines[0].points}
    assert points == {day: rate(*tally.of(measure)) for day, tally in found.days.items()}
    assert any(one is not None and one.failures for one in points.values())


def test_failures_are_those_that_the_crashes_tell(filled: Store) -> None:
    """Where no count tells of failures, those of a day and platform are the distinct attempts of its crashes."""
    expected: Counter[tuple[str, date]] = Counter()
    for row in raw(filled):
        if row.unit == "deployment" and row.release in ("1.0", "1.1") and row.day not in SILENT:
            expected[row.platform, row.day] += row.attempts
    with filled.read() as session:
        told = read_told(session, TODAY)
        bare = {name: tuple(replace(row, failures=None) for row in rows) for name, rows in told.releases.items()}
        found = rates_of(replace(told, releases=bare), read_failed(session, FIRST, LAST), asked(by=By.PLATFORM))
    drawn = {
        (line.name, point.day): point.rate.failures
        for line in found.lines
        for point in line.points
        if point.rate is not None
    }
    assert {line.name for line in found.lines} == set(PLATFORMS)
    assert {key: count for key, count in drawn.items() if count} == dict(expected)


def test_a_day_without_attempts_is_a_gap_and_its_failures_are_told_apart(filled: Store) -> None:
    """Failures of such a day are in no rate; how many they are is said, as is how many days these are."""
    found = rates(filled, asked())
    assert {point.day for point in found.lines[0].points if point.rate is None} == SILENT
    assert len(found.lines[0].points) == DAYS
    assert (found.told_days, gap_words(found)) == (
        DAYS - 2,
        "No deployments are told on 2 days, where the line has a gap.",
    )
    lost = [row for row in raw(filled) if row.unit == "deployment" and row.day in SILENT]
    assert found.left_out.bare == sum(row.attempts for row in lost if row.release in ("1.0", "1.1")) > 0


def test_what_is_in_no_rate_is_counted_by_its_reason(filled: Store) -> None:
    """Releases without attempts, failures without a release and of an unknown phase are in no line, and are said."""
    rows = raw(filled)
    found = rates(filled, asked())
    assert found.left_out.strangers == {
        name: sum(row.attempts for row in rows if row.unit == "deployment" and row.release == name)
        for name in ("1.2", "unknown")
    }
    assert all(found.left_out.strangers.values())
    assert found.left_out.phaseless == sum(
        row.attempts for row in rows if row.unit == "unknown" and row.release in ("1.0", "1.1")
    )
    words = left_out_words(found)
    assert words[0].endswith("of release 1.2, of which no deployments are told")
    assert words[1].endswith("that name no release")
    assert any("name no phase" in one for one in words)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_is_filtered_on_both_sides(filled: Store, platform: str) -> None:
    """Attempts and failures are both of that platform; its line is the one that it has by platform."""
    alone = rates(filled, asked(platform=platform))
    by = {line.name: line for line in rates(filled, asked(by=By.PLATFORM)).lines}
    assert alone.lines[0].points == by[platform].points
    assert alone.tally.attempts == by[platform].attempts < rates(filled, asked()).tally.attempts


def test_figures_do_not_depend_on_what_has_a_line(filled: Store) -> None:
    """The sums of a window are the same whatever its lines are by."""
    several = [rates(filled, asked(by=by, window=WEEK)) for by in By]
    assert len({(one.tally, one.before) for one in several}) == 1


def test_the_window_before_is_beside_it(filled: Store) -> None:
    """As many days, just before, and in no line; all days have none before them."""
    found = rates(filled, asked(window=WEEK))
    whole = rates(filled, asked()).days
    assert found.tally == sum((tally for day, tally in whole.items() if day >= WEEK.since), Tally())
    before = [tally for day, tally in whole.items() if WEEK.first <= day < WEEK.since]
    assert (found.before, found.before_days) == (sum(before, Tally()), 7)
    assert {point.day for point in found.lines[0].points} == {WEEK.since + timedelta(days=n) for n in range(7)}
    assert rates(filled, asked()).before is None
    primary, unanswered, contained, crashes = figures_of(found, 40, 60)
    assert primary.value.endswith(" %")
    assert "Window before:" in primary.lines[1]
    assert f"of {found.tally.primary:,}." in contained.lines[0]
    assert (crashes.value, crashes.change, crashes.worse) == ("40", "−20", None)
    assert unanswered.lines[0].endswith(f"of {found.tally.attempts:,}.")


def test_a_path_is_counted_on_what_reached_it(filled: Store) -> None:
    """The main path: of what tried it, what failed. The fallback: of what failed there or was sent past, the rest."""
    found = rates(filled, asked("request", By.PATH))
    main, fallback = found.lines
    assert (main.name, fallback.name) == (MAIN, FALLBACK)
    for one, other in zip(main.points, fallback.points, strict=True):
        tally = found.days[one.day]
        assert one.rate == rate(tally.primary, tally.tried)
        assert other.rate == rate(tally.unanswered, tally.primary + (tally.attempts - tally.tried))
    assert any(tally.attempts > tally.tried for tally in found.days.values())


@pytest.mark.parametrize("unit", UNITS)
def test_classes_are_failures_with_a_denominator(filled: Store, unit: str) -> None:
    """Each class has the distinct attempts of its crashes, on days with attempts, over the attempts that tried."""
    expected: Counter[str] = Counter()
    by_day: Counter[tuple[date, str]] = Counter()
    silent = SILENT if unit == "deployment" else ()
    for row in raw(filled):
        if row.unit == unit and row.release in ("1.0", "1.1") and row.day not in silent:
            expected[row.failure_class] += row.attempts
            by_day[row.day, row.failure_class] += row.attempts
    found = rates(filled, asked(unit))
    shown = classes(filled, found)
    assert {one.name: one.rate for one in shown.figures if one.failure_class} == {
        name: rate(count, found.tally.tried) for name, count in expected.items()
    }
    assert {(one.day, one.failure_class): one.failures for one in shown.days} == dict(by_day)
    assert all(one.tried == found.days[one.day].tried for one in shown.days)
    assert shown.unlogged == found.tally.primary - expected.total() > 0


def test_headlines_are_the_sums_of_their_classes(filled: Store) -> None:
    """What is opened adds up to what was closed, over the window and by day."""
    shown = classes(filled, rates(filled, asked()))
    closed = level(shown, None)
    for one in closed.figures:
        opened = level(shown, one.headline)
        assert one.rate.failures == sum(figure.rate.failures for figure in opened.figures)
        days = [day.failures for day in closed.days if day.failure_class == one.headline]
        assert sum(days) == sum(day.failures for day in opened.days) == one.rate.failures


def test_classes_of_a_platform_are_its_own(filled: Store) -> None:
    """With a platform chosen, its failures alone are in a class."""
    found = [rates(filled, asked(platform=platform)) for platform in PLATFORMS]
    whole = classes(filled, rates(filled, asked()))
    counted = [
        sum(one.rate.failures for one in level(classes(filled, one, (platform,)), None).figures)
        for one, platform in zip(found, PLATFORMS, strict=True)
    ]
    assert sum(counted) == sum(one.rate.failures for one in level(whole, None).figures)
    assert all(counted)


@pytest.mark.parametrize("by", [By.NOTHING, By.RELEASE, By.PLATFORM])
def test_clusters_behind_a_point_are_its_failures(filled: Store, by: By) -> None:
    """Of a day, by whatever line: their failed attempts are those of the day that crashes tell of."""
    for day in (FIRST + timedelta(days=n) for n in range(DAYS)):
        more = {} if by is By.NOTHING else {by.value: "1.0" if by is By.RELEASE else "linux"}
        found = rates(filled, asked(**more))
        with filled.read() as session:
            rows = read_failed_behind(session, lots_of(found.counted, [day]), day, day, None)
        expected = [
            row.attempts
            for row in raw(filled)
            if row.unit == "deployment" and row.day == day and day not in SILENT and row.release in ("1.0", "1.1")
            and (by is not By.RELEASE or row.release == "1.0") and (by is not By.PLATFORM or row.platform == "linux")
        ]  # fmt: skip
        assert sum(row.count for row in rows) == sum(expected)
        assert [row.count for row in rows] == sorted((row.count for row in rows), reverse=True)


def test_clusters_behind_a_class_are_of_that_class(filled: Store) -> None:
    """Over the window: the failures that its bar shows, without those of days that have no attempts."""
    found = rates(filled, asked())
    figures = {one.name: one.rate.failures for one in classes(filled, found).figures if one.failure_class}
    for name, failures in figures.items():
        with filled.read() as session:
            rows = read_failed_behind(session, lots_of(found.counted), FIRST, LAST, (name,))
        assert {row.failure_class for row in rows} == {name}
        assert sum(row.count for row in rows) == failures


def test_counts_are_of_crashes(filled: Store) -> None:
    """Without rates: crashes by day, by class, and behind a day, all the same crashes."""
    filters = Filters(FIRST, LAST)
    with filled.read() as session:
        days = read_crashes(session, "release", filters)
        behind = read_crashes_behind(session, filters, None)
        by_class = class_counts(read_crashes(session, "class", filters))
    assert sum(row.count for row in behind) == sum(row.crashes for row in days)
    assert sum(one.rate.failures for one in by_class.figures if one.failure_class) == sum(row.crashes for row in days)
    assert {one.rate.rate for one in by_class.figures} == {None}


def test_what_is_known_can_be_picked(filled: Store) -> None:
    """Releases, platforms and paths with crashes or attempts, units with attempts, and the days of both."""
    with filled.read() as session:
        known, told = read_known(session, TODAY), read_told(session, TODAY)
        assert (known.first, known.last, known.later) == (FIRST, LAST, 0)
        assert known.releases == ("1.0", "1.1", "1.2", "unknown")
        assert known.platforms == ("k8s", "linux", "unknown")
        assert set(known.paths) == {"ort", "unknown"}
        assert (told.units, told.platforms, told.last) == (("deployment", "request"), PLATFORMS, LAST)
        assert read_began(session, ("1.0", "1.1"))["1.1"] == FIRST + timedelta(days=9)
        middle = FIRST + timedelta(days=10)
        early = read_known(session, middle)
        assert (early.last, early.later > 0) == (middle, True)
        assert read_told(session, middle).ahead.keys() == {"deployment", "request"}


def test_days_that_are_not_counted_anew_are_told(filled: Store) -> None:
    """A day whose crashes were written since the last count is said to be so."""
    with filled.read() as session:
        assert read_stale(session, FIRST, LAST) == 0
        mark_stale(session, [FIRST, LAST])
        assert (read_stale(session, FIRST, LAST), read_stale(session, FIRST, FIRST)) == (2, 1)
        session.rollback()


def count(attempts: int, day: date = FIRST, **more: object) -> AttemptCount:
    """Attempts of one cohort."""
    told = {
        "unit": "load", "day": day, "release": "1.0", "platform": "linux", "model": "m", "path": "unknown",
        "attempts": attempts, "failures": None, "unanswered": None, "rerouted": None, "users": None, "devices": None,
        "via": "file",
    }  # fmt: skip
    return AttemptCount(**(told | more))  # type: ignore[arg-type]  # values by name


def few(told: Told, cells: list[PlatformSum], **more: object) -> Rates:
    """Rates of loads over two days."""
    return rates_of(told, cells, asked("load", window=Window(FIRST, FIRST + timedelta(days=1), None), **more))


def test_sums_over_models_keep_what_rows_do_not_tell() -> None:
    """A row that says nothing of what was unanswered makes the whole day's failures unanswered, as in a review."""
    cells = [PlatformSum("1.0", FIRST, "load", "linux", 4, 0, 0)]
    silent = [count(50, model="a", failures=4, unanswered=1), count(50, model="b")]
    assert few(told_of(silent, TODAY), cells).tally == Tally(100, 100, 4, 4)
    full = [count(50, model="a", failures=4, unanswered=1), count(50, model="b", failures=0, unanswered=0)]
    assert few(told_of(full, TODAY), cells).tally == Tally(100, 100, 4, 1)


def test_failures_without_a_phase_count_where_one_unit_alone_is_told() -> None:
    """As in a review, they are in its rate; with several units told they are apart."""
    cells = [PlatformSum("1.0", FIRST, "unknown", "linux", 3, 0, 0)]
    assert few(told_of([count(50)], TODAY), cells).tally.primary == 3
    both = few(told_of([count(50), count(9, unit="request")], TODAY), cells)
    assert (both.tally.primary, both.left_out.phaseless) == (0, 3)


def test_a_platform_takes_what_can_only_be_it() -> None:
    """A failure that names no platform is that of the only one told; of several it may be each one's, and is apart."""
    cells = [PlatformSum("1.0", FIRST, "load", "unknown", 3, 0, 0), PlatformSum("1.0", FIRST, "load", "bsd", 2, 0, 0)]
    one = few(told_of([count(50)], TODAY), cells, by=By.PLATFORM)
    assert (one.lines[0].points[0].rate, one.left_out.vague) == (rate(3, 50), 2)
    two = few(told_of([count(50), count(50, platform="mac")], TODAY), cells, by=By.PLATFORM)
    assert ([line.points[0].rate for line in two.lines], two.left_out.vague) == ([rate(0, 50)] * 2, 5)
    assert two.tally.primary == 5  # the whole is not split, and has all of them


def test_a_class_has_the_units_of_each_release() -> None:
    """What names no phase is in a class where its release tells of one unit alone, else in none."""
    rows = [count(50), count(50, release="1.1"), count(9, release="1.1", unit="request")]
    sums = [ClassSum(name, FIRST, "unknown", None, "hang", 2) for name in ("1.0", "1.1")]
    found = few(told_of(rows, TODAY), [PlatformSum(*one[:3], "linux", one.attempts, 0, 0) for one in sums])
    assert (found.tally.primary, found.left_out.phaseless) == (2, 2)
    assert [one.rate for one in class_rates(found, sums).figures if one.failure_class] == [rate(2, 100)]


@pytest.mark.parametrize("releases", [("1.0",), ("1.0", "1.1")])
@pytest.mark.parametrize("platforms", [None, ("linux",)])
def test_classes_are_looked_up_by_an_index(
    store: Store, releases: tuple[str, ...], platforms: tuple[str, ...] | None
) -> None:
    """However few rows SQLite expects, it does not look through all signatures for each failure."""
    asked: list[tuple[str, object]] = []
    event.listen(store.engine, "before_cursor_execute", lambda *one: asked.append(one[2:4]))
    with store.read() as session:
        read_classes(session, releases, ("load",), FIRST, LAST, platforms)
        statement, values = next(one for one in asked if "FILTER" in one[0])
        plan = session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert any("known USING AUTOMATIC COVERING INDEX" in row[3] for row in plan)
    assert any("failed_daily USING PRIMARY KEY (release=?" in row[3] for row in plan)


def test_more_failures_than_attempts_are_no_rate() -> None:
    """Such a day is told as what it is, never as more than all."""
    found = few(told_of([count(2)], TODAY), [PlatformSum("1.0", FIRST, "load", "linux", 3, 0, 0)])
    assert found.lines[0].points[0].rate == rate(3, 2)
    assert found.lines[0].points[0].rate.rate is None


def test_the_most_tried_have_a_line_and_the_rest_are_named() -> None:
    """More releases than can be told apart: the names of those with fewer attempts are there."""
    names = [f"r{number}" for number in range(MOST_LINES + 2)]
    found = few(told_of([count(100 - n, release=name) for n, name in enumerate(names)], TODAY), [], by=By.RELEASE)
    assert [line.name for line in found.lines] == names[:MOST_LINES]
    assert found.others == tuple(names[MOST_LINES:])


def test_counts_put_the_rest_together() -> None:
    """Of many names those with the most crashes have their own bars; nothing is left out of a day's sum."""
    rows = [DayCount(FIRST, f"r{n}", n + 1) for n in range(MOST_LINES + 3)]
    found = counts_of(rows, FIRST, named=True)
    assert (found.names[0], found.names[-1], len(found.others)) == (f"r{MOST_LINES + 2}", OTHERS, 3)
    assert sum(found.counts.values()) == found.crashes == sum(row.crashes for row in rows)
    assert counts_of(rows, FIRST, named=False).counts == {(FIRST, ALL): found.crashes}
