"""Sources that are read again because of what is in quarantine: from a file that was broken, and then was not."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest import again, feed
from crashpath.ingest.decisions import By, decisions
from crashpath.ingest.queries import quarantine, sources, store_totals
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Crash, CrashDaily

NOW = datetime(2026, 1, 5, tzinfo=UTC)
BY = By("eve", NOW, "the disk was mended")
OPTIONS = NightOptions(max_quarantine=1.0)
BROKEN = b"\xff\xfe\xfd\xfc\x80\x81" * 10 + b"\n"


def trace(n: int, message: str = "bad thing") -> bytes:
    return (
        f"2026-01-02 03:{n:02d}:00 ERROR app: request failed\nTraceback (most recent call last):\n"
        f'  File "/app/x.py", line 3, in f\n    g()\nValueError: {message}\n'
        f"2026-01-02 03:{n:02d}:30 INFO app: next request\n" + "".join(f"2026-01-02 03:{n:02d}:31 INFO ok\n" * 3)
    ).encode()


def ask(store: Store, source_id: int = 1) -> bool:
    with store.write() as session:
        return again.ask(session, source_id, BY)[1]


def state(store: Store) -> tuple[int, int, int]:
    """Crashes, what the daily counts say, and pieces in quarantine."""
    with store.read() as session:
        crashes = session.scalar(select(func.count()).select_from(Crash)) or 0
        counted = int(session.scalar(select(func.sum(CrashDaily.crashes))) or 0)
        return crashes, counted, store_totals(session).quarantined


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two failures with bytes between them that are no text."""
    file = tmp_path / "app.log"
    file.write_bytes(trace(1) + BROKEN + trace(2))
    return file


@pytest.fixture
def read(any_store: Store, log: Path) -> Store:
    """A store that read that log."""
    a_night(any_store, [log], OPTIONS)
    assert state(any_store) == (2, 2, 1)
    return any_store


def test_a_file_as_it_was_is_read_again_and_nothing_is_counted_twice(read: Store, log: Path) -> None:
    """Rule: a source that is asked for is read from its start again; its crashes stay the rows that they were."""
    with read.read() as session:
        before = session.execute(select(Crash.id, Crash.offset, Crash.night_id).order_by(Crash.id)).all()
    assert ask(read)
    night = a_night(read, [log], OPTIONS)
    assert (night.sources, night.records, night.new_crashes, night.new_signatures) == (1, 2, 0, 0)
    assert state(read) == (2, 2, 1)
    with read.read() as session:
        assert session.execute(select(Crash.id, Crash.offset, Crash.night_id).order_by(Crash.id)).all() == before


@pytest.mark.parametrize("length", ["the same", "longer", "shorter"])
def test_a_mended_file_takes_the_place_of_the_broken_one(read: Store, log: Path, length: str) -> None:
    """Rule: what was mended gives its crashes, those that were there stay counted once, quarantine is empty."""
    line = b"2026-01-02 03:01:40 ERROR app: KeyError: 'half'"
    mended = {"the same": line.ljust(len(BROKEN) - 1) + b"\n", "longer": trace(3, "more"), "shorter": line + b"\n"}[
        length
    ]
    log.write_bytes(trace(1) + mended + trace(2))
    ask(read)
    night = a_night(read, [log], OPTIONS)
    assert state(read) == (3, 3, 0)
    assert night.status == "complete"
    with read.read() as session:
        assert [one.generation for one in sources(session)] == [0]


def test_a_mended_file_that_has_grown_gives_what_is_new_too(read: Store, log: Path) -> None:
    """Rule: mended and appended to at once, a source is read to its end, every failure once."""
    log.write_bytes(trace(1) + trace(3, "another") + trace(2) + trace(4))
    ask(read)
    a_night(read, [log], OPTIONS)
    assert state(read) == (4, 4, 0)
    log.write_bytes(log.read_bytes() + trace(5))
    assert a_night(read, [log], OPTIONS).new_crashes == 1
    assert state(read) == (5, 5, 0)


def test_a_mended_copy_under_a_new_inode_is_the_source_too(read: Store, log: Path) -> None:
    """Rule: editors write a new file and keep the old one beside it; that is no rotation."""
    old = log.rename(log.with_name("app.log~"))
    log.write_bytes(trace(1) + trace(3, "another") + trace(2))
    assert log.stat().st_ino != old.stat().st_ino
    ask(read)
    a_night(read, [log], OPTIONS)
    assert state(read) == (3, 3, 0)


def test_without_being_asked_for_nothing_is_read_again(read: Store, log: Path) -> None:
    """Rule: what a night read stays as it is: a file that is as it was is not opened."""
    assert a_night(read, [log], OPTIONS).skipped == 1
    assert state(read) == (2, 2, 1)


