"""The clustering step of a night: new signatures get vectors, a cluster and a class; everything else stays.

Three short transactions with the slow work between them: read what is pending, keep the new vectors, write what the
registry decided, as far as people left the clusters as they were. A night that is killed in between leaves the
signatures pending, and the next one takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from crashpath.clustering.classifier import Classifier, Verdict
from crashpath.clustering.cohesion import NO_LINKS, Links
from crashpath.clustering.encoder import Encoder, Vectors
from crashpath.clustering.features import subject_of_signature
from crashpath.clustering.items import item_of_signature
from crashpath.clustering.night_write import Writing
from crashpath.clustering.registry import Assignment, Birth, Cluster, Point, State, assign
from crashpath.clustering.vectors import embed
from crashpath.ingest.classes import UNCLASSIFIED
from crashpath.ingest.clusters import (
    SignatureFacts,
    StoredCluster,
    known_clusters,
    next_number,
    pending_signatures,
    signature_facts,
)
from crashpath.ingest.decisions import last, links
from crashpath.ingest.embeddings import embeddings, save_embeddings, tie_encoder
from crashpath.ingest.store import Store

PASSES = 5
"""How often a night thinks again because people decided meanwhile, before it leaves the rest to the next one."""


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

    def and_then(self, later: Clustered) -> Clustered:
        """Add what a later pass did; what was given to the proposer is told of the first pass, which saw it all."""
        first = later if self.method == "none" else self
        embedded, born, joined = self.embedded + later.embedded, self.born + later.born, self.joined + later.joined
        return replace(first, embedded=embedded, born=born, joined=joined)


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

        People may decide while a night thinks. What was decided on clusters that they changed meanwhile is dropped, and
        thought over again on what they left; after ``PASSES`` such passes the rest waits for the next night.

        Raises ``OtherEncoder`` for a store that another encoder filled.
        """
        laps, done = _Laps(say), Clustered()
        for _ in range(PASSES):
            seen = _look(store)
            if not seen.pending:
                break
            done = done.and_then(self._pass(store, seen, night, clock, laps, fence))
        return replace(done, seconds=laps.spent)

    def _pass(
        self,
        store: Store,
        seen: _Seen,
        night: int,
        clock: Callable[[], datetime],
        laps: _Laps,
        fence: Callable[[Session], None],
    ) -> Clustered:
        laps.begin("embed")
        encoder = self._encoder()
        with store.write() as session:
            tie_encoder(session, encoder.id)
        cache = StoreCache(store)
        vectors, embedded = embed([facts.text for facts in seen.pending], encoder, cache)
        known, _ = embed([facts.text for facts in seen.exemplars], encoder, cache)
        laps.begin("cluster")
        state = _state(seen.stored, seen.exemplars, known, seen.number)
        points = [Point(item_of_signature(f), v) for f, v in zip(seen.pending, vectors, strict=True)]
        outcome = assign(state, points, links=seen.links)
        laps.begin("classify")
        classes = _Classes(self._classifier(), seen.stored).judge(
            outcome, [*zip(seen.pending, vectors, strict=True)], [*zip(seen.exemplars, known, strict=True)]
        )
        laps.begin("store clusters")
        with store.write() as session:
            fence(session)
            writing = Writing(session, encoder.id, night, clock())
            written = writing.write(outcome, seen.pending, classes, stored=seen.stored, decided=seen.decided)
        laps.end()
        proposal = outcome.proposal
        return Clustered(
            embedded=embedded,
            points=proposal.points,
            components=proposal.components,
            groups=len(proposal.groups),
            noise=len(proposal.noise),
            method=proposal.method,
            born=len({one.cluster for one in written if isinstance(one, Birth)}),
            joined=sum(not isinstance(one, Birth) for one in written),
        )


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a pass decides on: all of one moment. ``decided``: the last decision of people that it knows of."""

    pending: tuple[SignatureFacts, ...]
    stored: tuple[StoredCluster, ...]
    exemplars: tuple[SignatureFacts, ...]
    number: int
    links: Links
    decided: int


def _look(store: Store) -> _Seen:
    with store.read() as session:
        # First, so that what is decided between two statements is looked at once more, never overlooked.
        decided = last(session)
        pending = pending_signatures(session)
        if not pending:
            return _Seen((), (), (), 0, NO_LINKS, decided)
        stored = known_clusters(session)
        exemplars = signature_facts(session, [i for cluster in stored for i in cluster.exemplars])
        return _Seen(pending, stored, exemplars, next_number(session), links(session), decided)


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
