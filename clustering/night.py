"""The clustering step of a night: new signatures get vectors, a cluster and a class; everything else stays.

Three short transactions with the slow work between them: read what is pending, keep the new vectors, write what the
registry decided. A night that is killed in between leaves the signatures pending, and the next one takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from crashpath.clustering.classifier import Classifier, Verdict
from crashpath.clustering.encoder import Encoder, Vectors
from crashpath.clustering.features import subject_of_signature
from crashpath.clustering.items import item_of_signature
from crashpath.clustering.registry import Assignment, Birth, Cluster, Point, State, Why, assign
from crashpath.clustering.vectors import embed
from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.clusters import (
    SignatureFacts,
    StoredCluster,
    cluster_number,
    create_cluster,
    known_clusters,
    next_number,
    pending_signatures,
    set_shape,
    signature_facts,
)
from crashpath.ingest.clusters import assign as store_member
from crashpath.ingest.clusters import classify as store_class
from crashpath.ingest.embeddings import embeddings, save_embeddings, tie_encoder
from crashpath.ingest.store import Store


@dataclass(frozen=True, slots=True)
class Clustered:
    """What a night did here. ``points`` and ``components``: what was given to the proposer, and its dimensions."""

    embedded: int = 0
    points: int = 0
    components: int = 0
    groups: int = 0
    noise: int = 0
    method: str = "none"
    born: int = 0
    joined: int = 0
    seconds: tuple[tuple[str, float], ...] = ()


class StoreCache:
    """Vectors kept in the store, so that a text is encoded once in its life."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_many(self, encoder: str, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the stored vectors of these texts."""
        with self._store.read() as session:
            return embeddings(session, encoder, texts)

    def put_many(self, encoder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep vectors of new texts."""
        with self._store.write() as session:
            save_embeddings(session, encoder, vectors)


class Clusterer:
    """Runs the clustering step over a store with one encoder and one classifier."""

    def __init__(self, encoder: Callable[[], Encoder], classifier: Callable[[], Classifier]) -> None:
        """Both are given as makers: a night without new signatures loads neither."""
        self._encoder = encoder
        self._classifier = classifier

    def run(
        self,
        store: Store,
        night: int,
        *,
        clock: Callable[[], datetime],
        say: Callable[[str], None],
        fence: Callable[[Session], None],
    ) -> Clustered:
        """Cluster and classify what is pending. ``fence`` raises inside the transaction when the lease is lost.

        Raises ``OtherEncoder`` for a store that another encoder filled.
        """
        with store.read() as session:
            pending = pending_signatures(session)
            stored = known_clusters(session)
            number = next_number(session)
            exemplars = signature_facts(session, [i for cluster in stored for i in cluster.exemplars])
        if not pending:
            return Clustered()
        laps = _Laps(say)
        laps.begin("embed")
        encoder = self._encoder()
        with store.write() as session:
            tie_encoder(session, encoder.id)
        cache = StoreCache(store)
        vectors, embedded = embed([facts.text for facts in pending], encoder, cache)
        known, _ = embed([facts.text for facts in exemplars], encoder, cache)
        laps.begin("cluster")
        state = _state(stored, exemplars, known, number)
        outcome = assign(state, [Point(item_of_signature(f), v) for f, v in zip(pending, vectors, strict=True)])
        laps.begin("classify")
        classes = _Classes(self._classifier(), stored).judge(
            outcome, [*zip(pending, vectors, strict=True)], [*zip(exemplars, known, strict=True)]
        )
        laps.begin("store clusters")
        with store.write() as session:
            fence(session)
            _Writing(session, encoder.id, night, clock()).write(outcome, pending, classes)
        laps.end()
        born = {d.cluster for d in outcome.decisions if isinstance(d, Birth)}
        proposal = outcome.proposal
        return Clustered(
            embedded=embedded,
            points=proposal.points,
            components=proposal.components,
            groups=len(proposal.groups),
            noise=len(proposal.noise),
            method=proposal.method,
            born=len(born),
            joined=sum(not isinstance(d, Birth) for d in outcome.decisions),
            seconds=laps.spent,
        )


class _Laps:
    """Seconds of the stages that follow each other."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._spent: list[tuple[str, float]] = []
        self._name: str | None = None
        self._since = 0.0

    def begin(self, name: str) -> None:
        self.end()
        self._say(name)
        self._name, self._since = name, time.perf_counter()

    def end(self) -> None:
        if self._name is not None:
            self._spent.append((self._name, time.perf_counter() - self._since))
            self._name = None

    @property
    def spent(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._spent)


def _state(
    stored: Sequence[StoredCluster], exemplars: Sequence[SignatureFacts], vectors: Vectors, number: int
) -> State:
    """Return the registry's state as the store has it."""
    points = {
        facts.id: Point(item_of_signature(facts), vector) for facts, vector in zip(exemplars, vectors, strict=True)
    }
    clusters = []
    for one in stored:
        its = tuple(points[i] for i in one.exemplars if i in points)
        cues = sorted({point.item.cue for point in its if point.item.cue})
        clusters.append(Cluster(one.id, one.members, its, one.spread, cues[0] if cues else None))
    return State(tuple(clusters), number)


class _Classes:
    """Judges the clusters that were born and those that had no class: a class, once given, does not move with joins."""

    def __init__(self, classifier: Classifier, stored: Sequence[StoredCluster]) -> None:
        self._classifier = classifier
        self._settled = {one.id for one in stored if one.failure_class != UNCLASSIFIED}
        self._home = {member: one.id for one in stored for member in one.exemplars}
        self._votes: dict[str, dict[str, float]] = {}
        self._best: dict[tuple[str, str], Verdict] = {}

    def judge(
        self,
        outcome: Assignment,
        new: Sequence[tuple[SignatureFacts, Vectors]],
        old: Sequence[tuple[SignatureFacts, Vectors]],
    ) -> dict[str, Verdict]:
        """Return the verdict on each cluster that changed and has no class yet, all its exemplars heard by weight."""
        home = {decision.item: decision.cluster for decision in outcome.decisions}
        open_now = set(home.values()) - self._settled
        for facts, vector in (*new, *old):
            cluster = home.get(facts.id) or self._home.get(facts.id)
            if cluster in open_now:
                self._hear(cluster, facts, vector)
        return {cluster: self._best[cluster, _winner(votes)] for cluster, votes in self._votes.items()}

    def _hear(self, cluster: str, facts: SignatureFacts, vector: Vectors) -> None:
        verdict = self._classifier.judge(subject_of_signature(facts), vector)
        votes = self._votes.setdefault(cluster, {})
        votes[verdict.failure_class] = votes.get(verdict.failure_class, 0.0) + verdict.probability * facts.crashes
        key = (cluster, verdict.failure_class)
        if key not in self._best or verdict.probability > self._best[key].probability:
            self._best[key] = verdict


def _winner(votes: Mapping[str, float]) -> str:
    """The class with the most weight; ties go to the first by name."""
    return min(votes, key=lambda name: (-votes[name], name))


class _Writing:
    """Writes what the registry decided, in one transaction of the caller's."""

    def __init__(self, session: Session, encoder_id: str, night: int, now: datetime) -> None:
        self._session = session
        self._encoder_id = encoder_id
        self._night = night
        self._now = now

    def write(self, outcome: Assignment, pending: Sequence[SignatureFacts], classes: Mapping[str, Verdict]) -> None:
        facts = {one.id: one for one in pending}
        made: set[str] = set()
        for decision in outcome.decisions:
            born = isinstance(decision, Birth)
            if born and decision.cluster not in made:
                made.add(decision.cluster)
                self._create(decision.cluster, facts[decision.item], classes[decision.cluster])
            store_member(
                self._session,
                decision.item,
                cluster_number(decision.cluster),
                by="birth" if born else "join",
                why=_why(decision.why),
                night_id=self._night,
                now=self._now,
            )
        changed = {decision.cluster for decision in outcome.decisions}
        for cluster in outcome.state.clusters:
            if cluster.id in changed:
                exemplars = [point.item.id for point in cluster.exemplars]
                set_shape(self._session, cluster_number(cluster.id), spread=cluster.spread, exemplars=exemplars)
        for cluster_id, verdict in classes.items():
            if cluster_id not in made:
                self._reclassify(cluster_id, verdict)

    def _create(self, cluster: str, facts: SignatureFacts, verdict: Verdict) -> None:
        create_cluster(
            self._session,
            cluster_number(cluster),
            label=facts.text,
            encoder_id=self._encoder_id,
            failure_class=verdict.failure_class,
            probability=verdict.probability,
            class_by="classifier",
            evidence=verdict.evidence,
            night_id=self._night,
            now=self._now,
        )

    def _reclassify(self, cluster: str, verdict: Verdict) -> None:
        store_class(
            self._session,
            cluster_number(cluster),
            verdict.failure_class,
            verdict.probability,
            by="classifier",
            evidence=verdict.evidence,
            night_id=self._night,
            now=self._now,
        )


def _why(why: Why) -> dict[str, Any]:
    return asdict(why) | {"distance": round(why.distance, 4)}
