"""Ingest health as values, words and pictures: nights, quarantine, sources, versions, size."""

from __future__ import annotations

import runpy
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import insert, update

from crashpath.dashboard import ingest_pictures as pictures
from crashpath.dashboard.ingest_view import (
    CatchAll,
    NightLine,
    read_catch_all,
    read_night,
    read_nights,
    read_pieces,
    read_sources,
    read_store,
)
from crashpath.dashboard.ingest_words import AGAIN, STALE, ago, length, of_night, rows, size, standing
from crashpath.dashboard.nightly import versions
from crashpath.dashboard.table_words import WORDS
from crashpath.ingest import again, outbox
from crashpath.ingest.decisions import By
from crashpath.ingest.lease import Held, Lease, held
from crashpath.ingest.nights import finish_night, start_night
from crashpath.ingest.sizes import store_size
from crashpath.ingest.store import HEAD, Store, open_store
from crashpath.ingest.tables import Cluster, Quarantine, Source
from crashpath.ingest.tables_evidence import SCHEMA

SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ingest_samples.py"))))
NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
NIGHT = NightLine(
    id=7, status="complete", reason=None, started=NOW - timedelta(hours=2), finished=NOW - timedelta(hours=1),
    stages=(("read", 3.0), ("cluster", 9.5)), counts=(), versions=(), problems=(), advice=(), records=5,
    new_crashes=1, new_signatures=1, new_clusters=2, quarantined=0, redactions=0, read=3, unreadable=0, crashes=100,
    unclassified=0.05, bytes=2**21,
)  # fmt: skip
RUNNING = replace(NIGHT, status="running", finished=None)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(SAMPLE.make(tmp_path_factory.mktemp("ingest")))


def lease(*, alive: bool = True, gone: bool = False, heard: float = 4) -> Held:
    return Held("node-1 pid 42", NOW - timedelta(minutes=12), NOW - timedelta(seconds=heard), alive, gone)


def test_nights_are_listed_with_what_they_did(url: str) -> None:
    """Rule: newest first, with status, reason, figures, seconds and versions as each night kept them."""
    with open_store(url, create=False, read_only=True) as store, store.read() as session:
        found = read_nights(session)
        assert [one.status for one in found.nights] == ["partial", "partial", "complete"]
        last, second, first = found.nights
        assert (found.total, found.last) == (3, last)
        assert second.reason is not None
        assert "went to quarantine" in second.reason
        assert "cut.log.gz" in last.problems[0]
        assert (first.new_crashes, second.quarantined, last.unreadable) == (4, 1, 1)
        assert (first.redactions or 0) > 0
        assert {"read", "store", "cluster"} <= set(dict(first.stages))
        assert dict(last.versions) == versions()
        assert (last.bytes or 0) >= (first.bytes or 0) > 50_000
        assert ("sources.read", "2") in first.counts
        assert read_night(session, 2) == second
        assert read_nights(session, limit=2).nights == (last, second)


@pytest.mark.parametrize("number", [0, -1, 99, 2**40])
def test_a_night_that_never_was_is_none(store: Store, number: int) -> None:
    """Rule: whatever number is asked for, it is no error."""
    with store.read() as session:
        assert read_night(session, number) is None


def test_a_night_that_got_nowhere_has_no_figures(any_store: Store) -> None:
    """Rule: what was not kept is not known; it is never taken for none."""
    with any_store.write() as session:
        start_night(session, versions={"crashpath": "1"}, now=NOW)
        failed = start_night(session, versions={}, now=NOW)
        finish_night(session, failed, "failed", counts={}, seconds={}, reason="no space left", now=NOW)
    with any_store.read() as session:
        last, killed = read_nights(session).nights
    assert (last.status, last.reason, killed.status) == ("failed", "no space left", "failed")
    assert {last.records, last.new_crashes, last.unclassified, last.bytes, last.seconds} == {None}


def test_figures_of_any_shape_are_survived(store: Store) -> None:
    """Rule: counts that another version wrote break nothing: unknown figures are listed, wrong ones are not known."""
    counts = {"records": "many", "sources": 5, "problems": "x", "unclassified_share": "?", "deep": {"er": {"n": 1.5}}}
    with store.write() as session:
        night = start_night(session, versions={}, now=NOW)
        finish_night(session, night, "complete", counts=counts, seconds={"odd": -0.1}, now=NOW)
    with store.read() as session:
        (line,) = read_nights(session).nights
    assert (line.records, line.read, line.problems, line.unclassified) == (None, None, (), None)
    assert ("deep.er.n", "1.5") in line.counts
    assert line.stages == (("odd", 0.0),)


