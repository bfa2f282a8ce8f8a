"""A store as two months of a fleet leave it, for the benchmark of reviews: made up by a seed, written the usual way.

Crashes go through ``Writer`` in 60 nights, a source a release and night; who was heard, attempts and the failed ones
come in by the functions that a night calls. Only the logs and the encoder are left out: clusters are put in as rows.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, insert, update

from crashpath.ingest.attempts import AttemptRow, save_attempts
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.event_attempts import add_attempts
from crashpath.ingest.heard import Hearing, Voice
from crashpath.ingest.ledger import Ledger, SourceIdentity
from crashpath.ingest.model import Analysis, Facts, Frame, Mark, Parsed, Part, Record, Root, Signature, Thrown, Variant
from crashpath.ingest.nights import finish_night, start_night
from crashpath.ingest.piece import Format
from crashpath.ingest.runtime_events import AttemptsEvent
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster
from crashpath.ingest.tables import Signature as SignatureRow
from crashpath.ingest.tables_evidence import Attempts, EventBatch
from crashpath.ingest.testing import same
from crashpath.ingest.write import EndOfSource, Writer

SEED = 47
FIRST = date(2026, 1, 1)
DAYS = 60
RELEASE, BASELINE = "2.1", "2.0"
RELEASES: tuple[tuple[str | None, float], ...] = (
    (RELEASE, 0.40), (BASELINE, 0.40), ("1.9", 0.06), ("1.8", 0.05), ("1.7", 0.04), ("1.6", 0.03), (None, 0.02),
)  # fmt: skip
"""Releases with their share of the crashes; ``None`` is what names none."""
PLATFORMS = tuple(f"platform-{number:02}" for number in range(12))
MODELS = tuple(f"model-{number:02}" for number in range(25))
PATHS = ("ort", "torchscript")
KINDS = 6_000
"""Signatures, two of each cluster."""
NEW_KINDS = 200
"""Signatures that the reviewed release alone has."""
KEPT_DAYS = 14
"""So long a log stays where nights look for it."""
STEEPNESS = 0.9
"""Of Zipf's law, by which some failures and cohorts are far more frequent than others; 0 is none."""
_BATCH = 1_000
_LINE = 400


@dataclass(frozen=True, slots=True)
class Plan:
    """How many crashes, and how unevenly they fall on failures and cohorts."""

    crashes: int
    steepness: float = STEEPNESS


def make_crashes(store: Store, plan: Plan) -> None:
    """Write the crashes of all nights, and put their signatures into clusters."""
    rng = np.random.default_rng(SEED)
    analyses = [_kind(number) for number in range(KINDS)]
    lots = _lots(rng, plan)
    there: deque[str] = deque(maxlen=KEPT_DAYS * len(RELEASES))
    for day in range(DAYS):
        at = _midnight(day + 1) + timedelta(hours=3)
        with store.write() as session:
            night = start_night(session, versions={"crashpath": "0"}, now=at)
        writer = Writer(store, night, same, examples=0)
        hearing = Hearing(same, at)
        for place in range(len(RELEASES)):
            chosen = np.flatnonzero((lots.day == day) & (lots.release == place))
            crashes = [_crash(analyses, lots, int(number), line * _LINE) for line, number in enumerate(chosen)]
            if crashes:
                there.append(f"{day}-{place}")
                _write_source(store, writer, hearing, there[-1], at, crashes)
        for name in there:
            hearing.look(name, Facts())
        hearing.write(store)
        with store.write() as session:
            finish_night(session, night, "complete", counts={}, seconds={}, now=at + timedelta(minutes=5))
    _make_clusters(store)


