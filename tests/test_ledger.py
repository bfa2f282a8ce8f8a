"""Which source is which: growth, rotation, truncation, copies, compression, streams."""

from __future__ import annotations

import gzip
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from crashpath.ingest.feed import Feeder, FeedOptions
from crashpath.ingest.ledger import Ledger, SourceIdentity, SourceState
from crashpath.ingest.nights import start_night
from crashpath.ingest.read import LINE_BYTES, Found, open_source
from crashpath.ingest.rotation import stem_of
from crashpath.ingest.rules import load_rules
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Crash, Source
from crashpath.ingest.tail import Follower, Place, tails_of
from crashpath.ingest.testing import same
from crashpath.ingest.write import EndOfSource, Writer

NOW = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)
LONG = b"2026-01-01 00:00:01 INFO server of the model bert started\n" * 40
OTHER = b"2026-01-02 00:00:01 INFO another day, another log\n" * 40


class Reader:
    """Reads real files the way a night does: claim, then read to the end and store how far."""

    def __init__(self, store: Store) -> None:
        self.store = store
        with store.write() as session:
            self.night = start_night(session, versions={}, now=NOW)
        self.ledger = Ledger(store.key, self.night, same)
        self.writer = Writer(store, self.night, same)

    def claim(self, path: Path | str, host: str = "h") -> SourceState:
        with self.store.write() as session:
            return self.ledger.claim(session, self.identity(Path(path), host))

    def identity(self, path: Path, host: str = "h") -> SourceIdentity:
        compressed = path.suffix == ".gz"
        content = gzip.decompress(path.read_bytes()) if compressed else path.read_bytes()
        stat = path.stat()
        mtime = datetime.fromtimestamp(stat.st_mtime, UTC)
        return SourceIdentity(str(path), host, stat.st_ino, content[:1024], stat.st_size, mtime, compressed)

    def read(self, path: Path | str, host: str = "h") -> SourceState:
        state = self.claim(path, host)
        found = self.identity(Path(path), host)
        end = len(gzip.decompress(Path(path).read_bytes())) if found.compressed else found.size
        self.writer.write_batch(
            state, (), checkpoint=end, seen=end, at_end=EndOfSource(found.size, found.mtime), now=NOW
        )
        return state


@pytest.fixture
def reader(store: Store) -> Reader:
    return Reader(store)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "app.log"
    path.write_bytes(LONG)
    return path


def _write(path: Path, content: bytes) -> Path:
    """Write a file anew, with an inode of its own."""
    fresh = path.with_name(path.name + ".fresh")
    fresh.write_bytes(content)
    os.replace(fresh, path)
    return path


def test_growing_file_goes_on(reader: Reader, log: Path) -> None:
    """A file that has grown is the same source and is read from where it was left."""
    first = reader.read(log)
    assert (first.offset, first.generation) == (0, 0)
    with log.open("ab") as file:
        file.write(b"more\n")
    again = reader.claim(log)
    assert (again.id, again.offset, again.known_size, again.unchanged) == (first.id, len(LONG), len(LONG), False)


def test_short_head_that_grows(reader: Reader, log: Path) -> None:
    """A file shorter than a KiB is matched by the bytes that were there, and its head is taken up as it grows."""
    _write(log, b"start\n")
    first = reader.read(log)
    with log.open("ab") as file:
        file.write(LONG)
    second = reader.read(log)
    assert (second.id, second.offset) == (first.id, 6)
    with reader.store.read() as session:
        assert session.get_one(Source, first.id).head_len == 1024


def test_unchanged_file_needs_no_reading(reader: Reader, log: Path) -> None:
    """What was read to its end and has the same size and time is told by stat alone; after growth it is not."""
    reader.read(log)
    stat = log.stat()
    mtime = datetime.fromtimestamp(stat.st_mtime, UTC)
    with reader.store.read() as session:
        assert reader.ledger.known(session, str(log), "h", stat.st_ino, stat.st_size, mtime)
        assert not reader.ledger.known(session, str(log), "h", stat.st_ino, stat.st_size + 1, mtime)
        assert not reader.ledger.known(session, str(log), "h", stat.st_ino, stat.st_size, mtime + timedelta(seconds=1))
        assert not reader.ledger.known(session, str(log), "other", stat.st_ino, stat.st_size, mtime)
    assert reader.claim(log).unchanged


