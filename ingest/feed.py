"""Feed log sources into the store: claim, read from the checkpoint, split, analyse, write batch by batch.

A batch is written when it is large enough, with the last checkpoint that the splitter gave. What it closes at the end
of a source lies behind that checkpoint on purpose: if the source grows, it is read again from there and the crash is
updated in place (see docs/decisions/0002).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from functools import partial
from pathlib import Path

from crashpath.ingest.again import likeness, lost, waiting
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.batch import BatchCounts
from crashpath.ingest.event_lines import EventSplitter, split_all
from crashpath.ingest.facts import Sidecar, facts_for_path, read_sidecar
from crashpath.ingest.heard import Hearing, Voice
from crashpath.ingest.ledger import Ledger, SourceIdentity, SourceState
from crashpath.ingest.model import Analysis, Facts, Record
from crashpath.ingest.named import Told, told_by
from crashpath.ingest.read import Found, OpenSource, open_source
from crashpath.ingest.rules import Rules
from crashpath.ingest.runtime_events import AttemptsEvent
from crashpath.ingest.split import Checkpoint, Item, SplitOptions, Undecodable
from crashpath.ingest.storable import clean
from crashpath.ingest.store import Store
from crashpath.ingest.tail import Follower, tails_of
from crashpath.ingest.unpack import SourceError
from crashpath.ingest.write import EndOfSource, Quarantined, Writer

BATCH_RECORDS = 400
PREVIEW_CHARACTERS = 200


class Outcome(StrEnum):
    """What came of one source."""

    READ = "read"
    UNCHANGED = "unchanged"
    EMPTY = "empty"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How sources are read. ``facts`` come from flags."""

    tz: tzinfo = UTC
    as_of: datetime | None = None
    facts: Facts = field(default_factory=Facts)
    patterns: tuple[str, ...] = ()
    host: str = "localhost"


@dataclass(frozen=True, slots=True)
class Fed:
    """What one source gave. ``problem`` is a sentence; whatever stood before it was stored, and where it is one on the
    file that tells the log's facts, all was. ``advice`` is a sentence on what that file tells in vain.

    ``events`` are lines of the runtime; those of them that are failures are ``records`` too.
    """

    path: str
    outcome: Outcome
    records: int = 0
    lines: int = 0
    counts: BatchCounts = field(default_factory=BatchCounts)
    store_seconds: float = 0.0
    problem: str | None = None
    events: int = 0
    advice: str | None = None