def make_attempts(store: Store, attempts: int, *, fine: bool) -> int:
    """Tell of this many attempts, and no longer of others; return how many rows that were.

    Coarse, files tell them by day, release and platform. Fine, of the two releases that are reviewed by model and path
    too: events those of requests, files those of loads and deployments, and on every tenth day of requests as well.
    """
    rng = np.random.default_rng(SEED + 1)
    cells: list[tuple[str, int, str, str, str, str]] = []
    shares: list[float] = []
    spread = _law(len(PLATFORMS)), _law(len(MODELS))
    for (release, share), day, unit in itertools.product(RELEASES, range(DAYS), ("deployment", "load", "request")):
        if release is None:
            continue
        for place, platform in enumerate(PLATFORMS):
            if not fine or release not in (RELEASE, BASELINE):
                cells.append((unit, day, release, platform, "", ""))
                shares.append(share * spread[0][place])
                continue
            for number, model in enumerate(MODELS):
                for path, half in zip(PATHS, (0.9, 0.1), strict=True):
                    cells.append((unit, day, release, platform, model, path))
                    shares.append(share * spread[0][place] * spread[1][number] * half)
    law = np.array(shares) / sum(shares)
    counts = 1 + rng.multinomial(attempts - len(cells), law)
    rows = [_attempt_row(*cell, int(count)) for cell, count in zip(cells, counts, strict=True)]
    by_event = [row for row in rows if fine and row.unit == "request" and row.model != "unknown"]
    told = set(map(id, by_event))
    by_file = [row for row in rows if id(row) not in told or row.day.day % 10 == 1]
    now = end_of_nights()
    with store.write() as session:
        session.execute(delete(Attempts))
        session.execute(delete(EventBatch))
        save_attempts(session, by_file, origin="attempts.csv", now=now)
        add_attempts(session, [_event(row) for row in by_event], night_id=1, redact=same, now=now)
    return len(by_file) + len(by_event)


def end_of_nights() -> datetime:
    """When the last night was."""
    return _midnight(DAYS) + timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class _Lots:
    """What was drawn for each crash, as places in the lists above."""

    day: NDArray[np.int64]
    release: NDArray[np.int64]
    platform: NDArray[np.int64]
    model: NDArray[np.int64]
    kind: NDArray[np.int64]
    second: NDArray[np.int64]
    chance: NDArray[np.float64]
    other: NDArray[np.float64]


def _lots(rng: np.random.Generator, plan: Plan) -> _Lots:
    many = plan.crashes
    release = rng.choice(len(RELEASES), size=many, p=[share for _, share in RELEASES])
    old = rng.choice(KINDS - NEW_KINDS, size=many, p=_law(KINDS - NEW_KINDS, plan.steepness))
    is_new = (release == 0) & (rng.random(many) < 0.02)
    kind = np.where(is_new, KINDS - NEW_KINDS + rng.integers(NEW_KINDS, size=many), old)
    return _Lots(
        rng.integers(DAYS, size=many),
        release,
        rng.choice(len(PLATFORMS), size=many, p=_law(len(PLATFORMS), plan.steepness)),
        rng.choice(len(MODELS), size=many, p=_law(len(MODELS), plan.steepness)),
        kind,
        rng.integers(86_400, size=many),
        rng.random(many),
        rng.random(many),
    )


def _law(size: int, steepness: float = STEEPNESS) -> NDArray[np.float64]:
    weights = np.arange(1, size + 1, dtype=np.float64) ** -steepness
    return weights / weights.sum()


def _crash(analyses: Sequence[Analysis], lots: _Lots, number: int, offset: int) -> Analysis:
    """Return a crash: half are the runtime's events, half logs, of which some tell of an event's attempt once more."""
    one = analyses[lots.kind[number]]
    chance, other = float(lots.chance[number]), float(lots.other[number])
    is_event, is_load = chance < 0.5, other < 0.3
    facts = Facts(
        release=RELEASES[lots.release[number]][0], platform=PLATFORMS[lots.platform[number]],
        model=MODELS[lots.model[number]], host=f"node-{number % 997}", path=PATHS[int(other * 100) % 10 == 0],
        phase=("load" if is_load else "infer") if chance < 0.98 else None,
        attempt_id=f"a{number}" if is_event else f"a{number - 1}" if chance > 0.95 else None,
    )  # fmt: skip
    parsed = one.parsed
    if is_event:
        unit = ("load" if other < 0.2 else "deployment") if is_load else "request"
        outcome = ("contained", "unanswered", None)[min(2, int(chance * 5))]
        parsed = Parsed(Format.EVENT.value, parsed.chain, unit=unit, outcome=outcome)
    at = _midnight(int(lots.day[number])) + timedelta(seconds=int(lots.second[number]))
    marks = () if is_event else (Mark("ERROR", str(number % 89), at),)
    record = Record("serve.log", offset, offset + _LINE, one.record.text, marks=marks, facts=facts, at=at)
    return Analysis(record, parsed, one.root, one.variant, one.signature)