def test_quarantine_is_counted_by_reason_and_listed_newest_first(url: str) -> None:
    """Rule: how much, of how many sources, why; of one night, what it put there."""
    with open_store(url, create=False, read_only=True) as store, store.read() as session:
        found = read_pieces(session)
        assert (found.held.pieces, found.held.sources, found.held.reasons) == (1, 1, (("not text", 1),))
        assert found.rows[0].preview.startswith("\\xff\\xfe")
        assert read_pieces(session, 1).held.pieces == 0
        assert read_pieces(session, 2).rows == found.rows


def test_many_pieces_are_cut_and_many_reasons_summed(any_store: Store, tmp_path: Path) -> None:
    """Rule: thousands of pieces of dozens of reasons are counted in the store; a page gets a few."""
    SAMPLE.fill(any_store, tmp_path)
    with any_store.write() as session:
        session.execute(
            insert(Quarantine),
            [
                {
                    "source_id": 1, "offset": 10_000 + n, "end": 10_001 + n, "night_id": 1, "touched_id": 1, "at": NOW,
                    "reason": f"reason {n % 30}", "sha256": "x", "preview": "x",
                }
                for n in range(3000)
            ],
        )  # fmt: skip
    with any_store.read() as session:
        found = read_pieces(session)
    assert (found.held.pieces, len(found.held.reasons), len(found.rows)) == (3001, 10, 200)
    assert sum(number for _, number in found.held.reasons) + found.held.others == 3001


def test_sources_with_a_problem_come_first(any_store: Store, tmp_path: Path) -> None:
    """Rule: what stands in the way is seen, however many sources there are."""
    SAMPLE.fill(any_store, tmp_path)
    with any_store.write() as session:
        session.execute(update(Source).where(Source.id == 1).values(problem="the disk is broken", last_night_id=1))
    with any_store.read() as session:
        found = read_sources(session, limit=2)
    problems = [one.problem or "" for one in found.rows]
    assert (found.total, found.problems, len(problems)) == (3, 2, 2)
    assert problems[1] == "the disk is broken"
    assert "cut.log.gz is a damaged gzip file" in problems[0]


def test_a_plain_file_was_read_to_its_end(url: str) -> None:
    """Rule: how far a source was read is told beside its size."""
    with open_store(url, create=False, read_only=True) as store, store.read() as session:
        plain = [one for one in read_sources(session).rows if not one.compressed]
    assert len(plain) == 2
    assert all(one.seen == one.size for one in plain)


def test_what_ran_when_is_told_where_it_changed(any_store: Store) -> None:
    """Rule: of a hundred nights, those in which a version was another than before; newest first."""
    with any_store.write() as session:
        for number in range(6):
            start_night(session, versions={"crashpath": "1" if number < 4 else "2", "schema": "11"}, now=NOW)
    with any_store.read() as session:
        state = read_store(session)
    assert [(one.what, one.old, one.new, one.night) for one in state.changes] == [
        ("crashpath", "1", "2", 5), ("schema", None, "11", 1), ("crashpath", None, "1", 1),
    ]  # fmt: skip
    assert (state.looked_through, state.schema, state.encoder) == (6, HEAD, None)


def test_the_store_is_weighed(any_store: Store, tmp_path: Path) -> None:
    """Rule: bytes of the whole, rows of each table, on both databases."""
    SAMPLE.fill(any_store, tmp_path)
    with any_store.read() as session:
        found = store_size(session)
    counted = {one.name: (one.rows, one.kind) for one in found.tables}
    assert counted["night"] == (3, "")
    assert counted["crash"] == (18, "")
    assert set(counted) == set(SCHEMA.tables) == set(WORDS)
    assert found.total > 100_000
    assert (found.log is None) is not any_store.is_sqlite


