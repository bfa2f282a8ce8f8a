"""The kept counts of failed attempts are those that counting all crashes at once gives, whatever happened between."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from alembic import command
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from crashpath.ingest import failed_daily, migrate
from crashpath.ingest.deaths import join_deaths
from crashpath.ingest.failed_attempts import failed_attempts
from crashpath.ingest.failed_daily import Refreshed, refresh_failures
from crashpath.ingest.failed_read import failed_cells, releases, stale_days
from crashpath.ingest.failed_sums import counted_alone, failed_clusters, failed_cohorts, failed_days
from crashpath.ingest.ledger import Ledger, SourceIdentity
from crashpath.ingest.model import Analysis, Facts, Mark, Parsed
from crashpath.ingest.nights import start_night
from crashpath.ingest.stale import mark_stale
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster, Crash, Signature
from crashpath.ingest.tables_counts import FailedCohort, FailedDaily
from crashpath.ingest.testing import made_up, same
from crashpath.ingest.write import EndOfSource, Writer

NOW = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)
MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)
END = EndOfSource(10_000, NOW)
CLASSES = ("oom_host", "load_timeout", "tokenizer")


def a_crash(rng: random.Random, place: int) -> Analysis:
    """Return a crash near some midnight: a log's or an event's, with an attempt's id or without."""
    one = made_up(rng.randrange(6), offset=place * 200)
    at = MIDNIGHT + timedelta(days=rng.randrange(4), seconds=rng.choice((-61, -59, -1, -0.4, 0, 0.6, 1, 59, 61)))
    platform = rng.choice(("linux", "k8s"))
    facts = Facts(
        release=rng.choice(("1.0", "1.1", None)), platform=platform, model=f"m-{platform}",
        host=rng.choice(("node-1", "node-2", None)), phase=rng.choice(("load", "warmup", "infer", "prepare", None)),
        attempt_id=rng.choice((None, None, "a1", "a2", "a3", f"b{rng.randrange(30)}")),
    )  # fmt: skip
    marks = (Mark(writer=rng.choice(("7", "8"))),) * one.record.text.count("\n") if rng.random() < 0.7 else ()
    parsed = Parsed("python", one.parsed.chain)
    if rng.random() < 0.4:
        parsed = replace(
            parsed, format="runtime_event", unit=rng.choice(("deployment", "load", "request", None)),
            outcome=rng.choice(("contained", "unanswered", None)),
        )  # fmt: skip
    return replace(one, record=replace(one.record, facts=facts, at=at, marks=marks), parsed=parsed)


def write(
    store: Store, rng: random.Random, batch: Sequence[Analysis], *, at_end: bool = False, path: str = "/a.log"
) -> None:
    """Write a batch of a source as a night of its own; at the end of a source, what is not in it is removed."""
    with store.write() as session:
        night = start_night(session, versions={}, now=NOW)
        found = SourceIdentity(path, "h", None, path.encode(), 0, NOW)
        source = Ledger(store.key, night, same).claim(session, found)
    writer = Writer(store, night, same)
    writer.write_batch(source, batch, checkpoint=0, seen=0, at_end=END if at_end else None, now=NOW)
    if rng.random() < 0.4:
        with store.write() as session:
            join_deaths(session, night, timedelta(seconds=120))


def something(store: Store, rng: random.Random) -> None:
    """Add crashes, change some, or remove some."""
    places = rng.sample(range(40), rng.randrange(1, 12))
    write(store, rng, [a_crash(rng, place) for place in places], at_end=rng.random() < 0.3)


def cluster(store: Store) -> None:
    """Put each signature into a cluster, and each of these into some class."""
    with store.write() as session:
        for number, one in enumerate(session.scalars(select(Signature.id).order_by(Signature.id)), start=1):
            if session.get(Cluster, number) is None:
                session.add(
                    Cluster(
                        id=number, label="x", status="active", created_at=NOW, encoder_id="e", class_by="cue",
                        failure_class=CLASSES[number % 3], evidence=[],
                    )
                )  # fmt: skip
                session.flush()
            session.execute(update(Signature).where(Signature.id == one).values(cluster_id=number))