class Feeder:
    """Feeds the sources of one night, one after the other.

    ``hearing`` is told of each source that was looked at, and of the cohorts that its records and lines named.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        rules: Rules,
        options: FeedOptions,
        clock: Callable[[], datetime],
        hearing: Hearing | None = None,
    ) -> None:
        self._store = store
        self._writer = writer
        self._rules = rules
        self._options = options
        self._clock = clock
        self._analyser = Analyser(rules, redacting=True)
        with store.read() as session:
            again = waiting(session)
        self._ledger = Ledger(store.key, writer.night_id, clean, again)
        self._hearing = hearing or Hearing(clean, clock())

    def feed(self, found: Found, stream: str | None = None) -> Fed:
        """Read one source to its end. ``stream`` names one that has no path of its own (standard input)."""
        if found.problem is not None:
            return Fed(found.path, Outcome.UNREADABLE, problem=found.problem)
        if stream is None and self._as_it_was(found.path):
            self._looked_at(found.path, self._facts_of(found.path, read_sidecar(found.path)))
            return Fed(found.path, Outcome.UNCHANGED)
        try:
            with open_source(found.path) as source:
                return self._feed_open(source, stream)
        except SourceError as error:
            return Fed(found.path, Outcome.UNREADABLE, problem=str(error))

    def _as_it_was(self, path: str) -> bool:
        """Whether name and ``stat`` alone say that there is nothing new; asked of most files of most nights."""
        try:
            info = Path(path).stat()
        except OSError:
            return False
        mtime = datetime.fromtimestamp(info.st_mtime, UTC)
        with self._store.read() as session:
            return self._ledger.known(session, path, self._options.host, info.st_ino, info.st_size, mtime)

    def _feed_open(self, source: OpenSource, stream: str | None) -> Fed:
        path = stream or source.path
        sidecar = read_sidecar(path)
        facts = self._facts_of(path, sidecar)
        if not source.head:
            self._looked_at(path, facts)
            return Fed(path, Outcome.EMPTY)
        identity = self._identity(source, stream)
        options = self._split_options(source, facts)
        mended = self._mended(source.path, path, identity, options)
        with self._store.write() as session:
            state = self._ledger.claim(session, identity, mended)
        if state.unchanged:
            self._looked_at(path, facts)
            return Fed(path, Outcome.UNCHANGED)
        follower = Follower(state.offset)
        voice = partial(self._hearing.voice, self._store.key(path))
        splitter = EventSplitter(path, options, state.offset, head=source.head)
        reading = _Reading(self._writer, state, follower, splitter, self._clock, voice)
        problem = None
        try:
            for raw in follower.lines(source):
                for item in splitter.feed(raw):
                    reading.take(item, self._analyser)
            reading.end(self._analyser, _end_of(source, state))
        except SourceError as error:  # damaged further on: what was read up to there is kept
            problem = str(error)
            reading.end(self._analyser, None)
            with self._store.write() as session:
                self._ledger.problem(session, state, problem)
        else:
            self._looked_at(path, facts)
        outcome = Outcome.UNREADABLE if problem else Outcome.READ
        return Fed(
            path, outcome, reading.records, splitter.lines, reading.counts, reading.store_seconds,
            problem or sidecar.problem, splitter.events, sidecar.advice,
        )  # fmt: skip

    def _mended(self, file: str, path: str, identity: SourceIdentity, options: SplitOptions) -> int | None:
        """Return the source whose place a file takes: one to be read again, all of whose crashes it gives, too."""
        with self._store.read() as session:
            source_id = self._ledger.mended(session, identity)
        if source_id is None:
            return None
        try:
            with open_source(file) as source:
                items = split_all(source.lines(), path, options, source.head)
                found = likeness(self._analyser.analyse(item) for item in items if isinstance(item, Record))
        except SourceError:
            return None
        with self._store.read() as session:
            return None if lost(session, source_id, found) else source_id

    def _facts_of(self, path: str, sidecar: Sidecar) -> Facts:
        return facts_for_path(path, self._options.patterns, sidecar.facts, self._options.facts)

    def _looked_at(self, path: str, facts: Facts) -> None:
        self._hearing.look(self._store.key(path), facts)

    def _identity(self, source: OpenSource, stream: str | None) -> SourceIdentity:
        is_file = source.size is not None and stream is None
        identity = SourceIdentity(
            path=stream or source.path,
            host=self._options.host,
            inode=source.inode if is_file else None,
            head=source.head,
            size=source.size or 0,
            mtime=source.mtime or self._clock(),
            compressed=source.compressed,
        )
        if source.size is None:  # a pipe is read once
            return identity
        with self._store.read() as session:
            places = self._ledger.tails(session, identity)
        # Read outside the transaction: a large archive takes its time.
        return replace(identity, tails=tails_of(source.path, places, decoded=source.compressed))

    def _split_options(self, source: OpenSource, facts: Facts) -> SplitOptions:
        return SplitOptions(
            tz=self._options.tz,
            as_of=self._options.as_of or self._clock(),
            mtime=source.mtime,
            facts=facts,
            is_failure=self._rules.is_failure,
        )


class _Reading:
    """The batch of one source that is being filled, and what was written so far."""

    def __init__(
        self,
        writer: Writer,
        state: SourceState,
        follower: Follower,
        splitter: EventSplitter,
        clock: Callable[[], datetime],
        voice: Callable[[Iterable[Told]], Voice],
    ) -> None:
        self._writer = writer
        self._voice = voice
        self._told: set[Told] = set()
        self._told_before: set[Told] = set()
        self._state = state
        self._follower = follower
        self._splitter = splitter
        self._clock = clock
        self._analyses: list[Analysis] = []
        self._bad: list[Quarantined] = []
        self._attempts: list[AttemptsEvent] = []
        self._checkpoint = state.offset
        self._seen = state.offset
        self.records = 0
        self.counts = BatchCounts()
        self.store_seconds = 0.0

    def take(self, item: Item | AttemptsEvent, analyser: Analyser) -> None:
        match item:
            case Checkpoint(offset):
                self._checkpoint = offset
            case Undecodable():
                self._bad.append(_quarantined(item))
            case AttemptsEvent():
                self._attempts.append(item)
                self._told.add(told_by(item.facts))
            case Record():
                analysis = analyser.analyse(item)
                self._analyses.append(analysis)
                self._told.add(told_by(analysis.parsed.facts, item.facts))
                self._seen = max(self._seen, item.end)
                self.records += 1
        if len(self._analyses) + len(self._bad) + len(self._attempts) >= BATCH_RECORDS:
            self._write(None)

    def end(self, analyser: Analyser, at_end: EndOfSource | None) -> None:
        for item in self._splitter.close():
            if isinstance(item, Checkpoint):
                self._seen = item.offset
            else:
                self.take(item, analyser)
        self._write(at_end)

    def _write(self, at_end: EndOfSource | None) -> None:
        started = time.perf_counter()
        self._told |= self._splitter.cohorts  # all lines before the checkpoint are in it, those after it do no harm
        self.counts += self._writer.write_batch(
            self._state,
            self._analyses,
            self._bad,
            self._attempts,
            self._voice(self._told - self._told_before),
            checkpoint=self._checkpoint,
            seen=self._seen,
            at_end=at_end,
            tail=self._follower.tail(),
            now=self._clock(),
        )
        self._analyses, self._bad, self._attempts = [], [], []
        self._told_before |= self._told
        self._told = set()
        self.store_seconds += time.perf_counter() - started


def _end_of(source: OpenSource, state: SourceState) -> EndOfSource:
    return EndOfSource(size=source.size or 0, mtime=source.mtime or state.mtime)


def _quarantined(bad: Undecodable) -> Quarantined:
    # Without its NULs, so that UTF-16 in an 8-bit log is read, and redacted, as the text that it is.
    preview = clean(bad.preview.replace(b"\0", b"").decode("utf-8", "backslashreplace"))[:PREVIEW_CHARACTERS]
    return Quarantined(bad.offset, bad.end, bad.reason, bad.sha256, preview)
