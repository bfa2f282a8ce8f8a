"""What people read from the store: trends, lists, details; what clustering reads and writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from crashpath.ingest import clusters, embeddings, trends
from crashpath.ingest.classes import HEADLINES
from crashpath.ingest.details import ClusterDetail, CrashDetail, SignatureDetail, show
from crashpath.ingest.ledger import Ledger, SourceIdentity
from crashpath.ingest.model import Role
from crashpath.ingest.nights import start_night
from crashpath.ingest.queries import cluster_list, quarantine, sources, store_totals
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import NoSuchThing, OtherEncoder
from crashpath.ingest.testing import EPOCH, made_up, same
from crashpath.ingest.trends import Count, DayCount, Filters
from crashpath.ingest.write import EndOfSource, Quarantined, Writer

NOW = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)
DAY = EPOCH.date()


@pytest.fixture
def filled(any_store: Store) -> Store:
    """Sixty crashes of five signatures over thirty days: signatures 0–3 in clusters 1 and 2, signature 4 in none."""
    with any_store.write() as session:
        night = start_night(session, versions={}, now=NOW)
        found = SourceIdentity("/logs/app.log", "h", 7, b"head", 12_000, NOW)
        state = Ledger(any_store.key, night, same).claim(session, found)
    batch = [made_up(n, kinds=5) for n in range(60)]
    held = [Quarantined(13_000, 13_010, "not text", "ab", "??")]
    Writer(any_store, night, same).write_batch(
        state, batch, held, checkpoint=12_000, seen=12_000, at_end=EndOfSource(12_000, NOW), now=NOW
    )
    with any_store.write() as session:
        for number, failure_class in ((1, "oom_host"), (2, "tokenizer")):
            clusters.create_cluster(
                session, number, label=f"root line {number}", encoder_id="e", failure_class=failure_class,
                probability=0.9, class_by="classifier", evidence=["cue"], night_id=night, now=NOW,
            )  # fmt: skip
        for kind, number in ((0, 1), (1, 1), (2, 2), (3, 2)):
            clusters.assign(
                session, _id(kind), number, by="birth" if kind % 2 == 0 else "join", why={"distance": 0.1},
                night_id=night, now=NOW,
            )  # fmt: skip
        clusters.set_shape(session, 1, spread=0.2, exemplars=[_id(1)])
    return any_store


def _id(kind: int) -> str:
    return f"sig1-{kind:016x}"


def test_counts_add_up_in_every_dimension(filled: Store) -> None:
    """Whatever the dimension, by day or not, the counts sum to all crashes: nothing is left out."""
    with filled.read() as session:
        for by in trends.DIMENSIONS:
            assert sum(c.crashes for c in trends.counts(session, by)) == 60
            assert sum(c.crashes for c in trends.counts_by_day(session, by)) == 60


def test_classes_and_headline(filled: Store) -> None:
    """Crashes count under their cluster's class, those without a cluster as unclassified, the headline in its order."""
    with filled.read() as session:
        assert trends.crashes_by_class(session) == (
            Count("oom_host", 24), Count("tokenizer", 24), Count("unclassified", 12),
        )  # fmt: skip
        assert [c.key for c in trends.headline(session)] == list(HEADLINES)
        assert dict(trends.headline(session))["OOM"] == 24
        assert dict(trends.headline(session))["other"] == 12
        assert trends.counts(session, "cluster") == (
            Count("C-0001", 24), Count("C-0002", 24), Count("unassigned", 12),
        )  # fmt: skip


def test_filters(filled: Store) -> None:
    """Each filter counts exactly the crashes that have the value; days are inclusive."""
    with filled.read() as session:
        assert trends.counts(session, "release", Filters(release="1.0")) == (Count("1.0", 30),)
        assert trends.counts(session, "platform", Filters(platform="k8s")) == (Count("k8s", 20),)
        assert trends.counts(session, "release", Filters(failure_class="oom_host")) == (
            Count("1.0", 12),
            Count("1.1", 12),
        )
        assert sum(c.crashes for c in trends.counts(session, "path", Filters(failure_class="unclassified"))) == 12
        assert sum(c.crashes for c in trends.counts(session, "path", Filters(cluster=2))) == 24
        assert trends.counts_by_day(session, "release", Filters(since=DAY, until=DAY)) == (DayCount(DAY, "1.0", 2),)
        assert trends.counts(session, "release", Filters(release="none")) == ()
        assert trends.days(session) == (DAY, DAY + timedelta(days=29))
        assert trends.values(session, "platform") == ("android", "k8s", "linux")


def test_empty_store_answers(any_store: Store) -> None:
    """Every query of an empty store gives an empty answer."""
    with any_store.read() as session:
        assert trends.counts_by_day(session, "class") == ()
        assert [c.crashes for c in trends.headline(session)] == [0] * len(HEADLINES)
        assert trends.days(session) is None
        assert cluster_list(session) == ()
        assert sources(session) == quarantine(session) == ()
        totals = store_totals(session)
        assert (totals.crashes, totals.clusters, totals.first_day) == (0, 0, None)