def kept(store: Store) -> list[tuple[object, ...]]:
    """All rows."""
    key = FailedDaily.__table__.primary_key.columns
    with store.read() as session:
        return [tuple(row) for row in session.execute(select(*FailedDaily.__table__.columns).order_by(*key))]


def is_right(store: Store) -> None:
    """Nothing is stale, and what is kept is what the reference counts, and what counting all anew gives."""
    with store.read() as session:
        assert stale_days(session) == ()
        expected = {
            (one.unit, one.day, one.release, one.platform, one.failure_class): (
                one.attempts, one.unanswered, one.contained, one.witnesses,
            )
            for one in failed_attempts(session)
        }  # fmt: skip
        cells = failed_cells(session)
        by_cohort = session.scalars(select(FailedCohort)).all()
    cohorts: Counter[object] = Counter()
    for cell in cells:
        for name in ("attempts", "unanswered", "contained"):
            cohorts[cell.release, cell.day, cell.unit, cell.platform, cell.model, name] += getattr(cell, name)
    assert cohorts == {
        (row.release, row.day, row.unit, row.platform, row.model, name): getattr(row, name)
        for row in by_cohort
        for name in ("attempts", "unanswered", "contained")
    }
    sums: dict[tuple[object, ...], Counter[str]] = {}
    for cell in cells:
        assert cell.model == f"m-{cell.platform}"
        assert cell.cluster is None or cell.failure_class == CLASSES[cell.cluster % 3]
        counted = sums.setdefault((cell.unit, cell.day, cell.release, cell.platform, cell.failure_class), Counter())
        counted.update({name: getattr(cell, name) for name in ("attempts", "unanswered", "contained", "witnesses")})
    assert {key: tuple(counted.values()) for key, counted in sums.items()} == expected
    before = kept(store)
    with store.write() as session:
        mark_stale(session, session.scalars(select(Crash.day).distinct()))
    refresh_failures(store)
    assert kept(store) == before


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_is_what_the_reference_counts(any_store: Store, seed: int) -> None:
    """Over additions, changes, removals and joined deaths, whether days are counted after each or after several."""
    rng = random.Random(seed)
    for _ in range(14):
        something(any_store, rng)
        if rng.random() < 0.5:
            refresh_failures(any_store)
            cluster(any_store)
    refresh_failures(any_store)
    is_right(any_store)


class Interrupted(Store):
    """A store in which somebody else does something right before the ``turn``-th session."""

    def __init__(self, store: Store, turn: int, act: Callable[[], None]) -> None:
        super().__init__(store.engine, store.host_secret)
        self._turn, self._act = turn, act

    def _next(self) -> None:
        self._turn -= 1
        if self._turn == 0:
            self._act()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session, later than somebody else where it is their turn."""
        self._next()
        with super().read() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session, later than somebody else where it is their turn."""
        self._next()
        with super().write() as session:
            yield session


