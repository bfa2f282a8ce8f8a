"""The step that forms clusters anew over a store: when it is due, what it looks at, and what it writes.

One read, the slow work outside any transaction, one write that does all or nothing and keeps when it was done: a
process that is killed leaves a store on which the next night does it. What people decide meanwhile makes it look again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from sqlalchemy.orm import Session

from crashpath.clustering.blocks import Seen
from crashpath.clustering.classifier import Classifier
from crashpath.clustering.cohesion import Links
from crashpath.clustering.encoder import Encoder, Vectors
from crashpath.clustering.features import subject_of_signature
from crashpath.clustering.items import item_of_signature
from crashpath.clustering.night import StoreCache
from crashpath.clustering.propose import Proposer
from crashpath.clustering.recluster import WHOLE, Moved, Reclustering, recluster
from crashpath.clustering.recluster_write import Made, Reclustered, Write
from crashpath.clustering.state import LIMITS, Cluster, Limits, Point
from crashpath.clustering.vectors import embed
from crashpath.ingest import lineage
from crashpath.ingest.clusters import (
    SignatureFacts,
    StoredCluster,
    known_clusters,
    next_number,
    signature_facts,
)
from crashpath.ingest.decisions import decided_clusters, hold, last, links
from crashpath.ingest.embeddings import tie_encoder
from crashpath.ingest.store import Store

PASSES = 5
"""How often it looks again because people decided meanwhile, before it leaves the work to the next night."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a re-clustering is due: after so many days, or so large a share of new signatures, since the last one."""

    days: float = 7.0
    share: float = 0.2


SCHEDULE = Schedule()


@dataclass(frozen=True, slots=True)
class Preview:
    """What a re-clustering would do now, and the crashes of each signature."""

    outcome: Reclustering
    mass: Mapping[str, int]

    def crashes(self, moved: Moved) -> int:
        """Return how many crashes move."""
        return sum(self.mass.get(one, 0) for one in moved.items)


@dataclass(frozen=True, slots=True)
class _Look:
    """All of one moment. ``decided``: the last decision of people that it knows of; ``owned``: what is theirs."""

    decided: int
    owned: frozenset[int]
    split_or_merged: frozenset[int]
    links: Links
    stored: tuple[StoredCluster, ...]
    facts: tuple[SignatureFacts, ...]
    mass: Mapping[str, int]
    young: frozenset[int]
    number: int
    encoder: str | None


class Reclusterer:
    """Forms clusters anew over a store, with one encoder, one classifier and one schedule."""

    def __init__(
        self,
        encoder: Callable[[], Encoder],
        classifier: Callable[[], Classifier],
        *,
        schedule: Schedule = SCHEDULE,
        limits: Limits = LIMITS,
        proposer: Proposer | None = None,
    ) -> None:
        """Encoder and classifier are given as makers: they are loaded only for texts without a vector and for parts."""
        self._encoder, self._classifier = encoder, classifier
        self._schedule, self._limits, self._proposer = schedule, limits, proposer

    def due(self, store: Store, now: datetime) -> str | None:
        """Return why a re-clustering is due, ``None`` where none is."""
        with store.read() as session:
            mark, count = lineage.last_mark(session), lineage.signature_count(session)
        if mark is None or not count:
            return None
        if now - mark.at >= timedelta(days=self._schedule.days):
            return f"{self._schedule.days:g} days since the last one"
        new = count - mark.signatures
        if new > 0 and new >= self._schedule.share * mark.signatures:
            return f"{new:,} new signatures beside {mark.signatures:,}"
        return None

    def preview(self, store: Store) -> Preview:
        """Say what would be done now; nothing is written."""
        seen = _look(store)
        return Preview(self._think(store, seen)[0], seen.mass)

    def run(
        self,
        store: Store,
        night: int | None,
        because: str,
        *,
        clock: Callable[[], datetime],
        fence: Callable[[Session], None],
    ) -> Reclustered | None:
        """Form clusters anew; ``None`` where there is nothing to look at or people decided all the while.

        ``night`` is the one that does it, ``None`` for a person, whose doing is kept with the last night.
        """
        for _ in range(PASSES):
            seen = _look(store)
            if not seen.stored:
                return None
            outcome, vectors = self._think(store, seen)
            parts = _Parts(self._classifier, seen, vectors) if outcome.made else None
            made = {name: parts.create(outcome, name) for name in outcome.made} if parts else {}
            with store.write() as session:
                fence(session)
                if hold(session) != seen.decided or lineage.owned_clusters(session) != seen.owned:
                    continue
                kept = lineage.newest_night(session) if night is None else night
                done = Write(session, seen.mass, seen.encoder, kept, clock()).write(outcome, made, because)
                if kept is not None:
                    lineage.keep_mark(session, kept, done.document())
            return done
        return None

    def _think(self, store: Store, seen: _Look) -> tuple[Reclustering, dict[str, Vectors]]:
        vectors = self._vectors(store, seen)
        points = {one.id: Point(item_of_signature(one), vectors[one.id]) for one in seen.facts}
        clusters = [_seen(one, points, seen) for one in seen.stored if one.members]
        outcome = recluster(
            clusters, seen.mass, seen.number, links=seen.links, limits=self._limits, proposer=self._proposer
        )
        return outcome, vectors

    def _vectors(self, store: Store, seen: _Look) -> dict[str, Vectors]:
        """Return vectors by signature: as they are stored, and of texts that have none from the encoder."""
        cache, texts = StoreCache(store), sorted({one.text for one in seen.facts})
        known = cache.get_many(seen.encoder, texts) if seen.encoder else {}
        missing = [text for text in texts if text not in known]
        if missing:
            encoder = self._encoder()
            with store.write() as session:
                tie_encoder(session, encoder.id)
            more, _ = embed(missing, encoder, cache)
            known = {**known, **dict(zip(missing, more, strict=True))}
        return {one.id: np.asarray(known[one.text], dtype=np.float32) for one in seen.facts}


