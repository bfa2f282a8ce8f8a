"""Batches: what is written, written again, written by a night that was killed, and written beside a person."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, func, select

from crashpath.ingest.batch import BatchCounts
from crashpath.ingest.feed import BATCH_RECORDS, Feeder, FeedOptions
from crashpath.ingest.keying import keying
from crashpath.ingest.ledger import Ledger, SourceIdentity, SourceState
from crashpath.ingest.model import Analysis, Role
from crashpath.ingest.nights import finish_night, nights, start_night
from crashpath.ingest.read import Found
from crashpath.ingest.rows import unpack_roles, unpack_text
from crashpath.ingest.rules import load_rules
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Crash, CrashDaily, Exemplar, Night, Quarantine, Signature, Source, Variant
from crashpath.ingest.testing import EPOCH, made_up, same
from crashpath.ingest.trees import tree_of
from crashpath.ingest.upgrade import check
from crashpath.ingest.write import EndOfSource, Quarantined, Writer

NOW = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)
END = EndOfSource(10_000, NOW)


def _begin(store: Store, path: str = "/logs/app.log", head: bytes = b"head") -> tuple[int, SourceState]:
    with store.write() as session:
        night = start_night(session, versions={"crashpath": "0"}, now=NOW)
        found = SourceIdentity(path, "h", None, head, 0, NOW)
        return night, Ledger(store.key, night, same).claim(session, found)


def _write(store: Store, analyses: Sequence[Analysis], checkpoint: int, **more: object) -> BatchCounts:
    night, state = _begin(store)
    writer = Writer(store, night, same)
    return writer.write_batch(state, analyses, checkpoint=checkpoint, seen=checkpoint, now=NOW, **more)  # type: ignore[arg-type]


def _count(store: Store, table: type) -> int:
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def _picture(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Everything that must not depend on how often a night was begun."""
    with store.read() as session:
        crashes = select(Crash.offset, Crash.at, Crash.release, Variant.key).join(Variant).order_by(Crash.offset)
        daily = select(CrashDaily).order_by(*CrashDaily.__table__.primary_key.columns)
        examples = select(Exemplar.signature_id, Exemplar.release, func.count()).group_by(
            Exemplar.signature_id, Exemplar.release
        )
        return {
            "crashes": [tuple(row) for row in session.execute(crashes)],
            "daily": [
                (d.day, d.release, d.platform, d.path, d.phase, d.signature_id, d.crashes)
                for d in session.scalars(daily)
            ],
            "signatures": sorted(
                tuple(r) for r in session.execute(select(Signature.id, Signature.first_seen, Signature.last_seen))
            ),
            "examples": sorted(tuple(row) for row in session.execute(examples)),
            "offset": [tuple(row) for row in session.execute(select(Source.offset, Source.seen))],
            "quarantine": [tuple(row) for row in session.execute(select(Quarantine.offset, Quarantine.reason))],
        }


def test_everything_of_an_analysis_is_stored(any_store: Store) -> None:
    """A crash keeps its facts, its cause and its text; what was not said is ``unknown``; hosts are hashes."""
    one = made_up(3)
    bare = replace(made_up(4), record=replace(made_up(4).record, facts=type(one.record.facts)(), at=None))
    counts = _write(any_store, [one, bare], 5_000)
    assert (counts.crashes, counts.new_crashes, counts.new_variants, counts.new_signatures) == (2, 2, 2, 2)
    with any_store.read() as session:
        first, second = session.scalars(select(Crash).order_by(Crash.offset)).all()
        assert (first.release, first.platform, first.path, first.phase) == ("1.1", "linux", "torchscript", "infer")
        assert (first.model, first.attempt_id, first.root_rule, first.cue_class) == (
            "bert", "a3", "python-raise", "shape_inference",
        )  # fmt: skip
        assert first.host_key == any_store.key("node-3")
        assert first.at == one.record.at
        assert not first.at_inferred
        assert (second.release, second.platform, second.path, second.phase, second.host_key) == ("unknown",) * 4 + (
            None,
        )
        assert second.at_inferred
        assert second.at == NOW
        kept = session.scalars(select(Exemplar).where(Exemplar.crash_id == first.id)).one()
        assert unpack_text(kept.text) == one.record.text
        assert unpack_roles(kept.roles) == (Role.CONTEXT, Role.CONTEXT, Role.ROOT, Role.CASCADE)
        signature = session.get_one(Signature, one.signature.id)
        assert tree_of(signature.tree) == one.signature.tree
        assert (signature.algorithm, signature.root_message) == (keying().id, "failure of kind 3 with <n> bytes")
        variant = session.get_one(Variant, first.variant_id)
        assert (variant.root_type, variant.root_message) == ("RuntimeError", one.root.message)


