"""One night: take the lease, feed the sources, cluster what is new, write down how it went.

Encoding and fitting stand outside any transaction. A night that is killed leaves its batches and offsets behind, and
the next one goes on from there; a night in which something could not be read is ``partial``, never ``complete``.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from crashpath.clustering.map_step import Mapped, Mapper
from crashpath.clustering.night import Clustered, Clusterer
from crashpath.clustering.recluster_step import Reclusterer
from crashpath.clustering.recluster_write import Reclustered
from crashpath.dashboard.inputs import sources
from crashpath.dashboard.plurals import many
from crashpath.dashboard.stopwatch import Stopwatch
from crashpath.dashboard.summary import NightSummary
from crashpath.ingest.attempts import load_attempts
from crashpath.ingest.batch import BatchCounts
from crashpath.ingest.deaths import join_deaths
from crashpath.ingest.failed_daily import refresh_failures
from crashpath.ingest.feed import Fed, Feeder, FeedOptions, Outcome
from crashpath.ingest.heard import Hearing
from crashpath.ingest.keying import keying
from crashpath.ingest.lease import Lease
from crashpath.ingest.lineage import kept_mark
from crashpath.ingest.nights import Status, finish_night, start_night
from crashpath.ingest.queries import store_totals
from crashpath.ingest.read import Found
from crashpath.ingest.rekey_check import ensure_keyed
from crashpath.ingest.rules import load_rules
from crashpath.ingest.sizes import store_bytes
from crashpath.ingest.storable import clean
from crashpath.ingest.store import HEAD, Store
from crashpath.ingest.store_errors import BadAttempts, StoreError
from crashpath.ingest.trends import crashes_by_class
from crashpath.ingest.write import Writer

STDIN = "-"
CHUNK = 1 << 20
LIBRARIES = ("hdbscan", "numpy", "onnxruntime", "sentence-transformers", "torch", "umap-learn")


class Progress(Protocol):
    """What a night tells while it runs."""

    def source(self, number: int, total: int, path: str) -> None:
        """Say that a source is being read."""

    def done(self, fed: Fed) -> None:
        """Say what came of it."""

    def stage(self, name: str) -> None:
        """Say that a stage begins."""


class Silent:
    """Progress for callers that want none."""

    def source(self, number: int, total: int, path: str) -> None:
        """Say nothing."""

    def done(self, fed: Fed) -> None:
        """Say nothing."""

    def stage(self, name: str) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class NightOptions:
    """What a night reads and how. ``attempts`` is a file of attempt counts, ``exclude`` globs of files to leave out."""

    feed: FeedOptions = field(default_factory=FeedOptions)
    attempts: str | None = None
    exclude: tuple[str, ...] = ()
    max_quarantine: float = 0.01
    examples: int = 20
    lease_wait: float = 0.0
    source_name: str | None = None


def run_night(
    store: Store,
    paths: Sequence[str],
    options: NightOptions,
    clusterer: Clusterer,
    *,
    clock: Callable[[], datetime],
    progress: Progress | None = None,
    reclusterer: Reclusterer | None = None,
    mapper: Mapper | None = None,
) -> NightSummary:
    """Run one night over files, folders, globs or ``-`` and return its figures.

    Where a ``reclusterer`` is given and says that it is time, clusters are formed anew after what is new has its own. A
    ``mapper`` then gives signatures without a place theirs on the map.

    Raises:
        LeaseHeld: another night is writing to the store.
        OtherKeying: what is stored would get other signatures now; `crashpath rekey` has to come first.
        StoreError: the store cannot be used.
    """
    progress = progress or Silent()
    watch = Stopwatch()
    with Lease(store, wait=options.lease_wait) as lease:
        ensure_keyed(store, keying())
        with store.write() as session:
            night = start_night(session, versions=versions(), now=clock())
        try:
            writer = Writer(store, night, clean, fence=lease.fence, examples=options.examples)
            with watch.stage("read"), tempfile.TemporaryDirectory(prefix="crashpath-") as scratch:
                hearing = Hearing(clean, clock())
                feeder = Feeder(store, writer, load_rules(), options.feed, clock, hearing)
                fed = _feed_all(feeder, sources(paths, options.exclude), options.source_name, Path(scratch), progress)
            watch.move("read", "store", sum(one.store_seconds for one in fed))
            with watch.stage("store"):
                hearing.write(store, fence=lease.fence)
                with store.write() as session:
                    lease.fence(session)
                    join_deaths(session, night)
            progress.stage("count")
            with watch.stage("count"):
                refresh_failures(store, fence=lease.fence)
            attempts, problem = _attempts(store, options.attempts, clock)
            clustered = clusterer.run(store, night, clock=clock, say=progress.stage, fence=lease.fence)
            reclustered = None
            if reclusterer is not None and (because := reclusterer.due(store, clock())):
                progress.stage("re-cluster")
                with watch.stage("re-cluster"):
                    reclustered = reclusterer.run(store, night, because, clock=clock, fence=lease.fence)
            mapped = None
            if mapper is not None:
                with watch.stage("map"):
                    mapped = mapper.run(store, say=progress.stage, fence=lease.fence)
        except BaseException as error:
            _fail(store, night, error, watch, clock)
            raise
        for stage, seconds in clustered.seconds:
            watch.add(stage, seconds)
        problems = tuple(clean(one.problem) for one in fed if one.problem) + ((clean(problem),) if problem else ())
        status, reason = _status(fed, problems, options.max_quarantine)
        if reason and not problems:
            problems = (reason,)
        summary = _summary(store, night, status, fed, attempts, clustered, reclustered, mapped, problems, watch.spent)
        with store.write() as session:
            lease.fence(session)
            counts = {k: v for k, v in summary.document().items() if k not in ("seconds", "status", "night")}
            counts["store_bytes"] = store_bytes(session)
            finish_night(session, night, status, counts=counts, seconds=dict(watch.spent), reason=reason, now=clock())
    return summary


def versions() -> dict[str, str]:
    """What a night ran with, kept with it."""
    own = {"crashpath": version("crashpath"), "schema": HEAD, "keying": keying().id}
    return own | {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def _feed_all(
    feeder: Feeder, found: Sequence[Found], source_name: str | None, scratch: Path, progress: Progress
) -> list[Fed]:
    fed = []
    for number, one in enumerate(found, start=1):
        progress.source(number, len(found), one.path)
        fed.append(_feed_stdin(feeder, source_name, scratch) if one.path == STDIN else feeder.feed(one))
        progress.done(fed[-1])
    return fed


def _feed_stdin(feeder: Feeder, source_name: str | None, scratch: Path) -> Fed:
    """Read standard input to its end first: only its whole content can name it when nobody else does."""
    digest = hashlib.blake2b(digest_size=16)
    file = scratch / "stdin"
    with file.open("wb") as out:
        while chunk := sys.stdin.buffer.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
    return feeder.feed(Found(str(file)), stream=source_name or f"stdin:{digest.hexdigest()}")


def _attempts(store: Store, file: str | None, clock: Callable[[], datetime]) -> tuple[int, str | None]:
    """Load the attempt counts; a file that cannot be used makes the night partial and loses nothing else."""
    if file is None:
        return 0, None
    try:
        return load_attempts(store, file, now=clock()).rows, None
    except BadAttempts as error:
        return 0, str(error)


def _status(fed: Sequence[Fed], problems: Sequence[str], max_quarantine: float) -> tuple[Status, str | None]:
    quarantined = sum(one.counts.quarantined for one in fed)
    total = quarantined + sum(max(one.records, one.events) for one in fed)
    if problems:
        return "partial", problems[0]
    if total and quarantined / total > max_quarantine:
        return (
            "partial",
            f"{quarantined:,} of {many(total, 'record')} went to quarantine, more than {max_quarantine:.2%}",
        )
    return "complete", None


def _fail(store: Store, night: int, error: BaseException, watch: Stopwatch, clock: Callable[[], datetime]) -> None:
    """Write down that the night failed; what it stored so far stays."""
    reason = clean(str(error)) or type(error).__name__
    try:
        with store.write() as session:
            counts = kept_mark(session, night)  # clusters that were formed anew before it failed
            finish_night(session, night, "failed", counts=counts, seconds=dict(watch.spent), reason=reason, now=clock())
    except StoreError:  # the store itself is what failed; the error on its way up says so
        return


def _summary(
    store: Store,
    night: int,
    status: str,
    fed: Sequence[Fed],
    attempts: int,
    clustered: Clustered,
    reclustered: Reclustered | None,
    mapped: Mapped | None,
    problems: tuple[str, ...],
    seconds: tuple[tuple[str, float], ...],
) -> NightSummary:
    counts = sum((one.counts for one in fed), BatchCounts())
    with store.read() as session:
        totals = store_totals(session)
        classes = crashes_by_class(session)
    outcomes = [one.outcome for one in fed]
    return NightSummary(
        night=night,
        status=status,
        sources=outcomes.count(Outcome.READ),
        skipped=outcomes.count(Outcome.UNCHANGED),
        empty=outcomes.count(Outcome.EMPTY),
        unreadable=outcomes.count(Outcome.UNREADABLE),
        lines=sum(one.lines for one in fed),
        records=sum(one.records for one in fed),
        crashes=totals.crashes,
        new_crashes=counts.new_crashes,
        variants=totals.variants,
        signatures=totals.signatures,
        new_signatures=counts.new_signatures,
        embedded=clustered.embedded,
        clusters=totals.clusters,
        new_clusters=clustered.born,
        joined=clustered.joined,
        classes=classes,
        quarantined=counts.quarantined,
        redactions=counts.redactions,
        attempts=attempts,
        events=sum(one.events for one in fed),
        attempts_told=counts.attempts,
        umap_points=clustered.points,
        umap_components=clustered.components,
        hdbscan_groups=clustered.groups,
        hdbscan_noise=clustered.noise,
        clustering_method=clustered.method,
        reclustered=reclustered,
        mapped=mapped,
        seconds=seconds,
        problems=problems,
        advice=tuple(dict.fromkeys(clean(one.advice) for one in fed if one.advice)),
    )