def _look(store: Store) -> _Look:
    with store.read() as session:
        decided = last(session)  # first, so that what is decided between two statements is looked at once more
        owned, changed = lineage.owned_clusters(session), decided_clusters(session)
        mark, born = lineage.last_mark(session), lineage.born_nights(session)
        stored = known_clusters(session)
        ids = [i for one in stored for i in (one.members if len(one.members) <= WHOLE else one.exemplars)]
        return _Look(
            decided=decided,
            owned=owned,
            split_or_merged=changed,
            links=links(session),
            stored=stored,
            facts=signature_facts(session, ids),
            mass=lineage.crash_mass(session),
            young=frozenset(number for number, night in born.items() if mark is not None and night > mark.night),
            number=next_number(session),
            encoder=lineage.tied_encoder(session),
        )


def _seen(one: StoredCluster, points: Mapping[str, Point], seen: _Look) -> Seen:
    whole = len(one.members) <= WHOLE
    exemplars = tuple(points[i] for i in one.exemplars if i in points)
    cues = sorted({point.item.cue for point in exemplars if point.item.cue})
    cluster = Cluster(one.id, one.members, exemplars, one.spread, cues[0] if cues else None)
    changed = one.number in seen.split_or_merged
    return Seen(
        cluster,
        tuple(points[i] for i in one.members if i in points) if whole else exemplars,
        sum(seen.mass.get(i, 0) for i in one.members),
        young=one.number in seen.young,
        decided=changed,
        owned=changed or one.number in seen.owned,
    )


class _Parts:
    """Classes of the parts that become clusters: of each signature by itself, weighed with its crashes."""

    def __init__(self, classifier: Callable[[], Classifier], seen: _Look, vectors: Mapping[str, Vectors]) -> None:
        self._classifier, self._vectors, self._mass = classifier(), vectors, seen.mass
        self._facts = {one.id: one for one in seen.facts}

    def create(self, outcome: Reclustering, name: str) -> Made:
        """Return the label and class of a new cluster."""
        ids = sorted(one for part in outcome.split if part.new == name for one in part.items)
        verdicts = {
            one: self._classifier.judge(subject_of_signature(self._facts[one]), self._vectors[one]) for one in ids
        }
        votes: dict[str, float] = {}
        for one, verdict in verdicts.items():
            weight = verdict.probability * max(1, self._mass.get(one, 0))
            votes[verdict.failure_class] = votes.get(verdict.failure_class, 0.0) + weight
        best = min(votes, key=lambda name: (-votes[name], name))
        of_it = [verdict for verdict in verdicts.values() if verdict.failure_class == best]
        surest = max(of_it, key=lambda verdict: verdict.probability)
        label = self._facts[min(ids, key=lambda one: (-self._mass.get(one, 0), one))].text
        return Made(label, best, surest.probability, surest.evidence)