def test_writing_again_changes_nothing(any_store: Store) -> None:
    """The same batch twice, in the same night and in the next, gives the same store."""
    batch = [made_up(n) for n in range(200)]
    held = [Quarantined(7, 9, "not text", "ab", "??")]
    _write(any_store, batch, 0, quarantined=held)
    before = _picture(any_store)
    again = _write(any_store, batch, 0, quarantined=held)
    assert (again.new_crashes, again.updated, again.new_signatures, again.quarantined) == (0, 200, 0, 0)
    assert _picture(any_store) == before


def test_open_record_is_updated_when_it_has_grown(any_store: Store) -> None:
    """A record that was open at the end of the file is stored, and replaced in place when the file has grown."""
    _write(any_store, [made_up(1, offset=0), made_up(2, offset=500)], 500, at_end=END)
    grown = made_up(2, offset=500, extra=" more")
    grown = replace(
        grown, record=replace(grown.record, text=grown.record.text + "\nlast line", at=EPOCH + timedelta(days=9))
    )
    counts = _write(any_store, [grown, made_up(3, offset=900)], 2_000, at_end=END)
    assert (counts.new_crashes, counts.updated) == (1, 1)
    with any_store.read() as session:
        assert session.scalar(select(func.count()).select_from(Crash)) == 3
        crash = session.scalars(select(Crash).where(Crash.offset == 500)).one()
        assert crash.at == EPOCH + timedelta(days=9)
        assert crash.night_id == 1
        assert crash.touched_id == 2
        text = session.scalars(select(Exemplar.text).where(Exemplar.crash_id == crash.id)).one()
        assert unpack_text(text).endswith("last line")
        assert sorted(session.scalars(select(CrashDaily.day))) == sorted(
            a.record.at.date() for a in (made_up(1), grown, made_up(3)) if a.record.at
        )
    assert check(any_store).problems == ()


def test_stale_record_is_removed(any_store: Store) -> None:
    """What lay open behind the checkpoint and is not found again there is removed; what lies before it never is."""
    _write(any_store, [made_up(1, offset=0), made_up(2, offset=500), made_up(3, offset=700)], 500, at_end=END)
    counts = _write(any_store, [made_up(2, offset=500)], 2_000, at_end=END)
    assert counts.removed == 1
    with any_store.read() as session:
        assert session.scalars(select(Crash.offset).order_by(Crash.offset)).all() == [0, 500]
        assert session.scalar(select(func.sum(CrashDaily.crashes))) == 2
        assert session.scalar(select(func.count()).select_from(Exemplar)) == 2


def test_quarantine_is_read_again_like_crashes(any_store: Store) -> None:
    """Behind the checkpoint quarantine is renewed in place and removed if it is not found; before it, it stays."""
    first = [Quarantined(n, n + 9, "not text", "ab", "??") for n in (100, 600, 700)]
    _write(any_store, [], 500, quarantined=first, at_end=END)
    grown = Quarantined(600, 690, "not text", "cd", "????")
    counts = _write(any_store, [], 500, quarantined=[grown], at_end=END)
    assert counts.quarantined == 0
    with any_store.read() as session:
        rows = session.scalars(select(Quarantine).order_by(Quarantine.offset)).all()
        assert [(r.offset, r.end, r.sha256, r.preview, r.night_id, r.touched_id) for r in rows] == [
            (100, 109, "ab", "??", 1, 1), (600, 690, "cd", "????", 1, 2),
        ]  # fmt: skip


def test_quarantine_of_one_night_stays(any_store: Store) -> None:
    """Several batches of a night do not remove each other's quarantine."""
    night, state = _begin(any_store)
    writer = Writer(any_store, night, same)
    for n in range(3):
        held = [Quarantined(n * 10, n * 10 + 5, "not text", "ab", "??")]
        writer.write_batch(state, (), held, checkpoint=0, seen=30, at_end=END if n == 2 else None, now=NOW)
    assert _count(any_store, Quarantine) == 3


def test_stream_read_again_keeps_its_times(any_store: Store) -> None:
    """A stream has no time of its own: a crash without a stamp stays on the day that first saw it, a new one does not.

    One that turned out to have a stamp takes it.
    """

    def undated(n: int) -> Analysis:
        return replace(made_up(n), record=replace(made_up(n).record, at=None))

    _write(any_store, [undated(1), undated(2)], 0, at_end=END)
    night, state = _begin(any_store)
    later = replace(state, mtime=NOW + timedelta(days=3))
    batch = [undated(1), made_up(2), undated(3)]
    Writer(any_store, night, same).write_batch(later, batch, checkpoint=0, seen=900, at_end=END, now=NOW)
    with any_store.read() as session:
        times = session.scalars(select(Crash.at).order_by(Crash.offset)).all()
        assert times == [NOW, made_up(2).record.at, NOW + timedelta(days=3)]
    assert check(any_store).problems == ()


