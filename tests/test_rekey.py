"""Another way of keying: what it changes is shown, written whole or not at all, and nobody is told of it as new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from crashpath.clustering.encoder import FakeEncoder
from crashpath.dashboard.rekeying import look, write
from crashpath.dashboard.testing import DIMENSION, a_night
from crashpath.ingest import deciding
from crashpath.ingest.decisions import By, decisions
from crashpath.ingest.keying import Keying, keying
from crashpath.ingest.mask import MASKS, Mask, _Masker
from crashpath.ingest.model import Signature as Signed
from crashpath.ingest.model import Variant
from crashpath.ingest.rekey import plan, survey
from crashpath.ingest.rekey_check import ensure_keyed
from crashpath.ingest.rekey_write import write_plan
from crashpath.ingest.signature import sign
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import OtherKeying
from crashpath.ingest.tables import Cluster, ClusterEvent, Crash, CrashDaily, Exemplar, Signature
from crashpath.ingest.tables import Variant as VariantRow
from crashpath.ingest.upgrade import check

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLACES = ("alpha", "beta", "gamma")
TRACE = """Traceback (most recent call last):
  File "/srv/app/{module}.py", line 10, in {function}
    model.run(feed)
{kind}: {message}
"""


def _trace(kind: str, message: str, function: str = "answer", module: str = "serve") -> str:
    return TRACE.format(kind=kind, message=message, function=function, module=module)


LOGS = {
    "a.log": [_trace("RuntimeError", "shard alpha of the index cannot be mapped")] * 3
    + [_trace("RuntimeError", "shard beta of the index cannot be mapped")] * 2,
    "b.log": [_trace("ValueError", "operands could not be broadcast together with shapes (3,4) (5,)")] * 4,
    "c.log": [_trace("KeyError", "'token_type_ids'", "first"), _trace("KeyError", "'token_type_ids'", "second")],
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of a few failures, each record with a stamp of its own."""
    folder = tmp_path / "logs" / "2.1" / "linux"
    folder.mkdir(parents=True)
    for name, traces in LOGS.items():
        lines = [f"2026-02-{1 + i:02d} 10:00:00,000 ERROR server: failed\n{trace}" for i, trace in enumerate(traces)]
        (folder / name).write_text("".join(lines))
    return folder


def _by(change: Callable[[Variant], Variant], name: str) -> Keying:
    """Key variants as this program does, after a change to what is keyed, under another algorithm's id."""

    def other(variant: Variant) -> Signed:
        made = sign(change(variant))
        id = f"{name}-{made.id.partition('-')[2]}"
        return Signed(id, made.text, replace(made.tree, value=id))

    return Keying(f"{name}+test", other)


@dataclass(frozen=True)
class _Held:
    """What a re-key has to keep, whatever the ids."""

    crashes: int
    daily: tuple[tuple[object, ...], ...]
    homes: Counter[int | None]


def _held(store: Store) -> _Held:
    with store.read() as session:
        cells = (CrashDaily.day, CrashDaily.release, CrashDaily.path, CrashDaily.phase)
        home = (
            select(Signature.cluster_id, func.count())
            .join(VariantRow, VariantRow.signature_id == Signature.id)
            .join(Crash, Crash.variant_id == VariantRow.id)
            .group_by(Signature.cluster_id)
        )
        return _Held(
            session.scalar(select(func.count()).select_from(Crash)) or 0,
            tuple(
                tuple(row)
                for row in session.execute(
                    select(*cells, func.sum(CrashDaily.crashes)).group_by(*cells).order_by(*cells)
                )
            ),
            Counter(dict(session.execute(home).all())),
        )


def _consistent(store: Store) -> None:
    """Daily counts, kept texts and variants all say the same of every signature."""
    assert check(store).problems == ()
    with store.read() as session:
        counted = dict(
            session.execute(
                select(CrashDaily.signature_id, func.sum(CrashDaily.crashes)).group_by(CrashDaily.signature_id)
            ).all()
        )
        stored = dict(
            session.execute(
                select(VariantRow.signature_id, func.count())
                .join(Crash, Crash.variant_id == VariantRow.id)
                .group_by(VariantRow.signature_id)
            ).all()
        )
        assert counted == stored
        assert set(session.scalars(select(Signature.id))) == set(stored)
        strayed = (
            select(func.count())
            .select_from(Exemplar)
            .join(Crash, Crash.id == Exemplar.crash_id)
            .join(VariantRow, VariantRow.id == Crash.variant_id)
            .where(VariantRow.signature_id != Exemplar.signature_id)
        )
        assert session.scalar(strayed) == 0


def _write(store: Store, other: Keying) -> None:
    write(store, other, FakeEncoder(DIMENSION), clock=lambda: NOW)


def _same(variant: Variant) -> Variant:
    return variant


def test_another_algorithm_renames_and_changes_nothing_else(any_store: Store, logs: Path) -> None:
    """A new algorithm id gives every signature another id; crashes, days, clusters and first dates stay as they are."""
    a_night(any_store, [logs])
    before = _held(any_store)
    with any_store.read() as session:
        seen = Counter(session.execute(select(Signature.first_seen, Signature.night_id)).all())
    _write(any_store, _by(_same, "sig9"))
    assert _held(any_store) == before
    _consistent(any_store)
    with any_store.read() as session:
        assert all(one.startswith("sig9-") for one in session.scalars(select(Signature.id)))
        assert Counter(session.execute(select(Signature.first_seen, Signature.night_id)).all()) == seen
        assert set(session.scalars(select(Signature.algorithm))) == {"sig9+test"}