def _kind(number: int) -> Analysis:
    message, masked = f"failure {number} of 7 bytes", f"failure {number} of <size>"
    frame = Frame(f"run_{number}", "server.engine", True)
    thrown = Thrown("RuntimeError", message, 0, (frame,))
    return Analysis(
        Record("serve.log", 0, 0, f"RuntimeError: {message}"),
        Parsed("python", (thrown,)),
        Root("RuntimeError", message, 0, "python-raise", CLASSES[number // 2 % len(CLASSES)].id, ()),
        Variant(("RuntimeError",), "RuntimeError", message, (frame,)),
        Signature(
            f"sig2-{number:016x}", f"RuntimeError: {masked}",
            Part("signature", "", (Part("type", "RuntimeError"), Part("message", masked))),
        ),
    )  # fmt: skip


def _write_source(
    store: Store, writer: Writer, hearing: Hearing, name: str, at: datetime, crashes: Sequence[Analysis]
) -> None:
    with store.write() as session:
        identity = SourceIdentity(f"/logs/{name}.log", "host", None, name.encode(), 0, at)
        source = Ledger(store.key, writer.night_id, same).claim(session, identity)
    told = {(one.record.facts.release, one.record.facts.platform, one.record.facts.model) for one in crashes}
    voice: Voice | None = hearing.voice(name, told)
    for start in range(0, len(crashes), _BATCH):
        batch = crashes[start : start + _BATCH]
        end = batch[-1].record.end
        at_end = EndOfSource(end, at) if start + _BATCH >= len(crashes) else None
        writer.write_batch(source, batch, (), (), voice, checkpoint=end, seen=end, at_end=at_end, now=at)
        voice = None


def _make_clusters(store: Store) -> None:
    """Put each two signatures into a cluster; some are resolved in the baseline."""
    born = _midnight(1)
    rows: list[dict[str, Any]] = [
        {
            "id": number + 1, "label": f"RuntimeError: failure {2 * number}", "status": "active", "created_at": born,
            "encoder_id": "none", "class_by": "rule", "failure_class": CLASSES[number % len(CLASSES)].id,
            "evidence": [], "night_id": 1, "resolved_in": BASELINE if number % 500 == 499 else None,
        }
        for number in range(math.ceil(KINDS / 2))
    ]  # fmt: skip
    with store.write() as session:
        session.execute(insert(Cluster), rows)
        for number in range(KINDS):
            mine = update(SignatureRow).where(SignatureRow.id == f"sig2-{number:016x}")
            session.execute(mine.values(cluster_id=number // 2 + 1, joined_at=born, joined_by="birth"))


def _attempt_row(unit: str, day: int, release: str, platform: str, model: str, path: str, count: int) -> AttemptRow:
    when = FIRST + timedelta(days=day)
    return AttemptRow(unit, when, release, platform, model or "unknown", path or "unknown", count)


def _event(row: AttemptRow) -> AttemptsEvent:
    facts = Facts(row.release, row.platform, None, row.model, row.path)
    name = "-".join(map(str, row.key))
    return AttemptsEvent(name, row.unit, row.day, facts, row.attempts, row.attempts // 8, row.attempts // 24, 0)


def _midnight(day: int) -> datetime:
    return datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(days=day)