def test_batches_of_one_night_do_not_remove_each_other(any_store: Store) -> None:
    """Several batches between two checkpoints stay, also when the last one moves the checkpoint over all."""
    night, state = _begin(any_store)
    writer = Writer(any_store, night, same)
    for n in range(3):
        end = END if n == 2 else None
        writer.write_batch(state, [made_up(n)], checkpoint=0 if n < 2 else 600, seen=n * 200, at_end=end, now=NOW)
    assert _count(any_store, Crash) == 3


def test_offset_never_goes_back(any_store: Store) -> None:
    """An old batch that is written late does not move the checkpoint back."""
    _write(any_store, [made_up(1)], 900)
    _write(any_store, [made_up(1)], 300)
    with any_store.read() as session:
        assert session.scalars(select(Source.offset)).one() == 900


def test_examples_are_the_first_of_each_release(any_store: Store) -> None:
    """Of each signature and release the first K texts are kept, over batches and nights."""
    for start in (0, 40, 80):
        night, state = _begin(any_store)
        writer = Writer(any_store, night, same, examples=3)
        batch = [made_up(n, kinds=1) for n in range(start, start + 40)]
        writer.write_batch(state, batch, checkpoint=(start + 40) * 200, seen=0, now=NOW)
    with any_store.read() as session:
        kept = select(Exemplar.release, Crash.offset).join(Crash, Crash.id == Exemplar.crash_id).order_by(Crash.offset)
        assert [tuple(row) for row in session.execute(kept)] == [
            ("1.0", 0), ("1.1", 200), ("1.0", 400), ("1.1", 600), ("1.0", 800), ("1.1", 1000),
        ]  # fmt: skip


def test_facts_are_redacted(store: Store, tmp_path: Path) -> None:
    """A fact that carries a secret is cleaned before it is stored; host and path never reach the file."""
    night, state = _begin(store)
    one = made_up(1, release="1.0-hunter2")
    writer = Writer(store, night, lambda text: text.replace("hunter2", "<secret>"))
    writer.write_batch(state, [one], checkpoint=1, seen=1, now=NOW)
    store.close()
    content = b"".join(p.read_bytes() for p in tmp_path.glob("crashpath.db*"))
    assert b"1.0-<secret>" in content
    assert b"hunter2" not in content
    assert b"node-1" not in content


def test_hostile_text(any_store: Store) -> None:
    """NUL, lone surrogates and characters outside the BMP do not stop a batch."""
    _write(any_store, [made_up(1, extra=" \0 \ud800 💥 " + "x" * 100_000)], 10)
    assert _count(any_store, Crash) == 1


def test_an_error_leaves_nothing(store: Store) -> None:
    """A batch that fails inside its transaction leaves neither crashes nor a moved offset."""
    night, state = _begin(store)

    def stop(_session: object) -> None:
        raise RuntimeError("fenced")

    with pytest.raises(RuntimeError):
        Writer(store, night, same, fence=stop).write_batch(state, [made_up(1)], checkpoint=9, seen=9, now=NOW)
    assert _count(store, Crash) == 0
    with store.read() as session:
        assert session.scalars(select(Source.offset)).one() == 0


def test_killed_night_is_marked(store: Store) -> None:
    """A night that never finished is ``failed`` once the next one begins; a finished one stays as it is."""
    _begin(store)
    night, _ = _begin(store)
    with store.write() as session:
        finish_night(
            session, night, "partial", counts={"crashes": 1}, seconds={"read": 0.5}, reason="a source", now=NOW
        )
    _begin(store)
    with store.read() as session:
        rows = nights(session)
    assert [row.status for row in rows] == ["running", "partial", "failed"]
    assert rows[1].counts == {"crashes": 1}
    assert rows[2].reason == "the process ended before the night did"
    assert _count(store, Night) == 3


