"""Writes what the registry decided in a night, as far as people left the clusters as the registry saw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy.orm import Session

from crashpath.clustering.classifier import Verdict
from crashpath.clustering.registry import Assignment
from crashpath.clustering.state import Birth, Cluster, Join
from crashpath.ingest.clusters import (
    SignatureFacts,
    StoredCluster,
    cluster_id,
    cluster_number,
    create_cluster,
    known_clusters,
    next_number,
    set_shape,
)
from crashpath.ingest.clusters import assign as store_member
from crashpath.ingest.clusters import classify as store_class
from crashpath.ingest.decisions import hold


class Writing:
    """Writes in one transaction of the caller's."""

    def __init__(self, session: Session, encoder_id: str, night: int, now: datetime) -> None:
        self._session = session
        self._encoder_id = encoder_id
        self._night = night
        self._now = now

    def write(
        self,
        outcome: Assignment,
        pending: Sequence[SignatureFacts],
        classes: Mapping[str, Verdict],
        *,
        stored: Sequence[StoredCluster],
        decided: int,
    ) -> tuple[Join | Birth, ...]:
        """Write joins, births, shapes and classes; return the decisions that were written.

        ``stored`` and ``decided`` are what the outcome was decided on. Where people decided since, joins into clusters
        that they changed are left out, and births get the numbers that are free now.
        """
        decisions, clusters = outcome.decisions, outcome.state.clusters
        if hold(self._session) != decided:
            fresh = _Fresh(self._session, stored, outcome)
            decisions = tuple(fresh.renumbered(one) for one in decisions if fresh.stands(one.cluster))
            clusters = tuple(fresh.renumbered_cluster(one) for one in clusters if fresh.stands(one.id))
            classes = {fresh.number(name): one for name, one in classes.items() if fresh.stands(name)}
        self._write(decisions, clusters, {one.id: one for one in pending}, classes)
        return decisions

    def _write(
        self,
        decisions: Sequence[Join | Birth],
        clusters: Sequence[Cluster],
        facts: Mapping[str, SignatureFacts],
        classes: Mapping[str, Verdict],
    ) -> None:
        made: set[str] = set()
        for decision in decisions:
            born = isinstance(decision, Birth)
            if born and decision.cluster not in made:
                made.add(decision.cluster)
                self._create(decision.cluster, facts[decision.item], classes[decision.cluster])
            store_member(
                self._session,
                decision.item,
                cluster_number(decision.cluster),
                by="birth" if born else "join",
                why=decision.why.document(),
                night_id=self._night,
                now=self._now,
            )
        changed = {decision.cluster for decision in decisions}
        for cluster in clusters:
            if cluster.id in changed:
                exemplars = [point.item.id for point in cluster.exemplars]
                set_shape(self._session, cluster_number(cluster.id), spread=cluster.spread, exemplars=exemplars)
        for name, verdict in classes.items():
            if name not in made:
                self._reclassify(name, verdict)

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


class _Fresh:
    """The clusters as they are now, beside those that an outcome was decided on."""

    def __init__(self, session: Session, stored: Sequence[StoredCluster], outcome: Assignment) -> None:
        now = {one.id: (one.members, one.exemplars) for one in known_clusters(session)}
        self._same = {one.id for one in stored if now.get(one.id) == (one.members, one.exemplars)}
        born = sorted({one.cluster for one in outcome.decisions if isinstance(one, Birth)}, key=cluster_number)
        first = next_number(session)
        self._numbers = {name: cluster_id(first + n) for n, name in enumerate(born)}

    def stands(self, name: str) -> bool:
        """Whether a cluster is a birth of this night, or as it was."""
        return name in self._same or name in self._numbers

    def number(self, name: str) -> str:
        """Return the number under which a cluster is written."""
        return self._numbers.get(name, name)

    def renumbered(self, decision: Join | Birth) -> Join | Birth:
        return replace(decision, cluster=self.number(decision.cluster))

    def renumbered_cluster(self, cluster: Cluster) -> Cluster:
        return replace(cluster, id=self.number(cluster.id))