def test_lists(filled: Store) -> None:
    """Totals, clusters with first and last day and release, sources and quarantine."""
    with filled.read() as session:
        totals = store_totals(session)
        assert (totals.crashes, totals.signatures, totals.clusters, totals.unclassified) == (60, 5, 2, 12)
        assert (totals.sources, totals.quarantined, totals.nights) == (1, 1, 1)
        first, second = cluster_list(session)
        assert (first.id, second.id, first.crashes, first.signatures) == ("C-0001", "C-0002", 24, 2)
        assert (first.first_day, first.first_release) == (DAY, "1.0")
        assert (first.last_day, first.last_release) == (DAY + timedelta(days=26), "1.0")
        assert first.releases == ("1.0", "1.1")
        assert [row.crashes for row in cluster_list(session, Filters(release="1.1"))] == [12, 12]
        assert len(cluster_list(session, limit=1)) == 1
        assert [(s.path, s.offset, s.size) for s in sources(session)] == [("/logs/app.log", 12_000, 12_000)]
        assert sources(session, problems_only=True) == ()
        assert [(q.path, q.offset, q.reason) for q in quarantine(session)] == [("/logs/app.log", 13_000, "not text")]


def test_show(filled: Store) -> None:
    """A cluster, a signature and a crash are shown with texts, roles and reasons."""
    with filled.read() as session:
        cluster = show(session, "c-1")
        assert isinstance(cluster, ClusterDetail)
        assert [s.id for s in cluster.signatures] == [_id(0), _id(1)]
        assert [e.kind for e in cluster.events] == ["born", "joined"]
        assert cluster.evidence == ("cue",)
        assert cluster.signatures[1].why == {"distance": 0.1}
        assert cluster.signatures[1].is_exemplar
        assert sum(c.crashes for c in cluster.by_day) == 24
        signature = show(session, _id(4))
        assert isinstance(signature, SignatureDetail)
        assert (signature.crashes, signature.cluster, len(signature.examples)) == (12, None, 3)
        example = signature.examples[0]
        assert example.roles[example.root_line] is Role.ROOT
        assert "failure of kind 4" in example.text.splitlines()[example.root_line]
        crash = show(session, str(example.crash_id))
        assert isinstance(crash, CrashDetail)
        assert (crash.signature_id, crash.example) == (_id(4), example)
        assert crash.frames[0].function == "run_4"


@pytest.mark.parametrize("unknown", ["C-0099", "sig1-none", "sig1", "424242", "rubbish", ""])
def test_unknown_ids(filled: Store, unknown: str) -> None:
    """An id that is unknown, ambiguous or no id gives one sentence with advice."""
    with filled.read() as session, pytest.raises(NoSuchThing) as caught:
        show(session, unknown)
    assert caught.value.advice


def test_pending_signatures_do_not_depend_on_order(filled: Store) -> None:
    """Signatures without a cluster come with what is most often true of their crashes, their chain and frames."""
    with filled.read() as session:
        (one,) = clusters.pending_signatures(session)
    assert (one.id, one.crashes, one.format, one.root_type) == (_id(4), 12, "python", "RuntimeError")
    assert (one.phase, one.cue_class, one.chain) == ("infer", None, ("RuntimeError",))
    assert one.frames[0].function == "run_4"


def test_known_clusters(filled: Store) -> None:
    """The registry gets back what it stored: members, exemplars, spread, the next number."""
    with filled.read() as session:
        first, second = clusters.known_clusters(session)
        assert (first.id, first.members, first.exemplars, first.spread) == ("C-0001", (_id(0), _id(1)), (_id(1),), 0.2)
        assert second.exemplars == ()
        assert clusters.next_number(session) == 3
    with filled.write() as session, pytest.raises(NoSuchThing):
        clusters.assign(session, "sig1-none", 1, by="join", why={}, night_id=None, now=NOW)


def test_class_of_a_person_stands(filled: Store) -> None:
    """A classifier's class gives way to another one and leaves a trace; one that a person gave stays."""
    with filled.write() as session:
        new = {"evidence": ["x"], "night_id": None, "now": NOW}
        assert clusters.classify(session, 1, "oom_device", 0.8, by="classifier", **new)  # type: ignore[arg-type]
        assert not clusters.classify(session, 1, "oom_device", 0.7, by="classifier", **new)  # type: ignore[arg-type]
        assert clusters.classify(session, 1, "hang", None, by="person", **new)  # type: ignore[arg-type]
        assert not clusters.classify(session, 1, "oom_host", 0.9, by="classifier", **new)  # type: ignore[arg-type]
    with filled.read() as session:
        assert clusters.known_clusters(session)[0].failure_class == "hang"
        shown = show(session, "C-0001")
        assert isinstance(shown, ClusterDetail)
        assert [e.detail.get("new") for e in shown.events if e.kind == "classified"] == ["oom_device", "hang"]


def test_vectors_first_one_wins(any_store: Store) -> None:
    """A vector comes back bit for bit, for its own encoder only, and is never replaced."""
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 384)).astype(np.float32)
    with any_store.write() as session:
        embeddings.save_embeddings(session, "e1", {"a": one, "b\ud800": two})
        embeddings.save_embeddings(session, "e1", {"a": two})
        embeddings.save_embeddings(session, "e1", {})
    with any_store.read() as session:
        found = embeddings.embeddings(session, "e1", ["a", "b\ud800", "c", "a"])
        assert set(found) == {"a", "b\ud800"}
        assert np.array_equal(found["a"], one)
        assert embeddings.embeddings(session, "e2", ["a"]) == {}


def test_store_is_tied_to_one_encoder(any_store: Store) -> None:
    """The first encoder ties the store; another one is refused in a sentence."""
    with any_store.write() as session:
        embeddings.tie_encoder(session, "e1")
        embeddings.tie_encoder(session, "e1")
        with pytest.raises(OtherEncoder, match="e1, and e2"):
            embeddings.tie_encoder(session, "e2")