def test_unread_rest_is_not_unchanged(reader: Reader, log: Path) -> None:
    """A file that was claimed and not read to its end is not skipped."""
    reader.claim(log)
    assert not reader.claim(log).unchanged


def test_renamed_by_rotation(reader: Reader, log: Path) -> None:
    """app.log → app.log.1: the old source goes on under its new name, the new file is a new source, in either order."""
    first = reader.read(log)
    os.rename(log, log.with_name("app.log.1"))
    log.write_bytes(OTHER)
    new = reader.read(log)
    old = reader.claim(log.with_name("app.log.1"))
    assert new.id != first.id
    assert new.offset == 0
    assert (old.id, old.offset) == (first.id, len(LONG))


def test_renamed_with_the_same_banner(reader: Reader, log: Path) -> None:
    """Even where the new file begins like the old one (and is longer), the inode says which is which."""
    first = reader.read(log)
    os.rename(log, log.with_name("app.log.1"))
    log.write_bytes(LONG + LONG)
    assert reader.claim(log).id != first.id
    assert reader.claim(log.with_name("app.log.1")).id == first.id


def test_rotated_and_compressed(reader: Reader, log: Path) -> None:
    """app.log.1.gz of a file already read is the same source: nothing is read twice, its unread rest is."""
    first = reader.read(log)
    rest = b"the last lines, written after the night\n"
    with gzip.open(log.with_name("app.log.1.gz"), "wb") as file:
        file.write(LONG + rest)
    _write(log, OTHER)
    assert reader.claim(log).id != first.id
    rotated = reader.read(log.with_name("app.log.1.gz"))
    assert (rotated.id, rotated.offset) == (first.id, len(LONG))
    os.rename(log.with_name("app.log.1.gz"), log.with_name("app.log.2.gz"))
    assert reader.claim(log.with_name("app.log.2.gz")).unchanged


def test_compressed_where_the_original_is_gone(reader: Reader, log: Path) -> None:
    """A short file that was compressed in place is the same source."""
    _write(log, b"Killed\n")
    first = reader.read(log)
    with gzip.open(log.with_name("app.log.gz"), "wb") as file:
        file.write(b"Killed\n")
    log.unlink()
    assert reader.claim(log.with_name("app.log.gz")).id == first.id


def test_archived_elsewhere(reader: Reader, log: Path, tmp_path: Path) -> None:
    """A full KiB of the same head and the same stem, with the original gone: the same source in another folder."""
    first = reader.read(log)
    archive = tmp_path / "archive"
    archive.mkdir()
    with gzip.open(archive / "app.log-20260101.gz", "wb") as file:
        file.write(LONG)
    log.unlink()
    assert reader.claim(archive / "app.log-20260101.gz").id == first.id


def test_copy_and_truncate(reader: Reader, log: Path) -> None:
    """copytruncate: the copy is the old source, the emptied file with other content a new one."""
    first = reader.read(log)
    shutil.copy(log, log.with_name("app.log.1"))
    log.write_bytes(OTHER)
    new = reader.read(log)
    assert new.id != first.id
    assert reader.claim(log.with_name("app.log.1")).id == first.id


@pytest.mark.parametrize("copy_first", [True, False])
def test_copy_and_truncate_with_the_same_banner(reader: Reader, log: Path, copy_first: bool) -> None:
    """Rewritten with the same head: a new generation; the copy goes on as the old one, in either order."""
    content = LONG + b"x" * 5000
    log.write_bytes(content)
    first = reader.read(log)
    shutil.copy(log, log.with_name("app.log.1"))
    log.write_bytes(LONG)
    order = [log.with_name("app.log.1"), log] if copy_first else [log, log.with_name("app.log.1")]
    states = {path.name: reader.read(path) for path in order}
    assert states["app.log.1"].id == first.id
    assert states["app.log.1"].offset == len(content)
    assert states["app.log"].id != first.id
    assert states["app.log"].offset == 0
    with log.open("ab") as file:
        file.write(b"more")
    assert reader.claim(log).id == states["app.log"].id


