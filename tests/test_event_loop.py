"""The loop closes: what a real session told of a real death is what a night knows of the field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from crashpath.dashboard.testing import a_night
from crashpath.ingest.event_attempts import attempt_counts
from crashpath.ingest.failed_attempts import failed_attempts
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster, Crash, Signature, Variant
from crashpath.runtime.opening import open_session
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Path as Served
from crashpath.runtime.values import Phase, Strike

FEED = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}


@pytest.mark.parametrize(
    ("struck", "failure_class", "printed"),
    [("killed", "oom_host", "Killed"), ("segmentation_fault", "native_crash", "Segmentation fault (core dumped)")],
)
def test_a_dead_worker_comes_back_as_one_failed_attempt(
    store: Store, tmp_path: Path, struck: str, failure_class: str, printed: str
) -> None:
    """The main worker really dies in the midst of a request (kill -9, a segfault): the request is answered, and the
    event and the log of that attempt are two crashes, one failed attempt, among the attempts that were really made.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    folder = tiny_folder(tmp_path / "model", kind="affine")
    strike = Strike(f"crashpath.coverage.strikes_process:{struck}", Phase.INFER)
    with open_session(folder, isolation="process", events=logs / "events.jsonl", release="2.1.0", sample=0) as session:
        assert session.run(FEED).path is Served.MAIN
        with session.armed(Served.MAIN, strike):
            answer = session.run(FEED, deadline_ms=60_000)
        assert answer.path is Served.FALLBACK
    assert answer.cause is not None
    # What whoever started the worker prints of its end, with the attempt that it was working on.
    (logs / "worker.log").write_text(f"ERROR attempt_id={answer.request_id} worker: {answer.cause}\n{printed}\n")
    night = a_night(store, [logs])
    assert (night.status, night.quarantined) == ("complete", 0)
    with store.read() as read:
        query = (
            select(Crash.format, Cluster.failure_class)
            .join(Variant, Variant.id == Crash.variant_id)
            .join(Signature, Signature.id == Variant.signature_id)
            .join(Cluster, Cluster.id == Signature.cluster_id)
            .where(Crash.attempt_id == answer.request_id)
        )
        witnesses = {str(kind): named for kind, named in read.execute(query)}
        assert witnesses["runtime_event"] == answer.cause.failure_class == failure_class
        assert len(witnesses) == 2
        failed = [row for row in failed_attempts(read) if row.unit == "request"]
        assert [(row.release, row.failure_class, row.attempts, row.contained, row.witnesses) for row in failed] == [
            ("2.1.0", failure_class, 1, 1, 2)
        ]
        counts = {row.unit: row for row in attempt_counts(read, release="2.1.0")}
    assert (counts["request"].attempts, counts["request"].failures, counts["request"].unanswered) == (2, 1, 0)
    assert counts["load"].attempts >= 2
    assert a_night(store, [logs]).new_crashes == 0
