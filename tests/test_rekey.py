"""Another way of keying: what it changes is shown, written whole or not at all, and nobody is told of it as new."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from crashpath.clustering.encoder import FakeEncoder
from crashpath.dashboard.cli import run
from crashpath.dashboard.rekeying import look, write
from crashpath.dashboard.testing import DIMENSION, a_night, contents
from crashpath.ingest import deciding, undoing
from crashpath.ingest.clusters import known_clusters
from crashpath.ingest.decisions import By, decisions, links
from crashpath.ingest.embeddings import embeddings
from crashpath.ingest.failed_daily import refresh_failures
from crashpath.ingest.failed_read import stale_days
from crashpath.ingest.keying import Keying, keying
from crashpath.ingest.mask import MASKS, Mask, load_masks
from crashpath.ingest.mask import _Masker as Masker  # with a rule more than the program has
from crashpath.ingest.model import Signature as Signed
from crashpath.ingest.model import Variant
from crashpath.ingest.rekey import plan, survey
from crashpath.ingest.rekey_check import ensure_keyed
from crashpath.ingest.rekey_write import write_plan
from crashpath.ingest.signature import sign
from crashpath.ingest.stale import mark_stale
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import OtherKeying
from crashpath.ingest.tables import Cluster, ClusterEvent, Crash, CrashDaily, Exemplar, Project, Signature
from crashpath.ingest.tables import Variant as VariantRow
from crashpath.ingest.tables_counts import FailedDaily
from crashpath.ingest.upgrade import check

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[1]
ONE_MORE = Mask(
    "part", r"shard (?:alpha|beta) of|operands could not be broadcast", to="<part>", hints=("shard", "operands")
)
"""A rule that makes the failures of a.log and b.log one."""
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
    "b.log": [_trace("RuntimeError", "operands could not be broadcast the index cannot be mapped")] * 4,
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
                (*row[:-1], int(row[-1]))
                for row in session.execute(
                    select(*cells, func.sum(CrashDaily.crashes)).group_by(*cells).order_by(*cells)
                )
            ),
            Counter(dict(session.execute(home).all())),
        )


def _failures(store: Store) -> None:
    """Kept counts of failed attempts of days that are not stale are those that counting anew gives."""
    with store.read() as session:
        stale = stale_days(session)
        kept = {row for row in _kept(session) if row[1] not in stale}
        assert {row[5] for row in kept} <= set(session.scalars(select(Signature.id)))
    with store.write() as session:
        mark_stale(session, session.scalars(select(Crash.day).distinct()))
    refresh_failures(store)
    with store.read() as session:
        assert {row for row in _kept(session) if row[1] not in stale} == kept


def _kept(session: Session) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in session.execute(select(*FailedDaily.__table__.columns))}


def _consistent(store: Store) -> None:
    """Daily counts, kept texts and variants all say the same of every signature."""
    assert check(store).problems == ()
    _failures(store)
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
    write(store, other, FakeEncoder(DIMENSION), clock=lambda: datetime.now(UTC))


def _masked(name: str = "sig9") -> Keying:
    """Key variants under the masks of this program and one more."""
    masker = Masker((ONE_MORE, *MASKS), load_masks()[1])
    return _by(lambda variant: replace(variant, root_message=masker(variant.root_message)), name)


def _frameless(name: str = "sig9") -> Keying:
    """Key variants without their frames."""
    return _by(lambda variant: replace(variant, frames=()), name)


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


def test_one_more_mask_puts_signatures_together(any_store: Store, logs: Path) -> None:
    """Signatures that become one are one in the cluster that had most of their crashes; one left empty goes there."""
    a_night(any_store, [logs])
    with any_store.read() as session:
        homes = {cluster.members: cluster.number for cluster in known_clusters(session)}
        texts = dict(session.execute(select(Signature.id, Signature.text)).all())
        larger = {n for members, n in homes.items() if any("shard" in texts[m] for m in members)}
        smaller = {n for members, n in homes.items() if any("operands" in texts[m] for m in members)}
        assert len(larger) == len(smaller) == 1
        assert larger != smaller
        made = plan(session, survey(session, _masked()))
    assert [len(one.made_of) for one in made.together] == [3]
    assert made.together[0].crashes == 9
    assert (made.together[0].cluster, made.together[0].left) == (*larger, tuple(smaller))
    assert [(one.cluster, one.into) for one in made.ended] == [(*smaller, *larger)]
    _write(any_store, _masked())
    _consistent(any_store)
    with any_store.read() as session:
        gone = session.get_one(Cluster, *smaller)
        assert (gone.status, gone.merged_into) == ("merged", *larger)
        kinds = select(ClusterEvent.cluster_id, ClusterEvent.kind).where(ClusterEvent.kind.in_(("rekeyed", "merged")))
        assert set(session.execute(kinds).all()) >= {
            (*larger, "rekeyed"), (*smaller, "rekeyed"), (*larger, "merged"), (*smaller, "merged")
        }  # fmt: skip


def test_a_signature_that_parts_stays_in_its_cluster(any_store: Store, logs: Path) -> None:
    """Parts inherit cluster, exemplar and first date; each crash is counted on its own day under its own part."""
    a_night(any_store, [logs])
    _write(any_store, _frameless())
    before = _held(any_store)
    with any_store.read() as session:
        made = plan(session, survey(session, keying()))
        assert len(made.parted) == 1
        home = session.scalars(select(Signature.cluster_id).where(Signature.id == made.parted[0])).one()
    _write(any_store, keying())
    _consistent(any_store)
    assert _held(any_store) == before
    with any_store.read() as session:
        parts = session.scalars(select(Signature).where(Signature.root_type == "KeyError")).all()
        assert [(one.cluster_id, one.is_exemplar) for one in parts] == [(home, True)] * 2
        assert len({one.first_seen for one in parts}) == 1


def test_there_and_back_is_where_it_was(any_store: Store, logs: Path) -> None:
    """Keyed in another way and back, the store has the same signatures in the same clusters."""
    a_night(any_store, [logs])
    before = contents(any_store)
    for other in (_by(_same, "sig8"), _by(_same, "sig9"), keying()):
        _write(any_store, other)
        _consistent(any_store)
    assert contents(any_store) == before


def test_counts_outlive_pruned_crashes(any_store: Store, logs: Path) -> None:
    """What only the daily counts still know is neither lost nor counted twice when signatures part or come together."""
    a_night(any_store, [logs])
    _write(any_store, _frameless())
    before = _held(any_store).daily
    with any_store.write() as session:
        some = session.scalars(select(Crash.id).order_by(Crash.id)).all()[::2]
        session.execute(delete(Exemplar).where(Exemplar.crash_id.in_(some)))
        session.execute(delete(Crash).where(Crash.id.in_(some)))
    for other in (keying(), _masked()):
        _write(any_store, other)
        assert _held(any_store).daily == before


def test_what_people_decided_is_mapped(any_store: Store, logs: Path) -> None:
    """A split holds under new ids, speaks for them, and can be undone exactly."""
    a_night(any_store, [logs])
    before = contents(any_store).clusters
    by = By("somebody", NOW)
    with any_store.write() as session:
        pair = next(c for c in known_clusters(session) if len(c.members) > 1)
        deciding.split(session, pair.number, pair.members[:1], by)
    apart = contents(any_store).clusters
    _write(any_store, _by(_same, "sig9"))

    def renamed(clusters: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
        with any_store.read() as session:
            events = session.scalars(select(ClusterEvent.detail).where(ClusterEvent.kind == "rekeyed"))
            new = {old: one for detail in events for old, one, _ in detail["signatures"]}
        return frozenset(frozenset(new[one] for one in members) for members in clusters)

    assert contents(any_store).clusters == renamed(apart)
    with any_store.write() as session:
        (taken,) = decisions(session)
        assert all(one.startswith("sig9-") for one in taken.signatures)
        told = {one for kept in links(session).cannot for one in kept}
        assert told == set(session.scalars(select(Signature.id).where(Signature.id.in_(told))))
        undoing.undo(session, taken.number, by)
    assert contents(any_store).clusters == renamed(before)


def test_people_who_told_apart_what_is_one_now_are_told(any_store: Store, logs: Path) -> None:
    """Nobody can keep one signature in two clusters: the plan names the pair."""
    a_night(any_store, [logs])
    with any_store.write() as session:
        pair = next(c for c in known_clusters(session) if len(c.members) > 1 and "shard" in c.label)
        deciding.split(session, pair.number, pair.members[:1], By("somebody", NOW))
    with any_store.read() as session:
        made = plan(session, survey(session, _masked()))
    assert [{one, other} for one, other, _ in made.against] == [set(pair.members)]
    _write(any_store, _masked())
    _consistent(any_store)


def test_a_plan_that_people_overtook_is_not_written(any_store: Store, logs: Path) -> None:
    """Who merges or splits between the look and the writing is not overruled: nothing of the old plan is written."""
    a_night(any_store, [logs])
    with any_store.read() as session:
        made = plan(session, survey(session, _by(_same, "sig9")))
        first, second, *_ = known_clusters(session)
    with any_store.write() as session:
        deciding.merge(session, first.number, [second.number], By("somebody", NOW))
    before = contents(any_store)
    with any_store.write() as session:
        assert not write_plan(session, made, now=NOW)
    assert contents(any_store) == before
    _write(any_store, _by(_same, "sig9"))
    assert len(contents(any_store).clusters) == len(before.clusters)


def test_another_encoder_keeps_members(any_store: Store, logs: Path) -> None:
    """Under another encoder all members get vectors, clusters stay, and the store is tied to the new one."""
    a_night(any_store, [logs])
    before = contents(any_store)
    done = write(any_store, keying(), FakeEncoder(64), clock=lambda: NOW)
    assert done.embedded == len(done.looked.texts) > 0
    assert contents(any_store) == before
    with any_store.read() as session:
        assert session.scalars(select(Project.encoder_id)).one() == "fake-64"
        texts = session.scalars(select(Signature.text).distinct()).all()
        assert set(embeddings(session, "fake-64", texts)) == set(texts)
        assert set(session.scalars(select(Cluster.encoder_id))) == {"fake-64"}
    assert not look(any_store, keying(), FakeEncoder(64)).changes


def test_a_store_where_nothing_changed_is_never_refused(any_store: Store, logs: Path) -> None:
    """Another id with the same signatures is written down, and the night goes on; other signatures are refused."""
    a_night(any_store, [logs])
    ensure_keyed(any_store, Keying("sig2+other", sign))
    with any_store.read() as session:
        assert set(session.scalars(select(Signature.algorithm))) == {"sig2+other"}
    with pytest.raises(OtherKeying, match="crashpath rekey"):
        ensure_keyed(any_store, _masked())
    assert a_night(any_store, [logs]).new_signatures == 0


def test_an_empty_store_needs_nothing(any_store: Store) -> None:
    """Nothing stored, nothing to re-key."""
    ensure_keyed(any_store, _masked())
    assert not look(any_store, _masked(), FakeEncoder(DIMENSION)).changes


KILLED = """
import os, signal, sys
from dataclasses import replace
from datetime import UTC, datetime
from sqlalchemy import event
from crashpath.clustering.encoder import FakeEncoder
from crashpath.dashboard.rekeying import write
from crashpath.dashboard.testing import DIMENSION
from crashpath.ingest.keying import Keying
from crashpath.ingest.signature import sign
from crashpath.ingest.stale import mark_stale
from crashpath.ingest.store import open_store