def test_large_tables_are_told_without_counting_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: beyond some rows a number close by is told as such, or that there are more."""
    monkeypatch.setattr("crashpath.ingest.sizes.EXACT", 2)
    with store.write() as session:
        for _ in range(5):
            start_night(session, versions={}, now=NOW)
        session.execute(
            insert(SCHEMA.tables["failed_cohort"]),
            [
                {
                    "release": "1", "day": date(2026, 1, n), "unit": "load", "platform": "p", "model": "m",
                    "attempts": 1, "unanswered": 0, "contained": 0,
                }
                for n in range(1, 6)
            ],
        )  # fmt: skip
    with store.read() as session:
        counted = {one.name: (one.rows, one.kind) for one in store_size(session).tables}
    assert counted["night"] == (5, "about")
    assert counted["failed_cohort"] == (2, "over")
    assert (rows(1_000_000, "about"), rows(7, "")) == ("about 1,000,000", "7")


def test_the_catch_all_is_told_by_day(any_store: Store, tmp_path: Path) -> None:
    """Rule: of each day, its crashes and those of them that are in no class today."""
    SAMPLE.fill(any_store, tmp_path)
    with any_store.write() as session:
        session.execute(update(Cluster).values(failure_class="hang"))
        session.execute(update(Cluster).where(Cluster.id == 1).values(failure_class="unclassified"))
    with any_store.read() as session:
        (day,) = read_catch_all(session)
    assert (day.day, day.crashes) == (date(2026, 3, 1), 18)
    assert 0 < day.unclassified <= 18


def test_what_waits_to_be_told_is_counted_by_place(any_store: Store) -> None:
    """Rule: of each place what waits, what may be lost, what was told; the digest's file comes first."""
    with any_store.write() as session:
        night = start_night(session, versions={}, now=NOW)
        things = [outbox.Thing("new", f"C-{n:04d}", "", None, "x") for n in range(3)]
        for place in ("aaaa", outbox.FILE):
            outbox.keep(session, place, things, night=night, now=NOW)
        outbox.claim(session, "aaaa", now=NOW)
        told = outbox.claim(session, outbox.FILE, now=NOW)
        assert told is not None
        outbox.settle(session, told, told=True, now=NOW)
        outbox.keep(session, outbox.FILE, [outbox.Thing("new", "C-0009", "", None, "x")], night=night, now=NOW)
    with any_store.read() as session:
        found = [(one.place, one.waiting, one.uncertain, one.told) for one in outbox.standings(session)]
    assert found == [(outbox.FILE, 1, 0, 3), ("aaaa", 0, 3, 0)]


def test_an_empty_store_is_no_error(any_store: Store) -> None:
    """Rule: every read of a store without a night gives nothing."""
    with any_store.read() as session:
        assert read_nights(session).last is None
        assert read_pieces(session).held.pieces == 0
        assert read_sources(session).rows == ()
        assert read_catch_all(session) == ()
        assert read_store(session).changes == ()


# -- words -------------------------------------------------------------------------------------


def test_a_complete_night_is_good() -> None:
    """Rule: what it did, in one sentence, and nothing to do."""
    said = standing(NIGHT, None, NOW)
    assert (said.tone, said.reason, said.advice) == ("good", None, None)
    assert said.sentence == (
        "Night 7 is complete, 2026-03-09 11:00 UTC: 3 files read, 1 new crash, 2 new clusters, in 12 s."
    )


def test_an_old_night_makes_one_look() -> None:
    """Rule: complete and long ago is no good news."""
    said = standing(NIGHT, None, NOW + STALE)
    assert said.tone == "warning"
    assert "Look whether the nightly job still runs." in (said.advice or "")


@pytest.mark.parametrize(
    ("reason", "problems", "advice"),
    [
        ("5 of 9 records went to quarantine, more than 1.00%", (), "--max-quarantine"),
        ("a.log may not be read", ("a.log may not be read",), "the next night tries again by itself."),
        ("a.log may not be read", ("a.log may not be read", "b", "c"), "2 more problems of it are listed below."),
    ],
)
def test_a_partial_night_says_why_and_what_to_do(reason: str, problems: tuple[str, ...], advice: str) -> None:
    """Rule: the reason as it was kept, and advice that fits it."""
    said = standing(replace(NIGHT, status="partial", reason=reason, problems=problems), None, NOW)
    assert (said.tone, said.reason) == ("warning", reason)
    assert advice in (said.advice or "")


def test_a_failed_night_says_that_nothing_is_lost() -> None:
    """Rule: a failure tells its reason, that what was stored stays, and to run it again."""
    said = of_night(replace(NIGHT, status="failed", reason="no space left"))
    assert (said.tone, said.reason, said.advice) == ("bad", "no space left", AGAIN)
    assert "stays" in said.sentence