def test_truncated_and_rewritten(reader: Reader, log: Path) -> None:
    """The same head in the same place, but shorter than what was read: generation 1, from the beginning."""
    log.write_bytes(LONG + b"x" * 100)
    first = reader.read(log)
    log.write_bytes(LONG)
    second = reader.read(log)
    assert second.id != first.id
    assert (second.offset, second.generation) == (0, 1)
    assert reader.claim(log).id == second.id


def test_copies_are_two_sources(reader: Reader, log: Path, tmp_path: Path) -> None:
    """Two files that both exist with the same head are two sources, in one folder and in two."""
    copies = [log.with_name("app.log.1"), log.with_name("other.log"), tmp_path / "app.log"]
    for copy in copies:
        shutil.copy(log, copy)
    ids = [reader.read(path).id for path in [log, *copies]]
    assert len(set(ids)) == 4
    assert [reader.claim(path).id for path in [log, *copies]] == ids


def test_many_short_equal_files(reader: Reader, log: Path, tmp_path: Path) -> None:
    """ "Killed" in a hundred files is a hundred sources, also where earlier ones were deleted in between."""
    ids = set()
    for n in range(100):
        folder = tmp_path / f"night{n // 50}"
        folder.mkdir(exist_ok=True)
        path = folder / f"pod-{n % 50}.log"
        path.write_bytes(b"Killed\n")
        os.utime(path, (1_767_000_000 + n, 1_767_000_000 + n))
        ids.add(reader.read(path).id)
        if n == 49:
            shutil.rmtree(folder)  # their inodes are given out again
    assert len(ids) == 100


def test_restored_file_is_the_same(reader: Reader, log: Path) -> None:
    """The same path and head with a new inode (restored, synchronised) is the same source."""
    first = reader.read(log)
    _write(log, LONG + b"more\n")
    again = reader.claim(log)
    assert (again.id, again.offset) == (first.id, len(LONG))


def test_other_content_in_the_same_place(reader: Reader, log: Path) -> None:
    """Another head in the same place and inode is a new source."""
    first = reader.read(log)
    log.write_bytes(OTHER)
    second = reader.read(log)
    assert second.id != first.id
    assert reader.claim(log).id == second.id


def test_empty_file_says_nothing(reader: Reader, log: Path) -> None:
    """Empty files are not one source; one that fills up later is still itself."""
    one, two = log.with_name("one.log"), log.with_name("two.log")
    one.touch()
    two.touch()
    first, second = reader.read(one), reader.read(two)
    assert first.id != second.id
    two.write_bytes(LONG)
    assert reader.claim(two).id == second.id


def test_hosts_are_apart(reader: Reader, log: Path) -> None:
    """The same file name and head on another host is another source."""
    assert reader.read(log, "a").id != reader.read(log, "b").id


def test_named_stream(reader: Reader) -> None:
    """A stream is known by its name and how it begins; it has no inode and no folder."""

    def claim(name: str, head: bytes) -> int:
        with reader.store.write() as session:
            return reader.ledger.claim(session, SourceIdentity(name, "h", None, head, 0, NOW)).id

    assert claim("pod", LONG[:1024]) == claim("pod", LONG[:1024])
    assert claim("pod", LONG[:1024]) != claim("pod", OTHER[:1024])
    assert claim("pod", LONG[:1024]) != claim("other", LONG[:1024])