def other(variant):
    made = sign(replace(variant, frames=()))
    id = f"sig9-{made.id[5:]}"
    return replace(made, id=id, tree=replace(made.tree, value=id))

left = int(sys.argv[2])
def count(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def stage(name):
    if name == "write":
        event.listen(store.engine, "before_cursor_execute", count)

with open_store(sys.argv[1]) as store:
    write(store, Keying("sig9+test", other), FakeEncoder(DIMENSION), clock=lambda: datetime.now(UTC), say=stage)
"""


def test_killed_anywhere_it_is_whole_or_not_there(store: Store, logs: Path, tmp_path: Path) -> None:
    """Killed before any statement of the writing, the store is as it was; run again it is done."""
    a_night(store, [logs])
    before, held = contents(store), _held(store)
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    url = str(store.engine.url)
    for at in (1, 9, 17, 25):
        killed = subprocess.run([sys.executable, script, url, str(at)], capture_output=True, text=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert contents(store) == before
        _consistent(store)
    done = subprocess.run([sys.executable, script, url, "0"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _consistent(store)
    assert _held(store).daily == held.daily
    with store.read() as session:
        assert all(one.startswith("sig9-") for one in session.scalars(select(Signature.id)))


@pytest.fixture
def later(tmp_path: Path) -> dict[str, str]:
    """Environment of a later version of this program, whose masks.toml has one rule more."""
    folder = tmp_path / "later" / "crashpath"
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "ingest", folder / "ingest", ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("clustering", "coverage", "dashboard", "runtime"):
        (folder / part).symlink_to(ROOT / part)
    with (folder / "ingest" / "masks.toml").open("a") as file:
        file.write(f"""
[[mask]]
name = "{ONE_MORE.name}"
hints = ["shard", "operands"]
pattern = '{ONE_MORE.pattern}'
to = "{ONE_MORE.to}"
""")
    return dict(os.environ, PYTHONPATH=str(folder.parent), PYTHONDONTWRITEBYTECODE="1")


AGAIN = """
import json, sys
from datetime import UTC, datetime
from crashpath.clustering.encoder import FakeEncoder
from crashpath.dashboard.rekeying import write
from crashpath.dashboard.testing import DIMENSION, a_night
from crashpath.ingest.keying import keying
from crashpath.ingest.store import open_store

with open_store(sys.argv[1]) as store:
    write(store, keying(), FakeEncoder(DIMENSION), clock=lambda: datetime.now(UTC))
    night = a_night(store, sys.argv[2:])
print(json.dumps([night.new_crashes, night.new_signatures, night.new_clusters]))
"""


def test_a_later_version_refuses_rekeys_and_tells_of_nothing_as_new(
    store: Store, logs: Path, tmp_path: Path, later: dict[str, str]
) -> None:
    """A night under other masks ends with 4 and names the command; after it, known failures are known."""
    a_night(store, [logs])
    url = str(store.engine.url)
    (logs / "tonight.log").write_text(_trace("RuntimeError", "shard beta of the index cannot be mapped"))
    command = [sys.executable, "-m", "crashpath.dashboard.cli", "nightly", str(logs), "--db", url]
    refused = subprocess.run(command, env=later, capture_output=True, text=True, check=False)
    assert refused.returncode == 4, refused.stderr
    assert "crashpath rekey" in refused.stderr.splitlines()[-1]
    script = tmp_path / "again.py"
    script.write_text(AGAIN)
    again = subprocess.run([sys.executable, script, url, logs], env=later, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == [1, 0, 0]
    _consistent(store)


def test_the_command_shows_and_writes(
    store: Store, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --apply nothing is written; both say what changes."""
    a_night(store, [logs])
    _write(store, _frameless())
    before, url = contents(store), str(store.engine.url)
    assert run(["rekey", "--db", url, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["applied"], shown["signatures"]["part"], len(shown["parted"])) == (False, 1, 1)
    assert shown["keying"]["new"] == keying().id
    assert contents(store) == before
    assert run(["rekey", "--db", url]) == 0
    assert "Nothing was written" in capsys.readouterr().out
    assert sorted(tmp_path.glob("*.bak"))  # of the re-key before
    with open_store(f"sqlite:///{max(tmp_path.glob('*.bak'))}") as kept:
        assert contents(kept).crashes