CHILD = """
import sys
from datetime import UTC, datetime
from crashpath.ingest.feed import BATCH_RECORDS, FeedOptions, Feeder
from crashpath.ingest.ledger import Ledger, SourceIdentity
from crashpath.ingest.lease import Lease
from crashpath.ingest.nights import start_night, finish_night
from crashpath.ingest.store import open_store
from crashpath.ingest.testing import made_up, same
from crashpath.ingest.write import EndOfSource, Quarantined, Writer

now = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)
total, size = 2000, 50
with open_store(sys.argv[1]) as store, Lease(store) as lease:
    with store.write() as session:
        night = start_night(session, versions={}, now=now)
        found = SourceIdentity("/logs/app.log", "h", None, b"head", total * 200, now)
        state = Ledger(store.key, night, same).claim(session, found)
    writer = Writer(store, night, same, fence=lease.fence)
    print("begun", flush=True)
    first = state.offset // 200
    for n in range(first, total, size):
        last = n + size >= total
        batch = [made_up(i) for i in range(n, min(n + size, total))]
        held = [Quarantined(i * 200 + 7, i * 200 + 9, "not text", "ab", "?")
                for i in range(n, min(n + size, total)) if i % 100 == 0]
        # The checkpoint lies before the last records of a batch, as an open record would have it.
        checkpoint = min(n + size, total) * 200 - (0 if last else 3 * 200)
        writer.write_batch(state, batch, held, checkpoint=checkpoint, seen=min(n + size, total) * 200,
                           at_end=EndOfSource(total * 200, now) if last else None, now=now)
    with store.write() as session:
        finish_night(session, night, "complete", counts={}, seconds={}, now=now)
print("done", flush=True)
"""


def _child(url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, text=True)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """SIGKILL at random moments, each followed by another start, gives the store of an undisturbed run; the lease of
    the killed night stops nobody."""
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("calm", "killed")]
    started = time.monotonic()
    calm = _child(urls[0])
    out, _ = calm.communicate(timeout=120)
    assert out.split() == ["begun", "done"]
    span = time.monotonic() - started
    rng = random.Random(7)
    kills = 0
    for _ in range(3):
        child = _child(urls[1])
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(rng.uniform(0, min(0.3, span / 10)))
        child.send_signal(signal.SIGKILL)
        kills += child.wait() == -signal.SIGKILL
    assert kills > 0
    out, _ = _child(urls[1]).communicate(timeout=120)
    assert out.split() == ["begun", "done"]
    with open_store(urls[0]) as one, open_store(urls[1]) as other:
        assert _count(one, Crash) == 2000
        assert _picture(one) == _picture(other)
        assert check(other).problems == ()
        with other.read() as session:
            assert {night.status for night in nights(session)} <= {"complete", "failed"}


def test_people_write_while_a_night_writes(tmp_path: Path) -> None:
    """Beside a night in another process a person reads and writes; no write is refused, and none of either is lost."""
    url = f"sqlite:///{tmp_path}/busy.db"
    open_store(url).close()
    child = _child(url)
    assert child.stdout is not None
    child.stdout.readline()
    writes = 0
    with open_store(url) as store:
        while child.poll() is None:
            _count(store, Crash)
            with store.write() as session:
                session.get_one(Night, 1).reason = f"triage {writes}"
            writes += 1
            time.sleep(0.01)
        child.stdout.close()
        assert child.returncode == 0
        assert writes > 3
        assert _count(store, Crash) == 2000
        assert check(store).problems == ()


def test_a_night_holds_the_store_for_one_batch_at_a_time(store: Store, tmp_path: Path) -> None:
    """What a person's write may have to wait for is bounded: no transaction of a night writes more than one batch of
    records, however long the log."""
    stored = [0]

    def committed(connection: Connection) -> None:
        stored.append(connection.exec_driver_sql("SELECT count(*) FROM crash").scalar_one())

    log = tmp_path / "long.log"
    n = 3 * BATCH_RECORDS
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nMemoryError: request {}\n'
    log.write_text("".join(f"2026-01-31 10:00:00,000 INFO server: request {i}\n{trace.format(i)}" for i in range(n)))
    with store.write() as session:
        night = start_night(session, versions={}, now=NOW)
    event.listen(store.engine, "commit", committed)
    feeder = Feeder(store, Writer(store, night, same), load_rules(), FeedOptions(), lambda: NOW)
    assert feeder.feed(Found(str(log))).counts.new_crashes == n
    steps = [after - before for before, after in pairwise(stored)]
    assert sum(steps) == n
    assert max(steps) <= BATCH_RECORDS


def test_reader_keeps_its_snapshot(store: Store, tmp_path: Path) -> None:
    """A reader that began before a commit sees the store as it was, and does not block the writer."""
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Crash)) == 0
        _write(store, [made_up(1)], 10)
        assert session.scalar(select(func.count()).select_from(Crash)) == 0
    assert _count(store, Crash) == 1
    raw = sqlite3.connect(tmp_path / "crashpath.db")
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()