def test_relative_and_absolute_names(reader: Reader, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is the same whether it was named from its folder or from the root."""
    first = reader.read(log)
    monkeypatch.chdir(log.parent)
    stat = log.stat()
    with reader.store.read() as session:
        mtime = datetime.fromtimestamp(stat.st_mtime, UTC)
        assert reader.ledger.known(session, "app.log", "h", stat.st_ino, stat.st_size, mtime)
    assert reader.claim("app.log").id == first.id


def test_redacted_paths(store: Store, log: Path) -> None:
    """The stored path is the redacted one, and rotation is still told."""
    reader = Reader(store)
    reader.ledger = Ledger(store.key, reader.night, lambda text: text.replace("logs", "<user>"))
    first = reader.read(log)
    with store.read() as session:
        assert "/<user>/" in session.get_one(Source, first.id).path
    copy = log.with_name("app.log.1")
    shutil.copy(log, copy)
    assert reader.read(copy).id != first.id
    log.write_bytes(OTHER)
    shutil.copy(copy, log.with_name("app.log.2"))
    copy.unlink()
    assert reader.claim(log.with_name("app.log.2")).id in {first.id, first.id + 1}


def test_problem_is_tried_again(reader: Reader, log: Path) -> None:
    """A source that could not be read to its end is not skipped the next time."""
    state = reader.read(log)
    with reader.store.write() as session:
        reader.ledger.problem(session, state, "damaged archive")
    assert not reader.claim(log).unchanged
    reader.read(log)
    assert reader.claim(log).unchanged


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("/var/log/app.log", "app.log"),
        ("app.log.1", "app.log"),
        ("app.log.2.gz", "app.log"),
        ("app.log-20260131", "app.log"),
        ("app-20260131.log.zst", "app.log"),
        ("app.2026-01-31_12-00.log", "app.log"),
        ("app.log.2026-01-31", "app.log"),
        ("app.1.log", "app.log"),
        ("app.log.old", "app.log"),
        ("pod-12.log", "pod-12.log"),
        ("worker_3.log", "worker_3.log"),
        ("model.v2", "model.v2"),
        ("2026-01-31.log", "2026-01-31.log"),
        (".1", ".1"),
    ],
)
def test_stem(path: str, stem: str) -> None:
    """What rotation and compression add to a name is taken off; ordinals of pods and versions are not."""
    assert stem_of(path) == stem


BANNER = b"".join(b"2026-01-01 00:00:00 INFO server: option %03d of the model is its default\n" % n for n in range(40))


def _failures(name: str, count: int) -> bytes:
    """Failures that are as long whatever their name's letter is."""
    return b"".join(
        b"2026-01-01 00:%02d:00 ERROR server: request failed\nTraceback (most recent call last):\n"
        b'  File "/app/%s.py", line %d, in serve\n    run()\nValueError: no model named %s\n'
        % (n % 60, name.encode(), n, name.encode())
        for n in range(count)
    )


@dataclass
class Nights:
    """Feeds real files night by night and counts the crashes that the store holds."""

    store: Store
    days: int = 0

    def feed(self, *paths: Path, stream: str | None = None) -> int:
        self.days += 1
        now = NOW + timedelta(days=self.days)
        with self.store.write() as session:
            night = start_night(session, versions={}, now=now)
        writer = Writer(self.store, night, same)
        feeder = Feeder(self.store, writer, load_rules(), FeedOptions(), lambda: now)
        for path in paths:
            fed = feeder.feed(Found(str(path)), stream)
            assert fed.problem is None
        with self.store.read() as session:
            return session.scalar(select(func.count()).select_from(Crash)) or 0


@pytest.fixture
def nights(store: Store) -> Nights:
    return Nights(store)


def test_stream_of_a_restarted_program(nights: Nights, tmp_path: Path) -> None:
    """A named stream with the same banner and other failures adds them; sent again or grown, only what is new."""
    file = tmp_path / "stdin"
    file.write_bytes(BANNER + _failures("a", 10))
    assert nights.feed(file, stream="app") == 10
    assert nights.feed(file, stream="app") == 10
    file.write_bytes(BANNER + _failures("b", 10))
    assert nights.feed(file, stream="app") == 20
    file.write_bytes(BANNER + _failures("b", 12))
    assert nights.feed(file, stream="app") == 22
    file.write_bytes(BANNER + _failures("a", 10))
    assert nights.feed(file, stream="app") == 22


@pytest.mark.parametrize("order", [("app.log", "app.log.1"), ("app.log.1", "app.log")])
def test_restarted_longer_than_what_was_read(nights: Nights, log: Path, order: tuple[str, str]) -> None:
    """copytruncate with the same banner, the new file longer than the old: all of both, whichever is read first."""
    log.write_bytes(BANNER + _failures("a", 5))
    assert nights.feed(log) == 5
    shutil.copy(log, log.with_name("app.log.1"))
    log.write_bytes(BANNER + _failures("b", 8))
    assert nights.feed(*(log.with_name(name) for name in order)) == 13
    with log.open("ab") as file:
        file.write(_failures("c", 1))
    assert nights.feed(*(log.with_name(name) for name in order)) == 14


def test_inode_of_another_file(nights: Nights, log: Path) -> None:
    """A file of another name that got the inode and has the same banner is read from its beginning; a rename is not."""
    log.write_bytes(BANNER + _failures("a", 5))
    assert nights.feed(log) == 5
    other = log.rename(log.with_name("worker.log"))
    assert nights.feed(other) == 5
    other.write_bytes(BANNER + _failures("b", 8))
    last = other.rename(log.with_name("gateway.log"))
    assert nights.feed(last) == 13


def test_short_file_in_the_inode_of_another(nights: Nights, log: Path) -> None:
    """ "Killed" says too little: a longer file of another name in the same inode is another one."""
    log.write_bytes(b"Killed\n")
    assert nights.feed(log) == 1
    other = log.rename(log.with_name("worker.log"))
    other.write_bytes(b"Killed\n" + _failures("b", 1))
    assert nights.feed(other) > 1


def test_compressed_with_the_same_banner(nights: Nights, log: Path) -> None:
    """A rotated archive that holds what was read goes on; one that only begins the same is another."""
    log.write_bytes(BANNER + _failures("a", 5))
    assert nights.feed(log) == 5
    with gzip.open(log.with_name("app.log.1.gz"), "wb") as file:
        file.write(BANNER + _failures("a", 6))
    log.unlink()
    assert nights.feed(log.with_name("app.log.1.gz")) == 6
    with gzip.open(log.with_name("app.log.2.gz"), "wb") as file:
        file.write(BANNER + _failures("b", 9))
    log.with_name("app.log.1.gz").unlink()
    assert nights.feed(log.with_name("app.log.2.gz")) == 15


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_utf16(nights: Nights, log: Path, encoding: str) -> None:
    """Of UTF-16 sizes on disk say nothing: text that takes more bytes decoded grows on, and a restart is still told."""
    snow = ("\N{SNOWMAN}" * 20 + "\n") * 100
    grown = BANNER.decode() + snow + _failures("a", 6).decode()
    log.write_bytes((BANNER.decode() + snow + _failures("a", 5).decode()).encode(encoding))
    assert nights.feed(log) == 5
    log.write_bytes(grown.encode(encoding))
    assert nights.feed(log) == 6
    log.write_bytes((BANNER.decode() + snow + _failures("b", 9).decode()).encode(encoding))
    assert nights.feed(log) == 15
    with nights.store.read() as session:
        assert session.scalar(select(func.count()).select_from(Source)) == 2


@pytest.mark.parametrize("step", [1, 400, 5_000])
def test_growth_is_never_taken_for_another_file(nights: Nights, log: Path, step: int) -> None:
    """Wherever a night found the end of a file, in a line or between two, the next goes on with the same source."""
    content = BANNER + _failures("a", 30)
    sizes = range(len(content) - 12 * step, len(content) + 1, step) if step < 1_000 else (1, 3_500, len(content))
    for size in sizes:
        log.write_bytes(content[:size])
        nights.feed(log)
    with nights.store.read() as session:
        assert session.scalar(select(func.count()).select_from(Source)) == 1
        assert session.scalar(select(func.count()).select_from(Crash)) == 30


@pytest.mark.parametrize("end", ["\n", ""])
def test_tail_is_what_the_file_holds(tmp_path: Path, end: str) -> None:
    """The tail that was followed is the tail that is read back, plain and decoded; after a cut line there is none."""
    log = tmp_path / "app.log"
    log.write_text("\n".join(f"line {n} \N{SNOWMAN}\r" for n in range(500)) + end, newline="")
    packed = tmp_path / "app.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    for start in (0, log.stat().st_size - 3, log.stat().st_size):
        follower = Follower(start)
        with open_source(str(log)) as source:
            given = b"".join(raw.data for raw in follower.lines(source))
        assert given == log.read_bytes()[start:].replace(b"\n", b"")
        tail = follower.tail()
        assert tail is not None
        assert tail[:2] == (log.stat().st_size, 1024)
        places = [Place(*tail[:2]), Place(40, 9), Place(10**9, 1024)]
        plain = tails_of(str(log), places, decoded=False)
        assert plain == tails_of(str(packed), places, decoded=True)
        assert plain is not None
        assert tail in plain
        assert len(plain) == 2
    log.write_bytes(b"x" * (LINE_BYTES + 10))
    follower = Follower(0)
    with open_source(str(log)) as source:
        assert sum(1 for _ in follower.lines(source)) == 1
    assert follower.tail() is None
