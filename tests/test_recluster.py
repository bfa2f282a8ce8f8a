"""Forming clusters anew: what becomes one, what is cut, which id stays, and that people's decisions stand."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.clustering.blocks import Seen
from crashpath.clustering.cohesion import NO_LINKS, Links
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.items import make_item
from crashpath.clustering.propose import Linkage
from crashpath.clustering.recluster import Reclustering, recluster
from crashpath.clustering.recluster_step import Reclusterer, Schedule
from crashpath.clustering.recluster_write import Reclustered
from crashpath.clustering.state import Cluster, Point
from crashpath.dashboard.cli import run
from crashpath.dashboard.engines import classifier
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.summary import NightSummary
from crashpath.dashboard.testing import DIMENSION, light_clusterer
from crashpath.ingest import deciding, undoing
from crashpath.ingest.clusters import cluster_number, known_clusters
from crashpath.ingest.decisions import By, links
from crashpath.ingest.following import follow_cluster
from crashpath.ingest.lineage import crash_mass, last_mark
from crashpath.ingest.nights import nights
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster as Row
from crashpath.ingest.tables import ClusterEvent, Signature

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def point(id: str, message: str, cue: str | None = None) -> Point:
    item = make_item(id, f"Error: {message}", "Error", message, cue=cue, signature=id)
    return Point(item, FakeEncoder().encode([item.text])[0])


def seen(number: int, *points: Point, mass: int | None = None, **marks: bool) -> Seen:
    members = tuple(sorted(one.item.id for one in points))
    cluster = Cluster(f"C-{number:04d}", members, points, 0.1 if len(points) > 1 else 0.0, None)
    return Seen(cluster, points, len(points) if mass is None else mass, **marks)


def anew(*clusters: Seen, mass: dict[str, int] | None = None, links: Links = NO_LINKS) -> Reclustering:
    return recluster(clusters, mass or {}, 100, links=links, proposer=Linkage(0.35))


def moves(outcome: Reclustering) -> set[tuple[str, str]]:
    return {(one.old, one.new) for one in (*outcome.merged, *outcome.split)}


DENIED = [point(f"a{i}", f"Permission denied: '/cache/{name}' for the model") for i, name in enumerate("abcd")]
FULL = [point(f"b{i}", f"No space left on device while the model is {word}") for i, word in enumerate(("read", "kept"))]


def test_births_and_clusters_of_one_are_put_together() -> None:
    """Two of one kind become one, under the id with most crashes; a cluster that is settled may take one in."""
    outcome = anew(seen(1, DENIED[0], mass=2), seen(2, DENIED[1], mass=5), seen(3, *FULL))
    assert moves(outcome) == {("C-0001", "C-0002")}
    assert outcome.looked_at == 2
    assert moves(anew(seen(1, *DENIED[:3]), seen(2, DENIED[3], mass=1))) == {("C-0002", "C-0001")}


def test_settled_clusters_keep_their_members() -> None:
    """Two clusters of two that are near each other and old stay two; young, they become one."""
    pairs = seen(1, *DENIED[:2]), seen(2, *DENIED[2:])
    assert not anew(*pairs).moved
    assert moves(anew(pairs[0], replace(pairs[1], young=True))) == {("C-0002", "C-0001")}


def test_what_fails_cohesion_is_cut_and_the_larger_part_keeps_the_id() -> None:
    """A cluster of two failures becomes two; crashes decide which keeps the id, and a part may go where it belongs."""
    mixed = seen(1, *DENIED[:2], *FULL)
    outcome = anew(mixed, mass={"a0": 1, "a1": 1, "b0": 5, "b1": 5})
    (part,) = outcome.split
    assert (part.items, part.old, part.new) == (("a0", "a1"), "C-0001", "C-0100")
    assert outcome.made == ("C-0100",)
    assert {shape.id: shape.members for shape in outcome.shapes} == {"C-0001": ("b0", "b1"), "C-0100": ("a0", "a1")}
    home = anew(mixed, seen(2, *DENIED[2:]), mass={"b0": 5})
    assert (moves(home), home.made) == ({("C-0001", "C-0002")}, ())


def test_a_class_of_the_rule_that_contradicts_cuts_a_cluster() -> None:
    """The same words under two classes of the root rule are two failures, however near."""
    one, two = point("a", "worker stopped early", "oom_host"), point("b", "worker stopped early", "hang")
    assert anew(seen(1, one, two), mass={"a": 3, "b": 1}).split[0].items == ("b",)


def test_what_people_decided_stands() -> None:
    """Decided members are never cut; what is owned goes into no other, two of them stay two; so do cannot-links."""
    assert not anew(seen(1, *DENIED[:2], *FULL, decided=True, owned=True)).moved
    small, large = seen(1, DENIED[0], mass=1, owned=True), seen(2, DENIED[1], mass=50)
    assert moves(anew(small, large)) == {("C-0002", "C-0001")}
    assert not anew(small, replace(large, owned=True)).moved
    assert not anew(seen(1, DENIED[0]), large, links=Links(cannot=frozenset({frozenset({"a0", "a1"})}))).moved


def test_the_order_does_not_matter_and_a_second_time_changes_nothing() -> None:
    """Clusters in any order give the same; what came out goes in again and stays."""
    clusters = [
        seen(1, DENIED[0]),
        seen(2, *DENIED[1:3], young=True),
        seen(3, DENIED[3], *FULL),
        seen(4, point("z", "x")),
    ]
    first = anew(*clusters)
    assert first.moved
    for seed in range(5):
        random.Random(seed).shuffle(clusters)
        again = anew(*clusters)
        assert (again.merged, again.split, again.made) == (first.merged, first.split, first.made)
    points = {one.item.id: one for cluster in clusters for one in cluster.points}
    left = [
        one for one in clusters if one.cluster.id not in {s.id for s in first.shapes} | {m.old for m in first.merged}
    ]
    after = [seen(int(shape.id[2:]), *(points[i] for i in shape.members)) for shape in first.shapes]
    assert not anew(*left, *after).moved


def trace(message: str, kind: str = "ValueError") -> str:
    return (
        'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start(path)\n'
        f"{kind}: {message}\n"
    )


Night = Callable[..., NightSummary]


@pytest.fixture
def night(any_store: Store, tmp_path: Path) -> Night:
    """Run a night over some failures on a given day, with a re-clustering when it is due."""

    def one(day: int, messages: Sequence[str], **due: float) -> NightSummary:
        folder = tmp_path / f"night{day}"
        folder.mkdir()
        for number, message in enumerate(messages):
            (folder / f"{number}.log").write_text(trace(message))
        return run_night(
            any_store, [str(folder)], NightOptions(), light_clusterer(), clock=lambda: NOW + timedelta(days=day),
            reclusterer=light(**due),
        )  # fmt: skip

    return one


def light(**due: float) -> Reclusterer:
    return Reclusterer(lambda: FakeEncoder(DIMENSION), classifier, schedule=Schedule(**due))


def by_hand(store: Store) -> Reclustered | None:
    return light().run(store, None, "by hand", clock=lambda: NOW + timedelta(days=30), fence=lambda session: None)


def homes(session: Session) -> dict[str, str]:
    return {member: one.id for one in known_clusters(session) for member in one.members}


def in_one(store: Store) -> str:
    """Put all signatures into the cluster with the lowest number, as a night never would, and return its id."""
    with store.write() as session:
        first = session.scalars(select(Row.id).order_by(Row.id)).first()
        for row in session.scalars(select(Signature)):
            row.cluster_id = first
        session.flush()
    assert first is not None
    return f"C-{first:04d}"


def beside(store: Store, name: str | None = None) -> None:
    """Put a second cluster of one beside the only one, with a signature like its own, as a night never would."""
    with store.write() as session:
        (one,) = session.scalars(select(Signature))
        copy = {c.name: getattr(one, c.name) for c in Signature.__table__.columns}
        row = session.get_one(Row, one.cluster_id)
        fields = {c.name: getattr(row, c.name) for c in Row.__table__.columns}
        session.add(Row(**{**fields, "id": row.id + 1, "name": name}))
        session.flush()
        session.add(Signature(**{**copy, "id": one.id + "x", "cluster_id": row.id + 1}))


MIXED = ("model file has no header at all", "model file has no header at all", "cannot bind the socket to its port")


def test_it_is_due_after_a_week_or_a_fifth_of_new_signatures(any_store: Store, night: Night) -> None:
    """Not on the first night, nor the next without news; after 7 days, or when a fifth is new; and then not again."""
    first = night(0, [f"failure of the {word} part" for word in ("left", "upper", "outer", "inner", "lower")])
    assert first.signatures == 5
    assert first.reclustered is None
    assert night(1, ["failure of the left part"]).reclustered is None
    new = night(2, ["cannot bind the socket to its port"]).reclustered
    assert new is not None
    assert "1 new" in new.because
    assert night(3, ["failure of the left part"]).reclustered is None
    week = night(9, ["failure of the left part"]).reclustered
    assert week is not None
    assert "7 days" in week.because
    with any_store.read() as session:
        mark = last_mark(session)
        assert mark is not None
        assert (mark.night, mark.at, mark.signatures) == (5, NOW + timedelta(days=9), 6)
        counts = nights(session)[0].counts["reclustered"]
    assert counts == week.document()


def test_a_split_over_the_store(any_store: Store, night: Night) -> None:
    """A cluster that holds two failures is cut: lineage says so, the part is no birth, and each signature says why."""
    night(0, MIXED)
    whole = in_one(any_store)
    done = by_hand(any_store)
    assert done is not None
    assert (done.split, done.made, done.moved_crashes) == (1, 1, 1)
    assert done.retired == 1  # the cluster that was emptied by hand above
    with any_store.read() as session:
        moved = session.scalars(select(Signature).where(Signature.joined_by == "recluster")).one()
        part = session.get_one(Row, moved.cluster_id)
        assert part.night_id is None
        assert part.label == moved.text
        assert moved.why is not None
        assert "re-clustering" in moved.why["words"]
        kinds = {(e.kind, e.cluster_id) for e in session.scalars(select(ClusterEvent).where(ClusterEvent.at > NOW))}
        number = cluster_number(whole)
        assert {("split", number), ("continued", number), ("born", part.id), ("joined", part.id)} <= kinds
        assert sum(crash_mass(session).values()) == 3
    again = by_hand(any_store)
    assert again is not None
    assert again.moved == 0


def test_a_merge_over_the_store(any_store: Store, night: Night) -> None:
    """Two clusters of one that are near become one; the old id means the other from then on."""
    night(0, MIXED[:1])
    beside(any_store, name="theirs")
    done = by_hand(any_store)
    assert done is not None
    assert (done.merged, done.moved) == (1, 1)
    with any_store.read() as session:
        assert follow_cluster(session, 1) == (2,)  # the named one stays, though the other has the crashes
        assert session.get_one(Row, 1).status == "merged"
        assert set(homes(session).values()) == {"C-0002"}
        merged = session.scalars(select(ClusterEvent).where(ClusterEvent.kind == "merged")).all()
        assert {(e.cluster_id, e.other_id) for e in merged} == {(1, 2), (2, 1)}


def test_decisions_stand_over_the_store(any_store: Store, night: Night) -> None:
    """What people merged is not cut, what they split is not put together, and a name stays where it was."""
    night(0, MIXED)
    by = By("somebody", NOW)
    with any_store.write() as session:
        deciding.merge(session, 1, [2], by)
        deciding.name(session, 1, "both", by)
    for _ in range(2):
        done = by_hand(any_store)
        assert done is not None
        assert done.moved == 0
    with any_store.write() as session:
        (some, *_) = homes(session)
        deciding.split(session, 1, [some], by)
        before = homes(session)
    by_hand(any_store)
    with any_store.read() as session:
        assert homes(session) == before
        assert session.get_one(Row, 1).name == "both"


def test_an_unmerge_stays_unmerged(any_store: Store, night: Night) -> None:
    """Two that any re-clustering would put together were merged and parted by people: they stay two, until a merge."""
    night(0, MIXED[:1])
    beside(any_store)
    by = By("somebody", NOW)
    with any_store.write() as session:
        merged = deciding.merge(session, 1, [2], by)[0].id
        assert links(session).cannot == frozenset()
        undone = undoing.undo(session, merged, by).decision.id
        (pair,) = links(session).cannot
        assert pair == frozenset(homes(session))
    done = by_hand(any_store)
    assert done is not None
    assert done.moved == 0
    with any_store.write() as session:
        assert set(homes(session).values()) == {"C-0001", "C-0002"}
        undoing.undo(session, undone, by)
        assert links(session).cannot == frozenset()
        assert len(links(session).must) == 1


def test_a_decision_meanwhile_is_seen(any_store: Store, night: Night) -> None:
    """Somebody names the part's cluster while it thinks: it looks again, and the name is not lost."""
    night(0, MIXED)
    in_one(any_store)
    decided: list[bool] = []

    def thinking(vectors: object) -> object:
        if not decided:
            decided.append(True)
            with any_store.write() as session:
                deciding.name(session, 1, "mine", By("somebody", NOW))
        return Linkage(0.35)(vectors)  # type: ignore[arg-type]  # vectors, as the proposer is given them

    engine = Reclusterer(lambda: FakeEncoder(DIMENSION), classifier, proposer=thinking)  # type: ignore[arg-type]  # as above
    done = engine.run(any_store, None, "by hand", clock=lambda: NOW, fence=lambda session: None)
    assert done is not None
    assert done.split == 1
    with any_store.read() as session:
        assert session.get_one(Row, 1).name == "mine"