@pytest.mark.parametrize(
    ("who", "tone", "words"),
    [
        (lease(), "running", "runs on node-1 pid 42, for 12 min so far; its lease is alive, last heard of 4 s ago."),
        (lease(alive=False, gone=True), "bad", "its process has ended before it did"),
        (lease(alive=False, heard=7300), "bad", "its lease ran out (last heard of 2 h ago)"),
        (None, "bad", "nobody holds its lease: it was killed"),
    ],
)
def test_a_running_night_is_alive_or_not(who: Held | None, tone: str, words: str) -> None:
    """Rule: of a night that is not over: since when, by whom, and whether somebody still works at it."""
    said = standing(RUNNING, who, NOW)
    assert said.tone == tone
    assert words in said.sentence
    assert (said.advice == AGAIN) is (tone == "bad")
    assert said.sentence.startswith("Night 7 began 2026-03-09 10:00 UTC")


def test_a_lease_between_nights_is_told() -> None:
    """Rule: somebody holds the lease and no night runs: that is said beside the last night."""
    assert "Meanwhile node-1 pid 42 holds the lease" in standing(NIGHT, lease(), NOW).sentence
    assert standing(NIGHT, lease(alive=False), NOW).tone == "good"


def test_a_lease_is_seen_while_it_is_held(any_store: Store) -> None:
    """Rule: who holds it, since when, alive; nobody does before and after, and a silent one is not alive."""
    with any_store.read() as session:
        assert held(session, NOW) is None
    with Lease(any_store, clock=lambda: NOW), any_store.read() as session:
        found = held(session, NOW + timedelta(seconds=5))
        assert found is not None
        assert (found.alive, found.gone, found.since) == (True, False, NOW)
        late = held(session, NOW + timedelta(minutes=5))
        assert late is not None
        assert not late.alive
    with any_store.read() as session:
        assert held(session, NOW) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (200, "3 min 20 s"), (3900, "1 h 5 min")]
)
def test_lengths(seconds: float, words: str) -> None:
    """Rule: one or two units."""
    assert length(seconds) == words


def test_ages_and_sizes() -> None:
    """Rule: one unit; an age below zero (another machine's clock) is none."""
    assert [ago(timedelta(seconds=n)) for n in (-5, 90, 600, 90_000, 400_000)] == [
        "0 s",
        "90 s",
        "10 min",
        "25 h",
        "4 days",
    ]
    assert [size(n) for n in (1, 2000, 866_562_048, 2**50)] == ["1 byte", "2.0 KiB", "826 MiB", "1,024 TiB"]


# -- pictures ----------------------------------------------------------------------------------


def test_stages_have_one_colour_each_in_every_picture() -> None:
    """Rule: bars of the last nights, oldest first; a stage is drawn alike whatever others are there."""
    nights = [replace(NIGHT, id=n) for n in range(60, 0, -1)]
    figure = pictures.seconds_by_stage(nights)
    assert [trace.name for trace in figure.data] == ["read", "cluster"]
    assert list(figure.data[0].x) == [str(n) for n in range(21, 61)]
    alone = pictures.seconds_by_stage([replace(NIGHT, stages=(("cluster", 1.0), ("<b>odd</b>", 2.0)))])
    assert alone.data[0].marker.color == figure.data[1].marker.color
    assert alone.data[1].name == "&lt;b&gt;odd&lt;/b&gt;"


def test_nights_without_a_figure_are_left_out_of_its_picture() -> None:
    """Rule: not known is not zero."""
    nights = [NIGHT, replace(NIGHT, id=6, unclassified=None, bytes=None, new_crashes=None, stages=())]
    for draw in (
        pictures.catch_all_by_night,
        pictures.size_by_night,
        pictures.found_by_night,
        pictures.seconds_by_stage,
    ):
        assert list(draw(nights).data[0].x) == ["7"]


def test_a_day_without_crashes_has_a_share_of_none() -> None:
    """Rule: no division by nothing."""
    day = date(2026, 3, 1)
    assert list(pictures.catch_all_by_day([CatchAll(day, 0, 0), CatchAll(day, 4, 1)]).data[0].y) == [0, 0.25]


def test_what_was_asked_is_listed_with_the_quarantine(store: Store, tmp_path: Path) -> None:
    """Rule: what waits to be read again is told beside what is in quarantine."""
    SAMPLE.fill(store, tmp_path)
    with store.write() as session:
        again.ask(session, 1, By("eve", NOW))
    with store.read() as session:
        assert [one.source_id for one in read_pieces(session).asked] == [1]