@pytest.mark.parametrize("turn", range(1, 10))
def test_a_write_in_between_is_not_lost(any_store: Store, turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever a batch comes in while days are counted, the next refresh has it; so with two refreshes at once."""
    monkeypatch.setattr(failed_daily, "CRASHES", 8)  # several portions of days
    acted: list[int] = []
    for seed in range(3):
        rng = random.Random(seed)
        something(any_store, rng)
        if seed:
            refresh_failures(any_store)
            something(any_store, rng)

        def others(rng: random.Random = rng, seed: int = seed) -> None:
            acted.append(turn)
            something(any_store, rng)
            if seed != 1:
                refresh_failures(any_store)
                something(any_store, rng)

        refresh_failures(Interrupted(any_store, turn, others))
        refresh_failures(any_store)
        is_right(any_store)
    assert acted


@pytest.mark.parametrize("call", range(1, 4))
def test_a_refresh_that_ends_early_leaves_days_stale(store: Store, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in any of its transactions, it leaves nothing that is wrong and not marked, and the next goes on."""
    monkeypatch.setattr(failed_daily, "CRASHES", 8)
    rng = random.Random(call)
    for _ in range(4):
        something(store, rng)
    calls = iter(range(1, 100))

    def fence(session: Session) -> None:
        if next(calls) == call:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        refresh_failures(store, fence=fence)
    with store.read() as session:
        assert stale_days(session)
    refresh_failures(store)
    is_right(store)


def test_refreshes_beside_a_night(any_store: Store) -> None:
    """Two that count while a third writes batch after batch: nobody fails, and in the end all is counted."""
    over = threading.Event()
    failed: list[BaseException] = []

    def count() -> None:
        try:
            while not over.wait(0.01):
                refresh_failures(any_store)
        except BaseException as error:
            failed.append(error)
            raise

    counting = [threading.Thread(target=count) for _ in range(2)]
    for one in counting:
        one.start()
    rng = random.Random(5)
    try:
        for _ in range(25):
            something(any_store, rng)
    finally:
        over.set()
        for one in counting:
            one.join()
    assert not failed
    refresh_failures(any_store)
    is_right(any_store)


def told(day: float, place: int, attempt: str | None, **more: object) -> Analysis:
    """A crash of process 7 some days after midnight."""
    one = made_up(1, offset=place * 200)
    facts = Facts(release="1.0", platform="linux", model="m-linux", host="node-1", attempt_id=attempt)
    marks = (Mark(writer="7"),) * len(one.root.roles)
    record = replace(one.record, facts=facts, at=MIDNIGHT + timedelta(days=day), marks=marks)
    return replace(one, record=record, parsed=replace(one.parsed, **more))  # type: ignore[arg-type]


EVENT = {"format": "runtime_event", "unit": "request", "outcome": "unanswered"}


@pytest.mark.parametrize("removed", [True, False])
def test_an_attempt_that_loses_its_best_witness(any_store: Store, removed: bool) -> None:
    """Where a crash is removed, or turns out to be of another attempt, the other witnesses' days are counted, too."""
    rng = random.Random(0)
    write(any_store, rng, [told(0, 0, "a")], path="/b.log")
    write(any_store, rng, [told(2, 1, "a", **EVENT)])
    refresh_failures(any_store)
    write(any_store, rng, [] if removed else [told(2, 1, "z", **EVENT)], at_end=True)
    refresh_failures(any_store)
    is_right(any_store)


def test_a_line_that_is_joined_to_an_event_later(any_store: Store) -> None:
    """A line that is found to be of an attempt makes its own day stale: it stood there as an attempt of its own."""
    write(any_store, random.Random(0), [told(0.9999, 0, "a", **EVENT), told(1.0001, 1, None)])
    refresh_failures(any_store)
    with any_store.write() as session:
        assert join_deaths(session, 1) == 1
        assert stale_days(session) == (date(2026, 1, 6),)
    refresh_failures(any_store)
    is_right(any_store)


def test_only_stale_days_are_counted_and_those_that_hang_together_with_them(store: Store) -> None:
    """A new witness on one day may take an attempt away from another day; a third day is left alone."""
    rng = random.Random(0)
    write(store, rng, [told(0, 0, "a"), told(2, 1, None), told(2, 2, "b")])
    assert refresh_failures(store) == Refreshed(days=2, crashes=3, left=0)
    write(store, rng, [told(1, 3, "a", **EVENT)])
    assert refresh_failures(store) == Refreshed(days=2, crashes=2, left=0)
    assert refresh_failures(store) == Refreshed()
    second, third = date(2026, 1, 6), date(2026, 1, 7)
    with store.read() as session:
        cells = failed_cells(session)
        counted = [(one.day, one.unit, one.attempts, one.unanswered, one.witnesses) for one in cells]
        assert counted == [(second, "request", 1, 1, 2), (third, "unknown", 2, 0, 2)]
        assert [one.day for one in failed_cells(session, since=third)] == [third]
        assert failed_cells(session, until=date(2026, 1, 5)) == ()
        assert failed_cells(session, releases=["2.0"]) == ()
        assert releases(session) == ("1.0",)


def test_what_is_read_again_as_it_was_makes_no_day_stale(any_store: Store) -> None:
    """A record behind the checkpoint is written again each night; only where it says something else is there work."""
    rng = random.Random(1)
    batch = [a_crash(rng, place) for place in range(20)]
    write(any_store, rng, batch)
    refresh_failures(any_store)
    write(any_store, rng, batch, at_end=True)
    with any_store.read() as session:
        assert stale_days(session) == ()
    write(any_store, rng, [told(0, 0, "new"), *batch[1:]])
    refresh_failures(any_store)
    is_right(any_store)


def test_a_day_is_marked_with_the_crashes(store: Store) -> None:
    """A batch marks the days of its crashes; a release of crashes that are not counted yet is known all the same."""
    rng = random.Random(3)
    write(store, rng, [a_crash(rng, place) for place in range(5)])
    with store.read() as session:
        assert set(stale_days(session)) == set(session.scalars(select(Crash.day)))
        assert set(releases(session)) == set(session.scalars(select(Crash.release)))
        assert failed_cells(session) == ()


def test_sums_of_the_database_are_those_of_the_cells(any_store: Store) -> None:
    """Cohorts by day, clusters over some days, and what counts in one unit alone, against every cell added up here."""
    rng = random.Random(11)
    write(any_store, rng, [a_crash(rng, place) for place in range(120)])
    refresh_failures(any_store)
    cluster(any_store)
    with any_store.read() as session:
        cells = [one for one in failed_cells(session) if one.release == "1.0"]
        days = sorted({one.day for one in cells})
        told, last = days[:-1], days[-2]
        scope = {"load": told, "unknown": told}
        by_day, cohorts, clusters = Counter[object](), Counter[object](), Counter[object]()
        for one in cells:
            by_day[one.unit, one.day] += one.attempts
            if one.day in scope.get(one.unit, ()):
                cohorts[one.unit, one.platform, one.model] += one.attempts
                clusters[one.unit, one.cluster, one.failure_class, "all"] += one.attempts
                clusters[one.unit, one.cluster, one.failure_class, "last"] += one.attempts if one.day == last else 0
        assert {(one.unit, one.day): one.attempts for one in failed_days(session, ["1.0"])} == by_day
        found = failed_cohorts(session, "1.0", scope)
        assert {(one.unit, one.platform, one.model): one.attempts for one in found} == cohorts
        summed = failed_clusters(session, "1.0", scope)
        assert {(one.unit, one.cluster, one.failure_class, "all"): one.attempts for one in summed} | {
            (one.unit, one.cluster, one.failure_class, "last"): one.last for one in summed
        } == clusters
        whole = failed_clusters(session, "1.0", {one.unit: days for one in cells})
        assert (
            sum(one.attempts for one in whole)
            == sum(one.attempts for one in cells)
            > sum(one.attempts for one in summed)
        )
        rows = session.scalars(select(FailedDaily).where(FailedDaily.release == "1.0")).all()
        by_unit: dict[object, Counter[object]] = {"load": Counter(), "deployment": Counter()}
        for row in rows:
            if row.unit in by_unit:
                by_unit[row.unit][row.day, row.platform, row.model, row.signature_id] += row.attempts
        alone = (by_unit["deployment"] - by_unit["load"]).total()
        assert counted_alone(session, "1.0", "deployment", "load", days) == alone > 0
        assert failed_clusters(session, "1.0", {"load": []}) == failed_cohorts(session, "1.0", {}) == ()


def test_an_upgrade_sums_what_was_counted_before(any_store: Store) -> None:
    """A store of the schema before the sums by cohort has them after the upgrade, without a new count."""
    rng = random.Random(2)
    write(any_store, rng, [a_crash(rng, place) for place in range(60)])
    refresh_failures(any_store)
    with any_store.read() as session:
        before = failed_days(session, ["1.0"])
    with any_store.engine.execution_options(crashpath_writer=True).begin() as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0009")
        migrate.migrate(connection)
    with any_store.read() as session:
        assert failed_days(session, ["1.0"]) == before != ()