def test_another_log_in_its_place_takes_nothing_away(any_store: Store, tmp_path: Path) -> None:
    """Rule: a file that does not give the crashes again that the source gave is not that file mended."""
    log = tmp_path / "app.log"
    log.write_bytes(trace(1) + trace(2) + BROKEN)
    a_night(any_store, [log], OPTIONS)
    ask(any_store)
    log.write_bytes(trace(7, "of another day") + trace(8, "of another day"))
    a_night(any_store, [log], OPTIONS)
    assert state(any_store) == (4, 4, 1)
    with any_store.read() as session:
        assert again.asked(session)[0].night is None


def test_a_rotated_source_is_read_again_where_it_went(read: Store, log: Path) -> None:
    """Rule: asked for and rotated before the night, a source is found under its new name, the new log beside it."""
    ask(read)
    with gzip.open(log.with_name("app.log.1.gz"), "wb") as packed:
        packed.write(log.read_bytes())
    log.write_bytes(trace(9, "the new log"))
    night = a_night(read, [log.parent], OPTIONS)
    assert (night.sources, night.new_crashes) == (2, 1)
    assert state(read) == (3, 3, 1)
    with read.read() as session:
        assert again.asked(session)[0].night == 2


def test_asking_twice_is_asking_once(read: Store, log: Path) -> None:
    """Rule: what waits already is not asked for once more; after it was done it may be."""
    assert ask(read)
    assert not ask(read)
    a_night(read, [log], OPTIONS)
    assert ask(read)
    with read.read() as session:
        first, second = reversed(again.asked(session))
    assert (first.night, second.night, first.who, first.why) == (2, None, "eve", "the disk was mended")


def test_once_is_enough(read: Store, log: Path) -> None:
    """Rule: the night after the one that read it again leaves it alone, by --as-of in the past, too."""
    ask(read)
    assert a_night(read, [log], OPTIONS).sources == 1
    assert a_night(read, [log], OPTIONS).skipped == 1


def test_a_request_waits_for_a_night_that_comes_upon_the_source(read: Store, log: Path, tmp_path: Path) -> None:
    """Rule: nights over other logs leave the request as it is."""
    ask(read)
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.log").write_bytes(trace(3))
    a_night(read, [other], OPTIONS)
    with read.read() as session:
        assert again.waiting(session) == {1}
    a_night(read, [log], OPTIONS)
    with read.read() as session:
        assert again.waiting(session) == frozenset()


def test_a_request_is_none_of_the_decisions_on_clusters(read: Store) -> None:
    """Rule: what was asked of a source is kept for ever, and changes nothing that people decided on clusters."""
    ask(read)
    with read.read() as session:
        assert decisions(session) == ()
        assert len(again.asked(session)) == 1


@pytest.mark.parametrize("number", [99, 2**70])
def test_what_is_not_there_cannot_be_asked_for(any_store: Store, number: int) -> None:
    """Rule: a source or piece that the store does not know is refused in a sentence."""
    with any_store.write() as session:
        with pytest.raises(NoSuchThing, match="no source"):
            again.ask(session, number, BY)
        with pytest.raises(NoSuchThing, match="no piece"):
            again.source_of(session, number)


def test_a_long_source_is_read_again_batch_by_batch(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: a source of many batches keeps each crash, whatever checkpoints lie between."""
    monkeypatch.setattr(feed, "BATCH_RECORDS", 30)
    log = tmp_path / "app.log"
    filler = b"2026-01-02 03:00:00 INFO app: nothing happened here at all\n" * 20
    log.write_bytes(b"".join(trace(n % 60, f"bad thing {n % 7}") + filler for n in range(240)) + BROKEN + trace(1))
    a_night(store, [log], OPTIONS)
    before = state(store)
    assert before[0] == before[1] > 200
    ask(store)
    assert a_night(store, [log], OPTIONS).new_crashes == 0
    assert state(store) == before
    log.write_bytes(log.read_bytes().replace(BROKEN, trace(5, "was hidden")))
    ask(store)
    assert a_night(store, [log], OPTIONS).new_crashes > 0
    assert state(store) == (before[0] + 1, before[0] + 1, 0)


def test_a_piece_leads_to_its_source(read: Store) -> None:
    """Rule: of a piece, its source is what can be read again."""
    with read.read() as session:
        assert again.source_of(session, quarantine(session)[0].id) == 1


def test_a_file_that_cannot_be_opened_keeps_the_request(read: Store, log: Path) -> None:
    """Rule: where the file is gone or closed to the night, the request waits."""
    ask(read)
    os.remove(log)
    assert a_night(read, [log], OPTIONS).unreadable == 1
    with read.read() as session:
        assert again.waiting(session) == {1}