CHILD = """
import sys, time
from datetime import UTC, datetime
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.recluster_step import Reclusterer
from crashpath.dashboard.engines import classifier
from crashpath.dashboard.testing import DIMENSION
from crashpath.ingest.store import open_store
def stop(session):
    print("writing", flush=True)
    if sys.argv[2] == "before":
        time.sleep(600)
def clock():
    if sys.argv[2] == "within":
        print("written", flush=True)
        time.sleep(600)
    return datetime.now(UTC)
with open_store(sys.argv[1]) as store:
    Reclusterer(lambda: FakeEncoder(DIMENSION), classifier).run(store, None, "by hand", clock=clock, fence=stop)
    print("done", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("point", ["before", "within", "after"])
def test_killed_anywhere(store: Store, tmp_path: Path, point: str) -> None:
    """kill -9 before, within and after the write: all of it or nothing, and the next one goes on from there."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, message in enumerate(MIXED):
        (folder / f"{number}.log").write_text(trace(message))
    run_night(store, [str(folder)], NightOptions(), light_clusterer(), clock=lambda: NOW)
    in_one(store)
    url = f"sqlite:///{tmp_path}/crashpath.db"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), url, point], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        wanted = {"before": "writing", "within": "written", "after": "done"}[point]
        deadline = time.monotonic() + 120
        while child.stdout.readline().strip() != wanted:
            assert time.monotonic() < deadline
    finally:
        child.kill()
    assert child.wait() == -signal.SIGKILL
    with store.read() as session:
        clusters = len(set(homes(session).values()))
        assert clusters == (2 if point == "after" else 1)
        assert ("reclustered" in nights(session)[0].counts and point == "after") or point != "after"
    done = by_hand(store)
    assert done is not None
    assert done.moved == (0 if point == "after" else 1)
    with store.read() as session:
        assert len(set(homes(session).values())) == 2


def test_the_command(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--dry-run says what would change and changes nothing; without it the same is done; a store is needed."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, message in enumerate(MIXED):
        (folder / f"{number}.log").write_text(trace(message))
    run_night(store, [str(folder)], NightOptions(), light_clusterer(), clock=lambda: NOW)
    in_one(store)
    url = f"sqlite:///{tmp_path}/crashpath.db"
    with store.read() as session:
        before = homes(session)
    assert run(["recluster", "--db", url, "--dry-run"]) == 0
    assert "split" in capsys.readouterr().out
    with open_store(url) as other, other.read() as session:
        assert homes(session) == before
    assert run(["recluster", "--db", url, "--json"]) == 0
    assert '"split": 1' in capsys.readouterr().out
    assert run(["recluster", "--db", f"sqlite:///{tmp_path}/none.db"]) == 4
